//! Answers from the books.

use crate::{limits, monitor, registry, report};
use holdup_core::diagnose::Limits;
use holdup_core::{Finding, Snapshot};
use std::sync::Arc;

pub use crate::registry::{Entered, Scope};

/// Whether this build is instrumented.
pub const INSTRUMENTED: bool = true;

/// Everything that is recorded in this process right now.
///
/// Copies all records: resources one after another, each under its own lock for a short time. Call stacks
/// have names only where they have been looked up before.
///
/// # Examples
///
/// ```
/// use holdup::sync::Semaphore;
///
/// let semaphore = Semaphore::new(2);
/// let permit = semaphore.try_acquire().expect("two are free");
/// let snapshot = holdup::snapshot();
/// assert_eq!(snapshot.holds.len(), usize::from(holdup::INSTRUMENTED));
/// # drop(permit);
/// ```
#[must_use]
pub fn snapshot() -> Snapshot {
    registry::snapshot()
}

/// The findings that are true now, as of the watching thread's last look.
#[must_use]
pub fn findings() -> Vec<Finding> {
    monitor::findings().1
}

/// Calls `callback` with each new finding, and with each one that has gone away
/// ([`Verdict::Resolved`](holdup_core::Verdict::Resolved)).
///
/// It is called on the watching thread, without any lock, in addition to the `tracing` event. A panic in it is
/// caught. Returns false, and does not keep it, if there are 64 callbacks already.
pub fn on_finding(callback: impl Fn(&Finding) + Send + Sync + 'static) -> bool {
    report::subscribe(Arc::new(callback))
}

/// The limits that the program has set.
pub(super) fn limits_set() -> Limits {
    limits::of_program()
}

/// Sets the limits of the program.
pub(super) fn set_limits(limits: Limits) {
    limits::set(limits);
}
