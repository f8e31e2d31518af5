//! What the rules share.

use crate::balance::balance;
use crate::diagnose::Limits;
use crate::diagnose::candidates::Candidates;
use crate::diagnose::relations::Mode;
use crate::diagnose::stuck::Stuck;
use crate::finding::Finding;
use crate::path::{self, Path};
use crate::snapshot::{
    ActorId, Frame, Hold, HoldId, Kind, Moment, Resource, ResourceId, Site, Snapshot, StackId,
    Wait, WaitId,
};
use crate::words;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The snapshots under diagnosis with their indexes.
pub(crate) struct Context<'a> {
    pub(crate) now: &'a Snapshot,
    pub(crate) limits: &'a Limits,
    before: Option<&'a Snapshot>,
    queues: OnceCell<HashMap<ResourceId, &'a [Wait]>>,
    held: OnceCell<HashMap<ResourceId, &'a [Hold]>>,
    balanced: OnceCell<HashSet<ResourceId>>,
    candidates: OnceCell<Candidates<'a>>,
    stuck: OnceCell<Stuck<'a>>,
    pub(super) doubtful: OnceCell<Candidates<'a>>,
    pub(super) suspected: OnceCell<Stuck<'a>>,
    pub(super) acts: OnceCell<HashMap<ActorId, Moment>>,
    pub(super) blocking: OnceCell<HashSet<WaitId>>,
    waits_before: OnceCell<HashMap<WaitId, &'a Wait>>,
    holds_before: OnceCell<HashMap<HoldId, &'a Hold>>,
    alive: OnceCell<Option<u64>>,
    free: OnceCell<Option<u64>>,
    explained: RefCell<Explained>,
}

