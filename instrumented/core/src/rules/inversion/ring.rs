//! Whether a cycle of orders can close.

use super::cycles::Graph;
use crate::rules::edges::{Edges, Gates, it_takes, kept, may_meet};
use crate::snapshot::{ActorId, Order, ResourceId, Seen};

/// Choices of orders that are tried for one cycle.
const MAX_CHOICES: usize = 256;
/// Actors that are tried for one choice.
const MAX_TRIES: usize = 4096;
/// Actors that it may take.
const MAX_ACTORS: usize = 16;

/// Orders of which each is held while the next is asked for, with actors that could meet in them.
pub(super) struct Ring<'a> {
    pub(super) orders: Vec<&'a Order>,
    pub(super) actors: Vec<ActorId>,
}

impl<'a> Ring<'a> {
    /// The first choice of orders along this cycle that can close.
    pub(super) fn of(
        graph: &Graph<'a>,
        cycle: &[ResourceId],
        edges: &mut Edges<'_, 'a>,
    ) -> Option<Self> {
        let next = |at: usize| cycle[(at + 1) % cycle.len()];
        let between = |at: usize| graph.get(&cycle[at])?.get(&next(at));
        let steps: Vec<&Vec<&Order>> = (0..cycle.len()).map(between).collect::<Option<_>>()?;
        let mut choice = vec![0; steps.len()];
        for _ in 0..MAX_CHOICES {
            let orders: Vec<&Order> = steps.iter().zip(&choice).map(|(s, c)| s[*c]).collect();
            if let Some(actors) = close(&orders, edges) {
                return Some(Ring { orders, actors });
            }
            // As one counts.
            let at = (0..steps.len()).find(|at| choice[*at] + 1 < steps[*at].len())?;
            choice[at] += 1;
            choice[..at].fill(0);
        }
        None
    }
}

/// Who could close the ring.
fn close(orders: &[&Order], edges: &mut Edges<'_, '_>) -> Option<Vec<ActorId>> {
    // Who holds what the one before asks for: as many as it takes until that one has to wait.
    let mut slots: Vec<usize> = Vec::new();
    for (at, order) in orders.iter().enumerate() {
        let before = orders[(at + orders.len() - 1) % orders.len()];
        let capacity = order.outer.capacity.max(before.inner.capacity);
        let takes = it_takes(capacity, order.outer.units, before.inner.units);
        let takes = usize::try_from(takes).ok().filter(|n| slots.len() + n <= MAX_ACTORS)?;
        slots.extend(std::iter::repeat_n(at, takes));
    }
    // Something that two of them hold may keep them apart.
    for (at, a) in orders.iter().enumerate() {
        for b in &orders[at + 1..] {
            let mut gates = Gates::default();
            if !(gates.enter(&kept(a)) && gates.enter(&kept(b))) {
                return None;
            }
        }
    }
    let mut beside = vec![vec![false; orders.len()]; orders.len()];
    for (i, a) in orders.iter().enumerate() {
        for (j, b) in orders.iter().enumerate().filter(|(j, _)| *j != i) {
            beside[i][j] = edges.run_side_by_side(a, b);
        }
    }
    let fits = |(i, one): (usize, &Seen), (j, other): (usize, &Seen)| {
        if one.actor == other.actor { beside[i][j] } else { may_meet(one, other) }
    };
    let mut chosen: Vec<usize> = Vec::new();
    let mut from = 0;
    for _ in 0..MAX_TRIES {
        let Some(&order) = slots.get(chosen.len()) else {
            let actor = |(order, seen): (&usize, &usize)| orders[*order].seen[*seen].actor;
            return Some(slots.iter().zip(&chosen).map(actor).collect());
        };
        let mut rest = orders[order].seen.iter().enumerate().skip(from);
        let found = rest.find(|(_, one)| {
            let taken = chosen.iter().zip(&slots).map(|(seen, at)| (*at, &orders[*at].seen[*seen]));
            taken.into_iter().all(|other| fits((order, one), other))
        });
        match found {
            Some((at, _)) => {
                chosen.push(at);
                from = 0;
            }
            None => from = chosen.pop()? + 1,
        }
    }
    None
}
