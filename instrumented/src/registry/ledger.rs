//! The books of one resource: a single-threaded state machine that turns what happens to permits into
//! balanced accounts. Whatever concurrency there is lies outside.

mod messages;

use super::history::{Caller, FlowKey, History};
use super::queue::{Key, Queue};
use holdup_core::snapshot::{
    ActorId, Call, Counters, Direction, HoldId, Moment, RuntimeId, ScopeId, StackId, Usage, WaitId,
};
use messages::Messages;
use std::panic::Location;

/// Who asks for units, from where, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) units: u64,
    pub(crate) actor: ActorId,
    pub(crate) scope: ScopeId,
    pub(crate) stack: StackId,
    pub(crate) site: &'static Location<'static>,
    pub(crate) since: Moment,
    pub(crate) call: Call,
    pub(crate) owned: bool,
    pub(crate) future: u64,
    pub(crate) poller: u64,
    pub(crate) thread: u64,
}

/// A request that was served: a permit object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldRecord {
    pub(crate) id: HoldId,
    pub(crate) request: Request,
    pub(crate) since: Moment,
    pub(crate) moved_to: Option<ActorId>,
    /// Its actor added units meanwhile, as if this one did not go back by itself.
    pub(crate) credited: Option<FlowKey>,
}

/// A request that has to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitRecord {
    pub(crate) id: WaitId,
    pub(crate) request: Request,
    pub(crate) last_poll: Moment,
    pub(crate) poller: u64,
    pub(crate) runtime: RuntimeId,
    pub(crate) granted_since: Option<Moment>,
}

/// Holds among which one of whoever adds units is looked for, the latest first.
const MAX_LOOKED_AT: usize = 64;

/// A permit's entry in the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldKey {
    /// Recorded under this key.
    At(Key),
    /// Counted, but without a record, because there was no room for it.
    Unrecorded,
    /// Nothing is recorded: holdup is off, or the permit has been merged or forgotten.
    None,
}

/// The books of one resource.
///
/// `held` is kept for every permit, recorded or not, so that
/// `capacity = available + held + granted` can be told from the totals alone.
#[derive(Debug)]
pub(crate) struct Ledger {
    initial: u64,
    added: u64,
    forgotten: u64,
    held: u64,
    unrecorded: u64,
    holds: Queue<HoldRecord>,
    waits: Queue<WaitRecord>,
    /// Waits that have units set aside for them, as far as was noticed.
    marked: usize,
    /// When units last went anywhere.
    moved: Moment,
    history: History,
    counters: Counters,
    /// Of a channel.
    messages: Option<Box<Messages>>,
    /// Changes with every change of the books.
    version: u64,
}

impl Ledger {
    pub(crate) const fn new(initial: u64) -> Self {
        Ledger {
            initial,
            added: 0,
            forgotten: 0,
            held: 0,
            unrecorded: 0,
            holds: Queue::new(),
            waits: Queue::new(),
            marked: 0,
            moved: Moment(0),
            history: History::new(),
            counters: Counters {
                acquired: 0,
                waited: 0,
                released: 0,
                rejected: 0,
                cancelled: 0,
                wait_nanos: 0,
                cancelled_nanos: 0,
                held_nanos: 0,
            },
            messages: None,
            version: 0,
        }
    }

    /// A request has to wait. `None`: there is no room for the record.
    pub(crate) fn wait(&mut self, id: WaitId, request: Request, runtime: RuntimeId) -> Option<Key> {
        self.version += 1;
        let (last_poll, poller) = (request.since, request.poller);
        self.waits.push(WaitRecord { id, request, last_poll, poller, runtime, granted_since: None })
    }

    /// A waiting request was polled again.
    pub(crate) fn polled(&mut self, key: Key, now: Moment, poller: u64) {
        if let Some(wait) = self.waits.get_mut(key) {
            (wait.last_poll, wait.poller) = (now, poller);
            self.marked -= usize::from(wait.granted_since.take().is_some());
        }
    }