/// What findings so far tell the story of.
#[derive(Default)]
struct Explained {
    waits: HashSet<WaitId>,
    holds: HashSet<HoldId>,
    /// Pairs of lines that are named together.
    sites: HashSet<(Site, Site)>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: &'a Snapshot, before: Option<&'a Snapshot>, limits: &'a Limits) -> Self {
        let before = before.filter(|before| {
            before.process.pid == now.process.pid
                && before.taken < now.taken
                && now.taken.since(before.taken) >= limits.confirm
        });
        Context {
            now,
            limits,
            before,
            queues: OnceCell::new(),
            held: OnceCell::new(),
            balanced: OnceCell::new(),
            candidates: OnceCell::new(),
            stuck: OnceCell::new(),
            doubtful: OnceCell::new(),
            suspected: OnceCell::new(),
            acts: OnceCell::new(),
            blocking: OnceCell::new(),
            waits_before: OnceCell::new(),
            holds_before: OnceCell::new(),
            alive: OnceCell::new(),
            free: OnceCell::new(),
            explained: RefCell::default(),
        }
    }

    /// How many spawned tasks have not ended and are not known to wait for anything here: those who could still
    /// release what is held, or give back what was forgotten. `None`: not known.
    pub(crate) fn free_tasks(&self) -> Option<u64> {
        *self.free.get_or_init(|| {
            // What is set aside for a future that nobody polls says nothing of its task, which may have ended.
            let waits = self.now.waits.iter().filter(|w| w.granted_since.is_none());
            let tasks = waits.map(|w| w.actor).filter(|a| matches!(a, ActorId::Task(_)));
            // More who wait than are alive: there are tasks that no runtime counts.
            self.alive_tasks()?.checked_sub(tasks.collect::<HashSet<_>>().len() as u64)
        })
    }

    /// How many spawned tasks have not ended. `None`: not known.
    pub(crate) fn alive_tasks(&self) -> Option<u64> {
        *self.alive.get_or_init(|| {
            let local = |f: &Frame| f.function.contains("tokio::task::local::");
            let frames = self.now.stacks.iter().filter_map(|s| s.frames.as_deref());
            if self.now.runtimes.is_empty() || frames.flatten().any(local) {
                return None;
            }
            let alive = self.now.runtimes.iter().map(|r| r.alive_tasks);
            Some(alive.fold(0, u64::saturating_add))
        })
    }

    /// Who waits for this resource, in queue order.
    pub(crate) fn queue(&self, id: ResourceId) -> &'a [Wait] {
        let runs = || self.now.waits.chunk_by(|a, b| a.resource == b.resource);
        let queues = self.queues.get_or_init(|| runs().map(|run| (run[0].resource, run)).collect());
        queues.get(&id).copied().unwrap_or_default()
    }

    /// The holds of this resource, oldest first.
    pub(crate) fn holds(&self, id: ResourceId) -> &'a [Hold] {
        let runs = || self.now.holds.chunk_by(|a, b| a.resource == b.resource);
        let held = self.held.get_or_init(|| runs().map(|run| (run[0].resource, run)).collect());
        held.get(&id).copied().unwrap_or_default()
    }

    /// The first who lacks units: what is set aside belongs to those in front.
    pub(crate) fn first_unserved(&self, r: &Resource) -> Option<&'a Wait> {
        let mut granted = r.granted();
        self.queue(r.id).iter().find(|w| {
            let lacks = w.units > granted;
            granted = granted.saturating_sub(w.units);
            lacks
        })
    }

    /// For how long no unit has gone to anybody or come from anywhere.
    pub(crate) fn quiet(&self, r: &Resource) -> Duration {
        let newest = self.holds(r.id).iter().map(|h| h.since).max();
        let moved = r.history.moved.max(r.created_at).max(newest.unwrap_or_default());
        self.now.taken.since(moved)
    }

    /// For how long something has been so.
    pub(crate) fn age(&self, since: Moment) -> Duration {
        self.now.taken.since(since)
    }

    /// Notes what these findings explain.
    pub(crate) fn explain(&self, findings: &[Finding]) {
        let mut explained = self.explained.borrow_mut();
        for finding in findings {
            explained.waits.extend(&finding.waits);
            explained.holds.extend(&finding.holds);
            for (a, b) in
                finding.marks.iter().flat_map(|a| finding.marks.iter().map(move |b| (a, b)))
            {
                explained.sites.insert((a.site.clone(), b.site.clone()));
            }
        }
    }

    /// Keeps later rules from telling what a better explanation is under way for.
    pub(crate) fn hold_back<'w>(
        &self,
        waits: impl IntoIterator<Item = &'w Wait>,
        holds: impl IntoIterator<Item = &'w Hold>,
    ) {
        let mut explained = self.explained.borrow_mut();
        explained.waits.extend(waits.into_iter().map(|w| w.id));
        explained.holds.extend(holds.into_iter().map(|h| h.id));
    }

    /// An earlier rule tells why this wait is not served.
    pub(crate) fn is_explained(&self, wait: WaitId) -> bool {
        self.explained.borrow().waits.contains(&wait)
    }

    /// An earlier rule tells why this hold does not end.
    pub(crate) fn is_explained_hold(&self, hold: HoldId) -> bool {
        self.explained.borrow().holds.contains(&hold)
    }

    /// A finding of an earlier rule names both of these lines.
    pub(crate) fn is_told(&self, a: &Site, b: &Site) -> bool {
        self.explained.borrow().sites.contains(&(a.clone(), b.clone()))
    }

    /// Whether a wait on this resource can be judged: its books balance, and no units come from outside.
    pub(crate) fn is_judged(&self, r: &Resource) -> bool {
        self_contained(r) && self.balances(r)
    }

    /// Whether the books of a resource that somebody waits for can be relied on.
    pub(crate) fn balances(&self, r: &Resource) -> bool {
        self.balanced.get_or_init(|| balanced(self.now)).contains(&r.id)
    }

    /// What could be stuck, told without names.
    pub(crate) fn candidates(&self) -> &Candidates<'a> {
        self.candidates.get_or_init(|| Candidates::of(self, Mode::Proven))
    }

    /// What is stuck.
    pub(crate) fn stuck(&self) -> &Stuck<'a> {
        self.stuck.get_or_init(|| self.candidates().judge(self, Mode::Proven))
    }

    /// The function that waits, `` `store::save` ``, if its name is known.
    pub(crate) fn function(&self, wait: &Wait) -> Option<String> {
        self.function_of(wait.stack)
    }

    /// The function at the end of this stack, `` `store::save` ``, if its name is known.
    pub(crate) fn function_of(&self, stack: StackId) -> Option<String> {
        let frames = self.now.stack(stack)?.frames.as_deref()?;
        path::function(frames).map(|function| format!("`{function}`"))
    }

    /// Whether any function on this stack has a name.
    pub(crate) fn is_named(&self, stack: StackId) -> bool {
        let frames = self.now.stack(stack).and_then(|s| s.frames.as_deref());
        frames.is_some_and(|frames| frames.iter().any(|f| !f.function.is_empty()))
    }

    fn path(&self, stack: StackId) -> Option<Path<'a>> {
        Some(Path::new(self.now.stack(stack)?.frames.as_deref()?))
    }

    /// Whether a timeout or a `select!`, however far out, may end the wait.
    pub(crate) fn has_way_out(&self, wait: &Wait) -> bool {
        self.path(wait.stack).is_some_and(|path| path.has_way_out())
    }

    /// Who waits: the function, or the actor where its name is not known.
    pub(crate) fn who(&self, wait: &Wait) -> String {
        self.function(wait).unwrap_or_else(|| words::actor(self.now, wait.actor))
    }

    /// This very wait was seen before.
    pub(crate) fn confirmed_wait(&self, w: &Wait) -> bool {
        let Some(before) = self.before else { return false };
        let known =
            self.waits_before.get_or_init(|| before.waits.iter().map(|w| (w.id, w)).collect());
        known.get(&w.id).is_some_and(|b| (b.resource, b.units) == (w.resource, w.units))
    }

    /// This very hold was seen before.
    pub(crate) fn confirmed_hold(&self, h: &Hold) -> bool {
        let Some(before) = self.before else { return false };
        let known =
            self.holds_before.get_or_init(|| before.holds.iter().map(|h| (h.id, h)).collect());
        known
            .get(&h.id)
            .is_some_and(|b| (b.resource, b.units, b.moved_to) == (h.resource, h.units, h.moved_to))
    }

    /// The resource as it was before.
    pub(crate) fn resource_before(&self, id: ResourceId) -> Option<&'a Resource> {
        self.before?.resource(id)
    }

    /// The resource has as many units as before.
    pub(crate) fn confirmed_capacity(&self, r: &Resource) -> bool {
        let before = self.before.and_then(|before| before.resource(r.id));
        before.is_some_and(|b| b.settled && b.capacity() == r.capacity())
    }
}

