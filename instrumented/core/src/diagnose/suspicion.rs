//! What is likely, as far as the whole snapshot tells: who is left to act, who was woken, whose thread is blocked.

use super::candidates::Candidates;
use super::context::Context;
use super::grip::Grip;
use super::relations::{Mode, Relations};
use super::stuck::Stuck;
use crate::path;
use crate::snapshot::{
    ActorId, Call, Flavor, Frame, Hold, Kind, Moment, Resource, Runtime, Wait, WaitId,
};
use std::collections::{HashMap, HashSet};

impl<'a> Context<'a> {
    /// What could be stuck if what is likely were so, told without names.
    pub(crate) fn doubtful(&self) -> &Candidates<'a> {
        let mode = Mode::Suspected { alone: true };
        self.doubtful.get_or_init(|| Candidates::of(self, mode))
    }

    /// What is stuck if what is likely is so. Contains what is stuck for certain.
    pub(crate) fn suspected(&self) -> &Stuck<'a> {
        self.suspected.get_or_init(|| {
            if self.alive_tasks().is_some() {
                let stuck = self.doubtful().judge(self, Mode::Suspected { alone: true });
                if self.nobody_else(&stuck) {
                    return stuck;
                }
            }
            self.doubtful().judge(self, Mode::Suspected { alone: false })
        })
    }

    /// Whether everybody is among those that are stuck, and does nothing else meanwhile: then nobody has what they
    /// are not known to have. Jobs on threads for blocking work are in nobody's count.
    fn nobody_else(&self, stuck: &Stuck<'_>) -> bool {
        let left: HashSet<WaitId> = stuck.waits.iter().map(|stuck| stuck.wait.id).collect();
        let mut relations = Relations::new(self, Mode::Suspected { alone: true });
        let mut tasks = HashSet::new();
        for wait in self.now.waits.iter().filter(|w| !self.is_shelved(w)) {
            if !left.contains(&wait.id) || !relations.is_plain(wait) {
                return false;
            }
            if matches!(wait.actor, ActorId::Task(_)) {
                tasks.insert(wait.actor);
            }
        }
        self.alive_tasks() == Some(tasks.len() as u64)
    }

    /// Whether what was set aside for one can certainly not be polled before the other of the same actor is served.
    pub(crate) fn shuts_out(&self, granted: &Wait, wait: &Wait) -> bool {
        granted.actor == wait.actor && Relations::new(self, Mode::Proven).shuts_out(granted, wait)
    }

    /// Whether a hold is certainly kept by a wait of its actor.
    pub(crate) fn is_kept_for_certain(&self, hold: &Hold, wait: &Wait) -> bool {
        let is_static = self.now.resource(hold.resource).is_none_or(|r| r.is_static);
        let stays = !hold.owned && !is_static && hold.call != Call::Receive;
        stays && Relations::new(self, Mode::Proven).keeps(Grip::Held(hold), wait).is_some()
    }

    /// A bounded channel whose books can be relied on. Whoever received last is the only one known to receive.
    pub(crate) fn is_channel(&self, r: &Resource) -> bool {
        let open = r.settled && !r.closed && r.initial > 0 && r.added == 0 && r.forgotten == 0;
        r.kind == Kind::Channel && open && !r.settings.grows && self.balances(r)
    }

    /// All that this acquire wants has been set aside for it for some time, and its actor has gone on since without
    /// polling it.
    pub(crate) fn is_shelved(&self, wait: &Wait) -> bool {
        let Some(granted) = wait.granted_since else { return false };
        let age = self.age(granted);
        if age < self.limits.futurelock {
            return false;
        }
        if let Some(runtime) = self.now.runtime(wait.runtime)
            && self.is_scheduled(wait, runtime)
        {
            return runtime.rested > granted;
        }
        // Nobody counts when this one is polled; what else it does tells.
        age >= self.limits.stall && self.last_act(wait.actor) > granted
    }

    fn is_scheduled(&self, wait: &Wait, runtime: &Runtime) -> bool {
        let current_thread = runtime.flavor == Flavor::CurrentThread;
        match self.frames(wait) {
            Some(frames) => path::is_scheduled(frames, current_thread),
            // To be looked at with names.
            None => current_thread || matches!(wait.actor, ActorId::Task(_)),
        }
    }

    fn frames(&self, wait: &Wait) -> Option<&'a [Frame]> {
        self.now.stack(wait.stack).and_then(|stack| stack.frames.as_deref())
    }

    /// When this actor last began to wait, was polled there, or was served.
    fn last_act(&self, actor: ActorId) -> Moment {
        let acts = self.acts.get_or_init(|| {
            let mut acts: HashMap<ActorId, Moment> = HashMap::new();
            let waits = self.now.waits.iter().map(|w| (w.actor, w.since.max(w.last_poll)));
            for (actor, at) in waits.chain(self.now.holds.iter().map(|h| (h.actor, h.since))) {
                let last = acts.entry(actor).or_default();
                *last = at.max(*last);
            }
            acts
        });
        acts.get(&actor).copied().unwrap_or_default()
    }

    /// Whether a wait could be what blocks a thread of its runtime, told without names: no thread has been idle
    /// since it began.
    pub(crate) fn may_block(&self, wait: &Wait) -> bool {
        let runtime = self.now.runtime(wait.runtime);
        wait.call != Call::Try
            && self.age(wait.since) >= self.limits.stall
            && runtime.is_some_and(|r| r.flavor != Flavor::Unknown && r.rested <= wait.since)
    }

    /// Whether a wait blocks a thread that should run tasks.
    pub(crate) fn blocks_thread(&self, wait: &Wait) -> bool {
        let blocking = self.blocking.get_or_init(|| {
            let blocks =
                |w: &&Wait| self.may_block(w) && self.frames(w).is_some_and(path::blocks_executor);
            self.now.waits.iter().filter(blocks).map(|w| w.id).collect()
        });
        blocking.contains(&wait.id)
    }
}
