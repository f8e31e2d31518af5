//! Everything that `tokio::sync` holds: instrumented where holdup has it, re-exported otherwise.
//!
//! Replace `tokio::sync` by `holdup::sync` in a whole code base and it compiles: same names, same methods,
//! same auto traits, same errors, same fairness and cancel safety.
//!
//! Instrumented are [`Semaphore`], [`Mutex`], [`RwLock`] and the bounded channel of [`mpsc`] with their permits and
//! guards, in builds with `debug_assertions` or with the feature `always-on`. In other builds, and with `--cfg holdup_off`, they are
//! tokio's own types.

// What is named below takes precedence over the same name in the glob.
pub use tokio::sync::*;

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod acquire;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod lock;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub mod mpsc;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod mutex;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod rwlock;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod semaphore;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

#[cfg(all(test, not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod properties;
#[cfg(all(test, not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod tests;
