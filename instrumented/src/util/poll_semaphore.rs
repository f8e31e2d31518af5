//! A semaphore with a poll function, see [`tokio_util::sync::PollSemaphore`].

use crate::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_util::sync::ReusableBoxFuture;

type Acquire = ReusableBoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>;

/// A wrapper around [`Semaphore`] that provides a `poll_acquire` method, like
/// [`tokio_util::sync::PollSemaphore`]. Its permits are in the books like any others.
///
/// # Examples
///
/// ```
/// use holdup::sync::Semaphore;
/// use holdup::util::PollSemaphore;
/// use std::future::poll_fn;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut semaphore = PollSemaphore::new(Arc::new(Semaphore::new(1)));
/// let permit = poll_fn(|cx| semaphore.poll_acquire(cx)).await;
/// assert!(permit.is_some());
/// # }
/// ```
pub struct PollSemaphore {
    semaphore: Arc<Semaphore>,
    /// The acquire that waits, and how many permits it wants.
    acquire: Option<(u32, Acquire)>,
}

impl PollSemaphore {
    /// Creates a new `PollSemaphore`.
    pub fn new(semaphore: Arc<Semaphore>) -> Self {
        PollSemaphore { semaphore, acquire: None }
    }

    /// Closes the semaphore.
    pub fn close(&self) {
        self.semaphore.close();
    }

    /// Obtains a clone of the inner semaphore.
    pub fn clone_inner(&self) -> Arc<Semaphore> {
        self.semaphore.clone()
    }

    /// Gets back the inner semaphore.
    pub fn into_inner(self) -> Arc<Semaphore> {
        self.semaphore
    }

    /// Polls to acquire a permit; `None` once the semaphore is closed.
    ///
    /// Only the waker of the last call is woken.
    #[track_caller]
    pub fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<Option<OwnedSemaphorePermit>> {
        self.poll_acquire_many(cx, 1)
    }

    /// Polls to acquire `permits` permits at once; `None` once the semaphore is closed.
    ///
    /// Only the waker of the last call is woken. Asking for another number than in the call before gives up the
    /// place in the queue.
    #[track_caller]
    pub fn poll_acquire_many(
        &mut self,
        cx: &mut Context<'_>,
        permits: u32,
    ) -> Poll<Option<OwnedSemaphorePermit>> {
        let acquire = match &mut self.acquire {
            Some((wanted, acquire)) if *wanted == permits => acquire,
            Some((wanted, acquire)) => {
                acquire.set(self.semaphore.clone().acquire_many_owned(permits));
                *wanted = permits;
                acquire
            }
            None => {
                // No allocation while permits are free.
                match self.semaphore.clone().try_acquire_many_owned(permits) {
                    Ok(permit) => return Poll::Ready(Some(permit)),
                    Err(TryAcquireError::Closed) => return Poll::Ready(None),
                    Err(TryAcquireError::NoPermits) => {}
                }
                let acquire =
                    ReusableBoxFuture::new(self.semaphore.clone().acquire_many_owned(permits));
                &mut self.acquire.get_or_insert((permits, acquire)).1
            }
        };
        let result = ready!(acquire.poll(cx));
        // The next call will most likely ask for the same number.
        acquire.set(self.semaphore.clone().acquire_many_owned(permits));
        if result.is_err() {
            self.acquire = None;
        }
        Poll::Ready(result.ok())
    }

    /// Returns the number of available permits.
    pub fn available_permits(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Adds `n` new permits to the semaphore.
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        self.semaphore.add_permits(n);
    }
}

impl Stream for PollSemaphore {
    type Item = OwnedSemaphorePermit;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_acquire(cx)
    }
}

impl Clone for PollSemaphore {
    fn clone(&self) -> Self {
        PollSemaphore::new(self.clone_inner())
    }
}

impl fmt::Debug for PollSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollSemaphore").field("semaphore", &self.semaphore).finish()
    }
}

impl AsRef<Semaphore> for PollSemaphore {
    fn as_ref(&self) -> &Semaphore {
        &self.semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_test::{assert_pending, assert_ready, task};

    #[test]
    fn hands_out_permits_in_turn_and_ends_when_closed() {
        let inner = Arc::new(Semaphore::new(1));
        let mut semaphore = PollSemaphore::new(inner.clone());
        let mut task = task::spawn(());
        let first = assert_ready!(task.enter(|cx, _| semaphore.poll_acquire(cx))).expect("open");
        assert_pending!(task.enter(|cx, _| semaphore.poll_acquire(cx)));
        drop(first);
        assert!(task.is_woken());
        let second = assert_ready!(task.enter(|cx, _| semaphore.poll_acquire(cx))).expect("open");
        drop(second);
        inner.close();
        assert!(assert_ready!(task.enter(|cx, _| semaphore.poll_acquire(cx))).is_none());
    }

    #[test]
    fn asking_for_another_number_begins_again() {
        let mut semaphore = PollSemaphore::new(Arc::new(Semaphore::new(1)));
        let mut task = task::spawn(());
        assert_pending!(task.enter(|cx, _| semaphore.poll_acquire_many(cx, 2)));
        let one = assert_ready!(task.enter(|cx, _| semaphore.poll_acquire(cx)));
        assert_eq!(one.expect("open").num_permits(), 1);
    }
}
