//! Waits and what they keep from each other: the story that is told of a deadlock or a futurelock.

mod fix;
mod marks;
mod ring;
mod title;

use super::identity;
use crate::diagnose::{Context, Core, Grip, Stuck, Why};
use crate::finding::{Code, Finding, Verdict};
use crate::snapshot::{ActorId, Call, Hold, Kind, Moment, Resource, ResourceId, Snapshot, Wait};
use crate::words::{self, count};
pub(super) use marks::set_aside;
use std::collections::HashSet;
use std::time::Duration;

/// Parties of one finding that are shown with their lines; the others are counted.
const SHOWN: usize = 4;

/// One knot.
pub(super) struct Case<'c, 'a> {
    context: &'c Context<'a>,
    stuck: &'c Stuck<'a>,
    core: &'c Core,
    waits: Vec<&'a Wait>,
    grips: Vec<Grip<'a>>,
    /// Each once, the surest first.
    why: Vec<Why>,
    /// Each once, in the order in which they began to wait.
    actors: Vec<ActorId>,
    resources: Vec<ResourceId>,
}

impl<'c, 'a> Case<'c, 'a> {
    pub(super) fn new(context: &'c Context<'a>, stuck: &'c Stuck<'a>, core: &'c Core) -> Self {
        let mut waits: Vec<&Wait> = core.waits.iter().map(|at| stuck.waits[*at].wait).collect();
        let mut grips: Vec<Grip<'_>> = core.holds.iter().map(|at| stuck.holds[*at].grip).collect();
        waits.sort_by_key(|w| (w.since, w.id));
        grips.sort_by_key(|g| (g.since(), g.id()));
        let mut why: Vec<Why> = core.holds.iter().map(|at| stuck.holds[*at].why).collect();
        why.sort_unstable();
        why.dedup();
        let actors = unique(waits.iter().map(|w| w.actor));
        let resources =
            unique(grips.iter().map(|g| g.resource()).chain(waits.iter().map(|w| w.resource)));
        Case { context, stuck, core, waits, grips, why, actors, resources }
    }

