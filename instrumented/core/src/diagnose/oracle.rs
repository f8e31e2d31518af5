//! The reduction against brute force: all orders in which small systems can go on.

use super::reduction::{Demand, Gate, reduce};
use super::{Context, Limits};
use crate::finding::{Code, Finding};
use crate::scenario::Scenario;
use crate::snapshot::{ActorId, HoldId, WaitId};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fmt::Write;

/// A small system: semaphores, and actors with holds and waits. A hold ends when all waits that keep it have been
/// served; a wait that is served ends with its permits given back.
#[derive(Clone, Debug)]
struct System {
    capacity: Vec<u64>,
    holds: Vec<SystemHold>,
    /// In the order of their coming.
    waits: Vec<SystemWait>,
    /// Actors whose waits may give up, so that nobody has to wait for them.
    impatient: HashSet<usize>,
}

#[derive(Clone, Debug)]
struct SystemHold {
    semaphore: usize,
    units: u64,
    actor: usize,
    place: Place,
}

/// Where what is held can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// With whoever acquired it.
    Here,
    /// Anywhere, for all that is known.
    Anywhere,
    /// With whoever acquired it, as so often before.
    Likely,
    /// With a future that nobody polls. It is no permit yet.
    Shelved,
}

#[derive(Clone, Debug)]
struct SystemWait {
    semaphore: usize,
    units: u64,
    actor: usize,
    /// It is in the queue only so many steps after it came.
    delay: usize,
}

fn system() -> impl Strategy<Value = System> {
    let capacity = prop::collection::vec(1u64..4, 1..4);
    let place = prop_oneof![
        12 => Just(Place::Here), 3 => Just(Place::Anywhere), 3 => Just(Place::Likely), 1 => Just(Place::Shelved)
    ];
    let hold = (any::<prop::sample::Index>(), 1u64..3, 0usize..5, place);
    let wait = (any::<prop::sample::Index>(), 1u64..4, 0usize..5, 0usize..4);
    let impatient = prop::collection::hash_set(0usize..5, 0..3);
    (capacity, prop::collection::vec(hold, 0..7), prop::collection::vec(wait, 0..7), impatient)
        .prop_map(|(capacity, holds, waits, impatient)| {
            let mut left = capacity.clone();
            let holds = holds.into_iter().filter_map(|(semaphore, units, actor, place)| {
                let semaphore = semaphore.index(left.len());
                left[semaphore] = left[semaphore].checked_sub(units)?;
                Some(SystemHold { semaphore, units, actor, place })
            });
            let holds = holds.collect();
            let waits = waits.into_iter().map(|(semaphore, units, actor, delay)| SystemWait {
                semaphore: semaphore.index(capacity.len()),
                units,
                actor,
                delay,
            });
            let waits = waits.collect();
            System { capacity, holds, waits, impatient }
        })
}

/// Where a run has come to: which holds have ended, which waits have been served, which of these have given back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    ended: u32,
    served: u32,
    returned: u32,
}

fn has(set: u32, at: usize) -> bool {
    set & (1 << at) != 0
}