    /// `units` are set aside for the front of the queue, as the books say that balance at `now`.
    pub(crate) fn granted(&mut self, units: u64, now: Moment) {
        // Those behind may be marked still: what was counted for them before was on its way elsewhere.
        let (mut left, mut before, mut after) = (units, self.marked, 0);
        self.waits.each_mut(|wait| {
            if left == 0 && before == 0 {
                return false;
            }
            before -= usize::from(wait.granted_since.is_some());
            if wait.request.units <= left {
                left -= wait.request.units;
                after += 1;
                wait.granted_since.get_or_insert(now);
            } else {
                left = 0;
                wait.granted_since = None;
            }
            true
        });
        self.marked = after;
    }

    /// Takes a wait out of the queue.
    fn unqueue(&mut self, key: Key) -> Option<WaitRecord> {
        let wait = self.waits.remove(key)?;
        self.marked -= usize::from(wait.granted_since.is_some());
        Some(wait)
    }

    /// A waiting request ended without a permit: it was dropped, or the resource was `closed`.
    pub(crate) fn gave_up(&mut self, key: Key, now: Moment, closed: bool) {
        self.version += 1;
        if let Some(wait) = self.unqueue(key) {
            self.counters.cancelled += 1;
            add(&mut self.counters.cancelled_nanos, nanos(now, wait.request.since));
            if !closed && !self.is_closed() {
                self.history.gave_up(&wait, now);
            }
        }
    }

    /// A request was served; `waited` is its wait, if it had one, `recorded` whether there is room.
    pub(crate) fn acquired(
        &mut self,
        id: Option<HoldId>,
        request: Request,
        waited: Option<Key>,
        now: Moment,
    ) -> HoldKey {
        self.version += 1;
        self.moved = now;
        self.counters.acquired += 1;
        self.held += request.units;
        self.history.acquired(request.actor, request.site, request.units);
        if let Some(wait) = waited.and_then(|key| self.unqueue(key)) {
            self.counters.waited += 1;
            add(&mut self.counters.wait_nanos, nanos(now, wait.request.since));
        }
        let key = id.and_then(|id| {
            let hold = HoldRecord { id, request, since: now, moved_to: None, credited: None };
            self.holds.push(hold)
        });
        self.recorded(key, request.units)
    }

    fn recorded(&mut self, key: Option<Key>, units: u64) -> HoldKey {
        match key {
            Some(key) => HoldKey::At(key),
            None => {
                self.unrecorded += units;
                HoldKey::Unrecorded
            }
        }
    }

    /// Takes a permit of `units` out of the books.
    fn remove(&mut self, key: HoldKey, units: u64) -> Option<HoldRecord> {
        self.version += 1;
        match key {
            HoldKey::At(key) => {
                self.held = self.held.saturating_sub(units);
                self.holds.remove(key)
            }
            HoldKey::Unrecorded => {
                self.held = self.held.saturating_sub(units);
                self.unrecorded = self.unrecorded.saturating_sub(units);
                None
            }
            HoldKey::None => None,
        }
    }

    /// A permit of `units` was given back. Returns its record.
    pub(crate) fn released(&mut self, key: HoldKey, units: u64, now: Moment) -> Option<HoldRecord> {
        let hold = self.remove(key, units);
        if key != HoldKey::None {
            self.moved = now;
            self.counters.released += 1;
        }
        let hold = hold?;
        add(&mut self.counters.held_nanos, nanos(now, hold.since));
        if let Some(flow) = hold.credited {
            self.history.then_released(flow);
        }
        Some(hold)
    }

    /// A permit of `units` was forgotten: its units are lost. Returns its record.
    pub(crate) fn forgotten(&mut self, key: HoldKey, units: u64, by: Caller) -> Option<HoldRecord> {
        let hold = self.remove(key, units);
        if key != HoldKey::None {
            self.moved = by.at;
            self.history.flowed(Direction::Forgotten, units, by);
            add(&mut self.forgotten, units);
        }
        hold
    }

