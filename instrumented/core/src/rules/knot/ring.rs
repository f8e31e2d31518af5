//! Who waits for whom.

use super::Case;
use crate::diagnose::{Cause, Grip};
use crate::snapshot::{ResourceId, Wait};
use std::collections::{HashMap, HashSet, VecDeque};

/// Someone who keeps something and waits.
#[derive(Clone, Copy)]
pub(super) struct Party<'a> {
    /// What it keeps from the one before; `None` if it merely stands in front of that one in the queue.
    pub(super) grip: Option<Grip<'a>>,
    pub(super) wait: &'a Wait,
}

impl<'a> Case<'_, 'a> {
    /// A shortest ring of parties through the oldest wait, in wait order; where all wait for one resource, one
    /// party for each pair of lines.
    pub(super) fn parties(&self) -> Vec<Party<'a>> {
        let ring = self.ring();
        if self.resources.len() > 1 || ring.len() >= self.actors.len() {
            return ring;
        }
        let mut seen = HashSet::new();
        let mut parties = Vec::new();
        for at in &self.core.holds {
            let stuck = &self.stuck.holds[*at];
            let Some(first) = stuck.kept_by.first() else { continue };
            let wait = self.stuck.waits[*first].wait;
            if seen.insert((stuck.grip.site(), wait.site)) {
                parties.push(Party { grip: Some(stuck.grip), wait });
            }
        }
        parties
    }

    fn ring(&self) -> Vec<Party<'a>> {
        let waits: HashSet<usize> = self.core.waits.iter().copied().collect();
        let mut holds: HashMap<ResourceId, Vec<usize>> = HashMap::new();
        for at in &self.core.holds {
            holds.entry(self.stuck.holds[*at].grip.resource()).or_default().push(*at);
        }
        let Some(start) = self.core.waits.iter().copied().min_by_key(|at| {
            let wait = self.stuck.waits[*at].wait;
            (wait.since, wait.id)
        }) else {
            return Vec::new();
        };
        // Breadth first; `from` tells by which hold, kept by that wait, a wait was reached.
        let mut from: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            if at == start && !from.is_empty() && from.contains_key(&start) {
                break;
            }
            let mut reach = |to: usize, hold: Option<usize>| {
                if waits.contains(&to) && !from.contains_key(&to) {
                    from.insert(to, (at, hold));
                    open.push_back(to);
                }
            };
            match self.stuck.waits[at].cause {
                Cause::Behind(first) => reach(first, None),
                // Each resource's holds are followed once.
                Cause::Held => {
                    for hold in
                        holds.remove(&self.stuck.waits[at].wait.resource).unwrap_or_default()
                    {
                        for to in &self.stuck.holds[hold].kept_by {
                            reach(*to, Some(hold));
                        }
                    }
                }
                Cause::TooMany => {}
            }
        }
        let mut parties = Vec::new();
        let mut at = start;
        while let Some((previous, hold)) = from.get(&at) {
            let grip = hold.map(|hold| self.stuck.holds[hold].grip);
            parties.push(Party { grip, wait: self.stuck.waits[at].wait });
            at = *previous;
            if at == start {
                break;
            }
        }
        // Found backwards, and the start last.
        parties.reverse();
        let last = parties.len().min(1);
        parties.rotate_right(last);
        parties
    }
}
