//! How long things may take before holdup speaks of them.

use super::door;
use holdup_core::diagnose;
use std::time::Duration;

/// How long things may take before they are reported, made by [`limits`](crate::limits).
///
/// The environment variable `HOLDUP_LIMITS`, for example `stall=2s,overdue=5m`, takes the names of the methods,
/// and durations in `ms`, `s` or `m`. It wins over what the program sets, so that a limit can be changed for
/// one run. What a single resource needs is said there: [`ResourceExt::max_hold`](crate::ResourceExt::max_hold),
/// [`ResourceExt::long_held`](crate::ResourceExt::long_held).
///
/// Proven deadlocks have no limit: they are reported as soon as two looks have seen them.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// holdup::limits().stall(Duration::from_secs(2)).overdue(Duration::from_secs(300)).set();
/// ```
#[derive(Clone, Debug)]
#[must_use = "limits are in force when they are `set`"]
pub struct Limits {
    limits: diagnose::Limits,
}

/// The limits as the program has set them last, to change some and [`set`](Limits::set) them.
pub fn limits() -> Limits {
    Limits { limits: door::limits_set() }
}

impl Limits {
    /// What is only suspected must have stood still for this long. Default: 5 s.
    pub fn stall(mut self, limit: Duration) -> Self {
        self.limits.stall = limit;
        self
    }

    /// Permits may be set aside for a future that nobody polls for this long. Default: 1 s.
    pub fn futurelock(mut self, limit: Duration) -> Self {
        self.limits.futurelock = limit;
        self
    }

    /// A permit may outlive the task that acquired it by this much before it looks lost. Default: 30 s.
    pub fn orphan_grace(mut self, limit: Duration) -> Self {
        self.limits.orphan_grace = limit;
        self
    }

    /// A permit that others wait for may be held for this long. Default: 60 s.
    pub fn overdue(mut self, limit: Duration) -> Self {
        self.limits.overdue = limit;
        self
    }

    /// Puts the limits in force, for all that is found from now on. Does nothing in builds that are not
    /// instrumented.
    pub fn set(self) {
        door::set_limits(self.limits);
    }
}
