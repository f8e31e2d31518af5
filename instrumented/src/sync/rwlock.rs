//! The reader-writer lock, see [`tokio::sync::RwLock`].

use super::TryLockError;
use super::lock::{Exclusive, Lock, Many, Shared, guard};
use crate::registry::Resource;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

/// As many as tokio permits.
const MAX_READS: u32 = u32::MAX >> 3;

/// A reader-writer lock like [`tokio::sync::RwLock`], which keeps books on who reads, who writes and who waits.
///
/// It is a semaphore with a permit for each reader that there can be; a writer takes all. Guards are recorded as a
/// [`SemaphorePermit`](super::SemaphorePermit) is. Fairness, cancel safety, errors and panics are tokio's.
///
/// # Examples
///
/// ```
/// use holdup::ResourceExt;
/// use holdup::sync::RwLock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let count = RwLock::new(0).named("count");
/// *count.write().await += 1;
/// let (one, two) = (count.read().await, count.read().await);
/// assert_eq!((*one, *two), (1, 1));
/// # }
/// ```
pub struct RwLock<T: ?Sized> {
    pub(super) lock: Lock<Many, T>,
}

/// Shared access to the value of a [`RwLock`], given back when dropped.
#[must_use = "if unused the RwLock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    access: Shared<&'a Resource, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::RwLockReadGuard<'a, T>>,
}

/// Shared access to the value of a [`RwLock`] that it keeps alive, given back when dropped.
#[clippy::has_significant_drop]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    access: Shared<Arc<RwLock<T>>, U>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::OwnedRwLockReadGuard<T, U>>,
}

/// Exclusive access to the value of a [`RwLock`], given back when dropped.
#[must_use = "if unused the RwLock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    access: Exclusive<&'a Resource, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::RwLockWriteGuard<'a, T>>,
}

/// Exclusive access to the value of a [`RwLock`] that it keeps alive, given back when dropped.
#[clippy::has_significant_drop]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    access: Exclusive<Arc<RwLock<T>>, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::OwnedRwLockWriteGuard<T>>,
}

/// Exclusive access to a part of the value of a [`RwLock`], from [`RwLockWriteGuard::map`].
#[clippy::has_significant_drop]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    access: Exclusive<&'a Resource, T>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::RwLockMappedWriteGuard<'a, T>>,
}

/// Exclusive access to a part of the value of a [`RwLock`] that it keeps alive, from
/// [`OwnedRwLockWriteGuard::map`].
#[clippy::has_significant_drop]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    access: Exclusive<Arc<RwLock<T>>, U>,
    /// The auto traits of tokio's.
    like: PhantomData<tokio::sync::OwnedRwLockMappedWriteGuard<T, U>>,
}

