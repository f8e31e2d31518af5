//! What could be stuck as far as can be told without names, so that names are looked up for nothing else.

use super::grip::Grip;
use super::reduction::{Demand, Gate, reduce};
use super::relations::Mode;
use crate::diagnose::{Context, Limits};
use crate::snapshot::{ActorId, Call, Hold, ResourceId, RuntimeId, StackId, Wait};
use std::collections::HashMap;

/// The waits that no release can serve, if every hold were kept by every wait of its actor.
pub(crate) struct Candidates<'a> {
    pub(super) mode: Mode,
    pub(super) queues: Vec<ResourceId>,
    pub(super) capacity: Vec<u64>,
    pub(super) free: Vec<u64>,
    pub(super) waits: Vec<&'a Wait>,
    /// Queue of each wait.
    pub(super) places: Vec<usize>,
    pub(super) parties: Vec<Party<'a>>,
    /// What nothing ends, with its queue.
    pub(super) forever: Vec<(usize, Grip<'a>)>,
}

/// Who keeps what it holds while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Keeper {
    Actor(ActorId),
    /// All tasks of a runtime whose threads are blocked, and which do not wait themselves.
    Runtime(RuntimeId),
}

pub(super) struct Party<'a> {
    pub(super) keeper: Keeper,
    /// Indexes into [`Candidates::waits`].
    pub(super) waits: Vec<usize>,
    /// With their queues.
    pub(super) grips: Vec<(usize, Grip<'a>)>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn of(context: &Context<'a>, mode: Mode) -> Self {
        let mut found = Candidates {
            mode,
            queues: Vec::new(),
            capacity: Vec::new(),
            free: Vec::new(),
            waits: Vec::new(),
            places: Vec::new(),
            parties: Vec::new(),
            forever: Vec::new(),
        };
        if mode != Mode::Proven && !is_old(context) {
            return found;
        }
        let mut reader = Reader { queues: HashMap::new(), parties: HashMap::new(), found };
        reader.waits(context);
        if reader.found.waits.is_empty() {
            return reader.found;
        }
        reader.holds(context);
        found = reader.found;
        let gate = |party: &Party<'_>| Gate {
            until: party.waits.clone(),
            forever: false,
            gives: party.grips.iter().map(|(queue, grip)| (*queue, grip.units())).collect(),
        };
        let gates: Vec<Gate> = found.parties.iter().map(gate).collect();
        found.keep_unserved(&gates, context.limits);
        found
    }

    /// Drops what can move.
    fn keep_unserved(&mut self, gates: &[Gate], limits: &Limits) {
        let rest = reduce(self.free.clone(), &self.demands(limits, |_| true), gates);
        self.free = rest.free;
        let left = (0..self.waits.len()).filter(|at| !rest.served[*at]);
        let mut index = vec![usize::MAX; self.waits.len()];
        let (mut waits, mut places) = (Vec::new(), Vec::new());
        for at in left {
            index[at] = waits.len();
            waits.push(self.waits[at]);
            places.push(self.places[at]);
        }
        (self.waits, self.places) = (waits, places);
        for party in &mut self.parties {
            party.waits.retain(|at| !rest.served[*at]);
            for at in &mut party.waits {
                *at = index[*at];
            }
        }
        self.parties.retain(|party| !party.waits.is_empty());
    }

    pub(super) fn demands(
        &self,
        limits: &Limits,
        mut patient: impl FnMut(&Wait) -> bool,
    ) -> Vec<Demand> {
        let demand = |(wait, place): (&&Wait, &usize)| Demand {
            queue: *place,
            units: wait.units,
            since: wait.since.0,
            entered: entered(wait, limits),
            patient: patient(wait),
        };
        self.waits.iter().zip(&self.places).map(demand).collect()
    }

    /// The stacks that tell whether they are.
    pub(crate) fn stacks(&self) -> Vec<StackId> {
        if self.waits.is_empty() {
            return Vec::new();
        }
        let grips = self.parties.iter().flat_map(|party| &party.grips).chain(&self.forever);
        self.waits.iter().map(|wait| wait.stack).chain(grips.map(|(_, g)| g.stack())).collect()
    }
}

