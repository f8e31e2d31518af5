//! What the rules on orders of acquires share: which of them matter, and who could be in them at the same time.

use super::marks;
use crate::diagnose::{Context, Mode, Relations};
use crate::path::Relation;
use crate::snapshot::{
    ActorId, Counters, Gate, History, Kind, Order, Resource, ResourceId, Seen, Settings, Side,
    StackId, Usage,
};
use std::collections::HashSet;

/// Orders as the paths tell them.
pub(super) struct Edges<'c, 'a> {
    context: &'c Context<'a>,
    relations: Relations<'c, 'a>,
}

impl<'c, 'a> Edges<'c, 'a> {
    pub(super) fn new(context: &'c Context<'a>) -> Self {
        Edges { context, relations: Relations::new(context, Mode::Proven) }
    }

    /// Whether the outer hold certainly cannot end before the inner acquire is served, which nothing gives up.
    pub(super) fn binds(&mut self, order: &Order) -> bool {
        let (relation, firm) = self.relations.of_sides(&order.outer, &order.inner);
        relation == Relation::Blocked && firm && !self.may_give_up(order.inner.stack)
    }

    pub(super) fn may_give_up(&mut self, stack: StackId) -> bool {
        self.relations.may_give_up(stack)
    }

    /// Whether one task can be in both at the same time.
    pub(super) fn run_side_by_side(&mut self, a: &Order, b: &Order) -> bool {
        let mut beside = |outer: &Side, inner: &Side| {
            self.relations.of_sides(outer, inner).0 == Relation::Concurrent
        };
        beside(&a.outer, &b.inner) && beside(&b.outer, &a.inner)
    }

    /// Somebody waits in this very order right now: what comes of it is another story, or none.
    pub(super) fn is_going_on(&self, order: &Order) -> bool {
        let young = self.context.limits.stall;
        let queue = self.context.queue(order.inner.resource);
        queue.iter().any(|w| w.stack == order.inner.stack && self.context.age(w.since) < young)
    }
}

/// Whether this could matter, told without names: permits stay where they were acquired, and none come from outside.
pub(super) fn is_bound(context: &Context<'_>, order: &Order) -> bool {
    let own = order.released > 0 && order.elsewhere == 0;
    let stays = own || !(order.outer.owned || order.outer.is_static);
    let closed = |side: &Side| {
        let known = matches!(side.kind, Kind::Semaphore | Kind::Mutex | Kind::RwLock);
        let closed = |r: &Resource| {
            !r.closed && !r.settings.grows && r.initial > 0 && r.added == 0 && r.forgotten == 0
        };
        known
            && side.capacity > 0
            && side.stack != StackId::NONE
            && context.now.resource(side.resource).is_none_or(closed)
    };
    stays && closed(&order.outer) && closed(&order.inner)
}

/// Whether nothing but timing kept these two from acting at the same time, as far as can be told.
///
/// Who acted later must have been there when the other did, and not as the one who had begun it and waited for its
/// end: tasks are numbered as they are spawned, so a task with a larger number did not spawn one with a smaller one.
pub(super) fn may_meet(a: &Seen, b: &Seen) -> bool {
    let (earlier, later) = if (a.at, a.actor) <= (b.at, b.actor) { (a, b) } else { (b, a) };
    if earlier.actor == later.actor {
        return false;
    }
    let again = later.at < earlier.last;
    // In turns: neither has waited for the other's end.
    if again && earlier.last < later.last {
        return true;
    }
    match (earlier.actor, later.actor) {
        (ActorId::Task(first), ActorId::Task(second)) if second < first => {
            let alone = later.alive_tasks < 2;
            again || (first < earlier.newest && !alone)
        }
        (_, ActorId::Task(second)) => second < earlier.newest,
        _ => false,
    }
}

/// What keeps too many from being inside at once.
#[derive(Clone, Default)]
pub(super) struct Gates(Vec<Gate>);

impl Gates {
    /// One more goes in; false if there is no room.
    pub(super) fn enter(&mut self, gates: &[Gate]) -> bool {
        let room = |gate: &Gate| {
            let used = self.0.iter().find(|known| known.resource == gate.resource);
            used.map_or(0, |used| used.units).saturating_add(gate.units) <= gate.capacity
        };
        if !gates.iter().all(room) {
            return false;
        }
        for gate in gates {
            match self.0.iter_mut().find(|known| known.resource == gate.resource) {
                Some(used) => used.units = used.units.saturating_add(gate.units),
                None => self.0.push(*gate),
            }
        }
        true
    }
}

/// What an order holds while it waits: its gates and the outer one.
pub(super) fn kept(order: &Order) -> Vec<Gate> {
    let outer = &order.outer;
    let (resource, capacity) = (outer.resource, outer.capacity);
    let own = Gate { resource, capacity, units: outer.units };
    order.gates.iter().copied().filter(|gate| gate.resource != resource).chain([own]).collect()
}

/// How many holds of `held` it takes until a request for `wanted` finds too little.
pub(super) fn it_takes(capacity: u64, held: u64, wanted: u64) -> u64 {
    capacity.saturating_sub(wanted) / held.max(1) + 1
}

/// The resource as far as the order knows it: it may be gone by now.
pub(super) fn stand_in(side: &Side) -> Resource {
    Resource {
        id: side.resource,
        kind: side.kind,
        name: side.name.clone(),
        created: side.created,
        created_at: crate::snapshot::Moment(0),
        scope: crate::snapshot::ScopeId(0),
        is_static: side.is_static,
        initial: side.capacity,
        added: 0,
        forgotten: 0,
        available: 0,
        closed: false,
        settled: false,
        usage: Usage::default(),
        counters: Counters::default(),
        settings: Settings::default(),
        history: History::default(),
    }
}

/// `once`, `3 times`.
pub(super) fn how_often(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// Each once, in the order of the first.
pub(super) fn unique<T: Copy + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(*item)).collect()
}

/// The books of those that are still there.
pub(super) fn books(context: &Context<'_>, ids: &[ResourceId]) -> Vec<String> {
    let known = ids.iter().filter_map(|id| context.now.resource(*id));
    known.take(marks::SHOWN).map(|r| crate::words::books(context.now, r)).collect()
}
