//! What can be said of a resource.

use std::sync::Arc;
use std::time::Duration;

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
#[path = "instrumented.rs"]
mod door;
#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
#[path = "passthrough.rs"]
mod door;

/// One thing that is said of a resource.
#[doc(hidden)]
#[derive(Debug)]
pub enum Said {
    Name(Arc<str>),
    MaxHold(Duration),
    LongHeld,
    Grows,
}

/// Names and limits for what holdup watches. Does nothing in builds that are not instrumented.
///
/// It is there for a [`Semaphore`](crate::sync::Semaphore), a [`Mutex`](crate::sync::Mutex), a
/// [`RwLock`](crate::sync::RwLock), and both halves of a bounded channel, by value, by reference (for a `static`), and
/// in an [`Arc`].
///
/// # Examples
///
/// ```
/// use holdup::ResourceExt;
/// use holdup::sync::Semaphore;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// static UPLOADS: Semaphore = Semaphore::const_new(4);
///
/// (&UPLOADS).named("uploads");
/// let writes = Arc::new(Semaphore::new(2).named("db_writes").max_hold(Duration::from_secs(5)));
/// # drop(writes);
/// ```
pub trait ResourceExt: door::Described + Sized {
    /// Gives it a name for messages and lists. Only the first 256 bytes are kept.
    #[inline]
    fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.describe(Said::Name(name.into()));
        self
    }

    /// A hold that is older than this is overdue.
    #[inline]
    fn max_hold(self, limit: Duration) -> Self {
        self.describe(Said::MaxHold(limit));
        self
    }

    /// Long holds are by design here, for example a permit for the lifetime of a connection.
    #[inline]
    fn long_held(self) -> Self {
        self.describe(Said::LongHeld);
        self
    }

    /// The number of permits grows by design here, for example a token bucket.
    #[inline]
    fn grows(self) -> Self {
        self.describe(Said::Grows);
        self
    }
}

impl<T: door::Described> ResourceExt for T {}
