//! The one place a case may take a synchronisation primitive from.
//!
//! To run the corpus under plain tokio, or against another drop-in, change only the lines below. Case files
//! never name `tokio::sync` themselves (a unit test checks this).

pub use holdup::sync::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};

pub use holdup::sync::{Mutex, MutexGuard, OwnedMutexGuard};
pub use holdup::sync::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

pub use holdup::sync::{mpsc, oneshot, watch};
pub use holdup::sync::{Barrier, Notify};
