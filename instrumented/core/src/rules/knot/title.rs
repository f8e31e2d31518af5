//! The cause of a knot in one sentence.

use super::ring::Party;
use super::{Case, total, unique};
use crate::diagnose::{Grip, Why};
use crate::snapshot::{Call, Kind, Resource, Wait};
use crate::words;

impl Case<'_, '_> {
    pub(super) fn title(&self, parties: &[Party<'_>]) -> String {
        if let Some(title) = self.special_title(parties) {
            return title;
        }
        let several = words::plural(self.resources());
        let what = match (&self.waits[..], self.resources().next()) {
            ([wait], Some(resource)) if self.resources.len() == 1 && one_thing(resource, wait) => {
                words::wanted(resource, wait.units)
            }
            _ => several.to_owned(),
        };
        let names = unique(parties.iter().filter_map(|party| self.context.function(party.wait)));
        match (&self.actors[..], &self.resources[..]) {
            ([_], [_]) => format!(
                "{} waits for {what} that only it can release",
                self.context.who(self.waits[0])
            ),
            ([actor], _) => {
                format!(
                    "{} waits in two places for {several} that only it can release",
                    words::actor(self.snapshot(), *actor)
                )
            }
            ([_, _], _)
                if parties.len() == 2 && parties.iter().any(|party| party.grip.is_none()) =>
            {
                let (holder, front) = if parties[0].grip.is_none() { (1, 0) } else { (0, 1) };
                let (holder, front) = (parties[holder].wait, parties[front].wait);
                let name = |wait: &Wait| words::actor(self.snapshot(), wait.actor);
                let (holder, front) = match (self.context.who(holder), self.context.who(front)) {
                    // Two that run the same function are told apart by their numbers.
                    (a, b) if a == b => (name(holder), name(front)),
                    names => names,
                };
                format!(
                    "{holder} waits behind {front}, which waits for what only {holder} can release"
                )
            }
            ([a, b], _) => {
                let names = match &names[..] {
                    [f, g] => format!("{f} and {g}"),
                    _ => self.actor_list(&[*a, *b]),
                };
                format!("{names} wait for {several} that only the other can release")
            }
            (actors, [one]) => {
                let resource =
                    self.snapshot().resource(*one).map(words::resource).unwrap_or_default();
                format!(
                    "{} wait for {several} of {resource} that only they can release",
                    self.actor_list(actors)
                )
            }
            (actors, _) if actors.len() == names.len() && names.len() == parties.len() => {
                format!("{} wait for each other in a ring", words::list(&names))
            }
            (actors, _) => format!("{} wait for each other", self.actor_list(actors)),
        }
    }

    /// Where it is not tasks that wait for each other's permits.
    fn special_title(&self, parties: &[Party<'_>]) -> Option<String> {
        let first = *self.waits.first()?;
        let wanted = |wait: &Wait| {
            let r = self.snapshot().resource(wait.resource)?;
            Some(words::wanted(r, wait.units))
        };
        let who = self.context.who(first);
        if let Some(grip) = self.because(Why::Blocking) {
            let what = wanted(first)?;
            if grip.actor() == first.actor {
                return Some(format!(
                    "{who} blocks its own thread, and must go on there to release {what} for itself"
                ));
            }
            let holder = self.context.function_of(grip.stack()).filter(|name| *name != who);
            let holder = holder.unwrap_or_else(|| words::actor(self.snapshot(), grip.actor()));
            return Some(format!(
                "{who} blocks the thread that {holder} needs to release {what} for it"
            ));
        }
        if self.is_futurelock() {
            let shelved = self.because(Why::Granted).or_else(|| self.because(Why::Inside))?;
            let several = self.grips.len() > 1;
            let them = if several { "the futures that have" } else { "the future that has" };
            if self.own().is_some() {
                let it = if total(&self.grips) > 1 { "them" } else { "it" };
                return Some(format!(
                    "{who} waits for {} and no longer polls {them} {it}",
                    wanted(first)?
                ));
            }
            let resource = self.snapshot().resource(shelved.resource())?;
            let waiter = self.waits.iter().find(|w| w.actor == shelved.actor())?;
            return Some(format!(
                "{} waits and no longer polls a future that has {} of {}, for which others wait",
                self.context.who(waiter),
                words::wanted(resource, shelved.units()),
                words::resource(resource),
            ));
        }
        let receives = |g: &&Grip<'_>| g.hold().is_some_and(|h| h.call == Call::Receive);
        let channel = *self.grips.iter().find(receives)?;
        let receiver = self.waits.iter().find(|w| w.actor == channel.actor())?;
        let name = words::resource(self.snapshot().resource(channel.resource())?);
        let receiver_name = self.context.who(receiver);
        if self.own().is_some() {
            let why = match self.is_unbegun(channel) {
                true => "which nobody has begun to receive from",
                false => "from which only it receives",
            };
            return Some(format!("{receiver_name} waits for room in {name}, {why}"));
        }
        let sender = parties.iter().find(|p| p.wait.resource == channel.resource())?.wait;
        Some(format!(
            "{receiver_name} waits instead of receiving from {name}, and {} waits for room there with what it waits for",
            self.context.who(sender)
        ))
    }

    /// Something that is kept for this reason.
    fn because(&self, why: Why) -> Option<Grip<'_>> {
        let mut holds = self.core.holds.iter().map(|at| &self.stuck.holds[*at]);
        holds.find(|h| h.why == why).map(|h| h.grip)
    }
}

/// Whether a wait is told by what it wants; several permits are told as such.
fn one_thing(resource: &Resource, wait: &Wait) -> bool {
    wait.units == 1 || resource.kind != Kind::Semaphore
}
