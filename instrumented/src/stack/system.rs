//! Names as the `backtrace` crate finds them on this platform.

use super::Effort;
use holdup_core::snapshot::Site;
use std::sync::Arc;

/// Calls `found` with the functions at a return address, innermost first, inlined ones included.
pub(super) fn read(address: u64, _: Effort, found: &mut dyn FnMut(&str, Option<Site>)) {
    // A return address is behind the call; one byte before it lies inside the call.
    let call = usize::try_from(address).unwrap_or(0).saturating_sub(1);
    backtrace::resolve(std::ptr::without_provenance_mut(call), |symbol| {
        let function = symbol.name().map(|name| format!("{name:#}")).unwrap_or_default();
        let site = symbol.filename().map(|file| Site {
            file: Arc::from(file.to_string_lossy()),
            line: symbol.lineno().unwrap_or(0),
            column: symbol.colno().unwrap_or(0),
        });
        found(&function, site);
    });
}
