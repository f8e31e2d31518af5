//! The receiving half.

use super::Books;
use super::error::TryRecvError;
use crate::registry::{Request, Resource};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

/// Receives messages from a [`Sender`](super::Sender), like [`tokio::sync::mpsc::Receiver`].
///
/// Those that it has not received are recorded as one hold of whoever called last: the actor, the line and the
/// call stack of the first poll, and since when there are some, or the last one was received. Before the first
/// call they are whose who made the channel. A call costs a walk of the stack.
pub struct Receiver<T> {
    // First the channel: dropping messages is the user's code, and nothing of it happens in the books.
    inner: tokio::sync::mpsc::Receiver<T>,
    books: Abandoned,
}

/// The books, which are told when the receiver is dropped.
struct Abandoned(Books);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}

impl<T> Receiver<T> {
    pub(super) fn new(inner: tokio::sync::mpsc::Receiver<T>, books: Books) -> Self {
        Receiver { inner, books: Abandoned(books) }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.books.0
    }

    /// Receives the next message; `None` once the channel is closed and empty.
    ///
    /// # Cancel safety
    ///
    /// No message is lost if the future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::mpsc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// tokio::spawn(async move { sender.send("hello").await });
    /// assert_eq!(receiver.recv().await, Some("hello"));
    /// assert_eq!(receiver.recv().await, None);
    /// # }
    /// ```
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        self.recv_at(Location::caller())
    }

    async fn recv_at(&mut self, site: &'static Location<'static>) -> Option<T> {
        let Receiver { inner, books } = self;
        let poll = |cx: &mut Context<'_>| inner.poll_recv(cx).map(counted);
        Receiving { books: &books.0, site, request: None, poll }.await
    }

    /// Receives up to `limit` messages into `buffer`, waiting for the first one, and returns how many; 0 once the
    /// channel is closed and empty, or if `limit` is 0.
    ///
    /// # Cancel safety
    ///
    /// No message is lost if the future is dropped.
    #[track_caller]
    pub fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> impl Future<Output = usize> {
        self.recv_many_at(buffer, limit, Location::caller())
    }

    async fn recv_many_at(
        &mut self,
        buffer: &mut Vec<T>,
        limit: usize,
        site: &'static Location<'static>,
    ) -> usize {
        let Receiver { inner, books } = self;
        let poll = |cx: &mut Context<'_>| inner.poll_recv_many(cx, buffer, limit).map(|n| (n, n));
        Receiving { books: &books.0, site, request: None, poll }.await
    }

    /// Receives the next message if there is one right now.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if there is none, [`TryRecvError::Disconnected`] if there will never be one.
    #[track_caller]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let message = self.inner.try_recv()?;
        self.received(1, Location::caller(), None);
        Ok(message)
    }

    /// Blocks the current thread until the next message is there.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        let (n, message) = counted(self.inner.blocking_recv());
        self.received(n, Location::caller(), None);
        message
    }

    /// Blocks the current thread until there are messages, and receives up to `limit` into `buffer`.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        let n = self.inner.blocking_recv_many(buffer, limit);
        self.received(n, Location::caller(), None);
        n
    }

    /// Closes the receiving half: no more messages are accepted, those that are on their way can be received.
    pub fn close(&mut self) {
        self.inner.close();
        self.resource().closed();
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Returns the room that is left.
    pub fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    /// Returns the room that the channel was created with.
    pub fn max_capacity(&self) -> usize {
        self.inner.max_capacity()
    }

    /// Polls to receive the next message; `None` once the channel is closed and empty.
    ///
    /// Only the waker of the last call is woken.
    #[track_caller]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv_at(cx, Location::caller())
    }

    pub(crate) fn poll_recv_at(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<Option<T>> {
        let polled = self.inner.poll_recv(cx);
        let n = usize::from(matches!(polled, Poll::Ready(Some(_))));
        self.received(n, site, Some(cx));
        polled
    }

    /// Polls to receive up to `limit` messages into `buffer`.
    ///
    /// Only the waker of the last call is woken.
    #[track_caller]
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        let polled = self.inner.poll_recv_many(cx, buffer, limit);
        let n = if let Poll::Ready(n) = polled { n } else { 0 };
        self.received(n, Location::caller(), Some(cx));
        polled
    }

    /// Returns the number of senders.
    pub fn sender_strong_count(&self) -> usize {
        self.inner.sender_strong_count()
    }

    /// Returns the number of weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.inner.sender_weak_count()
    }

    fn received(&self, n: usize, site: &'static Location<'static>, cx: Option<&Context<'_>>) {
        let receiver = self.resource().receives(site, cx.map(|cx| (cx, ptr::null())));
        self.resource().received(n, receiver.as_ref());
    }
}

/// How many messages that is.
fn counted<T>(message: Option<T>) -> (usize, Option<T>) {
    (usize::from(message.is_some()), message)
}

/// Receives, and says who does: when it has received some, or at its first poll.
struct Receiving<'a, F> {
    books: &'a Resource,
    site: &'static Location<'static>,
    request: Option<Request>,
    poll: F,
}

impl<O, F: FnMut(&mut Context<'_>) -> Poll<(usize, O)> + Unpin> Future for Receiving<'_, F> {
    type Output = O;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O> {
        let polled = (self.poll)(cx);
        let first = self.request.is_none();
        if first {
            // The same future lies at the same address for as long as it is polled.
            let address = ptr::from_ref(&*self).cast();
            self.request = self.books.receives(self.site, Some((cx, address)));
        }
        match polled {
            Poll::Ready((n, output)) => {
                self.books.received(n, self.request.as_ref());
                Poll::Ready(output)
            }
            Poll::Pending => {
                if first {
                    self.books.received(0, self.request.as_ref());
                }
                Poll::Pending
            }
        }
    }
}

impl<T> Unpin for Receiver<T> {}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