/// Whether anything is old enough to be suspected.
fn is_old(context: &Context<'_>) -> bool {
    let limits = context.limits;
    let youngest = limits.stall.min(limits.futurelock);
    context.now.waits.iter().any(|w| context.age(w.since) >= youngest)
}

/// The moment by which a wait was in the queue for certain.
fn entered(wait: &Wait, limits: &Limits) -> u64 {
    let slack = u64::try_from(limits.queue_slack.as_nanos()).unwrap_or(u64::MAX);
    let latest = wait.since.0.saturating_add(slack);
    // It enters within its first poll; a blocking call is in the books before.
    let polled = wait.last_poll > wait.since && wait.call == Call::Acquire;
    if polled { latest.min(wait.last_poll.0) } else { latest }
}

struct Reader<'a> {
    queues: HashMap<ResourceId, usize>,
    parties: HashMap<Keeper, usize>,
    found: Candidates<'a>,
}

impl<'a> Reader<'a> {
    fn party(&mut self, keeper: Keeper) -> &mut Party<'a> {
        let parties = &mut self.found.parties;
        let at = *self.parties.entry(keeper).or_insert_with(|| {
            parties.push(Party { keeper, waits: Vec::new(), grips: Vec::new() });
            parties.len() - 1
        });
        &mut parties[at]
    }

    fn waits(&mut self, context: &Context<'a>) {
        let suspected = self.found.mode != Mode::Proven;
        let mut granted: Vec<(usize, &'a Wait)> = Vec::new();
        for wait in &context.now.waits {
            let judged = |r: &&_| context.is_judged(r) || suspected && context.is_channel(r);
            let Some(resource) = context.now.resource(wait.resource).filter(judged) else {
                continue;
            };
            let found = &mut self.found;
            let queue = *self.queues.entry(resource.id).or_insert_with(|| {
                found.queues.push(resource.id);
                found.capacity.push(resource.capacity());
                found.queues.len() - 1
            });
            if suspected && context.is_shelved(wait) {
                granted.push((queue, wait));
                continue;
            }
            let at = found.waits.len();
            found.waits.push(wait);
            found.places.push(queue);
            self.party(Keeper::Actor(wait.actor)).waits.push(at);
            if suspected && context.may_block(wait) {
                self.party(Keeper::Runtime(wait.runtime)).waits.push(at);
            }
        }
        self.found.free = self.found.capacity.clone();
        for (queue, wait) in granted {
            self.grip(queue, Keeper::Actor(wait.actor), Grip::Granted(wait));
        }
    }

    fn holds(&mut self, context: &Context<'a>) {
        let suspected = self.found.mode != Mode::Proven;
        // The threads of the runtimes that could be blocked.
        let mut threads: HashMap<u64, RuntimeId> = HashMap::new();
        for party in &self.found.parties {
            if let Keeper::Runtime(runtime) = party.keeper {
                let waits = party.waits.iter().map(|at| self.found.waits[*at].thread);
                threads.extend(waits.map(|thread| (thread, runtime)));
            }
        }
        for run in context.now.holds.chunk_by(|a, b| a.resource == b.resource) {
            let Some(&queue) = self.queues.get(&run[0].resource) else { continue };
            let moves = context.now.resource(run[0].resource).is_none_or(|r| r.is_static);
            let stays = |h: &&Hold| h.moved_to.is_none() && (suspected || !moves && !h.owned);
            for hold in run.iter().filter(stays) {
                let own = Keeper::Actor(hold.actor);
                let blocked = threads.get(&hold.thread).map(|runtime| Keeper::Runtime(*runtime));
                let keeper = match blocked {
                    Some(blocked) if !self.parties.contains_key(&own) => blocked,
                    _ => own,
                };
                if self.parties.contains_key(&keeper) {
                    self.grip(queue, keeper, Grip::Held(hold));
                }
            }
        }
    }

    fn grip(&mut self, queue: usize, keeper: Keeper, grip: Grip<'a>) {
        let free = &mut self.found.free[queue];
        *free = free.saturating_sub(grip.units());
        if self.parties.contains_key(&keeper) {
            self.party(keeper).grips.push((queue, grip));
        } else {
            self.found.forever.push((queue, grip));
        }
    }
}
