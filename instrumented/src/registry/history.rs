//! What happened on one resource that its live records do not tell: units from outside, units lost for good, and
//! requests that are given up again and again. Part of the books, so it knows no lock, atomic or tokio, either.

use super::ledger::WaitRecord;
use holdup_core::snapshot::{self, ActorId, Direction, Moment, StackId};
use std::panic::Location;

/// Call stacks of which each resource keeps the units that they added or lost.
const MAX_FLOWS: usize = 32;
/// Actors of which each resource keeps how often they gave up.
const MAX_STREAKS: usize = 32;

/// Who changes the number of units, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) actor: ActorId,
    pub(crate) stack: StackId,
    pub(crate) site: &'static Location<'static>,
    pub(crate) at: Moment,
}

/// Names a flow, to say more of it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey(u8);

#[derive(Clone, Copy, Debug)]
struct Flow {
    direction: Direction,
    by: Caller,
    calls: u64,
    units: u64,
    most: u64,
    last: Moment,
    several: bool,
    holding: u64,
    then_released: u64,
}

#[derive(Clone, Copy, Debug)]
struct Streak {
    actor: ActorId,
    site: &'static Location<'static>,
    stack: StackId,
    count: u64,
    since: Moment,
    last: Moment,
    others: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    flows: Vec<Flow>,
    streaks: Vec<Streak>,
}

impl History {
    pub(crate) const fn new() -> Self {
        History { flows: Vec::new(), streaks: Vec::new() }
    }

    /// Units came or went. The first call stacks are kept: what comes later than 32 others is in the totals only.
    pub(crate) fn flowed(
        &mut self,
        direction: Direction,
        units: u64,
        by: Caller,
    ) -> Option<FlowKey> {
        // Where no stacks are captured, the line tells one from another.
        let same = |flow: &Flow| {
            (flow.direction, flow.by.stack, flow.by.site) == (direction, by.stack, by.site)
        };
        let at = match self.flows.iter().position(same) {
            Some(at) => at,
            None if self.flows.len() < MAX_FLOWS => {
                self.flows.push(Flow {
                    direction,
                    by,
                    calls: 0,
                    units: 0,
                    most: 0,
                    last: by.at,
                    several: false,
                    holding: 0,
                    then_released: 0,
                });
                self.flows.len() - 1
            }
            None => return None,
        };
        let flow = &mut self.flows[at];
        flow.calls += 1;
        flow.units = flow.units.saturating_add(units);
        flow.most = flow.most.max(units);
        flow.last = by.at;
        flow.several |= flow.by.actor != by.actor;
        u8::try_from(at).ok().map(FlowKey)
    }

    /// Whoever made this call held something of the resource.
    pub(crate) fn holding(&mut self, key: FlowKey) {
        if let Some(flow) = self.flows.get_mut(usize::from(key.0)) {
            flow.holding += 1;
        }
    }

    /// What was held at the time of such a call was given back.
    pub(crate) fn then_released(&mut self, key: FlowKey) {
        if let Some(flow) = self.flows.get_mut(usize::from(key.0)) {
            flow.then_released += 1;
        }
    }

    /// A wait was given up.
    pub(crate) fn gave_up(&mut self, wait: &WaitRecord, now: Moment) {
        let request = &wait.request;
        let same = |streak: &Streak| (streak.actor, streak.site) == (request.actor, request.site);
        if let Some(streak) = self.streaks.iter_mut().find(|streak| same(streak)) {
            streak.count += 1;
            (streak.last, streak.stack) = (now, request.stack);
            return;
        }
        let streak = Streak {
            actor: request.actor,
            site: request.site,
            stack: request.stack,
            count: 1,
            since: request.since,
            last: now,
            others: 0,
        };
        if self.streaks.len() < MAX_STREAKS {
            self.streaks.push(streak);
        } else if let Some(at) = self.least() {
            self.streaks[at] = streak;
        }
    }

    /// The streak that may go: the one that was extended least recently. Those who gave up once are many, and must not
    /// drive out the ones who do so for ever; nor may the latter take all the room.
    fn least(&self) -> Option<usize> {
        let once = self.streaks.iter().filter(|streak| streak.count == 1).count();
        let oldest = |among: &dyn Fn(&Streak) -> bool| {
            let streaks = self.streaks.iter().enumerate().filter(|(_, streak)| among(streak));
            streaks.min_by_key(|(_, streak)| streak.last).map(|(at, _)| at)
        };
        if once >= MAX_STREAKS / 2 {
            oldest(&|streak| streak.count == 1)
        } else {
            oldest(&|streak| streak.count > 1)
        }
    }

    /// `actor` acquired `units` at `site`: the end of its own streak there, and what others only look at.
    pub(crate) fn acquired(
        &mut self,
        actor: ActorId,
        site: &'static Location<'static>,
        units: u64,
    ) {
        if self.streaks.is_empty() {
            return;
        }
        self.streaks.retain_mut(|streak| {
            if streak.actor != actor {
                streak.others = streak.others.saturating_add(units);
            }
            streak.actor != actor || streak.site != site
        });
    }

