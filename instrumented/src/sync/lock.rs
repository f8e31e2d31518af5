//! What a mutex and a reader-writer lock have in common: a value, and units of which some or all let somebody at it.
//!
//! tokio builds its locks the same way on the same semaphore. They are not wrapped, because the owned guards of a
//! wrapped lock would have to borrow from the lock that they own. All `unsafe` code of the locks is in this file.

#![expect(unsafe_code, reason = "whether a value may be touched is known at run time only")]

use super::acquire::{acquire, blocking_acquire, try_acquire};
use super::{AcquireError, Mutex, RwLock, TryLockError};
use crate::registry::{HoldKey, Resource};
use holdup_core::snapshot::Kind;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, Location};
use std::sync::{Arc, OnceLock};

/// Who may be at the value of a lock at once.
pub(super) trait Access {
    const KIND: Kind;
}

/// One at a time.
pub(super) enum One {}

/// Many who read, or one.
pub(super) enum Many {}

impl Access for One {
    const KIND: Kind = Kind::Mutex;
}

impl Access for Many {
    const KIND: Kind = Kind::RwLock;
}

/// A value with its books.
pub(super) struct Lock<A, T: ?Sized> {
    /// Set by `listed`; after `unlisted` set by the first use.
    resource: AssertUnwindSafe<OnceLock<Arc<Resource>>>,
    /// All there are: who has them is alone with the value. One lets somebody read.
    units: u32,
    created: &'static Location<'static>,
    access: PhantomData<A>,
    /// What auto traits there are depends on tokio's features, so they are taken from there.
    like: PhantomData<tokio::sync::Semaphore>,
    value: UnsafeCell<T>,
}

// SAFETY: a mutex hands its value to one thread at a time, and so moves it.
unsafe impl<T: ?Sized + Send> Sync for Lock<One, T> {}
// SAFETY: a reader-writer lock does that too, and shares its value between threads.
unsafe impl<T: ?Sized + Send + Sync> Sync for Lock<Many, T> {}

impl<A: Access, T> Lock<A, T> {
    /// A lock that is in the books from its first use on.
    pub(super) const fn unlisted(
        value: T,
        units: u32,
        created: &'static Location<'static>,
    ) -> Self {
        Lock {
            resource: AssertUnwindSafe(OnceLock::new()),
            units,
            created,
            access: PhantomData,
            like: PhantomData,
            value: UnsafeCell::new(value),
        }
    }

    #[track_caller]
    pub(super) fn listed(value: T, units: u32) -> Self {
        let lock = Self::unlisted(value, units, Location::caller());
        lock.resource();
        lock
    }

