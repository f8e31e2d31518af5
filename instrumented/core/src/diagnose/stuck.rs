//! The waits that can never be served, and why.

use super::candidates::{Candidates, Keeper};
use super::grip::{Grip, Why};
use super::reduction::{Gate, reduce};
use super::relations::{Mode, Relations};
use crate::diagnose::Context;
use crate::snapshot::{ResourceId, RuntimeId, Wait};
use std::collections::{HashMap, HashSet};

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
    pub(crate) grip: Grip<'a>,
    /// The waits that keep it, by their index in [`Stuck::waits`]; none if nothing is left that could end it.
    pub(crate) kept_by: Vec<usize>,
    pub(crate) why: Why,
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

impl<'a> Candidates<'a> {
    /// What is stuck indeed.
    pub(crate) fn judge(&self, context: &Context<'a>, mode: Mode) -> Stuck<'a> {
        if self.waits.is_empty() {
            return Stuck::default();
        }
        let mut relations = Relations::new(context, mode);
        let mut gates: Vec<Gate> = Vec::new();
        let mut grips: Vec<(Grip<'a>, Why)> = Vec::new();
        for party in &self.parties {
            let blocking = match party.keeper {
                Keeper::Actor(_) => None,
                Keeper::Runtime(runtime) => Some(self.blocking(context, runtime, &party.waits)),
            };
            for (queue, grip) in &party.grips {
                let kept: Vec<(usize, Why)> = match blocking {
                    Some(wait) => wait.into_iter().map(|at| (at, Why::Blocking)).collect(),
                    None => {
                        let mut why = |at: &usize| relations.keeps(*grip, self.waits[*at]);
                        party.waits.iter().filter_map(|at| Some((*at, why(at)?))).collect()
                    }
                };
                let until = kept.iter().map(|(at, _)| *at).collect();
                gates.push(Gate { until, forever: false, gives: vec![(*queue, grip.units())] });
                grips.push((*grip, kept.iter().map(|(_, why)| *why).max().unwrap_or(Why::Pinned)));
            }
        }
        for (queue, grip) in &self.forever {
            gates.push(Gate {
                until: Vec::new(),
                forever: true,
                gives: vec![(*queue, grip.units())],
            });
            grips.push((*grip, Why::Granted));
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
        let kept = gates.into_iter().zip(grips).filter_map(|(gate, (grip, why))| {
            let kept_by: Vec<usize> =
                gate.until.iter().map(|at| index[*at]).filter(|at| *at != usize::MAX).collect();
            (gate.forever || !kept_by.is_empty()).then_some(StuckHold { grip, kept_by, why })
        });
        let mut stuck = Stuck { waits: waits.collect(), holds: kept.collect(), cores: Vec::new() };
        stuck.cores = stuck.find_cores();
        stuck
    }

    /// The wait that has to be served before any task of this runtime runs again.
    fn blocking(
        &self,
        context: &Context<'a>,
        runtime: RuntimeId,
        waits: &[usize],
    ) -> Option<usize> {
        let workers = context.now.runtime(runtime)?.workers.max(1);
        let blocking = waits.iter().copied().filter(|at| context.blocks_thread(self.waits[*at]));
        let blocking: Vec<usize> = blocking.collect();
        let threads: HashSet<u64> = blocking.iter().map(|at| self.waits[*at].thread).collect();
        // The first that is served is enough: only in one queue is known which that is.
        let first = *blocking.first()?;
        let one_queue = blocking.iter().all(|at| self.places[*at] == self.places[first]);
        (threads.len() as u64 >= workers && one_queue).then_some(first)
    }
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
            let node = resource(&mut edges, hold.grip.resource());
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
            if core.waits.is_empty() && core.holds.is_empty() {
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
