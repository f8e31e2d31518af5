//! Room that is reserved.

use super::{Books, Sender};
use crate::registry::{HoldKey, Resource};
use std::fmt;
use std::iter::FusedIterator;
use std::mem;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;

/// Room for one message, from [`Sender::reserve`] and its relatives, given back when dropped.
pub struct Permit<'a, T> {
    // First the channel, then the books: measuring a hold must not make it longer.
    inner: tokio::sync::mpsc::Permit<'a, T>,
    room: Room<AssertUnwindSafe<&'a Resource>>,
}

/// Room for several messages, from [`Sender::reserve_many`] and its relatives, as an iterator of permits. What has
/// not been taken out is given back when it is dropped.
pub struct PermitIterator<'a, T> {
    inner: tokio::sync::mpsc::PermitIterator<'a, T>,
    room: Room<AssertUnwindSafe<&'a Resource>>,
}

/// Room for one message, from [`Sender::reserve_owned`] and its relatives, given back when dropped.
///
/// It keeps the channel open, and can be moved into a task.
pub struct OwnedPermit<T> {
    inner: tokio::sync::mpsc::OwnedPermit<T>,
    room: Room<Books>,
}

/// The entry of a permit in the books, which goes with it.
pub(super) struct Room<R: Deref<Target: Deref<Target = Resource>>> {
    pub(super) books: R,
    pub(super) units: usize,
    pub(super) hold: HoldKey,
}

impl<R: Deref<Target: Deref<Target = Resource>>> Room<R> {
    /// It becomes a message, and it does so in the books first: nobody receives what has not been sent.
    fn sent(mut self) {
        self.books.sent_by(mem::replace(&mut self.hold, HoldKey::None));
    }

    /// Whoever looks at a permit has it.
    fn used(&self) {
        self.books.used(self.hold);
    }
}

impl Room<AssertUnwindSafe<&Resource>> {
    fn one_of_it(&mut self) -> Self {
        let hold = match self.units {
            1 => mem::replace(&mut self.hold, HoldKey::None),
            _ => self.books.split(self.hold, 1),
        };
        self.units -= 1;
        Room { books: AssertUnwindSafe(self.books.0), units: 1, hold }
    }
}

impl<R: Deref<Target: Deref<Target = Resource>>> Drop for Room<R> {
    fn drop(&mut self) {
        self.books.released(self.hold, self.units as u64);
    }
}

impl<'a, T> Permit<'a, T> {
    pub(super) fn new(
        inner: tokio::sync::mpsc::Permit<'a, T>,
        books: &'a Books,
        hold: HoldKey,
    ) -> Self {
        Permit { inner, room: Room { books: AssertUnwindSafe(books), units: 1, hold } }
    }

    /// Sends a message in the room that is reserved. From then on it is an unread one in the books.
    pub fn send(self, value: T) {
        self.room.sent();
        self.inner.send(value);
    }
}

impl<'a, T> PermitIterator<'a, T> {
    pub(super) fn new(
        inner: tokio::sync::mpsc::PermitIterator<'a, T>,
        books: &'a Books,
        hold: HoldKey,
    ) -> Self {
        let units = inner.len();
        PermitIterator { inner, room: Room { books: AssertUnwindSafe(books), units, hold } }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.inner.next()?;
        Some(Permit { inner, room: self.room.one_of_it() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> OwnedPermit<T> {
    pub(super) fn new(
        inner: tokio::sync::mpsc::OwnedPermit<T>,
        books: Books,
        hold: HoldKey,
    ) -> Self {
        OwnedPermit { inner, room: Room { books, units: 1, hold } }
    }

    /// Sends a message in the room that is reserved, and returns the sender. From then on it is an unread one in
    /// the books.
    pub fn send(self, value: T) -> Sender<T> {
        let books = AssertUnwindSafe(self.room.books.0.clone());
        self.room.sent();
        Sender { inner: self.inner.send(value), books }
    }

    /// Gives the room back, and returns the sender.
    pub fn release(self) -> Sender<T> {
        let books = AssertUnwindSafe(self.room.books.0.clone());
        Sender { inner: self.inner.release(), books }
    }

    /// Whether two permits are of the same channel. Shows that both are used by whoever calls.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.room.used();
        other.room.used();
        self.inner.same_channel(&other.inner)
    }

    /// Whether it is of the same channel as a sender. Shows that it is used by whoever calls.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.room.used();
        self.inner.same_channel_as_sender(&sender.inner)
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
