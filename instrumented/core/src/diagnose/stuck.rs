//! The waits that can never be served, and why.

use super::reduction::{Demand, Gate, reduce};
use crate::diagnose::{Context, Limits};
use crate::path::{Parting, Path, Relation};
use crate::snapshot::{ActorId, Call, Frame, Hold, ResourceId, StackId, Wait};
use std::collections::HashMap;

/// Pairs of a hold and a wait that are compared in one diagnosis. What is beyond is taken as able to move.
const MAX_PAIRS: usize = 1 << 20;

/// A wait that can never be served.
pub(crate) struct StuckWait<'a> {
    pub(crate) wait: &'a Wait,
    /// Why.
    pub(crate) cause: Cause,
}

/// Why a wait can never be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It wants more than there is.
    TooMany,
    /// Too much is held for ever.
    Held,
    /// There would be enough, but this wait, by its index in [`Stuck::waits`], is in front.
    Behind(usize),
}

/// A hold that can never end.
pub(crate) struct StuckHold<'a> {
    pub(crate) hold: &'a Hold,
    /// The waits that keep it, by their index in [`Stuck::waits`].
    pub(crate) kept_by: Vec<usize>,
}

/// Waits and holds that keep each other, and nothing else does.
#[derive(Default)]
pub(crate) struct Core {
    /// Indexes into [`Stuck::waits`].
    pub(crate) waits: Vec<usize>,
    /// Indexes into [`Stuck::holds`].
    pub(crate) holds: Vec<usize>,
    /// The waits that are stuck only because of this core, as indexes into [`Stuck::waits`].
    pub(crate) behind: Vec<usize>,
}

/// Everything that is stuck, with its causes.
#[derive(Default)]
pub(crate) struct Stuck<'a> {
    pub(crate) waits: Vec<StuckWait<'a>>,
    pub(crate) holds: Vec<StuckHold<'a>>,
    pub(crate) cores: Vec<Core>,
}

/// What could be stuck as far as can be told without names: as if every hold were kept by every wait of its actor.
pub(crate) struct Candidates<'a> {
    queues: Vec<ResourceId>,
    capacity: Vec<u64>,
    free: Vec<u64>,
    waits: Vec<&'a Wait>,
    /// Queue of each wait.
    places: Vec<usize>,
    actors: Vec<Actor<'a>>,
}

