//! Twins of types in `tokio-util` that take a semaphore.

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod poll_semaphore;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use poll_semaphore::PollSemaphore;

#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
pub use tokio_util::sync::PollSemaphore;