    /// The permit `from`, of `units`, became part of `into`. Returns the record that has gone.
    pub(crate) fn merged(
        &mut self,
        into: HoldKey,
        from: HoldKey,
        units: u64,
    ) -> Option<HoldRecord> {
        if from == HoldKey::None {
            return None;
        }
        let gone = self.remove(from, units);
        match into {
            HoldKey::At(key) => {
                self.held += units;
                if let Some(hold) = self.holds.get_mut(key) {
                    hold.request.units += units;
                }
            }
            HoldKey::Unrecorded => {
                self.held += units;
                self.unrecorded += units;
            }
            HoldKey::None => {}
        }
        gone
    }

    /// The record of a permit.
    pub(crate) fn hold(&self, key: HoldKey) -> Option<HoldRecord> {
        let HoldKey::At(key) = key else { return None };
        self.holds.get(key).copied()
    }

    /// `units` of the permit `from` became a permit of their own, with the same history.
    pub(crate) fn split(&mut self, from: HoldKey, units: u64, id: Option<HoldId>) -> HoldKey {
        self.version += 1;
        match from {
            HoldKey::At(key) => {
                let Some(hold) = self.holds.get_mut(key) else { return HoldKey::None };
                hold.request.units = hold.request.units.saturating_sub(units);
                let mut part = *hold;
                part.request.units = units;
                // Whatever was added while the whole was held, was added once.
                part.credited = None;
                let key = id.and_then(|id| {
                    part.id = id;
                    self.holds.push_behind(key, part)
                });
                self.recorded(key, units)
            }
            other => other,
        }
    }

    /// `units` of a permit were given back, and the rest is kept.
    pub(crate) fn reduced(&mut self, key: HoldKey, units: u64, now: Moment) {
        self.version += 1;
        self.moved = now;
        match key {
            HoldKey::At(key) => {
                self.held = self.held.saturating_sub(units);
                if let Some(hold) = self.holds.get_mut(key) {
                    hold.request.units = hold.request.units.saturating_sub(units);
                }
            }
            HoldKey::Unrecorded => {
                self.held = self.held.saturating_sub(units);
                self.unrecorded = self.unrecorded.saturating_sub(units);
            }
            HoldKey::None => {}
        }
    }

    /// A permit was used by `actor`. True if that is not who acquired it.
    pub(crate) fn used(&mut self, key: HoldKey, actor: ActorId) -> bool {
        let HoldKey::At(key) = key else { return false };
        let Some(hold) = self.holds.get_mut(key) else { return false };
        let moved = elsewhere(hold.request.actor, actor);
        if moved && hold.moved_to != Some(actor) {
            hold.moved_to = Some(actor);
            self.version += 1;
        }
        moved
    }

    /// Units came from outside.
    pub(crate) fn added(&mut self, units: u64, by: Caller) {
        self.version += 1;
        self.moved = by.at;
        add(&mut self.added, units);
        let Some(flow) = self.history.flowed(Direction::Added, units, by) else { return };
        let mut looked_at = 0;
        self.holds.each_back_mut(|hold| {
            looked_at += 1;
            let holder = hold.moved_to.unwrap_or(hold.request.actor);
            // A root future is a thread to whoever is not polled with its context.
            let is_his = match (holder, by.actor) {
                (ActorId::Root(_), ActorId::Thread(thread)) => hold.request.thread == thread,
                (holder, by) => holder == by,
            };
            if is_his && hold.credited.is_none() {
                hold.credited = Some(flow);
                self.history.holding(flow);
                return false;
            }
            looked_at < MAX_LOOKED_AT
        });
    }

    /// Free units were taken away for good.
    pub(crate) fn withdrawn(&mut self, units: u64, by: Caller) {
        self.version += 1;
        self.moved = by.at;
        self.history.flowed(Direction::Withdrawn, units, by);
        add(&mut self.forgotten, units);
    }

    /// A `try_` call found no unit.
    pub(crate) fn rejected(&mut self) {
        self.counters.rejected += 1;
    }

    pub(crate) fn initial(&self) -> u64 {
        self.initial
    }

    pub(crate) fn total_added(&self) -> u64 {
        self.added
    }

