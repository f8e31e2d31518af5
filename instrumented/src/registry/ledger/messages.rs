//! A channel's messages that nobody has received yet: one hold of all of them, by whoever received last.

use super::{HoldKey, HoldRecord, Ledger, Request, elsewhere};
use holdup_core::snapshot::{ActorId, HoldId, Moment};
use std::mem;

#[derive(Debug)]
pub(super) struct Messages {
    /// Who received last, or tried to; before that, who made the channel.
    receiver: Request,
    /// Somebody has.
    asked: bool,
    /// Another one who has: they share the receiver, or one has it from the other.
    other: Option<ActorId>,
    /// A message may be received before its sender comes to say that it was sent.
    sent: u64,
    received: u64,
    /// What is in the books for them: a hold of so many units.
    hold: HoldKey,
    units: u64,
    closed: bool,
    /// The receiver is gone, and all messages with it.
    gone: bool,
}

impl Ledger {
    /// The books of a channel that `maker` made.
    pub(crate) fn of_channel(capacity: u64, maker: Request) -> Self {
        let messages = Messages {
            receiver: maker,
            asked: false,
            other: None,
            sent: 0,
            received: 0,
            hold: HoldKey::None,
            units: 0,
            closed: false,
            gone: false,
        };
        Ledger { messages: Some(Box::new(messages)), ..Ledger::new(capacity) }
    }

    /// A message took a free unit at once.
    pub(crate) fn passed(&mut self, now: Moment) {
        self.moved = now;
        self.counters.acquired += 1;
        self.counters.released += 1;
    }

    /// A message is there to be received.
    pub(crate) fn sent(&mut self, now: Moment, id: impl FnOnce() -> HoldId) {
        let Some(messages) = &mut self.messages else { return };
        messages.sent += 1;
        self.count_unread(now, id);
    }

    /// `n` messages were received by `receiver`; none, if there was none to receive.
    pub(crate) fn received(
        &mut self,
        n: u64,
        receiver: Request,
        now: Moment,
        id: impl FnOnce() -> HoldId,
    ) {
        let Some(messages) = &mut self.messages else { return };
        if n > 0 {
            self.moved = now;
        }
        messages.received += n;
        let (one, another) = (messages.receiver.actor, receiver.actor);
        if messages.asked && elsewhere(one, another) && elsewhere(another, one) {
            messages.other = Some(one);
        }
        (messages.receiver, messages.asked) = (receiver, true);
        // What is left is a hold of its own: somebody else may have it, and it moves on.
        let (hold, units) = (mem::replace(&mut messages.hold, HoldKey::None), messages.units);
        messages.units = 0;
        self.remove(hold, units);
        self.count_unread(now, id);
    }

    /// No more messages are accepted.
    pub(crate) fn closed(&mut self) {
        self.version += 1;
        if let Some(messages) = &mut self.messages {
            messages.closed = true;
        }
    }

    /// The receiver was dropped, and what it had not received.
    pub(crate) fn abandoned(&mut self, now: Moment) {
        self.closed();
        if let Some(messages) = &mut self.messages {
            messages.gone = true;
            self.count_unread(now, || HoldId(0));
        }
    }

    /// Brings the hold of the unread messages up to date; `id` is for a new one.
    fn count_unread(&mut self, now: Moment, id: impl FnOnce() -> HoldId) {
        self.version += 1;
        let Some(messages) = &mut self.messages else { return };
        let unread = match messages.gone {
            true => 0,
            false => messages.sent.saturating_sub(messages.received),
        };
        let before = mem::replace(&mut messages.units, unread);
        match (messages.hold, unread) {
            (HoldKey::None, 0) => {}
            (HoldKey::None, _) => {
                let request = Request { units: unread, ..messages.receiver };
                let (moved_to, credited) = (messages.other, None);
                let record = HoldRecord { id: id(), request, since: now, moved_to, credited };
                let key = self.holds.push(record);
                self.held += unread;
                let hold = self.recorded(key, unread);
                if let Some(messages) = &mut self.messages {
                    messages.hold = hold;
                }
            }
            (hold, 0) => {
                messages.hold = HoldKey::None;
                self.remove(hold, before);
            }
            (HoldKey::At(key), _) => {
                self.held = self.held.saturating_sub(before) + unread;
                if let Some(hold) = self.holds.get_mut(key) {
                    hold.request.units = unread;
                }
            }
            (HoldKey::Unrecorded, _) => {
                self.held = self.held.saturating_sub(before) + unread;
                self.unrecorded = self.unrecorded.saturating_sub(before) + unread;
            }
        }
    }

