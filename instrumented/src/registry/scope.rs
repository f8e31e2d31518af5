//! Which records belong together: a test, an audited region.

use holdup_core::snapshot::ScopeId;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static CURRENT: Cell<ScopeId> = const { Cell::new(ScopeId(0)) };
}

/// The scope that records made on this thread belong to.
pub(crate) fn current() -> ScopeId {
    // A thread that is being torn down belongs to the process.
    CURRENT.try_with(Cell::get).unwrap_or_default()
}

/// Marks what is recorded on a thread as belonging together, so that it can be looked at alone.
///
/// A scope is entered on each thread that should count to it, for example on all threads of a test's
/// runtime. Resources, holds and waits carry the scope in which they were made; those made outside any
/// scope belong to the process.
///
/// # Examples
///
/// ```
/// # #[cfg(debug_assertions)]
/// # {
/// use holdup::sync::Semaphore;
///
/// let scope = holdup::Scope::new();
/// let entered = scope.enter();
/// let ours = Semaphore::new(3);
/// drop(entered);
/// let other = Semaphore::new(3);
///
/// assert_eq!(scope.snapshot().resources.len(), 1);
/// # drop((ours, other));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(ScopeId);

impl Scope {
    /// A scope that nothing belongs to yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each scope is a new one")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Scope(ScopeId(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Until the returned guard is dropped, what this thread records belongs to this scope.
    #[must_use]
    pub fn enter(&self) -> Entered {
        let before = CURRENT.try_with(|current| current.replace(self.0)).unwrap_or_default();
        Entered { before, thread_bound: PhantomData }
    }

    /// What belongs to this scope, without the rest of the process.
    #[must_use]
    pub fn snapshot(&self) -> holdup_core::Snapshot {
        let mut snapshot = super::snapshot();
        snapshot.holds.retain(|hold| hold.scope == self.0);
        snapshot.waits.retain(|wait| wait.scope == self.0);
        // A resource of another scope stays if something of this scope refers to it, for example a static.
        let mut used: Vec<_> = snapshot.holds.iter().map(|hold| hold.resource).collect();
        used.extend(snapshot.waits.iter().map(|wait| wait.resource));
        used.sort_unstable();
        snapshot.resources.retain(|resource| {
            resource.scope == self.0 || used.binary_search(&resource.id).is_ok()
        });
        snapshot
    }
}

/// Ends a scope on this thread when dropped; made by [`Scope::enter`].
#[derive(Debug)]
pub struct Entered {
    before: ScopeId,
    thread_bound: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // The thread may be past its thread-locals: then there is nothing to restore.
        let _ = CURRENT.try_with(|current| current.set(self.before));
    }
}
