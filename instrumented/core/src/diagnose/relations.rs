//! Which holds are kept by which waits of their actor, each pair of stacks compared once.

use super::grip::{Grip, Why};
use crate::diagnose::Context;
use crate::path::{Parting, Path, Relation};
use crate::snapshot::{Call, Frame, Hold, ResourceId, Side, Stack, StackId, Wait};
use std::collections::{HashMap, HashSet};

/// Pairs of a hold and a wait that are compared in one diagnosis. What is beyond is taken as able to move.
const MAX_PAIRS: usize = 1 << 20;

/// So many permits from one line must have come back before it is known where they go.
const ENOUGH: u64 = 3;

/// A permit is out for unusually long at so many times the time of those before.
const UNUSUAL: u32 = 20;

/// What is taken as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only what cannot be otherwise.
    Proven,
    /// What is likely by what was learned, and, if `alone`, by nobody else being there who could act.
    Suspected { alone: bool },
}

pub(crate) struct Relations<'c, 'a> {
    context: &'c Context<'a>,
    mode: Mode,
    frames: HashMap<StackId, &'a [Frame]>,
    paths: HashMap<StackId, Path<'a>>,
    partings: HashMap<(StackId, StackId), Parting>,
    statics: HashSet<ResourceId>,
    optimised: bool,
    left: usize,
}

impl<'c, 'a> Relations<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'a>, mode: Mode) -> Self {
        let named = |stack: &'a Stack| Some((stack.id, stack.frames.as_deref()?));
        let statics = context.now.resources.iter().filter(|r| r.is_static).map(|r| r.id);
        Relations {
            context,
            mode,
            frames: context.now.stacks.iter().filter_map(named).collect(),
            paths: HashMap::new(),
            partings: HashMap::new(),
            statics: statics.collect(),
            optimised: !context.now.process.debug,
            left: MAX_PAIRS,
        }
    }

    fn path(&mut self, id: StackId) -> Option<&Path<'a>> {
        let frames = self.frames.get(&id)?;
        Some(self.paths.entry(id).or_insert_with(|| Path::new(frames)))
    }

    /// Whether the wait stays in the queue until it is served.
    pub(super) fn is_patient(&mut self, wait: &Wait) -> bool {
        self.path(wait.stack).is_some_and(Path::is_patient)
    }

    /// Whether the wait's actor does nothing else meanwhile.
    pub(super) fn is_plain(&mut self, wait: &Wait) -> bool {
        self.path(wait.stack).is_some_and(Path::is_plain)
    }

    /// Why this cannot end before the wait of the same actor does, if so.
    pub(super) fn keeps(&mut self, grip: Grip<'_>, wait: &Wait) -> Option<Why> {
        match grip {
            Grip::Held(hold) => self.keeps_hold(hold, wait),
            // Its task has been polled since, and did not poll it: that comes after the wait, if ever.
            Grip::Granted(_) => Some(Why::Granted),
        }
    }

    /// Whether what was granted can certainly not be polled before the wait is served.
    pub(super) fn shuts_out(&mut self, granted: &Wait, wait: &Wait) -> bool {
        let Some(parting) = self.parting(granted.stack, wait.stack) else { return false };
        let relation =
            parting.relation((granted.future, granted.poller), (wait.future, wait.poller));
        relation == Relation::Blocked && parting.is_likely() && self.is_plain(wait)
    }

    /// How what was acquired relates to what was acquired later, and whether that is certain.
    pub(crate) fn of_sides(&mut self, outer: &Side, inner: &Side) -> (Relation, bool) {
        let Some(parting) = self.parting(outer.stack, inner.stack) else {
            return (Relation::Unknown, false);
        };
        let at = |side: &Side| (side.future, side.poller);
        (parting.relation(at(outer), at(inner)), parting.firm())
    }

    /// Whether a timeout or a `select!`, however far out, may end the acquire; also if nobody can tell.
    pub(crate) fn may_give_up(&mut self, stack: StackId) -> bool {
        self.path(stack).is_none_or(Path::has_way_out)
    }

    fn parting(&mut self, hold: StackId, wait: StackId) -> Option<Parting> {
        let key = (hold, wait);
        if let Some(parting) = self.partings.get(&key) {
            return Some(*parting);
        }
        self.path(hold)?;
        self.path(wait)?;
        let parting = Parting::of(&self.paths[&hold], &self.paths[&wait], self.optimised);
        self.partings.insert(key, parting);
        Some(parting)
    }

    fn keeps_hold(&mut self, hold: &Hold, wait: &Wait) -> Option<Why> {
        self.left = self.left.checked_sub(1)?;
        let stays = !hold.owned && !self.statics.contains(&hold.resource);
        if self.mode != Mode::Proven && self.context.blocks_thread(wait) {
            return (stays || self.evidence(hold).is_some()).then_some(Why::Blocking);
        }
        let parting = self.parting(hold.stack, wait.stack)?;
        let relation = parting.relation((hold.future, hold.poller), (wait.future, wait.poller));
        if self.mode == Mode::Proven {
            return (parting.firm() && relation == Relation::Blocked).then_some(Why::Pinned);
        }
        match relation {
            Relation::Blocked if hold.call == Call::Receive => {
                let why =
                    if self.was_received(hold) { Some(Why::Receiver) } else { self.alone(hold) };
                why.filter(|_| parting.is_likely())
            }
            Relation::Blocked if parting.is_inside() => {
                (stays || self.evidence(hold).is_some()).then_some(Why::Inside)
            }
            Relation::Blocked if stays && parting.is_likely() => Some(Why::Pinned),
            Relation::Blocked if parting.is_likely() => self.evidence(hold),
            // A loop takes one more each time round: they pile up, unless somebody beside it takes them over.
            Relation::Repeated if stays && self.is_plain(wait) => self.evidence(hold),
            _ => None,
        }
    }

    /// Who made a channel may have given the receiver to a task that has not come to receive yet.
    fn was_received(&self, unread: &Hold) -> bool {
        let channel = self.context.now.resource(unread.resource);
        channel.is_some_and(|r| r.created != unread.site)
    }

    /// What speaks for the permit being where it was acquired.
    fn evidence(&self, hold: &Hold) -> Option<Why> {
        let learned = self.context.now.learned(hold.stack);
        if learned.is_some_and(|l| l.released >= ENOUGH && l.elsewhere == 0) {
            return Some(Why::Learned);
        }
        self.alone(hold)
    }

    /// Nobody else is there who could have it. The permits before this one may have been given away, but to whom
    /// should this be given?
    fn alone(&self, hold: &Hold) -> Option<Why> {
        let learned = self.context.now.learned(hold.stack);
        let usual = learned.filter(|l| l.released > 0).map(|l| l.usual.saturating_mul(UNUSUAL));
        let unusual = usual.is_none_or(|usual| self.context.age(hold.since) >= usual);
        (self.mode == Mode::Suspected { alone: true } && unusual).then_some(Why::Alone)
    }
}
