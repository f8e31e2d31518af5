//! Names of addresses. Reading debug information is slow and is done on the threads that ask for it only.

#[cfg(target_os = "linux")]
#[path = "debug_info.rs"]
mod reader;
#[cfg(not(target_os = "linux"))]
#[path = "system.rs"]
mod reader;

use holdup_core::path::is_outside;
use holdup_core::snapshot::Frame;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Frames = Arc<[Frame]>;

/// The logical frames of each address asked for so far. Bounded by the number of stacks that are kept.
static CACHE: Mutex<Option<HashMap<u64, Frames>>> = Mutex::new(None);

/// The named frames of a stack, innermost first, if it has been resolved before. Those that had no name then
/// have none here.
pub(crate) fn known(addresses: &[u64]) -> Option<Frames> {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = cache.as_ref()?;
    // The innermost frame, which is holdup's own, always has a name once it has been looked for.
    cache.get(addresses.first()?)?;
    let mut frames = Vec::with_capacity(addresses.len());
    for address in addresses {
        match cache.get(address) {
            Some(found) => frames.extend(found.iter().cloned()),
            None => frames.push(nameless(*address)),
        }
    }
    Some(frames.into())
}

/// How far to go for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What a diagnosis looks at: the path from the acquire to the runtime's poll, by debug information.
    Path,
    /// All of the stack, and the symbol table too: functions without debug information (assembly, C libraries)
    /// have a name there. Worth it for somebody who reads.
    Everything,
}

/// The named frames of a stack, innermost first.
pub(crate) fn resolve(addresses: &[u64], effort: Effort) -> Frames {
    let mut frames: Vec<Frame> = Vec::with_capacity(addresses.len());
    let mut addresses = addresses.iter();
    for address in addresses.by_ref() {
        let part = frames_at(*address, effort);
        frames.extend(part.iter().cloned());
        if effort == Effort::Path && part.iter().any(is_outside) {
            break;
        }
    }
    frames.extend(addresses.map(|address| nameless(*address)));
    frames.into()
}

fn nameless(address: u64) -> Frame {
    Frame { function: Arc::from(""), site: None, address, inlined: false }
}

fn frames_at(address: u64, effort: Effort) -> Frames {
    // The lock is not held while symbols are read, so that `known` never waits for that.
    let cached = |cache: &Option<HashMap<u64, Frames>>| cache.as_ref()?.get(&address).cloned();
    if let Some(frames) = cached(&CACHE.lock().unwrap_or_else(PoisonError::into_inner)) {
        return frames;
    }
    let mut frames = Vec::new();
    reader::read(address, effort, &mut |function, site| {
        frames.push(Frame { function: Arc::from(function), site, address, inlined: true });
    });
    match frames.last_mut() {
        Some(outermost) => outermost.inlined = false,
        None => {
            if effort != Effort::Everything {
                // Whoever goes further may find a name.
                return Arc::new([nameless(address)]);
            }
            frames.push(nameless(address));
        }
    }
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.get_or_insert_default().entry(address).or_insert_with(|| frames.into()).clone()
}
