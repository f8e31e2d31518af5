//! The mutex, see [`tokio::sync::Mutex`].

use super::TryLockError;
use super::lock::{Exclusive, Lock, One, guard};
use crate::registry::Resource;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

/// A mutex like [`tokio::sync::Mutex`], which keeps books on who has it and who waits.
///
/// It is a semaphore with one permit: the guard is recorded as a [`SemaphorePermit`](super::SemaphorePermit) is.
/// Fairness, cancel safety, errors and panics are tokio's.
///
/// # Examples
///
/// ```
/// use holdup::ResourceExt;
/// use holdup::sync::Mutex;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let count = Mutex::new(0).named("count");
/// *count.lock().await += 1;
/// assert_eq!(*count.lock().await, 1);
/// # }
/// ```
pub struct Mutex<T: ?Sized> {
    pub(super) lock: Lock<One, T>,
}

/// The access to the value of a [`Mutex`], given back when dropped.
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'a, T: ?Sized> {
    access: Exclusive<&'a Resource, T>,
    mutex: &'a Mutex<T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::MutexGuard<'a, T>>,
}

/// The access to the value of a [`Mutex`] that it keeps alive, given back when dropped.
#[clippy::has_significant_drop]
pub struct OwnedMutexGuard<T: ?Sized> {
    access: Exclusive<Arc<Mutex<T>>, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::OwnedMutexGuard<T>>,
}

/// The access to a part of the value of a [`Mutex`], from [`MutexGuard::map`].
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    access: Exclusive<&'a Resource, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::MappedMutexGuard<'a, T>>,
}

/// The access to a part of the value of a [`Mutex`] that it keeps alive, from [`OwnedMutexGuard::map`].
#[must_use = "if unused the Mutex will immediately unlock"]
#[clippy::has_significant_drop]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    access: Exclusive<Arc<Mutex<T>>, U>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::OwnedMappedMutexGuard<T, U>>,
}

impl<T: ?Sized> Mutex<T> {
    /// Creates a mutex that is not locked, and lists it in the books.
    #[track_caller]
    pub fn new(t: T) -> Self
    where
        T: Sized,
    {
        Mutex { lock: Lock::listed(t, 1) }
    }

    /// Creates a mutex that is not locked, for example in a `static`. It is listed in the books from its first
    /// use on.
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::Mutex;
    ///
    /// static NAMES: Mutex<Vec<String>> = Mutex::const_new(Vec::new());
    /// assert!(NAMES.try_lock().is_ok());
    /// ```
    #[track_caller]
    pub const fn const_new(t: T) -> Self
    where
        T: Sized,
    {
        Mutex { lock: Lock::unlisted(t, 1, Location::caller()) }
    }

    pub(crate) fn resource(&self) -> &Resource {
        self.lock.resource()
    }

    /// Locks the mutex, waiting until it is free. Recorded at the first poll, with its call stack.
    ///
    /// # Cancel safety
    ///
    /// Waiters are served in the order in which they began to wait. Dropping the future loses the place.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        self.lock_at(Location::caller())
    }

    async fn lock_at(&self, site: &'static Location<'static>) -> MutexGuard<'_, T> {
        self.guard(self.lock.exclusive(site).await)
    }

    /// Blocks the current thread until the mutex is locked. Recorded as a blocking call.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        self.guard(self.lock.blocking_exclusive())
    }

    /// Blocks the current thread until the mutex is locked, with a guard that keeps it alive. Recorded as a
    /// blocking call.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        OwnedMutexGuard { access: Exclusive::blocking_owned(self), like: PhantomData }
    }

    /// Locks the mutex, waiting until it is free, with a guard that keeps it alive. Recorded at the first poll,
    /// with its call stack.
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        self.lock_owned_at(Location::caller())
    }

    async fn lock_owned_at(
        self: Arc<Self>,
        site: &'static Location<'static>,
    ) -> OwnedMutexGuard<T> {
        OwnedMutexGuard { access: Exclusive::owned(self, site).await, like: PhantomData }
    }

    /// Locks the mutex if it is free right now. A call that finds it locked is counted.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if the mutex is locked.
    #[track_caller]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        Ok(self.guard(self.lock.try_exclusive()?))
    }

    /// The value, to which nobody else has access while the mutex is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Locks the mutex if it is free right now, with a guard that keeps it alive. A call that finds it locked is
    /// counted.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if the mutex is locked.
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        Ok(OwnedMutexGuard { access: Exclusive::try_owned(self)?, like: PhantomData })
    }

    /// Consumes the mutex, and returns its value.
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.lock.into_inner()
    }

    fn guard<'a>(&'a self, access: Exclusive<&'a Resource, T>) -> MutexGuard<'a, T> {
        MutexGuard { access, mutex: self, like: PhantomData }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<U, F>(this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        MappedMutexGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        let Self { access, mutex, like } = this;
        match access.try_map(f) {
            Ok(access) => Ok(MappedMutexGuard { access, like: PhantomData }),
            Err(access) => Err(MutexGuard { access, mutex, like }),
        }
    }

    /// The mutex this guard is from. Shows that the guard is used by whoever calls.
    #[inline]
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.access.used();
        this.mutex
    }
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<U, F>(this: Self, f: F) -> OwnedMappedMutexGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        OwnedMappedMutexGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(OwnedMappedMutexGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedMutexGuard { access, like: PhantomData }),
        }
    }

    /// The mutex this guard is from. Shows that the guard is used by whoever calls.
    #[inline]
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        this.access.used();
        this.access.by()
    }
}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// Makes a guard of a part of this part.
    #[inline]
    pub fn map<U, F>(this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        MappedMutexGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of this part, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(MappedMutexGuard { access, like: PhantomData }),
            Err(access) => Err(MappedMutexGuard { access, like: PhantomData }),
        }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// Makes a guard of a part of this part.
    #[inline]
    pub fn map<S, F>(this: Self, f: F) -> OwnedMappedMutexGuard<T, S>
    where
        F: FnOnce(&mut U) -> &mut S,
    {
        OwnedMappedMutexGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of this part, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<S, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, S>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(OwnedMappedMutexGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedMappedMutexGuard { access, like: PhantomData }),
        }
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(t: T) -> Self {
        Self::new(t)
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.show("Mutex", f)
    }
}

guard!(mut MutexGuard<'a, T> -> T);
guard!(mut OwnedMutexGuard<T> -> T);
guard!(mut MappedMutexGuard<'a, T> -> T);
guard!(mut OwnedMappedMutexGuard<T, U> -> U);
