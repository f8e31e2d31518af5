//! Answers of a build that is not instrumented: nothing is recorded.

use holdup_core::diagnose::Limits;
use holdup_core::{Finding, Snapshot};
use std::marker::PhantomData;

/// Whether this build is instrumented.
pub const INSTRUMENTED: bool = false;

/// Everything that is recorded: nothing in this build.
#[must_use]
pub fn snapshot() -> Snapshot {
    Snapshot::default()
}

/// The findings that are true now: none in this build.
#[must_use]
pub fn findings() -> Vec<Finding> {
    Vec::new()
}

/// Would call `callback` with each finding; there are none in this build, so it returns false.
pub fn on_finding(callback: impl Fn(&Finding) + Send + Sync + 'static) -> bool {
    drop(callback);
    false
}

/// The limits that the program has set: none are kept in this build.
pub(super) fn limits_set() -> Limits {
    Limits::default()
}

/// Keeps no limits in this build.
pub(super) fn set_limits(limits: Limits) {
    drop(limits);
}

/// Marks what is recorded on a thread as belonging together; nothing is recorded in this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(());

impl Scope {
    /// A scope.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each scope is a new one")]
    pub fn new() -> Self {
        Scope(())
    }

    /// Does nothing in this build.
    #[must_use]
    pub fn enter(&self) -> Entered {
        Entered { thread_bound: PhantomData }
    }

    /// What belongs to this scope: nothing in this build.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

/// Made by [`Scope::enter`].
#[derive(Debug)]
pub struct Entered {
    thread_bound: PhantomData<*const ()>,
}