struct Actor<'a> {
    /// Indexes into the waits of [`Candidates`].
    waits: Vec<usize>,
    holds: Vec<(usize, &'a Hold)>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn of(context: &Context<'a>) -> Self {
        let snapshot = context.now;
        let mut found = Candidates {
            queues: Vec::new(),
            capacity: Vec::new(),
            free: Vec::new(),
            waits: Vec::new(),
            places: Vec::new(),
            actors: Vec::new(),
        };
        let mut queues: HashMap<ResourceId, usize> = HashMap::new();
        let mut by_actor: HashMap<ActorId, usize> = HashMap::new();
        for wait in &snapshot.waits {
            let Some(resource) = snapshot.resource(wait.resource).filter(|r| context.is_judged(r))
            else {
                continue;
            };
            let queue = *queues.entry(resource.id).or_insert_with(|| {
                found.queues.push(resource.id);
                found.capacity.push(resource.capacity());
                found.queues.len() - 1
            });
            let actor = *by_actor.entry(wait.actor).or_insert_with(|| {
                found.actors.push(Actor { waits: Vec::new(), holds: Vec::new() });
                found.actors.len() - 1
            });
            found.actors[actor].waits.push(found.waits.len());
            found.waits.push(wait);
            found.places.push(queue);
        }
        found.free = found.capacity.clone();
        if found.waits.is_empty() {
            return found;
        }
        for run in snapshot.holds.chunk_by(|a, b| a.resource == b.resource) {
            let Some(&queue) = queues.get(&run[0].resource) else { continue };
            let moves = snapshot.resource(run[0].resource).is_none_or(|r| r.is_static);
            for hold in run.iter().filter(|h| !moves && !h.owned && h.moved_to.is_none()) {
                if let Some(actor) = by_actor.get(&hold.actor) {
                    found.actors[*actor].holds.push((queue, hold));
                    found.free[queue] = found.free[queue].saturating_sub(hold.units);
                }
            }
        }
        let gates: Vec<Gate> = found
            .actors
            .iter()
            .map(|actor| Gate {
                until: actor.waits.clone(),
                gives: actor.holds.iter().map(|(queue, hold)| (*queue, hold.units)).collect(),
            })
            .collect();
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
        for actor in &mut self.actors {
            actor.waits.retain(|at| !rest.served[*at]);
            for at in &mut actor.waits {
                *at = index[*at];
            }
        }
        self.actors.retain(|actor| !actor.waits.is_empty());
    }

    fn demands(&self, limits: &Limits, mut patient: impl FnMut(&Wait) -> bool) -> Vec<Demand> {
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
        let holds = self.actors.iter().flat_map(|actor| &actor.holds).map(|(_, hold)| hold.stack);
        self.waits.iter().map(|wait| wait.stack).chain(holds).collect()
    }

    /// What is stuck indeed.
    pub(crate) fn judge(&self, context: &Context<'a>) -> Stuck<'a> {
        if self.waits.is_empty() {
            return Stuck::default();
        }
        let mut relations = Relations::new(context);
        let mut gates: Vec<Gate> = Vec::new();
        let mut holds: Vec<&'a Hold> = Vec::new();
        for actor in &self.actors {
            for (queue, hold) in &actor.holds {
                let until = actor
                    .waits
                    .iter()
                    .copied()
                    .filter(|at| relations.keeps(hold, self.waits[*at]))
                    .collect();
                gates.push(Gate { until, gives: vec![(*queue, hold.units)] });
                holds.push(hold);
            }
        }
        let demands = self.demands(context.limits, |wait| relations.is_patient(wait));
        let rest = reduce(self.free.clone(), &demands, &gates);

        let mut index = vec![usize::MAX; self.waits.len()];
        let left: Vec<usize> = (0..self.waits.len()).filter(|at| !rest.served[*at]).collect();
        for (new, old) in left.iter().enumerate() {
            index[*old] = new;
        }
        let mut first: Vec<Option<usize>> = vec![None; self.queues.len()];
        for at in left.iter().filter(|at| demands[**at].patient) {
            let first = &mut first[self.places[*at]];
            if first.is_none_or(|first| demands[*at].entered < demands[first].entered) {
                *first = Some(*at);
            }
        }
        let waits = left.iter().map(|at| {
            let (wait, queue) = (self.waits[*at], self.places[*at]);
            let cause = match first[queue] {
                _ if wait.units > self.capacity[queue] => Cause::TooMany,
                Some(first) if wait.units <= rest.free[queue] && first != *at => {
                    Cause::Behind(index[first])
                }
                _ => Cause::Held,
            };
            StuckWait { wait, cause }
        });
        let kept = gates.into_iter().zip(holds).filter_map(|(gate, hold)| {
            let kept_by: Vec<usize> =
                gate.until.iter().map(|at| index[*at]).filter(|at| *at != usize::MAX).collect();
            (!kept_by.is_empty()).then_some(StuckHold { hold, kept_by })
        });
        let mut stuck = Stuck { waits: waits.collect(), holds: kept.collect(), cores: Vec::new() };
        stuck.cores = stuck.find_cores();
        stuck
    }
}

/// The moment by which a wait was in the queue for certain.
fn entered(wait: &Wait, limits: &Limits) -> u64 {
    let slack = u64::try_from(limits.queue_slack.as_nanos()).unwrap_or(u64::MAX);
    let latest = wait.since.0.saturating_add(slack);
    // It enters within its first poll; a blocking call is in the books before.
    let polled = wait.last_poll > wait.since && wait.call == Call::Acquire;
    if polled { latest.min(wait.last_poll.0) } else { latest }
}

impl Stuck<'_> {
    /// The strongly connected parts of the wait-for graph that wait for nothing outside of themselves.
    fn find_cores(&self) -> Vec<Core> {
        // Nodes: waits, then holds, then one for each resource, from which the holds of that resource are reached.
        let (waits, holds) = (self.waits.len(), self.holds.len());
        let mut resources: HashMap<ResourceId, usize> = HashMap::new();
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); waits + holds];
        let mut resource = |edges: &mut Vec<Vec<usize>>, id: ResourceId| {
            *resources.entry(id).or_insert_with(|| {
                edges.push(Vec::new());
                edges.len() - 1
            })
        };
        for (at, hold) in self.holds.iter().enumerate() {
            edges[waits + at].clone_from(&hold.kept_by);
            let node = resource(&mut edges, hold.hold.resource);
            edges[node].push(waits + at);
        }
        for (at, stuck) in self.waits.iter().enumerate() {
            match stuck.cause {
                Cause::TooMany => {}
                Cause::Held => {
                    let node = resource(&mut edges, stuck.wait.resource);
                    edges[at].push(node);
                }
                Cause::Behind(first) => edges[at].push(first),
            }
        }

        let component = components(&edges);
        let count = component.iter().max().map_or(0, |max| max + 1);
        let mut closed = vec![true; count];
        let mut reverse: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
        for (from, targets) in edges.iter().enumerate() {
            for to in targets {
                reverse[*to].push(from);
                if component[from] != component[*to] {
                    closed[component[from]] = false;
                }
            }
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, part) in component.iter().enumerate() {
            members[*part].push(node);
        }
        let mut cores: Vec<Core> = Vec::new();
        let mut reached_by: Vec<usize> = vec![usize::MAX; edges.len()];
        for part in (0..count).filter(|part| closed[*part]) {
            let mut core = Core::default();
            let mut open = members[part].clone();
            for node in &open {
                reached_by[*node] = part;
                if *node < waits {
                    core.waits.push(*node);
                } else if *node < waits + holds {
                    core.holds.push(*node - waits);
                }
            }
            if core.waits.is_empty() {
                continue;
            }
            while let Some(node) = open.pop() {
                for from in &reverse[node] {
                    if reached_by[*from] != part {
                        reached_by[*from] = part;
                        open.push(*from);
                        if *from < waits {
                            core.behind.push(*from);
                        }
                    }
                }
            }
            core.behind.sort_unstable();
            cores.push(core);
        }
        cores
    }
}

