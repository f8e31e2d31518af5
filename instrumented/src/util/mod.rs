//! Twins of types in `tokio-util` and `tokio-stream` that take a semaphore or a receiver.

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod poll_semaphore;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod receiver_stream;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use poll_semaphore::PollSemaphore;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub use receiver_stream::ReceiverStream;

#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
pub use tokio_stream::wrappers::ReceiverStream;
#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
pub use tokio_util::sync::PollSemaphore;
