//! The counting semaphore, see [`tokio::sync::Semaphore`].

use super::acquire::{acquire, blocking_acquire, try_acquire};
use super::{AcquireError, TryAcquireError};
use crate::registry::{HoldKey, Resource};
use holdup_core::snapshot::Kind;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::{Arc, OnceLock};

/// A counting semaphore like [`tokio::sync::Semaphore`], which keeps books on its permits.
///
/// Recorded are, for each permit and each waiting acquire: who (the tokio task, or the root future or thread),
/// the line of the call, the full call stack of the acquire's first poll, since when, and how many permits.
/// A stack costs a walk (a few microseconds); the records take about 150 bytes a permit and nothing once it is
/// given back. Fairness, cancel safety, errors and panics are tokio's.
///
/// Names and limits are set with [`ResourceExt`](crate::ResourceExt).
///
/// # Examples
///
/// ```
/// use holdup::ResourceExt;
/// use holdup::sync::Semaphore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let writes = Semaphore::new(2).named("db_writes");
/// let permit = writes.acquire().await.expect("nobody closes it");
/// assert_eq!(writes.available_permits(), 1);
/// drop(permit);
/// assert_eq!(writes.available_permits(), 2);
/// # }
/// ```
pub struct Semaphore {
    /// Set by `new`; after `const_new` set by the first use.
    resource: AssertUnwindSafe<OnceLock<Arc<Resource>>>,
    permits: usize,
    created: &'static Location<'static>,
    /// What auto traits there are depends on tokio's features, so they are taken from there.
    like: PhantomData<tokio::sync::Semaphore>,
}

/// A permit from [`Semaphore::acquire`] and its relatives, given back when dropped.
#[must_use]
#[clippy::has_significant_drop]
pub struct SemaphorePermit<'a> {
    sem: &'a Semaphore,
    permits: usize,
    hold: HoldKey,
}

/// A permit from [`Semaphore::acquire_owned`] and its relatives, given back when dropped.
///
/// It keeps the semaphore alive, and can be moved into a task.
#[must_use]
#[clippy::has_significant_drop]
pub struct OwnedSemaphorePermit {
    sem: Arc<Semaphore>,
    permits: usize,
    hold: HoldKey,
}

impl Semaphore {
    /// The maximum number of permits which a semaphore can hold.
    pub const MAX_PERMITS: usize = tokio::sync::Semaphore::MAX_PERMITS;

