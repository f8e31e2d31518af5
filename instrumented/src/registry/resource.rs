//! One instrumented primitive: tokio's own, with its books.

mod channel;

use super::held::{self, Entry};
use super::history::Caller;
use super::ledger::{HoldKey, HoldRecord, Ledger, Request};
use super::queue::Key;
use super::seen::Large;
use super::{REGISTRY, learned, next_id, now, orders, runtimes, scope, statics};
use crate::{actor, config, monitor, stack};
use holdup_core::balance::balance;
use holdup_core::diagnose::Limits;
use holdup_core::snapshot::{
    self, ActorId, Call, HoldId, Kind, Moment, ResourceId, ScopeId, Settings, WaitId,
};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Context;

/// What the user said of a resource.
#[derive(Clone, Debug, Default)]
struct Said {
    name: Option<Arc<str>>,
    settings: Settings,
}

/// One instrumented primitive. The user's value holds it; the registry knows it weakly.
#[derive(Debug)]
pub(crate) struct Resource {
    id: ResourceId,
    kind: Kind,
    created: &'static Location<'static>,
    created_at: Moment,
    scope: ScopeId,
    /// Nothing is recorded if this is false.
    on: bool,
    /// What it is made of; without any permits for a channel, which has its own.
    pub(crate) semaphore: tokio::sync::Semaphore,
    said: Mutex<Said>,
    ledger: Mutex<Ledger>,
    /// Where the user's value was when somebody last borrowed a permit from it.
    address: AtomicU64,
    /// A borrowed permit of it can be anywhere, or was seen to be.
    roaming: AtomicBool,
    /// Units were added or forgotten by hand.
    flowing: AtomicBool,
    /// Since it was seen to be nested in itself.
    large: OnceLock<Arc<Large>>,
}

impl Resource {
    /// Registers a resource that was created at `created`.
    pub(crate) fn register(
        kind: Kind,
        initial: u64,
        semaphore: tokio::sync::Semaphore,
        created: &'static Location<'static>,
    ) -> Arc<Resource> {
        Resource::new(kind, initial, semaphore, created).listed()
    }

    fn new(
        kind: Kind,
        initial: u64,
        semaphore: tokio::sync::Semaphore,
        created: &'static Location<'static>,
    ) -> Resource {
        Resource {
            id: ResourceId(next_id()),
            kind,
            created,
            created_at: now(),
            scope: scope::current(),
            on: config::get().on,
            semaphore,
            said: Mutex::default(),
            ledger: Mutex::new(Ledger::new(initial)),
            address: AtomicU64::new(0),
            roaming: AtomicBool::new(false),
            flowing: AtomicBool::new(false),
            large: OnceLock::new(),
        }
    }

    fn listed(self) -> Arc<Resource> {
        let resource = Arc::new(self);
        if resource.on {
            runtimes::current(None);
            REGISTRY.add(resource.id, &resource);
        }
        resource
    }

    pub(crate) fn id(&self) -> ResourceId {
        self.id
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn name(&self) -> Option<Arc<str>> {
        self.said().name.clone()
    }

    pub(super) fn created(&self) -> &'static Location<'static> {
        self.created
    }

    /// Where the largest requests are noted, once it has been seen to be nested in itself: `nested` says that it is.
    pub(super) fn large(&self, nested: bool) -> Option<Arc<Large>> {
        let known =
            if nested { Some(self.large.get_or_init(Arc::default)) } else { self.large.get() };
        known.cloned()
    }

    pub(super) fn capacity(&self) -> u64 {
        let ledger = self.ledger();
        ledger
            .initial()
            .saturating_add(ledger.total_added())
            .saturating_sub(ledger.total_forgotten())
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // The ledger never panics half-way; if it ever did, wrong books are better than a second panic.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_name(&self, name: Arc<str>) {
        self.said().name = Some(name);
    }

    pub(crate) fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        let mut said = self.said();
        change(&mut said.settings);
        if let Some(limit) = said.settings.max_hold {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            REGISTRY.shortest_max_hold.fetch_min(nanos, Ordering::Relaxed);
        }
    }