impl System {
    /// For each wait, whether there is an order of events in which it is served. Every order is tried, with real
    /// units: what one takes another cannot have until it is given back.
    fn can_be_served(&self) -> Vec<bool> {
        let start = State { ended: 0, served: 0, returned: 0 };
        let mut seen = HashSet::from([start]);
        let mut open = vec![start];
        let mut possible = 0;
        while let Some(state) = open.pop() {
            possible |= state.served;
            for next in self.next(state) {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        (0..self.waits.len()).map(|at| has(possible, at)).collect()
    }

    fn next(&self, state: State) -> Vec<State> {
        let mut next = Vec::new();
        for (at, hold) in self.holds.iter().enumerate() {
            let kept = self
                .waits
                .iter()
                .enumerate()
                .any(|(w, wait)| wait.actor == hold.actor && !has(state.served, w));
            let ends = match hold.place {
                Place::Anywhere => true,
                Place::Here | Place::Likely => !kept,
                Place::Shelved => false,
            };
            if !has(state.ended, at) && ends {
                next.push(State { ended: state.ended | 1 << at, ..state });
            }
        }
        for (at, wait) in self.waits.iter().enumerate() {
            let in_front = |w: usize| {
                let other = &self.waits[w];
                let patient = !self.impatient.contains(&other.actor);
                let before = w + other.delay < at;
                before && other.semaphore == wait.semaphore && !has(state.served, w) && patient
            };
            let first = !(0..at).any(in_front);
            if !has(state.served, at) && first && wait.units <= self.free(wait.semaphore, state) {
                next.push(State { served: state.served | 1 << at, ..state });
            }
            if has(state.served, at) && !has(state.returned, at) {
                next.push(State { returned: state.returned | 1 << at, ..state });
            }
        }
        next
    }

    fn free(&self, semaphore: usize, state: State) -> u64 {
        let held = self
            .holds
            .iter()
            .enumerate()
            .filter(|(at, h)| h.semaphore == semaphore && !has(state.ended, *at));
        let taken = self.waits.iter().enumerate().filter(|(at, w)| {
            w.semaphore == semaphore && has(state.served, *at) && !has(state.returned, *at)
        });
        let used =
            held.map(|(_, h)| h.units).sum::<u64>() + taken.map(|(_, w)| w.units).sum::<u64>();
        self.capacity[semaphore].saturating_sub(used)
    }

    fn reduced(&self) -> Vec<bool> {
        let mut free = self.capacity.clone();
        for hold in &self.holds {
            free[hold.semaphore] -= hold.units;
        }
        let demand = |(at, wait): (usize, &SystemWait)| Demand {
            queue: wait.semaphore,
            units: wait.units,
            since: at as u64 + 1,
            entered: (at + wait.delay) as u64 + 1,
            patient: !self.impatient.contains(&wait.actor),
        };
        let demands: Vec<Demand> = self.waits.iter().enumerate().map(demand).collect();
        let gate = |hold: &SystemHold| {
            let own = self
                .waits
                .iter()
                .enumerate()
                .filter(|(_, wait)| wait.actor == hold.actor && hold.place != Place::Anywhere);
            Gate {
                until: own.map(|(at, _)| at).collect(),
                forever: hold.place == Place::Shelved,
                gives: vec![(hold.semaphore, hold.units)],
            }
        };
        let gates: Vec<Gate> = self.holds.iter().map(gate).collect();
        reduce(free, &demands, &gates).served
    }

    /// What is left of it where nobody else is there.
    fn only(&self, finding: &Finding) -> System {
        let holds = (1..).zip(&self.holds).filter(|(id, _)| finding.holds.contains(&HoldId(*id)));
        let waits = (1..).zip(&self.waits).filter(|(id, _)| finding.waits.contains(&WaitId(*id)));
        System {
            capacity: self.capacity.clone(),
            impatient: self.impatient.clone(),
            holds: holds.map(|(_, hold)| hold.clone()).collect(),
            waits: waits.map(|(_, wait)| wait.clone()).collect(),
        }
    }

    /// The same as a situation, with paths on which every wait keeps every hold of its actor.
    fn scenario(&self, time: &str) -> Scenario {
        let mut text = "runtime current_thread\n".to_owned();
        for (at, capacity) in self.capacity.iter().enumerate() {
            let _ = writeln!(text, "semaphore s{at} {capacity}");
        }
        let mut line = 0;
        let mut path = |actor: usize| {
            line += 10;
            let way_out = if self.impatient.contains(&actor) { "select!1 > " } else { "" };
            format!("run@1 > {way_out}task_{actor}@{line}")
        };
        for SystemHold { semaphore, units, actor, place } in &self.holds {
            let place = match place {
                Place::Here => "",
                Place::Anywhere => " owned",
                Place::Likely => " owned back 5",
                Place::Shelved => {
                    let path = "run@1 > select!0 > box > shelf@5";
                    let _ =
                        writeln!(text, "task 9{actor}\nwait s{semaphore} x{units} granted: {path}");
                    continue;
                }
            };
            let _ =
                writeln!(text, "task {actor}\nhold s{semaphore} x{units}{place}: {}", path(*actor));
        }
        for SystemWait { semaphore, units, actor, delay: _ } in &self.waits {
            let _ = writeln!(text, "task {actor}\nwait s{semaphore} x{units}: {}", path(*actor));
        }
        text.push_str(time);
        Scenario::read(&text).expect("well-formed")
    }

    /// Without what only evidence tells: what is likely may be anywhere, and nothing is known to be shelved.
    fn without_evidence(mut self) -> System {
        for hold in self.holds.iter_mut().filter(|hold| hold.place != Place::Here) {
            hold.place = Place::Anywhere;
        }
        self.waits.iter_mut().for_each(|wait| wait.delay = 0);
        self
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(512)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_reduction_leaves_what_no_order_of_events_serves(system in system()) {
        prop_assert_eq!(system.reduced(), system.can_be_served());
    }

    /// From situations to findings: each is about what is stuck, by itself and only once, and nothing is stuck that
    /// is not explained by what is found.
    #[test]
    fn findings_are_about_what_is_stuck_and_all_of_it_is_explained(system in system()) {
        let system = system.without_evidence();
        let possible = system.can_be_served();
        let scenario = system.scenario("");
        let findings = scenario.diagnose();
        let mut told = HashSet::new();
        for finding in &findings {
            for wait in &finding.waits {
                let at = usize::try_from(wait.0).expect("small") - 1;
                prop_assert!(!possible[at], "{} can be served: {:?}", wait, finding);
                prop_assert!(told.insert(*wait), "{} is in two findings", wait);
            }
            for hold in &finding.holds {
                let hold = &system.holds[usize::try_from(hold.0).expect("small") - 1];
                prop_assert!(hold.place == Place::Here && system.waits.iter().any(|w| w.actor == hold.actor));
            }
        }
        for finding in &findings {
            let alone = system.only(finding);
            prop_assert!(alone.can_be_served().iter().all(|served| !served), "not stuck by itself: {:?}", finding);
        }
        let limits = Limits::default();
        let context = Context::new(&scenario.current, None, &limits);
        let stuck = context.stuck();
        // Several that may give up may be at it on purpose.
        let told_of = stuck.cores.iter().filter(|core| {
            let actors: HashSet<ActorId> = core.waits.iter().map(|at| stuck.waits[*at].wait.actor).collect();
            let impatient = system.impatient.iter().any(|n| actors.contains(&ActorId::Task(*n as u64)));
            core.holds.is_empty() || actors.len() == 1 || !impatient
        });
        prop_assert_eq!(findings.len(), told_of.count(), "{:?}", findings);
        let explained: HashSet<u64> = stuck
            .cores
            .iter()
            .flat_map(|core| core.waits.iter().chain(&core.behind))
            .map(|at| stuck.waits[*at].wait.id.0)
            .collect();
        let left: HashSet<u64> = (1..).zip(&possible).filter(|(_, served)| !**served).map(|(id, _)| id).collect();
        prop_assert_eq!(explained, left);
    }

    /// The same where evidence speaks: what is told is stuck if the evidence is right, and all that is stuck is
    /// explained.
    #[test]
    fn suspicions_are_about_what_is_stuck_and_all_of_it_is_explained(mut system in system()) {
        system.waits.iter_mut().for_each(|wait| wait.delay = 0);
        let possible = system.can_be_served();
        let scenario = system.scenario("after 6s");
        let shelved = system.holds.iter().filter(|hold| hold.place == Place::Shelved).count() as u64;
        let at = |wait: &WaitId| wait.0.checked_sub(shelved + 1).and_then(|at| usize::try_from(at).ok());
        let mut told = HashSet::new();
        let findings = scenario.diagnose();
        for finding in findings.iter().filter(|f| matches!(f.code, Code::Deadlock | Code::Futurelock)) {
            for wait in &finding.waits {
                prop_assert!(at(wait).is_none_or(|at| !possible[at]), "{} can be served: {:?}", wait, finding);
                prop_assert!(told.insert(*wait), "{} is in two findings: {:?}", wait, findings);
            }
        }
        let limits = Limits::default();
        let context = Context::new(&scenario.current, None, &limits);
        let stuck = context.suspected();
        let explained: HashSet<usize> = stuck
            .cores
            .iter()
            .flat_map(|core| core.waits.iter().chain(&core.behind))
            .filter_map(|place| at(&stuck.waits[*place].wait.id))
            .collect();
        let left: HashSet<usize> = (0..).zip(&possible).filter(|(_, served)| !**served).map(|(at, _)| at).collect();
        prop_assert_eq!(explained, left);
    }
}