    pub(super) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<A: Access, T: ?Sized> Lock<A, T> {
    pub(super) fn resource(&self) -> &Resource {
        self.resource.get_or_init(|| {
            let inner = tokio::sync::Semaphore::new(self.units as usize);
            Resource::register(A::KIND, u64::from(self.units), inner, self.created)
        })
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Notes where the lock is, for a guard that borrows from it.
    fn borrowed(&self) -> &Resource {
        let resource = self.resource();
        resource.borrowed_at(std::ptr::from_ref(self).cast());
        resource
    }

    pub(super) async fn exclusive(
        &self,
        site: &'static Location<'static>,
    ) -> Exclusive<&Resource, T> {
        let held = Held::wait(self.borrowed(), self.units, site).await;
        Exclusive { value: self.value.get(), held }
    }

    #[track_caller]
    pub(super) fn try_exclusive(&self) -> Result<Exclusive<&Resource, T>, TryLockError> {
        let held = Held::now(self.borrowed(), self.units)?;
        Ok(Exclusive { value: self.value.get(), held })
    }

    #[track_caller]
    pub(super) fn blocking_exclusive(&self) -> Exclusive<&Resource, T> {
        let held = Held::block(self.borrowed(), self.units);
        Exclusive { value: self.value.get(), held }
    }

    /// As tokio's locks show themselves. Looking at the value is not recorded.
    pub(super) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result
    where
        T: fmt::Debug,
    {
        let mut shown = f.debug_struct(name);
        match self.resource().semaphore.try_acquire() {
            Ok(_one) => {
                // SAFETY: while somebody has one of the units, nobody has all of them.
                let value = unsafe { &*self.value.get() };
                shown.field("data", &value)
            }
            Err(_) => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

impl<T: ?Sized> Lock<Many, T> {
    pub(super) async fn shared(&self, site: &'static Location<'static>) -> Shared<&Resource, T> {
        let held = Held::wait(self.borrowed(), 1, site).await;
        Shared { value: self.value.get(), held }
    }

    #[track_caller]
    pub(super) fn try_shared(&self) -> Result<Shared<&Resource, T>, TryLockError> {
        let held = Held::now(self.borrowed(), 1)?;
        Ok(Shared { value: self.value.get(), held })
    }

    #[track_caller]
    pub(super) fn blocking_shared(&self) -> Shared<&Resource, T> {
        let held = Held::block(self.borrowed(), 1);
        Shared { value: self.value.get(), held }
    }
}

/// Contains a lock.
///
/// # Safety
///
/// The lock is a field: it is there for as long as the value of this type, and always the same.
pub(super) unsafe trait Owner {
    type Access: Access;
    type Value: ?Sized;

    fn lock(&self) -> &Lock<Self::Access, Self::Value>;
}

// SAFETY: the lock is a field.
unsafe impl<T: ?Sized> Owner for Mutex<T> {
    type Access = One;
    type Value = T;

    fn lock(&self) -> &Lock<One, T> {
        &self.lock
    }
}

// SAFETY: the lock is a field.
unsafe impl<T: ?Sized> Owner for RwLock<T> {
    type Access = Many;
    type Value = T;

    fn lock(&self) -> &Lock<Many, T> {
        &self.lock
    }
}

/// How a guard reaches the books.
pub(super) trait Reach {
    /// It keeps the lock alive itself.
    const OWNED: bool;

    fn resource(&self) -> &Resource;
}

impl Reach for &Resource {
    const OWNED: bool = false;

    fn resource(&self) -> &Resource {
        self
    }
}

impl<O: Owner + ?Sized> Reach for Arc<O> {
    const OWNED: bool = true;

    fn resource(&self) -> &Resource {
        self.lock().resource()
    }
}

/// Units, given back when dropped.
struct Held<R: Reach> {
    by: R,
    units: u32,
    hold: HoldKey,
}

impl<R: Reach> Held<R> {
    async fn wait(by: R, units: u32, site: &'static Location<'static>) -> Self {
        let hold = open(acquire(by.resource(), units, site, R::OWNED).await);
        Held { by, units, hold }
    }

    #[track_caller]
    fn now(by: R, units: u32) -> Result<Self, TryLockError> {
        match try_acquire(by.resource(), units, R::OWNED) {
            Ok(hold) => Ok(Held { by, units, hold }),
            Err(_) => Err(would_block()),
        }
    }

    #[track_caller]
    fn block(by: R, units: u32) -> Self {
        let hold = open(blocking_acquire(by.resource(), units, R::OWNED));
        Held { by, units, hold }
    }

    /// Keeps one unit, which lets it read.
    fn keep_one(&mut self) {
        let rest = std::mem::replace(&mut self.units, 1) - 1;
        self.by.resource().semaphore.add_permits(rest as usize);
        self.by.resource().reduced(self.hold, u64::from(rest));
    }
}

impl<R: Reach> Drop for Held<R> {
    fn drop(&mut self) {
        // First the lock, then the books: measuring a hold must not make it longer.
        let resource = self.by.resource();
        resource.semaphore.add_permits(self.units as usize);
        resource.released(self.hold, u64::from(self.units));
    }
}

/// The semaphore of a lock is reached by the lock alone, which never closes it.
fn open(result: Result<HoldKey, AcquireError>) -> HoldKey {
    result.unwrap_or_else(|_| unreachable!("a lock is never closed"))
}

/// Only tokio can make one.
fn would_block() -> TryLockError {
    let taken = tokio::sync::RwLock::const_new(());
    let (_reads, writes) = (taken.try_read(), taken.try_write());
    writes.map(drop).expect_err("somebody reads")
}

/// Access to a value, or to a part of it, that nobody else has meanwhile.
pub(super) struct Exclusive<R: Reach, T: ?Sized> {
    value: *mut T,
    held: Held<R>,
}

/// Access to a value, or to a part of it, that others may have too.
pub(super) struct Shared<R: Reach, T: ?Sized> {
    value: *const T,
    held: Held<R>,
}

// SAFETY: it stands for a `&mut T` and an `R`.
unsafe impl<R: Reach + Send, T: ?Sized + Send> Send for Exclusive<R, T> {}
// SAFETY: as above.
unsafe impl<R: Reach + Sync, T: ?Sized + Sync> Sync for Exclusive<R, T> {}
// SAFETY: it stands for a `&T` and an `R`.
unsafe impl<R: Reach + Send, T: ?Sized + Sync> Send for Shared<R, T> {}
// SAFETY: as above.
unsafe impl<R: Reach + Sync, T: ?Sized + Sync> Sync for Shared<R, T> {}

impl<O: Owner + ?Sized> Exclusive<Arc<O>, O::Value> {
    pub(super) async fn owned(owner: Arc<O>, site: &'static Location<'static>) -> Self {
        let units = owner.lock().units;
        Self::new(Held::wait(owner, units, site).await)
    }

    #[track_caller]
    pub(super) fn try_owned(owner: Arc<O>) -> Result<Self, TryLockError> {
        let units = owner.lock().units;
        Ok(Self::new(Held::now(owner, units)?))
    }

    #[track_caller]
    pub(super) fn blocking_owned(owner: Arc<O>) -> Self {
        let units = owner.lock().units;
        Self::new(Held::block(owner, units))
    }

    fn new(held: Held<Arc<O>>) -> Self {
        Exclusive { value: held.by.lock().value.get(), held }
    }
}

impl<O: Owner<Access = Many> + ?Sized> Shared<Arc<O>, O::Value> {
    pub(super) async fn owned(owner: Arc<O>, site: &'static Location<'static>) -> Self {
        Self::new(Held::wait(owner, 1, site).await)
    }

    #[track_caller]
    pub(super) fn try_owned(owner: Arc<O>) -> Result<Self, TryLockError> {
        Ok(Self::new(Held::now(owner, 1)?))
    }

    fn new(held: Held<Arc<O>>) -> Self {
        Shared { value: held.by.lock().value.get(), held }
    }
}

impl<R: Reach, T: ?Sized> Exclusive<R, T> {
    pub(super) fn map<U: ?Sized>(mut self, f: impl FnOnce(&mut T) -> &mut U) -> Exclusive<R, U> {
        let value = std::ptr::from_mut(f(&mut self));
        Exclusive { value, held: self.held }
    }

    pub(super) fn try_map<U: ?Sized>(
        mut self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<Exclusive<R, U>, Self> {
        match f(&mut self).map(std::ptr::from_mut) {
            Some(value) => Ok(Exclusive { value, held: self.held }),
            None => Err(self),
        }
    }

    /// Lets others read too.
    ///
    /// For the whole value only: a part may have been reached by `&mut`, in a way that is not open to readers, for
    /// example through a `Cell`.
    pub(super) fn downgrade_map<U: ?Sized>(self, f: impl FnOnce(&T) -> &U) -> Shared<R, U> {
        let value = std::ptr::from_ref(f(&self));
        self.shared(value)
    }

    /// As [`downgrade_map`](Self::downgrade_map).
    pub(super) fn try_downgrade_map<U: ?Sized>(
        self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Shared<R, U>, Self> {
        match f(&self).map(std::ptr::from_ref) {
            Some(value) => Ok(self.shared(value)),
            None => Err(self),
        }
    }

    fn shared<U: ?Sized>(self, value: *const U) -> Shared<R, U> {
        let mut held = self.held;
        held.keep_one();
        Shared { value, held }
    }

    /// Somebody uses the guard: whoever that is has it.
    pub(super) fn used(&self) {
        self.held.by.resource().used(self.held.hold);
    }

    pub(super) fn by(&self) -> &R {
        &self.held.by
    }
}

impl<R: Reach, T: ?Sized> Shared<R, T> {
    pub(super) fn map<U: ?Sized>(self, f: impl FnOnce(&T) -> &U) -> Shared<R, U> {
        let value = std::ptr::from_ref(f(&self));
        Shared { value, held: self.held }
    }

    pub(super) fn try_map<U: ?Sized>(
        self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Shared<R, U>, Self> {
        match f(&self).map(std::ptr::from_ref) {
            Some(value) => Ok(Shared { value, held: self.held }),
            None => Err(self),
        }
    }

    /// Somebody uses the guard: whoever that is has it.
    pub(super) fn used(&self) {
        self.held.by.resource().used(self.held.hold);
    }

    pub(super) fn by(&self) -> &R {
        &self.held.by
    }
}

impl<R: Reach, T: ?Sized> Deref for Exclusive<R, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: all units are held, and what holds them keeps the lock in place.
        unsafe { &*self.value }
    }
}

impl<R: Reach, T: ?Sized> DerefMut for Exclusive<R, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: all units are held, and what holds them keeps the lock in place.
        unsafe { &mut *self.value }
    }
}

impl<R: Reach, T: ?Sized> Deref for Shared<R, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: one unit is held, so nobody has all of them, and what holds it keeps the lock in place.
        unsafe { &*self.value }
    }
}

/// What every guard does with the value.
macro_rules! guard {
    ($guard:ident<$($life:lifetime,)? $($type:ident),+> -> $target:ident) => {
        impl<$($life,)? $($type: ?Sized),+> Deref for $guard<$($life,)? $($type),+> {
            type Target = $target;

            fn deref(&self) -> &$target {
                &self.access
            }
        }

        impl<$($life,)? $($type: ?Sized),+> fmt::Debug for $guard<$($life,)? $($type),+>
        where
            $target: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($life,)? $($type: ?Sized),+> fmt::Display for $guard<$($life,)? $($type),+>
        where
            $target: fmt::Display,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (mut $guard:ident<$($life:lifetime,)? $($type:ident),+> -> $target:ident) => {
        guard!($guard<$($life,)? $($type),+> -> $target);

        impl<$($life,)? $($type: ?Sized),+> DerefMut for $guard<$($life,)? $($type),+> {
            fn deref_mut(&mut self) -> &mut $target {
                &mut self.access
            }
        }
    };
}

pub(super) use guard;

#[cfg(test)]
mod tests;