/// The resources with waits whose books can be relied on.
fn balanced(snapshot: &Snapshot) -> HashSet<ResourceId> {
    let mut queues: HashMap<ResourceId, (u64, Vec<u64>)> = HashMap::new();
    for w in &snapshot.waits {
        queues.entry(w.resource).or_default().1.push(w.units);
    }
    if queues.is_empty() {
        return HashSet::new();
    }
    for run in snapshot.holds.chunk_by(|a, b| a.resource == b.resource) {
        if let Some((held, _)) = queues.get_mut(&run[0].resource) {
            *held = run.iter().fold(*held, |sum, h| sum.saturating_add(h.units));
        }
    }
    let sound = |id: ResourceId, held: u64, wanted: Vec<u64>| {
        let r = snapshot.resource(id)?;
        (r.settled && balance(r, held, wanted).is_ok()).then_some(id)
    };
    queues.into_iter().filter_map(|(id, (held, wanted))| sound(id, held, wanted)).collect()
}

/// No units come but from holds that end.
///
/// Units that were forgotten may be credits that somebody adds back later, so a resource that ever forgot any is
/// as open as one that ever got some.
fn self_contained(r: &Resource) -> bool {
    r.settled
        && !r.closed
        && r.initial > 0
        && r.added == 0
        && r.forgotten == 0
        && !r.settings.grows
        && matches!(r.kind, Kind::Semaphore | Kind::Mutex | Kind::RwLock)
}
