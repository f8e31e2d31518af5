//! A receiver as a stream, see [`tokio_stream::wrappers::ReceiverStream`].

use crate::sync::mpsc::Receiver;
use futures_core::Stream;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A wrapper around [`Receiver`] that implements [`Stream`], like [`tokio_stream::wrappers::ReceiverStream`].
///
/// Unread messages are recorded as received, last, where the stream was made: the line that polls it is mostly that of
/// some combinator.
///
/// # Examples
///
/// ```
/// use holdup::sync::mpsc;
/// use holdup::util::ReceiverStream;
/// use std::future::poll_fn;
/// use std::pin::Pin;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # use futures_core::Stream;
/// let (sender, receiver) = mpsc::channel(1);
/// let mut stream = ReceiverStream::new(receiver);
/// sender.send("hello").await.expect("somebody receives");
/// assert_eq!(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await, Some("hello"));
/// # }
/// ```
pub struct ReceiverStream<T> {
    inner: Receiver<T>,
    created: &'static Location<'static>,
}

impl<T> ReceiverStream<T> {
    /// Creates a new `ReceiverStream`.
    #[track_caller]
    pub fn new(recv: Receiver<T>) -> Self {
        ReceiverStream { inner: recv, created: Location::caller() }
    }

    /// Gets back the inner receiver.
    pub fn into_inner(self) -> Receiver<T> {
        self.inner
    }

    /// Closes the receiving half: no more messages are accepted, those that are on their way can be received.
    pub fn close(&mut self) {
        self.inner.close();
    }
}

impl<T> Stream for ReceiverStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let created = self.created;
        self.inner.poll_recv_at(cx, created)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let most =
            self.inner.is_closed().then(|| self.inner.max_capacity() - self.inner.capacity());
        (self.inner.len(), most)
    }
}

impl<T> AsRef<Receiver<T>> for ReceiverStream<T> {
    fn as_ref(&self) -> &Receiver<T> {
        &self.inner
    }
}

impl<T> AsMut<Receiver<T>> for ReceiverStream<T> {
    fn as_mut(&mut self) -> &mut Receiver<T> {
        &mut self.inner
    }
}

impl<T> From<Receiver<T>> for ReceiverStream<T> {
    #[track_caller]
    fn from(recv: Receiver<T>) -> Self {
        Self::new(recv)
    }
}

impl<T> fmt::Debug for ReceiverStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverStream").field("inner", &self.inner).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use crate::sync::mpsc::channel;
    use tokio_test::{assert_pending, assert_ready_eq, task};

    #[test]
    fn streams_what_is_received_and_names_the_line_that_made_it() {
        let scope = Scope::new();
        let _entered = scope.enter();
        let (sender, receiver) = channel(2);
        let line = line!() + 1;
        let mut stream = task::spawn(ReceiverStream::new(receiver));
        assert_pending!(stream.poll_next());
        sender.try_send(1).expect("there is room");
        sender.try_send(2).expect("there is room");
        assert!(stream.is_woken());
        assert_ready_eq!(stream.poll_next(), Some(1));
        let snapshot = scope.snapshot();
        let site = snapshot.site(snapshot.holds[0].site).expect("known");
        assert_eq!((&*site.file, site.line), (file!(), line));
        assert_eq!(stream.size_hint(), (1, None));
        drop(sender);
        assert_eq!(stream.size_hint(), (1, Some(1)));
        assert_ready_eq!(stream.poll_next(), Some(2));
        assert_ready_eq!(stream.poll_next(), None);
    }
}
