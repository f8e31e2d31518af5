//! The lines of a knot: what was taken, where it is missing.

use super::ring::Party;
use super::{Case, SHOWN, total, unique};
use crate::diagnose::Grip;
use crate::finding::Mark;
use crate::snapshot::{ActorId, Call, Kind, Resource, SiteId, Wait};
use crate::words::{self, count};

impl Case<'_, '_> {
    /// The marks of an actor that waits for itself: what it took, then where it waits.
    pub(super) fn own_marks(&self, resource: &Resource) -> Vec<Mark> {
        let mut marks = Vec::new();
        let granted = |grip: &Grip<'_>| grip.hold().is_none();
        for (site, set_aside) in
            unique(self.grips.iter().map(|g| (g.site(), granted(g)))).into_iter().take(SHOWN)
        {
            let here = self.grips.iter().filter(|g| (g.site(), granted(g)) == (site, set_aside));
            let here: Vec<Grip<'_>> = here.copied().collect();
            marks.extend(self.took(here[0], total(&here), resource, ""));
        }
        for wait in self.waits.iter().take(SHOWN) {
            let what = match resource.kind {
                Kind::Mutex => "it again".to_owned(),
                Kind::Semaphore if wait.units == 1 => "another one".to_owned(),
                _ => words::wanted(resource, wait.units),
            };
            let label = format!(
                "and has been waiting here for {what} for {}",
                words::since(self.snapshot(), wait.since)
            );
            marks.extend(self.mark(wait.site, label, wait));
        }
        marks
    }

    /// What each party took and what it waits for, in wait order.
    pub(super) fn ring_marks(&self, parties: &[Party<'_>]) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (at, party) in parties.iter().take(SHOWN).enumerate() {
            let number = format!("{}: ", at + 1);
            let snapshot = self.snapshot();
            if let Some((grip, resource)) =
                party.grip.and_then(|g| Some((g, snapshot.resource(g.resource())?)))
            {
                marks.extend(self.took(grip, grip.units(), resource, &number));
            }
            let Some(resource) = snapshot.resource(party.wait.resource) else { continue };
            let who = match party.grip {
                Some(grip) if grip.actor() == party.wait.actor => "and".to_owned(),
                _ => words::actor(snapshot, party.wait.actor),
            };
            let what = words::wanted(resource, party.wait.units);
            let label = format!(
                "{number}{who} has been waiting here for {what} of {} for {}",
                words::resource(resource),
                words::since(snapshot, party.wait.since)
            );
            marks.extend(self.mark(party.wait.site, label, party.wait));
        }
        marks
    }

    /// Where a grip came from. `units` may be those of several from one line.
    fn took(&self, grip: Grip<'_>, units: u64, resource: &Resource, number: &str) -> Option<Mark> {
        let snapshot = self.snapshot();
        let actor = words::actor(snapshot, grip.actor());
        let name = words::resource(resource);
        let since = words::since(snapshot, grip.since());
        let label = match grip {
            Grip::Held(hold) if hold.call == Call::Receive => {
                let unread = count(units, "message");
                match self.is_unbegun(grip) {
                    true => format!("{number}{actor} made {name} here; {unread} unread"),
                    false => {
                        format!("{number}{actor} received from {name} here last; {unread} unread")
                    }
                }
            }
            Grip::Held(_) => {
                let what = words::taken(resource, units);
                format!("{number}{actor} took {what} of {name} here, {since} ago")
            }
            Grip::Granted(_) => format!("{number}{}", set_aside(&actor, resource, units, &since)),
        };
        Some(Mark {
            site: snapshot.site(grip.site())?.clone(),
            label,
            primary: false,
            stack: grip.stack(),
        })
    }

    fn mark(&self, site: SiteId, label: String, wait: &Wait) -> Option<Mark> {
        Some(Mark {
            site: self.snapshot().site(site)?.clone(),
            label,
            primary: true,
            stack: wait.stack,
        })
    }

    pub(super) fn actor_list(&self, actors: &[ActorId]) -> String {
        if actors.len() > SHOWN {
            return count(actors.len() as u64, "task");
        }
        let mut actors = actors.to_vec();
        actors.sort_unstable();
        words::actors(self.snapshot(), &actors)
    }
}

/// Of an acquire that was given its units and is not polled.
pub(in crate::rules) fn set_aside(actor: &str, r: &Resource, units: u64, since: &str) -> String {
    let what = words::wanted(r, units);
    format!("{what} was set aside for {actor} here, {since} ago, and not picked up")
}
