//! The books: every resource of the process with its holds and waits.
//!
//! State is changed in place, under one small lock a resource. Nothing here calls out (wakers, tracing,
//! callbacks) while it holds a lock, nothing panics, and every collection has a bound.

mod held;
mod history;
mod learned;
mod ledger;
mod orders;
mod queue;
mod resource;
mod rest;
mod runtimes;
mod scope;
mod seen;
mod sites;
mod statics;
mod threads;

#[cfg(test)]
pub(crate) use held::listed;
pub(crate) use ledger::{HoldKey, Request};
pub(crate) use orders::looked;
pub(crate) use queue::Key;
pub(crate) use resource::Resource;
pub use scope::{Entered, Scope};
#[cfg(feature = "server")]
pub(crate) use sites::all as sites;

use crate::{config, stack};
use dashmap::DashMap;
use holdup_core::Snapshot;
use holdup_core::diagnose::Limits;
use holdup_core::snapshot::{
    Actor, ActorId, Dropped, Hold, Moment, Process, ResourceId, StackId, Wait,
};
use sites::Sites;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Live permit objects that are recorded; further ones are counted only.
const MAX_HOLDS: i64 = 1 << 22;
/// Waiting acquires that are recorded.
const MAX_WAITS: i64 = 1 << 22;
/// Resources that are listed.
const MAX_RESOURCES: i64 = 1 << 20;
/// How many records are copied before the lock of a resource is released for a moment.
const CHUNK: usize = 1024;

/// Room for a number of records, in the whole process.
#[derive(Debug)]
struct Room {
    used: AtomicI64,
    most: i64,
    dropped: AtomicU64,
}

impl Room {
    const fn new(most: i64) -> Self {
        Room { used: AtomicI64::new(0), most, dropped: AtomicU64::new(0) }
    }