    pub(crate) fn total_forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn moved(&self) -> Moment {
        self.moved
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn holds(&self) -> &Queue<HoldRecord> {
        &self.holds
    }

    pub(crate) fn waits(&self) -> &Queue<WaitRecord> {
        &self.waits
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            held: self.held,
            holders: self.holds.len() as u64,
            waiting: self.waits.len() as u64,
            oldest_hold: self.holds.first().map(|hold| hold.since),
            oldest_wait: self.waits.first().map(|wait| wait.request.since),
        }
    }

    /// The units that hold records explain; fewer than are held if there was no room for some.
    pub(crate) fn recorded_units(&self) -> u64 {
        self.held.saturating_sub(self.unrecorded)
    }
}

/// Whether `user` is certainly not the same party as `owner`.
///
/// A call outside any poll shows the thread only, and a root future runs on some thread: that says nothing.
pub(crate) fn elsewhere(owner: ActorId, user: ActorId) -> bool {
    owner != user && !matches!((owner, user), (ActorId::Root(_), ActorId::Thread(_)))
}

/// Totals of a whole life stop at the largest number: a program that adds and forgets without end must not
/// panic here. Books that no longer balance are not judged.
fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

fn nanos(now: Moment, since: Moment) -> u64 {
    now.0.saturating_sub(since.0)
}

#[cfg(test)]
mod tests {
    use super::super::sites::Sites;
    use super::*;
    use holdup_core::balance::{Imbalance, balance};
    use holdup_core::snapshot::{History, Kind, Resource, ResourceId, Settings, SiteId};

    pub(super) fn request(units: u64) -> Request {
        Request {
            units,
            actor: ActorId::Task(1),
            scope: ScopeId(0),
            stack: StackId::NONE,
            site: Location::caller(),
            since: Moment(10),
            call: Call::Acquire,
            owned: false,
            future: 0,
            poller: 0,
            thread: 0,
        }
    }

    fn caller(at: u64) -> Caller {
        let (actor, stack) = (ActorId::Task(1), StackId::NONE);
        Caller { actor, stack, site: Location::caller(), at: Moment(at) }
    }

    /// A ledger beside the semaphore that it is the ledger of.
    struct Beside {
        ledger: Ledger,
        available: u64,
        ids: u64,
    }

    impl Beside {
        fn new(initial: u64) -> Self {
            Beside { ledger: Ledger::new(initial), available: initial, ids: 0 }
        }

        fn id(&mut self) -> u64 {
            self.ids += 1;
            self.ids
        }

        fn acquire(&mut self, units: u64) -> HoldKey {
            self.available -= units;
            let id = HoldId(self.id());
            let key = self.ledger.acquired(Some(id), request(units), None, Moment(10));
            self.check();
            key
        }

        fn release(&mut self, key: HoldKey, units: u64) {
            self.available += units;
            self.ledger.released(key, units, Moment(30));
            self.check();
        }

        fn balance(&self) -> Result<u64, Imbalance> {
            let resource = Resource {
                id: ResourceId(1),
                kind: Kind::Semaphore,
                name: None,
                created: SiteId(0),
                created_at: Moment(0),
                scope: ScopeId(0),
                is_static: false,
                initial: self.ledger.initial(),
                added: self.ledger.total_added(),
                forgotten: self.ledger.total_forgotten(),
                available: self.available,
                closed: false,
                settled: true,
                usage: self.ledger.usage(),
                counters: self.ledger.counters(),
                settings: Settings::default(),
                history: History::default(),
            };
            let wanted = self.ledger.waits().iter().map(|wait| wait.request.units);
            balance(&resource, self.ledger.recorded_units(), wanted)
        }

        #[track_caller]
        fn check(&self) {
            assert!(self.balance().is_ok(), "{:?} {:?}", self.balance(), self.ledger);
        }
    }

