//! A channel: its room is given out by tokio, and given back by whoever receives.

use super::{HoldKey, Key, Ledger, REGISTRY, Request, Resource, next_id, now, runtimes};
use holdup_core::snapshot::{Call, HoldId, Kind, Moment};
use std::panic::Location;
use std::sync::{Arc, PoisonError};

impl Resource {
    /// Registers a channel that was created at `created`.
    pub(crate) fn channel(capacity: u64, created: &'static Location<'static>) -> Arc<Resource> {
        // The channel that has the room is of some type that the books must not know.
        let none = tokio::sync::Semaphore::const_new(0);
        let mut channel = Resource::new(Kind::Channel, capacity, none, created);
        if let Some(maker) = channel.receives(created, None) {
            let ledger = channel.ledger.get_mut().unwrap_or_else(PoisonError::into_inner);
            *ledger = Ledger::of_channel(capacity, maker);
        }
        channel.listed()
    }

    /// Describes who receives, or tries to.
    pub(crate) fn receives(
        &self,
        site: &'static Location<'static>,
        poll: Option<(&std::task::Context<'_>, *const ())>,
    ) -> Option<Request> {
        self.request(0, Call::Receive, true, site, poll)
    }

    /// A message was sent by a call that does not reserve, after the wait that it had, if it had one.
    pub(crate) fn sent(&self, request: Option<&Request>, waited: Option<Key>) {
        if !self.on {
            return;
        }
        if waited.is_some() {
            REGISTRY.waits.give_back();
        }
        self.change_messages(|ledger, now| {
            match request {
                Some(request) => {
                    let hold = ledger.acquired(None, *request, waited, now);
                    ledger.released(hold, request.units, now);
                }
                None => ledger.passed(now),
            }
            ledger.sent(now, || HoldId(next_id()));
        });
    }

    /// A permit of one unit became a message.
    pub(crate) fn sent_by(&self, hold: HoldKey) {
        self.released(hold, 1);
        if self.on {
            self.change_messages(|ledger, now| ledger.sent(now, || HoldId(next_id())));
        }
    }

    /// `n` messages were received; none, if there was none to receive.
    pub(crate) fn received(&self, n: usize, receiver: Option<&Request>) {
        let Some(receiver) = receiver else { return };
        runtimes::note(receiver.actor);
        self.change_messages(|ledger, now| {
            ledger.received(n as u64, *receiver, now, || HoldId(next_id()));
        });
    }

    /// No more messages are accepted.
    pub(crate) fn closed(&self) {
        self.ledger().closed();
    }

    /// The receiver was dropped.
    pub(crate) fn abandoned(&self) {
        self.change_messages(Ledger::abandoned);
    }

    /// Changes what is unread. That there is some is one hold, which counts like any other, but is always recorded:
    /// there are no more of them than channels.
    fn change_messages(&self, change: impl FnOnce(&mut Ledger, Moment)) {
        let (before, after) = {
            let mut ledger = self.ledger();
            let before = ledger.holds().len();
            change(&mut ledger, now());
            (before, ledger.holds().len())
        };
        if after > before {
            REGISTRY.holds.add();
        } else if after < before {
            REGISTRY.holds.give_back();
        }
    }
}
