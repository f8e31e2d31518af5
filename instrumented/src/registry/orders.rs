//! What is acquired while something is held: nested acquires and the edges of the lock-order graph.
//!
//! They are noticed at the acquire, since they may last for microseconds only, and kept once for each pair of
//! resources and of call stacks. Symbols, cycles and whether it matters are the monitor's work.

use super::held::{self, Entry};
use super::ledger::Request;
use super::resource::Resource;
use super::seen::{self, Large};
use super::sites::Sites;
use super::{REGISTRY, now};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry as Slot;
use holdup_core::snapshot::{Gate, Kind, Moment, Order, ResourceId, Seen, Side, SiteId, StackId};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Orders that are kept.
const MAX_ORDERS: usize = 1 << 14;
/// Pairs of resources that are kept for one pair of stacks: code that nests resources made for the occasion must not
/// crowd out the rest.
const MAX_INSTANCES: u32 = 256;
/// Holds of an actor that an acquire is compared with.
const MAX_OUTER: usize = 8;
/// Looks after which an order goes whose resources are gone. The first may have begun before they went, and what is
/// found is told when a second one has found it.
const LOOKS: u8 = 3;

/// Which resources, and which stacks: the outer one, then the inner one.
pub(super) type Key = (ResourceId, ResourceId, StackId, StackId);

#[derive(Debug)]
struct Part {
    kind: Kind,
    name: Option<Arc<str>>,
    created: &'static Location<'static>,
    capacity: u64,
    is_static: bool,
    request: Request,
}

#[derive(Debug)]
struct Record {
    outer: Part,
    inner: Part,
    held: u64,
    count: u64,
    released: u64,
    elsewhere: u64,
    first: Moment,
    last: Moment,
    seen: Vec<Seen>,
    gates: Vec<Gate>,
    /// Of a resource that is nested in itself.
    large: Option<Arc<Large>>,
    /// Looks since one of the resources has gone.
    gone: u8,
}

static ORDERS: LazyLock<DashMap<Key, Record>> = LazyLock::new(DashMap::new);
static INSTANCES: LazyLock<DashMap<(StackId, StackId), u32>> = LazyLock::new(DashMap::new);
static KEPT: AtomicUsize = AtomicUsize::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Orders that there was no room for.
pub(super) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// `request` asks for some of `inner`, and means to wait for it. True if that is something new.
pub(super) fn note(inner: &Resource, request: &Request) -> bool {
    if request.stack == StackId::NONE {
        return false;
    }
    let mut room = [None; MAX_OUTER];
    let count = held::of(request.actor, &mut room);
    let holds = &room[..count];
    let mut new = inner.large(false).is_some_and(|large| large.note(request));
    for (at, outer) in holds.iter().enumerate() {
        if let Some(outer) = outer.filter(|outer| outer.request.stack != StackId::NONE) {
            new |= note_one(&holds[..at], &outer, holds, inner, request);
        }
    }
    new
}

/// `around` is what was acquired before the outer one, and `all` everything that is held.
fn note_one(
    around: &[Option<Entry>],
    outer: &Entry,
    all: &[Option<Entry>],
    inner: &Resource,
    request: &Request,
) -> bool {
    let key = (outer.resource, inner.id(), outer.request.stack, request.stack);
    let same = all.iter().flatten().filter(|entry| entry.resource == outer.resource);
    let held = same.fold(0, |sum: u64, entry| sum.saturating_add(entry.request.units));
    let gates =
        || around.iter().flatten().filter(|entry| ![key.0, key.1].contains(&entry.resource));
    let now = now();
    let again = |record: &mut Record| {
        record.count += 1;
        record.last = now;
        record.held = record.held.max(held);
        for gate in &mut record.gates {
            let units = gates().filter(|entry| entry.resource == gate.resource);
            gate.units = gate.units.min(units.map(|entry| entry.request.units).sum());
        }
        record.gates.retain(|gate| gate.units > 0);
    };
    let known = ORDERS.get_mut(&key).map(|mut record| {
        again(&mut record);
        seen::is_new(&mut record.seen, request, now)
    });
    let new = known.inspect(|&new| {
        if new {
            let one = seen::look(request, now);
            if let Some(mut record) = ORDERS.get_mut(&key) {
                seen::add(&mut record.seen, one);
            }
        }
    });
    let new = new.unwrap_or_else(|| {
        let Some(resource) = REGISTRY.get(outer.resource) else { return false };
        let mut around: Vec<Gate> = Vec::new();
        for entry in gates() {
            match around.iter_mut().find(|gate| gate.resource == entry.resource) {
                Some(gate) => gate.units += entry.request.units,
                None => around.extend(REGISTRY.get(entry.resource).map(|resource| Gate {
                    resource: entry.resource,
                    capacity: resource.capacity(),
                    units: entry.request.units,
                })),
            }
        }
        let record = Record {
            outer: part(&resource, &outer.request),
            inner: part(inner, request),
            held,
            count: 1,
            released: 0,
            elsewhere: 0,
            first: now,
            last: now,
            seen: vec![seen::look(request, now)],
            gates: around,
            large: (key.0 == key.1).then(|| inner.large(true)).flatten(),
            gone: 0,
        };
        keep(key, record, again)
    });
    held::mark(request.actor, outer.hold, key);
    new
}