    #[test]
    fn the_books_balance_through_the_life_of_permits() {
        let mut b = Beside::new(4);
        b.check();
        let one = b.acquire(1);
        let three = b.acquire(3);
        assert_eq!(b.ledger.usage().held, 4);

        // Two of the three become a permit of their own, and one of them joins the first.
        let id = HoldId(b.id());
        let two = b.ledger.split(three, 2, Some(id));
        b.check();
        b.ledger.merged(one, two, 2);
        b.check();
        assert_eq!(b.ledger.usage().holders, 2);

        b.release(three, 1);
        b.ledger.forgotten(one, 3, caller(30));
        b.check();
        assert_eq!((b.ledger.total_forgotten(), b.ledger.usage().held), (3, 0));

        b.available += 5;
        b.ledger.added(5, caller(31));
        b.check();
        b.available -= 2;
        b.ledger.withdrawn(2, caller(32));
        b.check();
        let counters = b.ledger.counters();
        assert_eq!((counters.acquired, counters.released, counters.held_nanos), (2, 1, 20));
    }

    #[test]
    fn granted_units_belong_to_the_front_of_the_queue() {
        let mut b = Beside::new(3);
        let all = b.acquire(3);
        let first = b.ledger.wait(WaitId(1), request(2), RuntimeId::NONE).expect("room");
        let second = b.ledger.wait(WaitId(2), request(2), RuntimeId::NONE).expect("room");
        b.check();

        // The semaphore hands all three out before anybody is polled: two to the first, one to the second.
        b.ledger.released(all, 3, Moment(20));
        b.check();
        b.available = 3;
        assert!(b.balance().is_err(), "free units in front of a queue are on their way");
        b.available = 0;

        b.ledger.acquired(Some(HoldId(9)), request(2), Some(first), Moment(25));
        b.check();
        assert_eq!(b.ledger.counters().waited, 1);
        assert_eq!(b.ledger.counters().wait_nanos, 15);

        // The second gives up: what it had gathered becomes free.
        b.ledger.gave_up(second, Moment(40), false);
        assert!(b.balance().is_err());
        b.available = 1;
        b.check();
        assert_eq!(b.ledger.counters().cancelled_nanos, 30);
    }

    #[test]
    fn units_that_come_back_twice_are_noticed() {
        let mut ledger = Ledger::new(2);
        let hold = |ledger: &mut Ledger, id, task| {
            let request = Request { actor: ActorId::Task(task), ..request(1) };
            ledger.acquired(Some(HoldId(id)), request, None, Moment(10))
        };
        let add = |ledger: &mut Ledger, task| {
            ledger.added(1, Caller { actor: ActorId::Task(task), ..caller(20) });
            let flow = ledger.history().copy(Moment(0), &mut Sites::new()).flows[0].clone();
            (flow.calls, flow.holding, flow.then_released, flow.several)
        };
        let (one, two) = (hold(&mut ledger, 1, 1), hold(&mut ledger, 2, 2));
        assert_eq!(add(&mut ledger, 1), (1, 1, 0, false));
        assert_eq!(add(&mut ledger, 1), (2, 1, 0, false), "he has one hold");
        assert_eq!(add(&mut ledger, 3), (3, 1, 0, true), "he has none");
        ledger.released(two, 1, Moment(30));
        assert_eq!(add(&mut ledger, 3), (4, 1, 0, true), "nobody had added for this one");
        ledger.released(one, 1, Moment(30));
        assert_eq!(add(&mut ledger, 3), (5, 1, 1, true));
        // A permit that is forgotten is given back by hand, as it should be.
        let three = hold(&mut ledger, 3, 1);
        assert_eq!(add(&mut ledger, 1), (6, 2, 1, true));
        ledger.forgotten(three, 1, caller(40));
        assert_eq!(add(&mut ledger, 3), (7, 2, 1, true));
    }

    #[test]
    fn a_root_future_that_adds_is_known_by_its_thread() {
        let mut ledger = Ledger::new(4);
        let root = Request { actor: ActorId::Root(0x10), thread: 7, ..request(1) };
        ledger.acquired(Some(HoldId(1)), root, None, Moment(10));
        for (thread, holding) in [(8, 0), (7, 1)] {
            ledger.added(1, Caller { actor: ActorId::Thread(thread), ..caller(20) });
            let flows = ledger.history().copy(Moment(0), &mut Sites::new()).flows;
            assert_eq!(flows[0].holding, holding, "thread {thread}");
        }
    }