/// The number of the strongly connected component of each node (Tarjan 1972, with a stack of its own).
fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut component = vec![NEW; edges.len()];
    let (mut next, mut parts) = (0, 0);
    let mut path: Vec<usize> = Vec::new();
    let mut work: Vec<(usize, usize)> = Vec::new();
    for root in 0..edges.len() {
        if number[root] != NEW {
            continue;
        }
        work.push((root, 0));
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                number[node] = next;
                low[node] = next;
                next += 1;
                path.push(node);
            }
            if let Some(&to) = edges[node].get(edge) {
                work.push((node, edge + 1));
                if number[to] == NEW {
                    work.push((to, 0));
                } else if component[to] == NEW {
                    low[node] = low[node].min(number[to]);
                }
                continue;
            }
            if low[node] == number[node] {
                while let Some(member) = path.pop() {
                    component[member] = parts;
                    if member == node {
                        break;
                    }
                }
                parts += 1;
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    component
}

/// Which holds are kept by which waits, each pair of stacks compared once.
struct Relations<'c> {
    frames: HashMap<StackId, &'c [Frame]>,
    paths: HashMap<StackId, Path<'c>>,
    partings: HashMap<(StackId, StackId), Parting>,
    optimised: bool,
    left: usize,
}

impl<'c> Relations<'c> {
    fn new(context: &Context<'c>) -> Self {
        let named = |stack: &'c crate::snapshot::Stack| Some((stack.id, stack.frames.as_deref()?));
        Relations {
            frames: context.now.stacks.iter().filter_map(named).collect(),
            paths: HashMap::new(),
            partings: HashMap::new(),
            optimised: !context.now.process.debug,
            left: MAX_PAIRS,
        }
    }

    fn path(&mut self, id: StackId) -> Option<&Path<'c>> {
        let frames = self.frames.get(&id)?;
        Some(self.paths.entry(id).or_insert_with(|| Path::new(frames)))
    }

    /// Whether the wait stays in the queue until it is served.
    fn is_patient(&mut self, wait: &Wait) -> bool {
        self.path(wait.stack).is_some_and(Path::is_patient)
    }

    /// Whether the hold certainly cannot end before the wait does.
    fn keeps(&mut self, hold: &Hold, wait: &Wait) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let key = (hold.stack, wait.stack);
        let parting = match self.partings.get(&key) {
            Some(parting) => *parting,
            None => {
                if self.path(hold.stack).is_none() || self.path(wait.stack).is_none() {
                    return false;
                }
                let parting =
                    Parting::of(&self.paths[&hold.stack], &self.paths[&wait.stack], self.optimised);
                self.partings.insert(key, parting);
                parting
            }
        };
        let relation = parting.relation((hold.future, hold.poller), (wait.future, wait.poller));
        parting.firm() && relation == Relation::Blocked
    }
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_are_the_cycles() {
        let cases: &[(&[&[usize]], usize)] = &[
            (&[], 0),
            (&[&[]], 1),
            (&[&[0]], 1),
            (&[&[1], &[2], &[0]], 1),
            (&[&[1], &[2], &[]], 3),
            (&[&[1], &[0, 2], &[3], &[2]], 2),
            (&[&[1, 2], &[0], &[0], &[3, 0]], 2),
        ];
        for (edges, expected) in cases {
            let edges: Vec<Vec<usize>> = edges.iter().map(|targets| targets.to_vec()).collect();
            let found = components(&edges).into_iter().max().map_or(0, |max| max + 1);
            assert_eq!(found, *expected, "{edges:?}");
        }
    }
}