    /// The same holds and waits were there before, so all of them were there at once.
    pub(super) fn confirmed(&self) -> bool {
        let capacity = |id: &ResourceId| {
            let resource = self.snapshot().resource(*id);
            resource.is_some_and(|r| self.context.confirmed_capacity(r))
        };
        let grip = |grip: &Grip<'_>| match grip {
            Grip::Held(hold) => self.context.confirmed_hold(hold),
            Grip::Granted(wait) => self.context.confirmed_wait(wait),
        };
        self.waits.iter().all(|w| self.context.confirmed_wait(w))
            && self.grips.iter().all(grip)
            && self.resources.iter().all(capacity)
    }

    /// Several actors that give up after a while and try again get on, if slowly. One that waits for itself never
    /// gets what it waits for, timeout or not.
    pub(super) fn is_protocol(&self) -> bool {
        self.actors.len() > 1 && self.has_way_out()
    }

    /// Everything has stood still for long enough to be suspected: twice as long where nothing but the absence of
    /// others speaks for it.
    pub(super) fn is_stalled(&self) -> bool {
        let stall = self.context.limits.stall;
        let doubled = self.why.contains(&Why::Alone);
        self.is_still(if doubled { stall.saturating_mul(2) } else { stall })
    }

    /// It will be told unless something moves soon.
    pub(super) fn is_brewing(&self) -> bool {
        !self.is_stalled() && self.is_still(self.context.limits.stall)
    }

    /// Nothing else is told of it meanwhile.
    pub(super) fn hold_back(&self) {
        let behind = self.core.behind.iter().map(|at| self.stuck.waits[*at].wait);
        self.context.hold_back(self.waits.iter().copied().chain(behind), self.holds());
    }

    fn is_still(&self, needed: Duration) -> bool {
        self.youngest() >= needed && self.resources().all(|r| self.context.quiet(r) >= needed)
    }

    /// For how long all of them have been waiting.
    fn youngest(&self) -> Duration {
        let since = self.waits.iter().map(|w| w.since).max();
        since.map_or(Duration::ZERO, |since| self.context.age(since))
    }

    /// Some of it is with futures that are not polled any more.
    pub(super) fn is_futurelock(&self) -> bool {
        self.why.contains(&Why::Granted) || self.why.contains(&Why::Inside)
    }

    /// An earlier rule tells of it.
    pub(super) fn is_explained(&self) -> bool {
        self.waits.iter().any(|w| self.context.is_explained(w.id))
    }

    /// One actor waits in one place for what it keeps from itself there: what was given to its own futures, and
    /// these are behind the wait.
    pub(super) fn is_certain(&self) -> bool {
        let [wait] = self.waits[..] else { return false };
        let shut = |grip: &Grip<'_>| match grip {
            Grip::Granted(granted) => self.context.shuts_out(granted, wait),
            Grip::Held(hold) => {
                hold.actor == wait.actor && self.context.is_kept_for_certain(hold, wait)
            }
        };
        self.resources.len() == 1 && self.grips.iter().all(shut)
    }

    fn has_way_out(&self) -> bool {
        self.waits.iter().any(|w| self.context.has_way_out(w))
    }

    fn snapshot(&self) -> &'a Snapshot {
        self.context.now
    }

    fn resources(&self) -> impl Iterator<Item = &'a Resource> {
        self.resources.iter().filter_map(|id| self.snapshot().resource(*id))
    }

    /// The only resource, where one actor waits for what it has of it.
    fn own(&self) -> Option<&'a Resource> {
        match (&self.actors[..], &self.resources[..]) {
            ([actor], [resource]) if self.grips.iter().all(|g| g.actor() == *actor) => {
                self.snapshot().resource(*resource)
            }
            _ => None,
        }
    }

    pub(super) fn finding(&self, code: Code, verdict: Verdict) -> Option<Finding> {
        let ids: Vec<_> = self.waits.iter().map(|w| w.id).collect();
        let parties = if self.own().is_some() { Vec::new() } else { self.parties() };
        let marks = match self.own() {
            Some(resource) => self.own_marks(resource),
            None => self.ring_marks(&parties),
        };
        let mut notes: Vec<String> =
            self.resources().take(SHOWN).map(|r| words::books(self.snapshot(), r)).collect();
        let shown: HashSet<ActorId> = parties.iter().map(|party| party.wait.actor).collect();
        let more = self.actors.iter().filter(|actor| !shown.contains(actor)).count();
        if !parties.is_empty() && more > 0 {
            notes.push(format!("{} more in the same knot", count(more as u64, "task")));
        }
        if verdict != Verdict::Proven {
            notes.extend(self.evidence());
        }
        if self.has_way_out() {
            notes.push(
                "a timeout or a `select!` further out may end this wait, and not its cause"
                    .to_owned(),
            );
        }
        let behind: Vec<&Wait> =
            self.core.behind.iter().map(|at| self.stuck.waits[*at].wait).collect();
        notes.extend(words::behind(self.snapshot(), &behind));
        let granted = self.grips.iter().filter_map(|grip| match grip {
            Grip::Granted(wait) => Some(wait.id),
            Grip::Held(_) => None,
        });
        Some(Finding {
            id: identity(code, &ids),
            code,
            verdict,
            title: self.title(&parties),
            marks,
            notes,
            help: self.help(&parties),
            since: self.waits.iter().map(|w| w.since).max().unwrap_or(Moment(0)),
            resources: self.resources.clone(),
            actors: unique(self.actors.iter().copied().chain(self.grips.iter().map(|g| g.actor()))),
            holds: self.holds().map(|h| h.id).collect(),
            waits: ids.iter().copied().chain(granted).collect(),
        })
    }

    /// The messages of a channel that nobody has received from: they are with whoever made it.
    fn is_unbegun(&self, grip: Grip<'_>) -> bool {
        let created = self.snapshot().resource(grip.resource()).map(|r| r.created);
        let unread = grip.hold().is_some_and(|hold| hold.call == Call::Receive);
        unread && created == Some(grip.site())
    }

    fn holds(&self) -> impl Iterator<Item = &'a Hold> {
        self.grips.iter().filter_map(|grip| grip.hold())
    }

    /// What makes it likely, where it is not certain.
    fn evidence(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let quiet = self.resources().map(|r| self.context.quiet(r)).min().unwrap_or_default();
        for why in &self.why {
            match why {
                Why::Pinned | Why::Granted => {}
                Why::Inside => notes.extend(self.suspended()),
                Why::Receiver => notes.push(
                    "nobody else has received from the channel since; messages that nobody reads take up its room"
                        .to_owned(),
                ),
                Why::Blocking => notes.push(
                    "the wait is in a `block_on` within a task: until it ends, its thread runs no other task"
                        .to_owned(),
                ),
                Why::Learned => notes.extend(self.learned()),
                Why::Alone => {
                    let what = match self.grips.iter().any(|g| self.is_unbegun(*g)) {
                        true => "that could receive, unless the receiver",
                        false => "that could have it, unless it",
                    };
                    notes.push(format!(
                        "no other task is left {what} was moved to a thread or into `spawn_blocking`"
                    ));
                    notes.extend(self.learned());
                }
            }
        }
        if !self.why.contains(&Why::Granted) {
            notes.push(format!(
                "nothing has moved here for {}",
                crate::text::age(quiet.min(self.youngest()))
            ));
        }
        notes.retain({
            let mut seen = HashSet::new();
            move |note| seen.insert(note.clone())
        });
        notes
    }

    /// Which futures are not polled, and why that keeps what they took.
    fn suspended(&self) -> Vec<String> {
        let inside = self.core.holds.iter().map(|at| &self.stuck.holds[*at]);
        let inside = inside.filter(|h| h.why == Why::Inside).map(|h| h.grip);
        let note = |grip: Grip<'_>| {
            let site = self.snapshot().site(grip.site())?;
            let name = self.context.function_of(grip.stack());
            let future = name
                .map_or_else(|| "the future".to_owned(), |name| format!("the future of {name}"));
            let actor = words::actor(self.snapshot(), grip.actor());
            Some(format!(
                "{future}, which took it at {site}, is not polled while {actor} waits, and so cannot release it"
            ))
        };
        let mut seen = HashSet::new();
        inside.filter(|g| seen.insert(g.site())).take(SHOWN).filter_map(note).collect()
    }

    /// What became of earlier permits from the same lines.
    fn learned(&self) -> Vec<String> {
        let doubtful = self.core.holds.iter().map(|at| &self.stuck.holds[*at]);
        let doubtful = doubtful.filter(|h| matches!(h.why, Why::Learned | Why::Alone));
        let note = |grip: Grip<'_>| {
            let learned = self.snapshot().learned(grip.stack()).filter(|l| l.released > 0)?;
            let site = self.snapshot().site(grip.site())?;
            let permits = match self.snapshot().resource(grip.resource()).map(|r| r.kind) {
                Some(Kind::Mutex | Kind::RwLock) => "guard",
                _ => "permit",
            };
            let earlier = count(learned.released, &format!("earlier {permits}"));
            let usual = crate::text::age(learned.usual);
            Some(match learned.elsewhere {
                0 => format!(
                    "{earlier} from {site} came back within {usual}, released by whoever had taken them"
                ),
                n => format!(
                    "{earlier} from {site} came back within {usual}, {n} of them released by others"
                ),
            })
        };
        let grips: Vec<Grip<'_>> = doubtful.map(|h| h.grip).collect();
        let mut seen = HashSet::new();
        grips.into_iter().filter(|g| seen.insert(g.site())).take(SHOWN).filter_map(note).collect()
    }
}

fn total(grips: &[Grip<'_>]) -> u64 {
    grips.iter().fold(0, |sum, g| sum.saturating_add(g.units()))
}

/// Each once, in the order of the first.
fn unique<T: Clone + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}