    #[test]
    fn a_wait_is_marked_while_its_units_lie_ready() {
        let mut ledger = Ledger::new(4);
        let keys = [2, 1, 3].map(|units| {
            let id = WaitId(units);
            ledger.wait(id, request(units), RuntimeId::NONE).expect("room")
        });
        let mut check = |units, now, expected: [Option<u64>; 3]| {
            ledger.granted(units, Moment(now));
            let marks: Vec<_> = ledger.waits().iter().map(|wait| wait.granted_since).collect();
            assert_eq!(marks, expected.map(|since| since.map(Moment)), "{units} at {now}");
        };
        check(1, 1, [None, None, None]);
        check(4, 2, [Some(2), Some(2), None]);
        check(2, 3, [Some(2), None, None]);
        check(4, 4, [Some(2), Some(4), None]);
        check(0, 5, [None, None, None]);
        check(6, 6, [Some(6), Some(6), Some(6)]);
        // The second is polled, and has to be seen anew; the first goes, the third is behind none.
        ledger.polled(keys[1], Moment(7), 0);
        ledger.gave_up(keys[0], Moment(8), false);
        ledger.granted(1, Moment(9));
        let marks: Vec<_> = ledger.waits().iter().map(|wait| wait.granted_since).collect();
        assert_eq!(marks, [Some(Moment(9)), None]);
        assert_eq!(ledger.marked, 1);
    }

    #[test]
    fn what_has_no_record_keeps_the_totals_and_admits_that_it_cannot_tell() {
        let mut b = Beside::new(2);
        let key = b.ledger.acquired(None, request(2), None, Moment(10));
        assert_eq!(key, HoldKey::Unrecorded);
        assert_eq!(b.ledger.usage().held, 2);
        b.available = 0;
        assert!(b.balance().is_err());
        let part = b.ledger.split(key, 1, Some(HoldId(1)));
        b.ledger.merged(key, part, 1);
        b.ledger.released(key, 2, Moment(11));
        assert_eq!(b.ledger.usage().held, 0);
        b.available = 2;
        b.check();
    }

    #[test]
    fn use_by_another_task_shows_where_a_permit_went() {
        use ActorId::{Root, Task, Thread};
        let table = [
            (Task(1), Task(1), false),
            (Task(1), Task(2), true),
            (Task(1), Thread(1), true),
            (Root(1), Task(1), true),
            (Root(1), Thread(1), false),
            (Thread(1), Thread(2), true),
        ];
        for (owner, user, moved) in table {
            let mut ledger = Ledger::new(1);
            let request = Request { actor: owner, ..request(1) };
            let key = ledger.acquired(Some(HoldId(1)), request, None, Moment(1));
            assert_eq!(ledger.used(key, user), moved, "{owner:?} {user:?}");
            let seen = ledger.holds().first().expect("held").moved_to;
            assert_eq!(seen, moved.then_some(user));
        }
    }

    #[test]
    fn totals_without_end_do_not_panic() {
        let mut ledger = Ledger::new(1);
        for _ in 0..64 {
            ledger.added(1 << 60, caller(1));
            ledger.withdrawn(1 << 60, caller(1));
        }
        let wait = ledger.wait(WaitId(1), request(1), RuntimeId::NONE).expect("room");
        ledger.gave_up(wait, Moment(u64::MAX), false);
        let wait = ledger.wait(WaitId(2), request(1), RuntimeId::NONE).expect("room");
        ledger.gave_up(wait, Moment(u64::MAX), false);
        assert_eq!(ledger.counters().cancelled_nanos, u64::MAX);
        assert_eq!((ledger.total_added(), ledger.total_forgotten()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_key_is_good_once() {
        let mut b = Beside::new(1);
        let key = b.acquire(1);
        b.release(key, 1);
        assert!(b.ledger.released(key, 0, Moment(99)).is_none());
        assert!(b.ledger.released(HoldKey::None, 1, Moment(99)).is_none());
        b.check();
    }
}
