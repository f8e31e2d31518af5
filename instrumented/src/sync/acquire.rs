//! The one way in which an async acquire becomes a hold, for every primitive.

use crate::actor;
use crate::registry::{HoldKey, Key, Request, Resource};
use holdup_core::snapshot::Call;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::sync::{AcquireError, SemaphorePermit, TryAcquireError};
use tokio::task::coop;

/// Acquires `units`, which are from then on in the books under the returned key.
///
/// Does nothing until polled, like tokio's. If it is dropped while it waits, it loses its place in the queue
/// and its entry in the books.
pub(super) async fn acquire(
    resource: &Resource,
    units: u32,
    site: &'static Location<'static>,
    owned: bool,
) -> Result<HoldKey, AcquireError> {
    let mut request = None;
    let first = First { resource, units, site, owned, request: &mut request };
    if first.await {
        return Ok(resource.acquired(request.as_ref(), None));
    }
    let inner = pin!(resource.semaphore.acquire_many(units));
    let waited = Queued { resource, request: request.as_ref(), inner, wait: None }.await?;
    Ok(resource.acquired(request.as_ref(), waited))
}

/// Tries once, when it is polled first; true if that was enough.
///
/// It overtakes nobody: units that somebody queues for are never available to `try_acquire`, and tokio's own
/// future begins with the same attempt. The cooperative budget is spent as tokio spends it.
struct First<'a> {
    resource: &'a Resource,
    units: u32,
    site: &'static Location<'static>,
    owned: bool,
    request: &'a mut Option<Request>,
}

impl Future for First<'_> {
    type Output = bool;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let this = &mut *self;
        if this.request.is_none() {
            // The request lies in the acquire future, so its address tells one acquire from another.
            let address = std::ptr::from_ref(&*this.request).cast();
            let units = u64::from(this.units);
            *this.request = this.resource.request(
                units,
                Call::Acquire,
                this.owned,
                this.site,
                Some((cx, address)),
            );
        }
        // tokio's own future reports each operation to tokio-console, and without budget it takes the units
        // or its place in the queue before it yields: then it has to run.
        if cfg!(tokio_unstable) || !coop::has_budget_remaining() {
            return Poll::Ready(false);
        }
        Poll::Ready(match this.resource.semaphore.try_acquire_many(this.units) {
            Ok(permit) => {
                permit.forget();
                if let Poll::Ready(progress) = coop::poll_proceed(cx) {
                    progress.made_progress();
                }
                true
            }
            // The future that is polled next has the error to return.
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => false,
        })
    }
}

/// Waits in tokio's queue, and is in the books as waiting.
struct Queued<'a, F> {
    resource: &'a Resource,
    request: Option<&'a Request>,
    inner: Pin<&'a mut F>,
    wait: Option<Key>,
}

impl<'p, F: Future<Output = Result<SemaphorePermit<'p>, AcquireError>>> Future for Queued<'_, F> {
    type Output = Result<Option<Key>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.inner.as_mut().poll(cx) {
            Poll::Ready(permit) => {
                permit?.forget();
                Poll::Ready(Ok(this.wait.take()))
            }
            Poll::Pending => {
                match (this.wait, this.request) {
                    (Some(wait), _) => this.resource.polled(wait, cx),
                    (None, Some(request)) => {
                        let request = Request { poller: actor::poller(cx), ..*request };
                        this.wait = this.resource.wait(&request);
                    }
                    (None, None) => {}
                }
                Poll::Pending
            }
        }
    }
}

impl<F> Drop for Queued<'_, F> {
    fn drop(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.resource.gave_up(wait);
        }
    }
}

/// Acquires `units` if they are available right now. A call that does not find them is counted.
#[track_caller]
pub(super) fn try_acquire(
    resource: &Resource,
    units: u32,
    owned: bool,
) -> Result<HoldKey, TryAcquireError> {
    match resource.semaphore.try_acquire_many(units) {
        Ok(permit) => permit.forget(),
        Err(error) => {
            if error == TryAcquireError::NoPermits {
                resource.rejected();
            }
            return Err(error);
        }
    }
    let request = resource.request(u64::from(units), Call::Try, owned, Location::caller(), None);
    Ok(resource.acquired(request.as_ref(), None))
}

/// Blocks the thread until `units` are acquired.
#[track_caller]
pub(super) fn blocking_acquire(
    resource: &Resource,
    units: u32,
    owned: bool,
) -> Result<HoldKey, AcquireError> {
    let blocked = Blocked::enter(resource, units, Location::caller(), owned);
    resource.semaphore.blocking_acquire_many(units)?.forget();
    Ok(blocked.acquired())
}

/// A blocking call in the books as waiting, until it returns or panics.
struct Blocked<'a> {
    resource: &'a Resource,
    request: Option<Request>,
    wait: Option<Key>,
}

impl<'a> Blocked<'a> {
    fn enter(
        resource: &'a Resource,
        units: u32,
        site: &'static Location<'static>,
        owned: bool,
    ) -> Self {
        let units = u64::from(units);
        let request = resource.request(units, Call::Blocking, owned, site, None);
        // A call that will be served at once is not shown as waiting.
        let waits = (resource.semaphore.available_permits() as u64) < units;
        let wait = request.as_ref().filter(|_| waits).and_then(|request| resource.wait(request));
        Blocked { resource, request, wait }
    }

    fn acquired(mut self) -> HoldKey {
        self.resource.acquired(self.request.as_ref(), self.wait.take())
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.resource.gave_up(wait);
        }
    }
}