impl<T: ?Sized> RwLock<T> {
    /// Creates a lock that nobody has, and lists it in the books.
    #[track_caller]
    pub fn new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock { lock: Lock::listed(value, MAX_READS) }
    }

    /// Creates a lock for at most `max_reads` readers at once, and lists it in the books.
    ///
    /// # Panics
    ///
    /// If `max_reads` is 0, or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        assert_ne!(max_reads, 0, "a RwLock may not be created with 0 readers");
        assert!(
            max_reads <= MAX_READS,
            "a RwLock may not be created with more than {MAX_READS} readers"
        );
        RwLock { lock: Lock::listed(value, max_reads) }
    }

    /// Creates a lock that nobody has, for example in a `static`. It is listed in the books from its first use on.
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::RwLock;
    ///
    /// static NAMES: RwLock<Vec<String>> = RwLock::const_new(Vec::new());
    /// assert!(NAMES.try_read().is_ok());
    /// ```
    #[track_caller]
    pub const fn const_new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock { lock: Lock::unlisted(value, MAX_READS, Location::caller()) }
    }

    /// Creates a lock for at most `max_reads` readers at once, for example in a `static`. It is listed in the books
    /// from its first use on.
    ///
    /// # Panics
    ///
    /// If `max_reads` is 0, or more than `u32::MAX >> 3`.
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        assert!(max_reads != 0, "a RwLock may not be created with 0 readers");
        assert!(max_reads <= MAX_READS);
        RwLock { lock: Lock::unlisted(value, max_reads, Location::caller()) }
    }

    pub(crate) fn resource(&self) -> &Resource {
        self.lock.resource()
    }

    /// Waits until it may read. Recorded at the first poll, with its call stack.
    ///
    /// # Cancel safety
    ///
    /// Readers and writers are served in the order in which they began to wait. Dropping the future loses the place.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> {
        self.read_at(Location::caller())
    }

    async fn read_at(&self, site: &'static Location<'static>) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard { access: self.lock.shared(site).await, like: PhantomData }
    }

    /// Blocks the current thread until it may read. Recorded as a blocking call.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard { access: self.lock.blocking_shared(), like: PhantomData }
    }

    /// Waits until it may read, with a guard that keeps the lock alive. Recorded at the first poll, with its call
    /// stack.
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn read_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockReadGuard<T>> {
        self.read_owned_at(Location::caller())
    }

    async fn read_owned_at(
        self: Arc<Self>,
        site: &'static Location<'static>,
    ) -> OwnedRwLockReadGuard<T> {
        OwnedRwLockReadGuard { access: Shared::owned(self, site).await, like: PhantomData }
    }

    /// Reads if that is possible right now. A call that finds it is not is counted.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if somebody writes, waits in front, or too many read.
    #[track_caller]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        Ok(RwLockReadGuard { access: self.lock.try_shared()?, like: PhantomData })
    }

    /// Reads if that is possible right now, with a guard that keeps the lock alive. A call that finds it is not is
    /// counted.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    #[track_caller]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        Ok(OwnedRwLockReadGuard { access: Shared::try_owned(self)?, like: PhantomData })
    }

    /// Waits until it may write. Recorded at the first poll, with its call stack.
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> {
        self.write_at(Location::caller())
    }

    async fn write_at(&self, site: &'static Location<'static>) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { access: self.lock.exclusive(site).await, like: PhantomData }
    }

    /// Blocks the current thread until it may write. Recorded as a blocking call.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { access: self.lock.blocking_exclusive(), like: PhantomData }
    }

    /// Waits until it may write, with a guard that keeps the lock alive. Recorded at the first poll, with its call
    /// stack.
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[track_caller]
    pub fn write_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockWriteGuard<T>> {
        self.write_owned_at(Location::caller())
    }

    async fn write_owned_at(
        self: Arc<Self>,
        site: &'static Location<'static>,
    ) -> OwnedRwLockWriteGuard<T> {
        OwnedRwLockWriteGuard { access: Exclusive::owned(self, site).await, like: PhantomData }
    }

    /// Writes if that is possible right now. A call that finds it is not is counted.
    ///
    /// # Errors
    ///
    /// [`TryLockError`] if somebody reads or writes.
    #[track_caller]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        Ok(RwLockWriteGuard { access: self.lock.try_exclusive()?, like: PhantomData })
    }

    /// Writes if that is possible right now, with a guard that keeps the lock alive. A call that finds it is not is
    /// counted.
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write).
    #[track_caller]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        Ok(OwnedRwLockWriteGuard { access: Exclusive::try_owned(self)?, like: PhantomData })
    }

    /// The value, to which nobody else has access while the lock is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Consumes the lock, and returns its value.
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.lock.into_inner()
    }
}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        RwLockReadGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(RwLockReadGuard { access, like: PhantomData }),
            Err(access) => Err(RwLockReadGuard { access, like: PhantomData }),
        }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, V>
    where
        F: FnOnce(&U) -> &V,
    {
        OwnedRwLockReadGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, V>, Self>
    where
        F: FnOnce(&U) -> Option<&V>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(OwnedRwLockReadGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedRwLockReadGuard { access, like: PhantomData }),
        }
    }

    /// The lock this guard is from. Shows that the guard is used by whoever calls.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.access.used();
        this.access.by()
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        RwLockMappedWriteGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Lets others read, and makes a guard of a part of the value for reading.
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        RwLockReadGuard { access: this.access.downgrade_map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(RwLockMappedWriteGuard { access, like: PhantomData }),
            Err(access) => Err(RwLockWriteGuard { access, like: PhantomData }),
        }
    }

    /// Lets others read, and makes a guard of a part of the value for reading, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.access.try_downgrade_map(f) {
            Ok(access) => Ok(RwLockReadGuard { access, like: PhantomData }),
            Err(access) => Err(RwLockWriteGuard { access, like: PhantomData }),
        }
    }

    /// Makes a mapped guard of the whole value.
    #[inline]
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockWriteGuard::map(this, |me| me)
    }

    /// Lets others read, without letting a writer go first. In the books, the hold stays and gets smaller.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        RwLockWriteGuard::downgrade_map(self, |me| me)
    }
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// Makes a guard of a part of the value.
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        OwnedRwLockMappedWriteGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Lets others read, and makes a guard of a part of the value for reading.
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U>
    where
        F: FnOnce(&T) -> &U,
    {
        OwnedRwLockReadGuard { access: this.access.downgrade_map(f), like: PhantomData }
    }

    /// Makes a guard of a part of the value, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(OwnedRwLockMappedWriteGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedRwLockWriteGuard { access, like: PhantomData }),
        }
    }

    /// Lets others read, and makes a guard of a part of the value for reading, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        match this.access.try_downgrade_map(f) {
            Ok(access) => Ok(OwnedRwLockReadGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedRwLockWriteGuard { access, like: PhantomData }),
        }
    }

    /// Makes a mapped guard of the whole value.
    #[inline]
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        Self::map(this, |me| me)
    }

    /// Lets others read, without letting a writer go first. In the books, the hold stays and gets smaller.
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        Self::downgrade_map(self, |me| me)
    }

    /// The lock this guard is from. Shows that the guard is used by whoever calls.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.access.used();
        this.access.by()
    }
}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// Makes a guard of a part of this part.
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        RwLockMappedWriteGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of this part, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(RwLockMappedWriteGuard { access, like: PhantomData }),
            Err(access) => Err(RwLockMappedWriteGuard { access, like: PhantomData }),
        }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// Makes a guard of a part of this part.
    #[inline]
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, V>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        OwnedRwLockMappedWriteGuard { access: this.access.map(f), like: PhantomData }
    }

    /// Makes a guard of a part of this part, if there is one.
    ///
    /// # Errors
    ///
    /// The guard as it was, if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        match this.access.try_map(f) {
            Ok(access) => Ok(OwnedRwLockMappedWriteGuard { access, like: PhantomData }),
            Err(access) => Err(OwnedRwLockMappedWriteGuard { access, like: PhantomData }),
        }
    }

    /// The lock this guard is from. Shows that the guard is used by whoever calls.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.access.used();
        this.access.by()
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.show("RwLock", f)
    }
}

guard!(RwLockReadGuard<'a, T> -> T);
guard!(OwnedRwLockReadGuard<T, U> -> U);
guard!(mut RwLockWriteGuard<'a, T> -> T);
guard!(mut OwnedRwLockWriteGuard<T> -> T);
guard!(mut RwLockMappedWriteGuard<'a, T> -> T);
guard!(mut OwnedRwLockMappedWriteGuard<T, U> -> U);
