//! Everything that [`tokio::sync::mpsc`] holds: the bounded channel instrumented, the unbounded one as it is.

// What is named below takes precedence over the same name in the glob.
pub use tokio::sync::mpsc::*;

mod permit;
mod receiver;
mod sender;
mod waiting;

pub use permit::{OwnedPermit, Permit, PermitIterator};
pub use receiver::Receiver;
pub use sender::{Sender, WeakSender};

use crate::registry::Resource;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;

/// The books of a channel. What auto traits there are depends on tokio's half beside it alone.
type Books = AssertUnwindSafe<Arc<Resource>>;

/// Creates a bounded channel like [`tokio::sync::mpsc::channel`], which keeps books on its room, and lists it.
///
/// Its units are messages that have room. Recorded are the permits that reserve some, the senders that wait for
/// some, and, as one hold, the messages that nobody has received yet: whoever received last has those, since
/// nobody else can make room. A message that finds room is counted; what takes its call stack are waiting,
/// reserving and receiving. Fairness, cancel safety, errors and panics are tokio's. The books know nothing of
/// the messages themselves.
///
/// # Panics
///
/// If `buffer` is 0 or exceeds [`Semaphore::MAX_PERMITS`](crate::sync::Semaphore::MAX_PERMITS).
///
/// # Examples
///
/// ```
/// use holdup::ResourceExt;
/// use holdup::sync::mpsc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (jobs, mut next) = mpsc::channel(8);
/// let jobs = jobs.named("jobs");
/// jobs.send("compress").await.expect("somebody receives");
/// assert_eq!(jobs.capacity(), 7);
/// assert_eq!(next.recv().await, Some("compress"));
/// assert_eq!(jobs.capacity(), 8);
/// # }
/// ```
#[track_caller]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = tokio::sync::mpsc::channel(buffer);
    let books = Resource::channel(buffer as u64, Location::caller());
    let sender = Sender { inner: sender, books: AssertUnwindSafe(books.clone()) };
    (sender, Receiver::new(receiver, AssertUnwindSafe(books)))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
