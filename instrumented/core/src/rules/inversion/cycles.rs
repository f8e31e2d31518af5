//! Cycles in the graph of orders.

use crate::snapshot::{Order, ResourceId};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Cycles that are looked into.
const MAX_CYCLES: usize = 256;
/// The longest cycle that is looked into.
const MAX_LENGTH: usize = 8;
/// Steps of one search.
const MAX_STEPS: usize = 1 << 18;

/// The orders between each two resources.
pub(super) type Graph<'a> = BTreeMap<ResourceId, BTreeMap<ResourceId, Vec<&'a Order>>>;

pub(super) fn graph<'a>(orders: impl Iterator<Item = &'a Order>) -> Graph<'a> {
    let mut graph: Graph<'a> = BTreeMap::new();
    for order in orders {
        let targets = graph.entry(order.outer.resource).or_default();
        targets.entry(order.inner.resource).or_default().push(order);
    }
    graph
}

/// The resources that may lie on cycles: apart from these, every way ends somewhere.
pub(super) fn not_at_ends(graph: &Graph<'_>) -> HashSet<ResourceId> {
    // What nobody leads to, or what leads nowhere, is on none: take such away until there is nothing left to take.
    let mut ins: HashMap<ResourceId, usize> = HashMap::new();
    let mut sources: HashMap<ResourceId, Vec<ResourceId>> = HashMap::new();
    for (from, targets) in graph {
        for to in targets.keys() {
            *ins.entry(*to).or_default() += 1;
            sources.entry(*to).or_default().push(*from);
        }
    }
    let mut outs: HashMap<ResourceId, usize> =
        graph.iter().map(|(from, targets)| (*from, targets.len())).collect();
    let mut left: HashSet<ResourceId> = graph.keys().chain(sources.keys()).copied().collect();
    let mut open: Vec<ResourceId> = left.iter().copied().collect();
    while let Some(node) = open.pop() {
        let leads = |counts: &HashMap<ResourceId, usize>| counts.get(&node).is_some_and(|n| *n > 0);
        if (leads(&ins) && leads(&outs)) || !left.remove(&node) {
            continue;
        }
        for to in graph.get(&node).into_iter().flat_map(BTreeMap::keys) {
            if let Some(n) = ins.get_mut(to) {
                *n = n.saturating_sub(1);
                open.push(*to);
            }
        }
        for from in sources.get(&node).into_iter().flatten() {
            if let Some(n) = outs.get_mut(from) {
                *n = n.saturating_sub(1);
                open.push(*from);
            }
        }
    }
    left
}

/// For each edge a shortest cycle through it, each once.
pub(super) fn cycles(graph: &Graph<'_>) -> Vec<Vec<ResourceId>> {
    let mut found: Vec<Vec<ResourceId>> = Vec::new();
    let mut known: HashSet<Vec<ResourceId>> = HashSet::new();
    let mut steps = MAX_STEPS;
    for (from, targets) in graph {
        for to in targets.keys() {
            let Some(mut cycle) = way(graph, *to, *from, &mut steps) else { continue };
            let least = (0..cycle.len()).min_by_key(|at| cycle[*at]).unwrap_or_default();
            cycle.rotate_left(least);
            if cycle.len() <= MAX_LENGTH && known.insert(cycle.clone()) {
                found.push(cycle);
            }
            if found.len() >= MAX_CYCLES || steps == 0 {
                return found;
            }
        }
    }
    found
}

/// A shortest way, breadth first, with both ends.
fn way(
    graph: &Graph<'_>,
    start: ResourceId,
    end: ResourceId,
    steps: &mut usize,
) -> Option<Vec<ResourceId>> {
    let mut from: HashMap<ResourceId, ResourceId> = HashMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        if at == end {
            let mut way = vec![end];
            let mut at = end;
            while at != start {
                at = *from.get(&at)?;
                way.push(at);
            }
            way.reverse();
            return Some(way);
        }
        for to in graph.get(&at).into_iter().flat_map(BTreeMap::keys) {
            *steps = steps.checked_sub(1)?;
            if *to != start && !from.contains_key(to) {
                from.insert(*to, at);
                open.push_back(*to);
            }
        }
    }
    None
}
