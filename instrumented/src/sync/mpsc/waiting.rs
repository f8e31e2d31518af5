//! Waiting for room.

use crate::actor;
use crate::registry::{HoldKey, Key, Request, Resource};
use holdup_core::snapshot::Call;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What is asked for, and from where.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) units: usize,
    pub(super) owned: bool,
    pub(super) site: &'static Location<'static>,
    /// A call that has its room at once is recorded too, since it keeps it.
    pub(super) keeps: bool,
}

/// One of tokio's futures that wait for room, in the books as waiting from its first poll on, if that does not
/// end it.
pub(super) struct Waiting<'a, F> {
    resource: &'a Resource,
    ask: Ask,
    inner: Pin<&'a mut F>,
    request: Option<Request>,
    wait: Option<Key>,
}

/// How it was asked, for what was granted.
pub(super) struct Served {
    request: Option<Request>,
    wait: Option<Key>,
}

impl<'a, F> Waiting<'a, F> {
    pub(super) fn new(resource: &'a Resource, ask: Ask, inner: Pin<&'a mut F>) -> Self {
        Waiting { resource, ask, inner, request: None, wait: None }
    }

    /// Finds out who asks. The same future lies at the same address for as long as it is polled.
    #[inline(never)]
    fn request(&self, cx: &Context<'_>) -> Option<Request> {
        let Ask { units, owned, site, .. } = self.ask;
        let address = std::ptr::from_ref(self).cast();
        self.resource.request(units as u64, Call::Acquire, owned, site, Some((cx, address)))
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for Waiting<'_, F> {
    type Output = Result<(T, Served), E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.inner.as_mut().poll(cx) {
            Poll::Ready(result) => {
                let granted = result?;
                if this.ask.keeps && this.request.is_none() {
                    this.request = this.request(cx);
                }
                let request =
                    this.request.map(|request| Request { poller: actor::poller(cx), ..request });
                Poll::Ready(Ok((granted, Served { request, wait: this.wait.take() })))
            }
            Poll::Pending => {
                if let Some(wait) = this.wait {
                    this.resource.polled(wait, cx);
                } else if this.request.is_none() {
                    this.request = this.request(cx);
                    this.wait = this.request.as_ref().and_then(|it| this.resource.wait(it));
                }
                Poll::Pending
            }
        }
    }
}

impl<F> Drop for Waiting<'_, F> {
    fn drop(&mut self) {
        if let Some(wait) = self.wait.take() {
            self.resource.gave_up(wait);
        }
    }
}

impl Served {
    /// What was granted is kept.
    pub(super) fn hold(self, resource: &Resource) -> HoldKey {
        resource.acquired(self.request.as_ref(), self.wait)
    }

    /// What was granted has become a message.
    pub(super) fn sent(self, resource: &Resource) {
        resource.sent(self.request.as_ref(), self.wait);
    }
}

/// A blocking call, in the books as waiting until it returns or panics.
pub(super) struct Blocked<'a> {
    resource: &'a Resource,
    served: Served,
}

impl<'a> Blocked<'a> {
    /// `waits`: there is no room, as far as can be told.
    pub(super) fn enter(
        resource: &'a Resource,
        waits: bool,
        site: &'static Location<'static>,
    ) -> Self {
        let ask = || resource.request(1, Call::Blocking, false, site, None);
        let request = if waits { ask() } else { None };
        let wait = request.as_ref().and_then(|request| resource.wait(request));
        Blocked { resource, served: Served { request, wait } }
    }

    pub(super) fn sent(mut self) {
        let wait = self.served.wait.take();
        Served { request: self.served.request, wait }.sent(self.resource);
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        if let Some(wait) = self.served.wait.take() {
            self.resource.gave_up(wait);
        }
    }
}