    /// The history as a snapshot shows it.
    pub(crate) fn copy(&self, moved: Moment, sites: &mut super::sites::Sites) -> snapshot::History {
        let flow = |flow: &Flow, sites: &mut super::sites::Sites| snapshot::Flow {
            direction: flow.direction,
            site: sites.id(flow.by.site),
            stack: flow.by.stack,
            calls: flow.calls,
            units: flow.units,
            most: flow.most,
            first: flow.by.at,
            last: flow.last,
            actor: flow.by.actor,
            several: flow.several,
            holding: flow.holding,
            then_released: flow.then_released,
        };
        let streak = |streak: &Streak, sites: &mut super::sites::Sites| snapshot::Streak {
            actor: streak.actor,
            site: sites.id(streak.site),
            stack: streak.stack,
            count: streak.count,
            since: streak.since,
            last: streak.last,
            others: streak.others,
        };
        snapshot::History {
            moved,
            flows: self.flows.iter().map(|it| flow(it, sites)).collect(),
            streaks: self.streaks.iter().map(|it| streak(it, sites)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Request;
    use super::super::sites::Sites;
    use super::*;
    use holdup_core::snapshot::{Call, RuntimeId, ScopeId, WaitId};

    fn by(task: u64, stack: u32, at: u64) -> Caller {
        let (actor, stack) = (ActorId::Task(task), StackId(stack));
        Caller { actor, stack, site: Location::caller(), at: Moment(at) }
    }

    fn wait(task: u64, site: &'static Location<'static>, since: u64) -> WaitRecord {
        let request = Request {
            units: 1,
            actor: ActorId::Task(task),
            scope: ScopeId(0),
            stack: StackId(u32::try_from(since).expect("small")),
            site,
            since: Moment(since),
            call: Call::Acquire,
            owned: false,
            future: 0,
            poller: 0,
            thread: 0,
        };
        WaitRecord {
            id: WaitId(since),
            request,
            last_poll: Moment(since),
            poller: 0,
            runtime: RuntimeId::NONE,
            granted_since: None,
        }
    }

    fn copy(history: &History) -> snapshot::History {
        history.copy(Moment(0), &mut Sites::new())
    }

    #[test]
    fn flows_are_told_apart_by_direction_and_stack_and_bounded() {
        let mut history = History::new();
        history.flowed(Direction::Added, 2, by(1, 1, 10));
        history.flowed(Direction::Forgotten, 1, by(1, 1, 11));
        history.flowed(Direction::Added, 5, by(2, 1, 12));
        let flows = copy(&history).flows;
        let seen = flows.iter().map(|f| (f.direction, f.calls, f.units, f.most, f.several));
        let expected = [(Direction::Added, 2, 7, 5, true), (Direction::Forgotten, 1, 1, 1, false)];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        assert_eq!((flows[0].first, flows[0].last), (Moment(10), Moment(12)));
        for stack in 2..100 {
            let key = history.flowed(Direction::Added, 1, by(1, stack, 20));
            assert_eq!(key.is_some(), stack < 32, "{stack}");
        }
        assert_eq!(copy(&history).flows.len(), MAX_FLOWS);
        history.flowed(Direction::Added, u64::MAX, by(3, 1, 30));
        assert_eq!(copy(&history).flows[0].units, u64::MAX);
    }

    #[test]
    fn a_streak_ends_when_it_is_served() {
        let (here, there) = (Location::caller(), other());
        let mut history = History::new();
        history.gave_up(&wait(1, here, 10), Moment(15));
        history.gave_up(&wait(1, there, 16), Moment(20));
        history.acquired(ActorId::Task(2), here, 3);
        history.gave_up(&wait(1, here, 21), Moment(30));
        let streaks = copy(&history).streaks;
        let seen: Vec<_> =
            streaks.iter().map(|s| (s.count, s.since.0, s.last.0, s.stack.0, s.others)).collect();
        assert_eq!(seen, [(2, 10, 30, 21, 3), (1, 16, 20, 16, 3)]);
        history.acquired(ActorId::Task(1), here, 1);
        let streaks = copy(&history).streaks;
        assert_eq!(streaks.iter().map(|s| (s.count, s.others)).collect::<Vec<_>>(), [(1, 3)]);
    }

    /// Another line.
    fn other() -> &'static Location<'static> {
        Location::caller()
    }

    #[test]
    fn those_who_give_up_once_do_not_drive_out_those_who_do_so_for_ever() {
        let here = Location::caller();
        let mut history = History::new();
        let mut at = 0;
        let mut give_up = |history: &mut History, task| {
            at += 1;
            history.gave_up(&wait(task, here, at), Moment(at));
        };
        for round in 0..100 {
            give_up(&mut history, 1);
            for task in 0..20 {
                give_up(&mut history, 1000 + 20 * round + task);
            }
        }
        let counts = |history: &History| copy(history).streaks.iter().map(|s| s.count).max();
        assert_eq!((counts(&history), copy(&history).streaks.len()), (Some(100), MAX_STREAKS));
        // Many have done so for long and have ended: a new one still finds room.
        for task in 0..100 {
            give_up(&mut history, 10_000 + task);
            give_up(&mut history, 10_000 + task);
        }
        for _ in 0..200 {
            give_up(&mut history, 7);
        }
        assert_eq!((counts(&history), copy(&history).streaks.len()), (Some(200), MAX_STREAKS));
    }
}