    /// Creates a semaphore with `permits` permits, and lists it in the books.
    ///
    /// # Panics
    ///
    /// If `permits` exceeds [`Semaphore::MAX_PERMITS`].
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        let created = Location::caller();
        let inner = tokio::sync::Semaphore::new(permits);
        let resource = Resource::register(Kind::Semaphore, permits as u64, inner, created);
        let resource = AssertUnwindSafe(OnceLock::from(resource));
        Semaphore { resource, permits, created, like: PhantomData }
    }

    /// Creates a semaphore with `permits` permits, for example in a `static`. It is listed in the books from
    /// its first use on.
    ///
    /// # Panics
    ///
    /// If `permits` exceeds [`Semaphore::MAX_PERMITS`].
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::Semaphore;
    ///
    /// static SEM: Semaphore = Semaphore::const_new(10);
    /// assert_eq!(SEM.available_permits(), 10);
    /// ```
    #[track_caller]
    pub const fn const_new(permits: usize) -> Self {
        assert!(permits <= Self::MAX_PERMITS);
        let resource = AssertUnwindSafe(OnceLock::new());
        Semaphore { resource, permits, created: Location::caller(), like: PhantomData }
    }

    pub(crate) fn resource(&self) -> &Resource {
        self.resource.get_or_init(|| {
            let inner = tokio::sync::Semaphore::const_new(self.permits);
            Resource::register(Kind::Semaphore, self.permits as u64, inner, self.created)
        })
    }

    fn inner(&self) -> &tokio::sync::Semaphore {
        &self.resource().semaphore
    }

    /// Returns the current number of available permits.
    pub fn available_permits(&self) -> usize {
        self.inner().available_permits()
    }

    /// Adds `n` new permits to the semaphore. Recorded as a growth of its capacity.
    ///
    /// # Panics
    ///
    /// If the number of permits would exceed [`Semaphore::MAX_PERMITS`].
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        self.inner().add_permits(n);
        self.resource().added(n as u64, Location::caller());
    }

    /// Takes up to `n` available permits away for good, and returns how many. Recorded as forgotten.
    #[track_caller]
    pub fn forget_permits(&self, n: usize) -> usize {
        let gone = self.inner().forget_permits(n);
        self.resource().withdrawn(gone as u64, Location::caller());
        gone
    }

    /// Acquires a permit. Recorded at the first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Cancel safety
    ///
    /// Waiters are served in the order in which they began to wait. Dropping the future loses the place.
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::Semaphore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let semaphore = Semaphore::new(2);
    /// let first = semaphore.acquire().await.unwrap();
    /// let second = semaphore.acquire().await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// # drop((first, second));
    /// # }
    /// ```
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.acquire_units(1, Location::caller())
    }

    /// Acquires `n` permits at once. Recorded at the first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire). What it has gathered so far goes to the next in the queue.
    #[track_caller]
    pub fn acquire_many(
        &self,
        n: u32,
    ) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.acquire_units(n, Location::caller())
    }

    async fn acquire_units(
        &self,
        n: u32,
        site: &'static Location<'static>,
    ) -> Result<SemaphorePermit<'_>, AcquireError> {
        let resource = self.resource();
        resource.borrowed_at(std::ptr::from_ref(self).cast());
        let hold = acquire(resource, n, site, false).await?;
        Ok(SemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Acquires a permit if one is available right now. A call that finds none is counted.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Closed`] if the semaphore has been closed, [`TryAcquireError::NoPermits`] if no
    /// permit is left.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Acquires `n` permits if they are available right now. A call that does not find them is counted.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Closed`] if the semaphore has been closed, [`TryAcquireError::NoPermits`] if not
    /// enough permits are left.
    #[track_caller]
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.resource().borrowed_at(std::ptr::from_ref(self).cast());
        let hold = try_acquire(self.resource(), n, false)?;
        Ok(SemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Blocks the current thread until a permit is available. Recorded as a blocking call.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// Blocks the current thread until `n` permits are available. Recorded as a blocking call.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        let resource = self.resource();
        resource.borrowed_at(std::ptr::from_ref(self).cast());
        let hold = blocking_acquire(resource, n, false)?;
        Ok(SemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Acquires a permit that keeps the semaphore alive. Recorded at the first poll, with its call stack.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use holdup::sync::Semaphore;
    /// use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let mut tasks = Vec::new();
    /// for _ in 0..5 {
    ///     let permit = semaphore.clone().acquire_owned().await.unwrap();
    ///     tasks.push(tokio::spawn(async move {
    ///         // Work with at most two others.
    ///         drop(permit);
    ///     }));
    /// }
    /// for task in tasks {
    ///     task.await.unwrap();
    /// }
    /// # }
    /// ```
    #[track_caller]
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_owned_units(1, Location::caller())
    }

    /// Acquires `n` permits at once that keep the semaphore alive. Recorded at the first poll, with its call
    /// stack.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[track_caller]
    pub fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_owned_units(n, Location::caller())
    }

    async fn acquire_owned_units(
        self: Arc<Self>,
        n: u32,
        site: &'static Location<'static>,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let hold = acquire(self.resource(), n, site, true).await?;
        Ok(OwnedSemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Acquires a permit that keeps the semaphore alive, if one is available right now.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[track_caller]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Acquires `n` permits that keep the semaphore alive, if they are available right now.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_many`](Self::try_acquire_many).
    #[track_caller]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let hold = try_acquire(self.resource(), n, true)?;
        Ok(OwnedSemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Blocks the current thread until a permit is available, which keeps the semaphore alive.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.blocking_acquire_many_owned(1)
    }

    /// Blocks the current thread until `n` permits are available, which keep the semaphore alive.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] if the semaphore has been closed.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous execution context.
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let hold = blocking_acquire(self.resource(), n, true)?;
        Ok(OwnedSemaphorePermit { sem: self, permits: n as usize, hold })
    }

    /// Closes the semaphore: no new permits are handed out, and all who wait get an [`AcquireError`].
    pub fn close(&self) {
        self.inner().close();
    }

    /// Returns true if the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        self.inner().is_closed()
    }

    fn give_back(&self, permits: usize, hold: HoldKey) {
        // First the permit, then the books: measuring a hold must not make it longer.
        self.inner().add_permits(permits);
        self.resource().released(hold, permits as u64);
    }
}

/// Adds up the permits of two permit objects.
#[track_caller]
fn sum(mine: usize, other: usize) -> usize {
    mine.checked_add(other).expect("number of permits overflowed")
}

impl<'a> SemaphorePermit<'a> {
    /// Forgets the permit **without** giving it back. Recorded as forgotten.
    #[track_caller]
    pub fn forget(mut self) {
        let (permits, hold) = self.empty();
        self.sem.resource().forgotten(hold, permits as u64, Location::caller());
    }

    /// Merges two permits of the same semaphore. Shows that this permit is used by whoever calls.
    ///
    /// # Panics
    ///
    /// If the permits are from different semaphores.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            std::ptr::eq(self.sem, other.sem),
            "merging permits from different semaphore instances"
        );
        self.permits = sum(self.permits, other.permits);
        let (permits, hold) = other.empty();
        self.sem.resource().merged(self.hold, hold, permits as u64);
        self.sem.resource().used(self.hold);
    }

    /// Splits `n` permits off, or returns `None` if there are fewer. Shows that this permit is used by whoever
    /// calls.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        let resource = self.sem.resource();
        resource.used(self.hold);
        Some(SemaphorePermit {
            sem: self.sem,
            permits: n,
            hold: resource.split(self.hold, n as u64),
        })
    }

    /// Returns the semaphore this permit is from. Shows that it is used by whoever calls.
    pub fn semaphore(&self) -> &Semaphore {
        self.sem.resource().used(self.hold);
        self.sem
    }

    /// Returns the number of permits held. Shows that this permit is used by whoever calls.
    pub fn num_permits(&self) -> usize {
        self.sem.resource().used(self.hold);
        self.permits
    }

    /// Takes everything out, so that dropping gives nothing back.
    fn empty(&mut self) -> (usize, HoldKey) {
        (mem::take(&mut self.permits), mem::replace(&mut self.hold, HoldKey::None))
    }
}

impl OwnedSemaphorePermit {
    /// Forgets the permit **without** giving it back. Recorded as forgotten.
    #[track_caller]
    pub fn forget(mut self) {
        let (permits, hold) = self.empty();
        self.sem.resource().forgotten(hold, permits as u64, Location::caller());
    }

    /// Merges two permits of the same semaphore. Shows that this permit is used by whoever calls.
    ///
    /// # Panics
    ///
    /// If the permits are from different semaphores.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.sem, &other.sem),
            "merging permits from different semaphore instances"
        );
        self.permits = sum(self.permits, other.permits);
        let (permits, hold) = other.empty();
        self.sem.resource().merged(self.hold, hold, permits as u64);
        self.sem.resource().used(self.hold);
    }

    /// Splits `n` permits off, or returns `None` if there are fewer. Shows that this permit is used by whoever
    /// calls.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        let resource = self.sem.resource();
        resource.used(self.hold);
        let hold = resource.split(self.hold, n as u64);
        Some(OwnedSemaphorePermit { sem: self.sem.clone(), permits: n, hold })
    }

    /// Returns the semaphore this permit is from. Shows that it is used by whoever calls.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        self.sem.resource().used(self.hold);
        &self.sem
    }

    /// Returns the number of permits held. Shows that this permit is used by whoever calls.
    pub fn num_permits(&self) -> usize {
        self.sem.resource().used(self.hold);
        self.permits
    }

    /// Takes everything out, so that dropping gives nothing back.
    fn empty(&mut self) -> (usize, HoldKey) {
        (mem::take(&mut self.permits), mem::replace(&mut self.hold, HoldKey::None))
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        self.sem.give_back(self.permits, self.hold);
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        self.sem.give_back(self.permits, self.hold);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner().fmt(f)
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit")
            .field("sem", &self.sem)
            .field("permits", &self.permits)
            .finish()
    }
}

impl fmt::Debug for OwnedSemaphorePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSemaphorePermit")
            .field("sem", &self.sem)
            .field("permits", &self.permits)
            .finish()
    }
}
