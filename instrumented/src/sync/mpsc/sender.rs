//! The sending half.

use super::error::{SendError, SendTimeoutError, TrySendError};
use super::waiting::{Ask, Blocked, Waiting};
use super::{Books, OwnedPermit, Permit, PermitIterator};
use crate::registry::{HoldKey, Resource};
use holdup_core::snapshot::Call;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Sends messages to a [`Receiver`](super::Receiver), like [`tokio::sync::mpsc::Sender`].
///
/// Recorded are, for each permit and each sender that waits for room: who, the line of the call, the full call
/// stack of its first poll, and since when. A message that finds room at once is counted only.
///
/// Names and limits are set with [`ResourceExt`](crate::ResourceExt).
pub struct Sender<T> {
    // Dropped in this order: while there is a sender, there are the books.
    pub(super) inner: tokio::sync::mpsc::Sender<T>,
    pub(super) books: Books,
}

/// A sender that does not keep the channel open, from [`Sender::downgrade`].
pub struct WeakSender<T> {
    inner: tokio::sync::mpsc::WeakSender<T>,
    books: AssertUnwindSafe<Weak<Resource>>,
}

impl<T> Sender<T> {
    pub(crate) fn resource(&self) -> &Resource {
        &self.books
    }

    /// Sends a message, waiting for room.
    ///
    /// # Errors
    ///
    /// [`SendError`], with the message, if the receiver is gone or has closed the channel.
    ///
    /// # Cancel safety
    ///
    /// Senders are served in the order in which they began to wait. Dropping the future loses the place, and the
    /// message.
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::mpsc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// sender.send(1).await.expect("somebody receives");
    /// assert_eq!(receiver.recv().await, Some(1));
    /// drop(receiver);
    /// assert!(sender.send(2).await.is_err());
    /// # }
    /// ```
    #[track_caller]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> {
        self.send_at(value, Location::caller())
    }

    async fn send_at(
        &self,
        value: T,
        site: &'static Location<'static>,
    ) -> Result<(), SendError<T>> {
        let inner = pin!(self.inner.send(value));
        let ((), served) = Waiting::new(self.resource(), passing(site), inner).await?;
        served.sent(self.resource());
        Ok(())
    }

    /// Waits until the receiver is gone or has closed the channel.
    ///
    /// # Cancel safety
    ///
    /// The channel stays closed.
    pub async fn closed(&self) {
        self.inner.closed().await;
    }

    /// Sends a message if there is room right now. A call that finds none is counted.
    ///
    /// # Errors
    ///
    /// [`TrySendError`], with the message: `Full` if there is no room, `Closed` if the channel is closed.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.answered(self.inner.try_send(message))?;
        self.resource().sent(None, None);
        Ok(())
    }

    /// Sends a message, waiting for room no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// [`SendTimeoutError`], with the message: `Timeout` if there was no room, `Closed` if the channel is closed.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// If polled outside a tokio runtime with a timer.
    #[track_caller]
    pub fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), SendTimeoutError<T>>> {
        self.send_timeout_at(value, timeout, Location::caller())
    }

    async fn send_timeout_at(
        &self,
        value: T,
        timeout: Duration,
        site: &'static Location<'static>,
    ) -> Result<(), SendTimeoutError<T>> {
        let inner = pin!(self.inner.send_timeout(value, timeout));
        let ((), served) = Waiting::new(self.resource(), passing(site), inner).await?;
        served.sent(self.resource());
        Ok(())
    }

    /// Blocks the current thread until there is room, and sends. Recorded as a blocking call if there is none.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        let waits = self.inner.capacity() == 0 && !self.inner.is_closed();
        let blocked = Blocked::enter(self.resource(), waits, Location::caller());
        self.inner.blocking_send(value)?;
        blocked.sent();
        Ok(())
    }

    /// Whether the receiver is gone or has closed the channel.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Waits for room for one message and reserves it. Recorded at the first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the channel is closed.
    ///
    /// # Cancel safety
    ///
    /// Senders are served in the order in which they began to wait. Dropping the future loses the place.
    #[track_caller]
    pub fn reserve(&self) -> impl Future<Output = Result<Permit<'_, T>, SendError<()>>> {
        self.reserve_at(Location::caller())
    }

    async fn reserve_at(
        &self,
        site: &'static Location<'static>,
    ) -> Result<Permit<'_, T>, SendError<()>> {
        let books = self.lent();
        let inner = pin!(self.inner.reserve());
        let (permit, served) = Waiting::new(books, keeping(1, false, site), inner).await?;
        Ok(Permit::new(permit, &self.books, served.hold(books)))
    }

    /// Waits for room for `n` messages and reserves it at once. Recorded at the first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the channel is closed, or has never so much room.
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Self::reserve). What it has gathered so far goes to the next in the queue.
    #[track_caller]
    pub fn reserve_many(
        &self,
        n: usize,
    ) -> impl Future<Output = Result<PermitIterator<'_, T>, SendError<()>>> {
        self.reserve_many_at(n, Location::caller())
    }

    async fn reserve_many_at(
        &self,
        n: usize,
        site: &'static Location<'static>,
    ) -> Result<PermitIterator<'_, T>, SendError<()>> {
        let books = self.lent();
        let inner = pin!(self.inner.reserve_many(n));
        let (permits, served) = Waiting::new(books, keeping(n, false, site), inner).await?;
        Ok(PermitIterator::new(permits, &self.books, served.hold(books)))
    }

    /// Waits for room for one message and reserves it, with a permit that keeps the channel open. Recorded at the
    /// first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the channel is closed.
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Self::reserve). The sender is dropped with the future.
    #[track_caller]
    pub fn reserve_owned(self) -> impl Future<Output = Result<OwnedPermit<T>, SendError<()>>> {
        self.reserve_owned_at(Location::caller())
    }

    async fn reserve_owned_at(
        self,
        site: &'static Location<'static>,
    ) -> Result<OwnedPermit<T>, SendError<()>> {
        let Sender { inner, books } = self;
        let inner = pin!(inner.reserve_owned());
        let (permit, served) = Waiting::new(&books, keeping(1, true, site), inner).await?;
        let hold = served.hold(&books);
        Ok(OwnedPermit::new(permit, books, hold))
    }

    /// Reserves room for one message if there is some right now. A call that finds none is counted.
    ///
    /// # Errors
    ///
    /// [`TrySendError::Full`] if there is no room, [`TrySendError::Closed`] if the channel is closed.
    #[track_caller]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        let permit = self.answered(self.inner.try_reserve())?;
        let hold = tried(self.lent(), 1, false, Location::caller());
        Ok(Permit::new(permit, &self.books, hold))
    }

    /// Reserves room for `n` messages if there is so much right now. A call that does not find it is counted.
    ///
    /// # Errors
    ///
    /// As [`try_reserve`](Self::try_reserve).
    #[track_caller]
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        let permits = self.answered(self.inner.try_reserve_many(n))?;
        let hold = tried(self.lent(), n, false, Location::caller());
        Ok(PermitIterator::new(permits, &self.books, hold))
    }

    /// Reserves room for one message if there is some right now, with a permit that keeps the channel open.
    ///
    /// # Errors
    ///
    /// As [`try_reserve`](Self::try_reserve), with the sender.
    #[track_caller]
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        let Sender { inner, books } = self;
        match inner.try_reserve_owned() {
            Ok(permit) => {
                let hold = tried(&books, 1, true, Location::caller());
                Ok(OwnedPermit::new(permit, books, hold))
            }
            Err(TrySendError::Full(inner)) => {
                books.rejected();
                Err(TrySendError::Full(Sender { inner, books }))
            }
            Err(TrySendError::Closed(inner)) => Err(TrySendError::Closed(Sender { inner, books })),
        }
    }

    /// Whether two senders are of the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.inner.same_channel(&other.inner)
    }

    /// Returns the room that is left.
    pub fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    /// Returns a sender that does not keep the channel open.
    #[must_use = "Downgrade creates a WeakSender without destroying the original non-weak sender."]
    pub fn downgrade(&self) -> WeakSender<T> {
        let books = AssertUnwindSafe(Arc::downgrade(&self.books));
        WeakSender { inner: self.inner.downgrade(), books }
    }

    /// Returns the room that the channel was created with.
    pub fn max_capacity(&self) -> usize {
        self.inner.max_capacity()
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.inner.strong_count()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.inner.weak_count()
    }

    /// Notes where the sender is, for a permit that borrows from it.
    fn lent(&self) -> &Resource {
        self.resource().borrowed_at(std::ptr::from_ref(self).cast());
        self.resource()
    }

    /// Counts a call that found no room.
    fn answered<P, V>(&self, answer: Result<P, TrySendError<V>>) -> Result<P, TrySendError<V>> {
        if let Err(TrySendError::Full(_)) = answer {
            self.resource().rejected();
        }
        answer
    }
}

fn passing(site: &'static Location<'static>) -> Ask {
    Ask { units: 1, owned: false, site, keeps: false }
}

fn keeping(units: usize, owned: bool, site: &'static Location<'static>) -> Ask {
    Ask { units, owned, site, keeps: true }
}

/// Room was reserved at once.
fn tried(books: &Resource, units: usize, owned: bool, site: &'static Location<'static>) -> HoldKey {
    let request = books.request(units as u64, Call::Try, owned, site, None);
    books.acquired(request.as_ref(), None)
}

impl<T> WeakSender<T> {
    /// Returns a sender, unless all are gone.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        // Where there is a sender, there are the books.
        let books = AssertUnwindSafe(self.books.upgrade()?);
        let inner = self.inner.upgrade()?;
        Some(Sender { inner, books })
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.inner.strong_count()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.inner.weak_count()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender { inner: self.inner.clone(), books: AssertUnwindSafe(self.books.0.clone()) }
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender { inner: self.inner.clone(), books: AssertUnwindSafe(self.books.0.clone()) }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