    fn take(&self) -> bool {
        // In one order with the looks of `is_used`: what is taken is seen, or whoever takes sees what followed.
        if self.used.fetch_add(1, Ordering::SeqCst) < self.most {
            return true;
        }
        self.give_back();
        self.dropped.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Counts one that needs no room.
    fn add(&self) {
        self.used.fetch_add(1, Ordering::SeqCst);
    }

    fn give_back(&self) {
        self.used.fetch_sub(1, Ordering::Relaxed);
    }

    fn give_back_many(&self, n: usize) {
        self.used.fetch_sub(i64::try_from(n).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Registry {
    resources: DashMap<ResourceId, Weak<Resource>>,
    listed: Room,
    holds: Room,
    waits: Room,
    /// Live resources to which permits were added, or of which some were forgotten.
    flowing: AtomicI64,
    /// The shortest limit that was set for the holds of any resource, in nanoseconds.
    shortest_max_hold: AtomicU64,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let _ = now();
    Registry {
        resources: DashMap::new(),
        listed: Room::new(MAX_RESOURCES),
        holds: Room::new(MAX_HOLDS),
        waits: Room::new(MAX_WAITS),
        flowing: AtomicI64::new(0),
        shortest_max_hold: AtomicU64::new(u64::MAX),
    }
});

impl Registry {
    fn add(&self, id: ResourceId, resource: &Arc<Resource>) {
        if self.listed.take() {
            self.resources.insert(id, Arc::downgrade(resource));
        }
        #[cfg(feature = "server")]
        crate::server::start_from_env();
    }

    fn remove(&self, id: ResourceId) {
        if self.resources.remove(&id).is_some() {
            self.listed.give_back();
        }
    }

    fn get(&self, id: ResourceId) -> Option<Arc<Resource>> {
        self.resources.get(&id)?.upgrade()
    }

    /// The resource has not been dropped. Does not look into it.
    fn has(&self, id: ResourceId) -> bool {
        self.resources.contains_key(&id)
    }

    /// By id. What is dropped by its user meanwhile is dropped when the caller drops the list, outside
    /// the locks of the map.
    fn all(&self) -> Vec<Arc<Resource>> {
        let mut all: Vec<Arc<Resource>> =
            self.resources.iter().filter_map(|entry| entry.upgrade()).collect();
        all.sort_unstable_by_key(|resource| resource.id());
        all
    }
}

/// A number that is used once in the process.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Monotonic time since the first use.
pub(crate) fn now() -> Moment {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    Moment(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// This process.
pub(crate) fn process() -> Process {
    let executable = std::env::current_exe().unwrap_or_default();
    Process {
        pid: std::process::id(),
        name: executable
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        executable: executable.to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug: cfg!(debug_assertions),
        stacks: config::get().capture.as_str().to_owned(),
        working_directory: std::env::current_dir()
            .map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default(),
    }
}

/// All resources with the totals of their records, by id.
#[cfg(feature = "server")]
pub(crate) fn resources() -> Vec<holdup_core::snapshot::Resource> {
    let mut sites = Sites::new();
    REGISTRY.all().iter().map(|resource| resource.summary(&mut sites).0).collect()
}

/// Whether anything is held or waited for.
pub(crate) fn is_used() -> bool {
    is_waited_for() || REGISTRY.holds.used.load(Ordering::SeqCst) > 0
}

/// Whether anybody waits.
pub(crate) fn is_waited_for() -> bool {
    REGISTRY.waits.used.load(Ordering::SeqCst) > 0
}

/// Whether there is nothing that could ever be of interest: nothing is held or waited for, and no permit was added or
/// forgotten by hand.
pub(crate) fn is_unused() -> bool {
    !is_used() && REGISTRY.flowing.load(Ordering::SeqCst) == 0
}

/// Lets go of what is kept for a diagnosis, unless there is something to diagnose.
pub(crate) fn rest() {
    if is_unused() {
        runtimes::release(|| !is_unused());
    }
}

/// When a hold becomes old enough to be of interest, or has become so; `None` if there is none. What was added or
/// forgotten is of interest at any time.
pub(crate) fn due(limits: &Limits) -> Option<Moment> {
    if is_unused() {
        return None;
    }
    REGISTRY.all().iter().filter_map(|resource| resource.due(limits)).min()
}

/// The shortest limit that was set for the holds of any resource.
pub(crate) fn shortest_max_hold() -> Duration {
    Duration::from_nanos(REGISTRY.shortest_max_hold.load(Ordering::Relaxed))
}

/// The oldest wait of the process.
pub(crate) fn oldest_wait() -> Option<Moment> {
    if !is_waited_for() {
        return None;
    }
    REGISTRY.all().iter().filter_map(|resource| resource.ledger().usage().oldest_wait).min()
}

/// Holds of one resource, oldest first, from the one behind `after`. `None`: there is no such resource.
#[cfg(any(test, feature = "server"))]
pub(crate) fn holds(
    id: ResourceId,
    after: Option<(Moment, holdup_core::snapshot::HoldId)>,
    limit: usize,
) -> Option<Vec<Hold>> {
    let resource = REGISTRY.get(id)?;
    let mut page = Vec::new();
    let mut sites = Sites::new();
    copy(&resource, ledger::Ledger::holds, |record| {
        if after.is_none_or(|after| (record.since, record.id) > after) {
            page.push(hold(id, record, &mut sites));
        }
        page.len() < limit
    });
    Some(page)
}

/// Waits of one resource in queue order, without the first `skip`. `None`: there is no such resource.
#[cfg(any(test, feature = "server"))]
pub(crate) fn waits(id: ResourceId, mut skip: usize, limit: usize) -> Option<Vec<Wait>> {
    let resource = REGISTRY.get(id)?;
    let mut page = Vec::new();
    let mut sites = Sites::new();
    copy(&resource, ledger::Ledger::waits, |record| {
        if skip > 0 {
            skip -= 1;
        } else {
            page.push(wait(id, record, &mut sites));
        }
        page.len() < limit
    });
    Some(page)
}

/// Visits the records of a queue, a chunk under each lock, until `visit` says no.
///
/// Returns the version of the books if it was the same throughout.
fn copy<T: Copy>(
    resource: &Resource,
    queue: impl Fn(&ledger::Ledger) -> &queue::Queue<T>,
    mut visit: impl FnMut(&T) -> bool,
) -> Option<u64> {
    let mut chunk: Vec<T> = Vec::new();
    let mut from = None;
    let mut version = None;
    let mut steady = true;
    loop {
        {
            let ledger = resource.ledger();
            if *version.get_or_insert(ledger.version()) != ledger.version() {
                steady = false;
                // A record that is gone cannot be gone on from: what was copied is what there is.
                if from.is_some_and(|from| queue(&ledger).get(from).is_none()) {
                    return None;
                }
            }
            let mut records = queue(&ledger).iter_from(from);
            chunk.clear();
            chunk.extend(records.by_ref().take(CHUNK).map(|(_, record)| *record));
            from = records.next().map(|(key, _)| key);
        }
        if !chunk.iter().all(&mut visit) || from.is_none() {
            return version.filter(|_| steady);
        }
    }
}

fn hold(resource: ResourceId, record: &ledger::HoldRecord, sites: &mut Sites) -> Hold {
    let request = &record.request;
    Hold {
        id: record.id,
        resource,
        units: request.units,
        actor: request.actor,
        moved_to: record.moved_to,
        scope: request.scope,
        stack: request.stack,
        site: sites.id(request.site),
        since: record.since,
        call: request.call,
        owned: request.owned,
        future: request.future,
        poller: request.poller,
        thread: request.thread,
    }
}

fn wait(resource: ResourceId, record: &ledger::WaitRecord, sites: &mut Sites) -> Wait {
    let request = &record.request;
    Wait {
        id: record.id,
        resource,
        units: request.units,
        actor: request.actor,
        scope: request.scope,
        stack: request.stack,
        site: sites.id(request.site),
        since: request.since,
        last_poll: record.last_poll,
        call: request.call,
        owned: request.owned,
        future: request.future,
        poller: record.poller,
        thread: request.thread,
        runtime: record.runtime,
        granted_since: record.granted_since,
    }
}

/// What is known of these actors besides their ids.
pub(crate) fn actors(ids: impl Iterator<Item = ActorId>) -> Vec<Actor> {
    let ids: BTreeSet<ActorId> = ids.collect();
    ids.into_iter()
        .filter_map(|id| Some(Actor { id, name: Some(crate::actor::name(id)?) }))
        .collect()
}

/// What was not recorded because a bound was reached.
pub(crate) fn dropped() -> Dropped {
    Dropped {
        stacks: stack::dropped(),
        holds: REGISTRY.holds.dropped.load(Ordering::Relaxed),
        waits: REGISTRY.waits.dropped.load(Ordering::Relaxed),
        resources: REGISTRY.listed.dropped.load(Ordering::Relaxed),
        orders: orders::dropped(),
    }
}

/// Everything that is recorded right now.
///
/// Resources are copied one after another, each under its own lock for a short time; one whose books changed
/// while it was copied is marked as not settled. Stacks have names where they have been resolved before.
pub(crate) fn snapshot() -> Snapshot {
    let taken = now();
    // Before the waits are copied: who has been polled by then is known to have been.
    let mut runtimes = runtimes::sample(taken);
    let mut sites = Sites::new();
    let mut resources = Vec::new();
    let mut holds = Vec::new();
    let mut waits = Vec::new();
    for resource in REGISTRY.all() {
        let id = resource.id();
        let (first_hold, first_wait) = (holds.len(), waits.len());
        let mut tries = 0;
        let summary = loop {
            let (mut summary, version) = resource.summary(&mut sites);
            let same = |seen: Option<u64>| seen == Some(version);
            let whole = same(copy(&resource, ledger::Ledger::waits, |record| {
                waits.push(wait(id, record, &mut sites));
                true
            })) && same(copy(&resource, ledger::Ledger::holds, |record| {
                holds.push(hold(id, record, &mut sites));
                true
            }));
            tries += 1;
            if whole || tries == 3 {
                summary.settled &= whole;
                break summary;
            }
            holds.truncate(first_hold);
            waits.truncate(first_wait);
        };
        resources.push(summary);
    }
    runtimes::count_again(&mut runtimes);
    let orders = orders::all(&mut sites);
    let sides = orders.iter().flat_map(|order| {
        let largest = order.largest.as_ref().map_or(StackId::NONE, |largest| largest.stack);
        [order.outer.stack, order.inner.stack, largest]
    });
    let histories = || resources.iter().map(|resource| &resource.history);
    let flows = || histories().flat_map(|history| &history.flows);
    let streaks = || histories().flat_map(|history| &history.streaks);
    let mut stacks: BTreeSet<StackId> = (holds.iter().map(|hold| hold.stack))
        .chain(waits.iter().map(|wait| wait.stack))
        .chain(sides)
        .collect();
    let learned = learned::of(stacks.iter().copied(), &mut sites);
    stacks.extend(learned.iter().map(|learned| learned.stack));
    stacks.extend(flows().map(|flow| flow.stack));
    stacks.extend(streaks().map(|streak| streak.stack));
    let actors = actors(
        (holds.iter().map(|hold| hold.actor))
            .chain(waits.iter().map(|wait| wait.actor))
            .chain(flows().map(|flow| flow.actor))
            .chain(streaks().map(|streak| streak.actor))
            .chain(orders.iter().flat_map(|order| order.seen.iter().map(|seen| seen.actor))),
    );
    Snapshot {
        taken,
        process: process(),
        resources,
        holds,
        waits,
        actors,
        sites: sites::all(),
        stacks: stack::known(stacks),
        learned,
        orders,
        runtimes,
        dropped: dropped(),
    }
}