    /// Notes where the user's value is now, which decides whether it is a `static`.
    pub(crate) fn borrowed_at(&self, address: *const ()) {
        self.address.store(address.addr() as u64, Ordering::Relaxed);
    }

    /// Describes a request at its first poll (or its call, where there is no poll).
    ///
    /// `future` is an address that stays the same for as long as the request is being polled.
    pub(crate) fn request(
        &self,
        units: u64,
        call: Call,
        owned: bool,
        site: &'static Location<'static>,
        poll: Option<(&Context<'_>, *const ())>,
    ) -> Option<Request> {
        if !self.on {
            return None;
        }
        let cx = poll.map(|(cx, _)| cx);
        Some(Request {
            units,
            actor: actor::current(cx),
            scope: scope::current(),
            stack: stack::capture(),
            site,
            since: now(),
            call,
            owned,
            future: poll.map_or(0, |(_, future)| future.addr() as u64),
            poller: cx.map_or(0, actor::poller),
            thread: actor::thread(),
        })
    }

    /// The request has to wait.
    pub(crate) fn wait(&self, request: &Request) -> Option<Key> {
        if !REGISTRY.waits.take() {
            return None;
        }
        let runtime = runtimes::current(Some(request.actor));
        self.note_order(request);
        // Its first poll is over: by now it is in the queue for certain.
        let now = now();
        let mut ledger = self.ledger();
        let key = ledger.wait(WaitId(next_id()), *request, runtime);
        if let Some(key) = key {
            ledger.polled(key, now, request.poller);
        }
        drop(ledger);
        monitor::wake();
        key
    }

    /// The waiting request was polled again, and waits on.
    pub(crate) fn polled(&self, wait: Key, cx: &Context<'_>) {
        let (now, poller) = (now(), actor::poller(cx));
        self.ledger().polled(wait, now, poller);
    }

    /// The waiting request ended without a permit.
    pub(crate) fn gave_up(&self, wait: Key) {
        let now = now();
        let mut ledger = self.ledger();
        let closed = ledger.is_closed() || self.semaphore.is_closed();
        ledger.gave_up(wait, now, closed);
        drop(ledger);
        REGISTRY.waits.give_back();
    }

    /// The request was served.
    pub(crate) fn acquired(&self, request: Option<&Request>, waited: Option<Key>) -> HoldKey {
        let Some(request) = request else { return HoldKey::None };
        if waited.is_some() {
            REGISTRY.waits.give_back();
        }
        let room = REGISTRY.holds.take();
        runtimes::note(request.actor);
        monitor::stir();
        // Who had to wait was noted then.
        if request.call != Call::Try && waited.is_none() {
            self.note_order(request);
        }
        let mut ledger = self.ledger();
        // Numbered and timed under the lock, so that the records are in order by both.
        let id = room.then(|| HoldId(next_id()));
        let key = ledger.acquired(id, *request, waited, now());
        drop(ledger);
        if let (Some(id), HoldKey::At(_)) = (id, key) {
            held::add(Entry::new(id, self.id, request));
        }
        learned::acquired(request.stack, request.site);
        key
    }

    fn note_order(&self, request: &Request) {
        if orders::note(self, request) {
            monitor::news();
        }
    }

    /// A hold has ended, or was seen elsewhere: it is its acquirer's no more.
    fn left(&self, hold: &HoldRecord, elsewhere: bool) {
        let Some(entry) = held::remove(hold.request.actor, hold.id) else { return };
        if entry.orders().fold(false, |certain, order| orders::ended(order, elsewhere) | certain) {
            monitor::news();
        }
    }

    /// A permit was given back.
    pub(crate) fn released(&self, hold: HoldKey, units: u64) {
        if hold == HoldKey::None {
            return;
        }
        let now = now();
        let record = self.ledger().released(hold, units, now);
        if hold != HoldKey::Unrecorded {
            REGISTRY.holds.give_back();
        }
        let Some(record) = record else { return };
        let elsewhere = super::ledger::elsewhere(record.request.actor, actor::current(None));
        if elsewhere {
            self.roaming.store(true, Ordering::Relaxed);
        }
        self.left(&record, elsewhere);
        // That it was elsewhere may have been seen before.
        let elsewhere = elsewhere && record.moved_to.is_none();
        let nanos = now.0.saturating_sub(record.since.0);
        let telling = learned::released(record.request.stack, self.id, nanos, elsewhere);
        if telling && self.kind == Kind::Semaphore {
            monitor::news();
        }
    }

    /// A permit was forgotten at `site`.
    pub(crate) fn forgotten(&self, hold: HoldKey, units: u64, site: &'static Location<'static>) {
        if hold == HoldKey::None {
            return;
        }
        let by = self.caller(site);
        let record = self.ledger().forgotten(hold, units, by);
        if let Some(record) = record {
            self.left(&record, false);
            learned::forgotten(record.request.stack);
        }
        if hold != HoldKey::Unrecorded {
            REGISTRY.holds.give_back();
        }
    }

    /// The permit `from` became part of `into`.
    pub(crate) fn merged(&self, into: HoldKey, from: HoldKey, units: u64) {
        let (gone, grown) = {
            let mut ledger = self.ledger();
            (ledger.merged(into, from, units), ledger.hold(into))
        };
        if let Some(gone) = gone {
            held::remove(gone.request.actor, gone.id);
        }
        if let Some(grown) = grown {
            held::resize(grown.request.actor, grown.id, grown.request.units);
        }
        if matches!(from, HoldKey::At(_)) {
            REGISTRY.holds.give_back();
        }
    }

    /// `units` of a permit became a permit of their own.
    pub(crate) fn split(&self, from: HoldKey, units: u64) -> HoldKey {
        if from == HoldKey::None {
            return from;
        }
        let id = REGISTRY.holds.take().then(|| HoldId(next_id()));
        let (part, rest, new) = {
            let mut ledger = self.ledger();
            let part = ledger.split(from, units, id);
            (part, ledger.hold(from), ledger.hold(part))
        };
        if let Some(rest) = rest {
            held::resize(rest.request.actor, rest.id, rest.request.units);
        }
        if let Some(new) = new.filter(|new| new.moved_to.is_none()) {
            held::add(Entry::new(new.id, self.id, &new.request));
            learned::acquired(new.request.stack, new.request.site);
        }
        part
    }

    /// `units` of a permit were given back, and the rest is kept.
    pub(crate) fn reduced(&self, hold: HoldKey, units: u64) {
        let now = now();
        let rest = {
            let mut ledger = self.ledger();
            ledger.reduced(hold, units, now);
            ledger.hold(hold)
        };
        if let Some(rest) = rest {
            held::resize(rest.request.actor, rest.id, rest.request.units);
        }
    }

    /// A permit was looked at or changed: whoever does that has it.
    pub(crate) fn used(&self, hold: HoldKey) {
        if hold == HoldKey::None {
            return;
        }
        let user: ActorId = actor::current(None);
        let moved = {
            let mut ledger = self.ledger();
            let before = ledger.hold(hold);
            ledger.used(hold, user).then_some(before).flatten()
        };
        if let Some(moved) = moved {
            self.roaming.store(true, Ordering::Relaxed);
            if moved.moved_to.is_none() {
                self.left(&moved, true);
                learned::moved(moved.request.stack);
            }
        }
    }

    /// Units came from outside, at `site`.
    pub(crate) fn added(&self, units: u64, site: &'static Location<'static>) {
        if self.on && units > 0 {
            let by = self.caller(site);
            self.ledger().added(units, by);
        }
    }

    /// Free units were taken away for good, at `site`.
    pub(crate) fn withdrawn(&self, units: u64, site: &'static Location<'static>) {
        if self.on && units > 0 {
            let by = self.caller(site);
            self.ledger().withdrawn(units, by);
        }
    }

    /// Who calls now, to change the number of units. Walks the stack, so not under the lock.
    fn caller(&self, site: &'static Location<'static>) -> Caller {
        if !self.flowing.load(Ordering::Relaxed) && !self.flowing.swap(true, Ordering::Relaxed) {
            REGISTRY.flowing.fetch_add(1, Ordering::SeqCst);
            monitor::stir();
        }
        Caller { actor: actor::current(None), stack: stack::capture(), site, at: now() }
    }

    pub(crate) fn rejected(&self) {
        if self.on {
            self.ledger().rejected();
        }
    }

    /// When its oldest hold becomes old enough to be of interest, or became so.
    pub(super) fn due(&self, limits: &Limits) -> Option<Moment> {
        let settings = self.said().settings;
        let ledger = self.ledger();
        let by_hand = (ledger.total_added() > 0 && !settings.grows) || ledger.total_forgotten() > 0;
        let oldest = ledger.usage().oldest_hold;
        drop(ledger);
        if by_hand {
            return Some(Moment(0));
        }
        let usual = (!settings.long_held).then(|| limits.orphan_grace.min(limits.overdue));
        let limit = usual.into_iter().chain(settings.max_hold).min()?;
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        // A channel's unread messages wait for whoever receives, not the other way round.
        let oldest = oldest.filter(|_| self.kind != Kind::Channel)?;
        Some(Moment(oldest.0.saturating_add(limit)))
    }

    pub(super) fn is_roaming(&self) -> bool {
        if self.roaming.load(Ordering::Relaxed) {
            return true;
        }
        let address = self.address.load(Ordering::Relaxed);
        let found = address != 0 && statics::contains(address);
        if found {
            self.roaming.store(true, Ordering::Relaxed);
        }
        found
    }

    /// The resource as a snapshot shows it, with the version of the books it was taken from.
    pub(super) fn summary(&self, sites: &mut super::sites::Sites) -> (snapshot::Resource, u64) {
        let said = self.said().clone();
        let roaming = self.is_roaming();
        let created = sites.id(self.created);
        let mut tries = 0;
        loop {
            let mut ledger = self.ledger();
            let mut resource = snapshot::Resource {
                id: self.id,
                kind: self.kind,
                name: said.name.clone(),
                created,
                created_at: self.created_at,
                scope: self.scope,
                is_static: roaming,
                initial: ledger.initial(),
                added: ledger.total_added(),
                forgotten: ledger.total_forgotten(),
                available: ledger
                    .free()
                    .unwrap_or_else(|| self.semaphore.available_permits() as u64),
                closed: ledger.is_closed() || self.semaphore.is_closed(),
                settled: false,
                usage: ledger.usage(),
                counters: ledger.counters(),
                settings: said.settings,
                history: snapshot::History::default(),
            };
            let wanted = ledger.waits().iter().map(|wait| wait.request.units);
            let granted = balance(&resource, ledger.recorded_units(), wanted);
            resource.settled = granted.is_ok();
            if self.kind == Kind::Channel && REGISTRY.waits.dropped.load(Ordering::Relaxed) > 0 {
                // What is free of a channel is known only where all its waits are.
                resource.settled = false;
                return (resource, ledger.version());
            }
            if let Ok(granted) = granted {
                ledger.granted(granted, now());
            }
            tries += 1;
            if !resource.settled && tries < 4 {
                // A record is on its way: leave the lock to the thread that brings it.
                drop(ledger);
                std::thread::yield_now();
                continue;
            }
            let version = ledger.version();
            let (history, moved) = (ledger.history().clone(), ledger.moved());
            drop(ledger);
            resource.history = history.copy(moved, sites);
            return (resource, version);
        }
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        if self.on {
            let ledger = self.ledger.get_mut().unwrap_or_else(PoisonError::into_inner);
            // Permits that were leaked with `mem::forget` are still counted, and listed.
            for hold in ledger.holds().iter() {
                held::remove(hold.request.actor, hold.id);
            }
            REGISTRY.holds.give_back_many(ledger.holds().len());
            REGISTRY.waits.give_back_many(ledger.waits().len());
            if *self.flowing.get_mut() {
                REGISTRY.flowing.fetch_sub(1, Ordering::SeqCst);
            }
            REGISTRY.remove(self.id);
        }
    }
}