    /// The units of a channel that are free. `None`: it is no channel, and its semaphore knows.
    ///
    /// tokio tells this to those only who send or receive. It follows from the rest: what nobody has goes to the
    /// queue first, of which nobody is passed over. Once closed nothing goes there.
    pub(crate) fn free(&self) -> Option<u64> {
        let messages = self.messages.as_ref()?;
        let mut free = self.initial.saturating_sub(self.held);
        let mut waits = self.waits.iter();
        while free > 0
            && !messages.closed
            && let Some(wait) = waits.next()
        {
            free = free.saturating_sub(wait.request.units);
        }
        Some(free)
    }

    /// A channel that accepts no more messages.
    pub(crate) fn is_closed(&self) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::ledger::tests::request;
    use holdup_core::snapshot::{Call, RuntimeId, WaitId};

    fn by(task: u64) -> Request {
        Request { actor: ActorId::Task(task), call: Call::Receive, owned: true, ..request(0) }
    }

    fn id(n: u64) -> impl FnOnce() -> HoldId {
        move || HoldId(n)
    }

    /// Units, who has them, since when: of all holds; and the units that are free.
    fn books(ledger: &Ledger) -> (Vec<(u64, ActorId, u64)>, u64) {
        let holds = ledger.holds().iter();
        let held = holds.map(|h| (h.request.units, h.request.actor, h.since.0)).collect();
        (held, ledger.free().expect("a channel"))
    }

    #[test]
    fn unread_messages_are_held_by_whoever_received_last() {
        use ActorId::Task;
        let mut ledger = Ledger::of_channel(3, by(1));
        assert_eq!(books(&ledger), (vec![], 3));
        ledger.sent(Moment(10), id(1));
        ledger.sent(Moment(11), id(2));
        assert_eq!(books(&ledger), (vec![(2, Task(1), 10)], 1));
        assert_eq!((ledger.usage().held, ledger.usage().holders), (2, 1));
        ledger.received(1, by(2), Moment(20), id(3));
        assert_eq!(books(&ledger), (vec![(1, Task(2), 20)], 2));
        ledger.received(1, by(2), Moment(21), id(4));
        assert_eq!(books(&ledger), (vec![], 3));
        ledger.received(0, by(3), Moment(22), id(5));
        ledger.sent(Moment(30), id(6));
        assert_eq!(books(&ledger), (vec![(1, Task(3), 30)], 2));
        assert_eq!(ledger.recorded_units(), 1);
    }

    #[test]
    fn a_message_that_is_received_before_it_is_said_to_be_sent_never_counts() {
        let mut ledger = Ledger::of_channel(1, by(1));
        ledger.received(1, by(1), Moment(10), id(1));
        assert_eq!(books(&ledger), (vec![], 1));
        ledger.sent(Moment(11), id(2));
        assert_eq!(books(&ledger), (vec![], 1));
    }

    #[test]
    fn that_several_receive_is_remembered() {
        use ActorId::{Root, Task, Thread};
        let table = [
            (vec![Task(2), Task(2)], None),
            (vec![Task(2), Task(3), Task(3)], Some(Task(2))),
            (vec![Task(2), Task(3), Task(2)], Some(Task(3))),
            // A root future that tries, and then waits.
            (vec![Thread(1), Root(7), Thread(1)], None),
            (vec![Thread(1), Thread(2)], Some(Thread(1))),
        ];
        for (receivers, other) in table {
            let mut ledger = Ledger::of_channel(1, by(1));
            for actor in receivers {
                ledger.received(0, Request { actor, ..by(1) }, Moment(1), id(1));
            }
            ledger.sent(Moment(2), id(2));
            assert_eq!(ledger.holds().first().expect("unread").moved_to, other);
        }
    }

    #[test]
    fn what_nobody_has_belongs_to_the_queue() {
        let mut ledger = Ledger::of_channel(2, by(1));
        ledger.sent(Moment(1), id(1));
        let both = ledger.wait(WaitId(1), request(2), RuntimeId::NONE).expect("room");
        assert_eq!(ledger.free(), Some(0));
        ledger.received(1, by(1), Moment(2), id(2));
        assert_eq!(ledger.free(), Some(0));
        ledger.gave_up(both, Moment(3), false);
        assert_eq!(ledger.free(), Some(2));
    }

    #[test]
    fn nothing_is_left_when_the_receiver_is_gone() {
        let mut ledger = Ledger::of_channel(2, by(1));
        ledger.sent(Moment(1), id(1));
        assert!(!ledger.is_closed());
        ledger.abandoned(Moment(2));
        assert!(ledger.is_closed());
        ledger.sent(Moment(3), id(2));
        assert_eq!(books(&ledger), (vec![], 2));
    }
}