fn part(resource: &Resource, request: &Request) -> Part {
    Part {
        kind: resource.kind(),
        name: resource.name(),
        created: resource.created(),
        capacity: resource.capacity(),
        is_static: resource.is_roaming(),
        request: *request,
    }
}

/// True if it is new: another thread may have been faster, and then it happened `again`.
fn keep(key: Key, record: Record, again: impl FnOnce(&mut Record)) -> bool {
    let stacks = (key.2, key.3);
    let full = KEPT.load(Ordering::Relaxed) >= MAX_ORDERS
        || INSTANCES.get(&stacks).is_some_and(|count| *count >= MAX_INSTANCES);
    if full {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    match ORDERS.entry(key) {
        Slot::Occupied(mut known) => {
            again(known.get_mut());
            for seen in record.seen {
                seen::add(&mut known.get_mut().seen, seen);
            }
            false
        }
        Slot::Vacant(slot) => {
            slot.insert(record);
            KEPT.fetch_add(1, Ordering::Relaxed);
            *INSTANCES.entry(stacks).or_default() += 1;
            true
        }
    }
}

/// The outer hold of an order has ended, by its own actor or by another. True if that makes the order certain.
pub(super) fn ended(key: Key, elsewhere: bool) -> bool {
    let Some(mut record) = ORDERS.get_mut(&key) else { return false };
    if elsewhere {
        record.elsewhere += 1;
        return false;
    }
    record.released += 1;
    record.released == 1 && record.outer.request.owned
}

/// All orders, in the order in which they were first seen.
pub(super) fn all(sites: &mut Sites) -> Vec<Order> {
    let mut orders: Vec<Order> = ORDERS
        .iter()
        .map(|entry| {
            let (key, record) = entry.pair();
            Order {
                outer: side(key.0, &record.outer, sites),
                inner: side(key.1, &record.inner, sites),
                held: record.held,
                count: record.count,
                released: record.released,
                elsewhere: record.elsewhere,
                first: record.first,
                last: record.last,
                seen: record.seen.clone(),
                gates: record.gates.clone(),
                largest: record.large.as_ref().and_then(|large| large.get(|site| sites.id(site))),
            }
        })
        .collect();
    orders.sort_by_key(|order| (order.first, order.outer.resource, order.inner.resource));
    // A permit may have been seen elsewhere since.
    for order in &mut orders {
        for side in [&mut order.outer, &mut order.inner] {
            side.is_static |= REGISTRY.get(side.resource).is_some_and(|it| it.is_roaming());
        }
    }
    orders
}

fn side(resource: ResourceId, part: &Part, sites: &mut Sites) -> Side {
    let created: SiteId = sites.id(part.created);
    Side {
        resource,
        kind: part.kind,
        name: part.name.clone(),
        created,
        capacity: part.capacity,
        units: part.request.units,
        site: sites.id(part.request.site),
        stack: part.request.stack,
        owned: part.request.owned,
        is_static: part.is_static,
        future: part.request.future,
        poller: part.request.poller,
    }
}

/// The monitor has looked at everything: what has gone need not be kept for much longer.
pub(crate) fn looked() {
    ORDERS.retain(|key, record| {
        if REGISTRY.has(key.0) && REGISTRY.has(key.1) {
            return true;
        }
        record.gone += 1;
        let stays = record.gone < LOOKS;
        if !stays {
            KEPT.fetch_sub(1, Ordering::Relaxed);
            INSTANCES.remove_if_mut(&(key.2, key.3), |_, count| {
                *count = count.saturating_sub(1);
                *count == 0
            });
        }
        stays
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::sync::{Mutex, Semaphore};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use tokio_test::task::spawn;

    /// The orders between these resources.
    fn between(outer: ResourceId, inner: ResourceId) -> Vec<Order> {
        let orders = registry::snapshot().orders;
        let ours = |order: &Order| (order.outer.resource, order.inner.resource) == (outer, inner);
        orders.into_iter().filter(ours).collect()
    }

    fn run<F: Future>(future: F) -> F::Output {
        match spawn(future).poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it has to wait"),
        }
    }

    #[test]
    fn a_nested_acquire_is_kept_once_with_its_count() {
        let semaphore = Semaphore::new(3);
        let id = semaphore.resource().id();
        for _ in 0..5 {
            run(async {
                let _outer = semaphore.acquire_many(2).await;
                let _inner = semaphore.acquire().await;
            });
        }
        let [order] = &between(id, id)[..] else { panic!("{:?}", between(id, id)) };
        assert_eq!((order.held, order.count, order.released, order.elsewhere), (2, 5, 5, 0));
        assert_eq!((order.outer.units, order.inner.units, order.outer.capacity), (2, 1, 3));
        assert!(order.outer.site != order.inner.site && order.outer.stack != order.inner.stack);
        assert!((1..=4).contains(&order.seen.len()), "{:?}", order.seen);
    }

    #[test]
    fn what_is_tried_or_has_ended_makes_no_order() {
        let (a, b) = (Mutex::new(0), Mutex::new(0));
        let (first, second) = (a.resource().id(), b.resource().id());
        run(async {
            let outer = a.lock().await;
            let _tried = b.try_lock();
            drop(outer);
            let _alone = a.lock().await;
        });
        assert_eq!(between(first, second), []);
        assert_eq!(between(second, first), []);
    }

    #[test]
    fn a_wait_counts_once_and_whatever_becomes_of_it() {
        let (a, b) = (Semaphore::new(1), Semaphore::new(1));
        let (first, second) = (a.resource().id(), b.resource().id());
        let busy = b.try_acquire();
        let mut nested = spawn(async {
            let _outer = a.acquire().await;
            let _inner = b.acquire().await;
        });
        assert!(nested.poll().is_pending());
        assert_eq!(between(first, second)[0].count, 1);
        drop(busy);
        assert!(nested.poll().is_ready());
        let order = &between(first, second)[0];
        assert_eq!((order.count, order.released), (1, 1));
    }

    #[test]
    fn what_is_held_each_time_around_both_is_a_gate() {
        let (gate, a, b) = (Semaphore::new(2), Mutex::new(0), Mutex::new(0));
        let (first, second) = (a.resource().id(), b.resource().id());
        let nested = |gated: bool| {
            let (gate, a, b) = (&gate, &a, &b);
            run(async move {
                let _gate = if gated { Some(gate.acquire().await) } else { None };
                let _outer = a.lock().await;
                let _inner = b.lock().await;
            });
        };
        let gate_held = Gate { resource: gate.resource().id(), capacity: 2, units: 1 };
        // In a loop: a call from another line is another stack.
        for (gated, expected) in [(true, &[gate_held][..]), (true, &[gate_held]), (false, &[])] {
            nested(gated);
            assert_eq!(between(first, second)[0].gates, expected);
        }
        assert_eq!(between(first, second).len(), 1);
    }

    #[test]
    fn who_ends_an_owned_outer_hold_is_told() {
        let (a, b) = (Arc::new(Semaphore::new(4)), Semaphore::new(4));
        let (first, second) = (a.resource().id(), b.resource().id());
        // One future for each round, so that each is an actor of its own.
        let nested = || async {
            let outer = a.clone().acquire_owned().await;
            let _inner = b.acquire().await;
            outer
        };
        let mut kept = spawn(async { drop(nested().await) });
        assert!(kept.poll().is_ready());
        let Poll::Ready(moved) = spawn(nested()).poll() else { panic!("there is room") };
        let mut other = pin!(async { drop(moved) });
        assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        let orders = between(first, second);
        let sum = |count: fn(&Order) -> u64| orders.iter().map(count).sum::<u64>();
        // Outside any task, a plain call shows the thread only, which is nobody else.
        assert_eq!((sum(|o| o.count), sum(|o| o.released), sum(|o| o.elsewhere)), (2, 2, 0));
    }

    #[tokio::test]
    async fn another_task_that_ends_an_owned_outer_hold_is_not_its_own() {
        let (a, b) = (Arc::new(Semaphore::new(4)), Arc::new(Semaphore::new(4)));
        let (first, second) = (a.resource().id(), b.resource().id());
        // One line for all of them. Each waits for the one before: who ends what is certain.
        for (give, look) in [(false, false), (true, false), (true, true)] {
            let (a, b) = (a.clone(), b.clone());
            let nested = tokio::spawn(async move {
                let outer = a.acquire_owned().await.expect("open");
                drop(b.acquire().await);
                give.then_some(outer)
            });
            let given = nested.await.expect("it does not panic");
            let other = async move {
                if look {
                    given.as_ref().map(crate::sync::OwnedSemaphorePermit::num_permits);
                }
                drop(given);
            };
            tokio::spawn(other).await.expect("it does not panic");
        }
        let [order] = &between(first, second)[..] else { panic!("{:?}", between(first, second)) };
        // A task of its own each: who merely looked at what it was given counts once, too.
        assert_eq!((order.count, order.released, order.elsewhere), (3, 1, 2));
        assert_eq!(order.seen.len(), 3, "{:?}", order.seen);
    }

    #[test]
    fn resources_made_for_the_occasion_do_not_pile_up() {
        let before = ORDERS.len();
        for round in 0..10_000 {
            let (a, b) = (Mutex::new(0), Mutex::new(0));
            run(async {
                let _outer = a.lock().await;
                let _inner = b.lock().await;
            });
            if round % 1000 == 0 {
                looked();
            }
        }
        assert!(
            ORDERS.len() <= before + usize::from(LOOKS) * MAX_INSTANCES as usize,
            "{}",
            ORDERS.len()
        );
        assert!(dropped() > 0);
        for _ in 0..LOOKS {
            looked();
        }
        assert!(ORDERS.len() <= before + MAX_INSTANCES as usize, "{}", ORDERS.len());
    }
}
