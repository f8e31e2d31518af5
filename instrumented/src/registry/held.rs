//! What each actor holds right now, in the order in which it was acquired: so that a nested acquire is a look-up.

use super::ledger::Request;
use super::orders;
use holdup_core::snapshot::{ActorId, HoldId, ResourceId};
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Holds of one actor that are listed. One that has more is no nest but a collection: the latest are not compared.
const MAX_HOLDS: usize = 32;
/// Orders that one hold is remembered to have been the outer side of.
const MAX_ORDERS: usize = 4;
const SHARDS: usize = 64;

/// One live hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) hold: HoldId,
    pub(super) resource: ResourceId,
    pub(super) request: Request,
    /// The orders that began with this hold, in which it has yet to end.
    orders: [Option<orders::Key>; MAX_ORDERS],
}

impl Entry {
    pub(super) fn new(hold: HoldId, resource: ResourceId, request: &Request) -> Entry {
        Entry { hold, resource, request: *request, orders: [None; MAX_ORDERS] }
    }

    pub(super) fn orders(&self) -> impl Iterator<Item = orders::Key> {
        self.orders.into_iter().flatten()
    }
}

/// The first hold of an actor lies in the map itself: most have no other, and then nothing is allocated.
#[derive(Debug)]
struct List {
    first: Entry,
    more: Vec<Entry>,
}

/// Hashed cheaply: numbers of tasks and addresses of wakers are nobody's to choose.
type Lists = HashMap<ActorId, List, FxBuildHasher>;

static LISTS: [Mutex<Lists>; SHARDS] =
    [const { Mutex::new(HashMap::with_hasher(FxBuildHasher)) }; SHARDS];

fn shard(actor: ActorId) -> MutexGuard<'static, Lists> {
    // Other bits than those that the map itself goes by.
    let at = (FxBuildHasher.hash_one(actor) >> 32) % SHARDS as u64;
    let shard = &LISTS[usize::try_from(at).unwrap_or(0)];
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An actor has acquired something.
pub(super) fn add(entry: Entry) {
    let mut lists = shard(entry.request.actor);
    match lists.get_mut(&entry.request.actor) {
        Some(list) if list.more.len() + 1 < MAX_HOLDS => list.more.push(entry),
        Some(_) => {}
        None => {
            lists.insert(entry.request.actor, List { first: entry, more: Vec::new() });
        }
    }
}

/// A hold that `actor` acquired has ended, or has gone elsewhere.
pub(super) fn remove(actor: ActorId, hold: HoldId) -> Option<Entry> {
    let mut lists = shard(actor);
    let list = lists.get_mut(&actor)?;
    if list.first.hold != hold {
        let at = list.more.iter().rposition(|entry| entry.hold == hold)?;
        return Some(list.more.remove(at));
    }
    let gone = list.first;
    if list.more.is_empty() {
        lists.remove(&actor);
    } else {
        list.first = list.more.remove(0);
    }
    Some(gone)
}

/// Changes a listed hold.
fn change(actor: ActorId, hold: HoldId, change: impl FnOnce(&mut Entry)) {
    let mut lists = shard(actor);
    let Some(list) = lists.get_mut(&actor) else { return };
    let entry =
        std::iter::once(&mut list.first).chain(&mut list.more).find(|entry| entry.hold == hold);
    if let Some(entry) = entry {
        change(entry);
    }
}

/// A hold has `units` from now on.
pub(super) fn resize(actor: ActorId, hold: HoldId, units: u64) {
    change(actor, hold, |entry| entry.request.units = units);
}

/// A hold is the outer side of this order.
pub(super) fn mark(actor: ActorId, hold: HoldId, order: orders::Key) {
    change(actor, hold, |entry| {
        if entry.orders.contains(&Some(order)) {
            return;
        }
        if let Some(free) = entry.orders.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(order);
        }
    });
}

/// What an actor holds, oldest first: the first ones, as many as there is room for in `room`.
pub(super) fn of(actor: ActorId, room: &mut [Option<Entry>]) -> usize {
    let lists = shard(actor);
    let Some(list) = lists.get(&actor) else { return 0 };
    let mut count = 0;
    for (slot, entry) in room.iter_mut().zip(std::iter::once(&list.first).chain(&list.more)) {
        *slot = Some(*entry);
        count += 1;
    }
    count
}

/// What `actor` is listed to hold of `resource`, with the units.
#[cfg(test)]
pub(crate) fn listed(actor: ActorId, resource: ResourceId) -> Vec<(HoldId, u64)> {
    let mut room = [None; MAX_HOLDS];
    let count = of(actor, &mut room);
    let ours = room[..count].iter().flatten().filter(|entry| entry.resource == resource);
    ours.map(|entry| (entry.hold, entry.request.units)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_core::snapshot::{Call, Moment, ScopeId, StackId};
    use std::panic::Location;

    fn entry(actor: ActorId, hold: u64, resource: u64) -> Entry {
        let request = Request {
            units: 1,
            actor,
            scope: ScopeId(0),
            stack: StackId::NONE,
            site: Location::caller(),
            since: Moment(1),
            call: Call::Acquire,
            owned: false,
            future: 0,
            poller: 0,
            thread: 1,
        };
        Entry::new(HoldId(hold), ResourceId(resource), &request)
    }

    fn holds(actor: ActorId) -> Vec<u64> {
        let mut room = [None; MAX_HOLDS];
        let count = of(actor, &mut room);
        room[..count].iter().flatten().map(|entry| entry.hold.0).collect()
    }

    #[test]
    fn each_actor_has_its_own_list_in_order() {
        let (a, b) = (ActorId::Task(u64::MAX - 1), ActorId::Task(u64::MAX - 2));
        for hold in 1..=4 {
            add(entry(a, hold, hold % 2));
        }
        add(entry(b, 9, 0));
        assert_eq!((holds(a), holds(b)), (vec![1, 2, 3, 4], vec![9]));
        resize(a, HoldId(2), 7);
        assert_eq!(remove(a, HoldId(2)).map(|entry| entry.request.units), Some(7));
        assert_eq!(remove(a, HoldId(1)).map(|entry| entry.hold), Some(HoldId(1)));
        assert!(remove(a, HoldId(1)).is_none() && remove(b, HoldId(3)).is_none());
        assert_eq!(holds(a), [3, 4]);
        for hold in [3, 4] {
            assert!(remove(a, HoldId(hold)).is_some());
        }
        assert!(remove(b, HoldId(9)).is_some());
        assert_eq!((holds(a), holds(b)), (vec![], vec![]));
    }

    #[test]
    fn a_collection_is_not_listed_without_end() {
        let actor = ActorId::Task(u64::MAX - 3);
        for hold in 0..1000 {
            add(entry(actor, hold, 1));
        }
        assert_eq!(holds(actor).len(), MAX_HOLDS);
        let removed = (0..1000).filter(|hold| remove(actor, HoldId(*hold)).is_some()).count();
        assert_eq!(removed, MAX_HOLDS);
    }
}
