//! Waits that keep each other, and so themselves, from ever being served.

use super::{Rule, identity};
use crate::diagnose::{Cause, Context, Core, Stuck};
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::snapshot::{ActorId, Hold, Kind, Moment, Resource, ResourceId, SiteId, Snapshot, Wait};
use crate::words::{self, count};
use std::collections::{HashMap, HashSet, VecDeque};

pub(super) const RULE: Rule = Rule { find, stacks: |context| context.candidates().stacks() };

/// Parties of one finding that are shown with their lines; the others are counted.
const SHOWN: usize = 4;

fn find(context: &Context<'_>) -> Vec<Finding> {
    let stuck = context.stuck();
    let cores = stuck.cores.iter().filter(|core| !core.holds.is_empty());
    cores
        .map(|core| Case::new(context, stuck, core))
        .filter(Case::confirmed)
        .filter(|case| !case.is_protocol())
        .filter_map(|case| case.finding())
        .collect()
}

/// Someone who holds and waits.
#[derive(Clone, Copy)]
struct Party<'a> {
    /// What it keeps from the one before; `None` if it merely stands in front of that one in the queue.
    hold: Option<&'a Hold>,
    wait: &'a Wait,
}

/// One deadlock.
struct Case<'c, 'a> {
    context: &'c Context<'a>,
    stuck: &'c Stuck<'a>,
    core: &'c Core,
    waits: Vec<&'a Wait>,
    holds: Vec<&'a Hold>,
    /// Each once, in the order in which they began to wait.
    actors: Vec<ActorId>,
    resources: Vec<ResourceId>,
}

impl<'c, 'a> Case<'c, 'a> {
    fn new(context: &'c Context<'a>, stuck: &'c Stuck<'a>, core: &'c Core) -> Self {
        let mut waits: Vec<&Wait> = core.waits.iter().map(|at| stuck.waits[*at].wait).collect();
        let mut holds: Vec<&Hold> = core.holds.iter().map(|at| stuck.holds[*at].hold).collect();
        waits.sort_by_key(|w| (w.since, w.id));
        holds.sort_by_key(|h| (h.since, h.id));
        let actors = unique(waits.iter().map(|w| w.actor));
        let resources =
            unique(holds.iter().map(|h| h.resource).chain(waits.iter().map(|w| w.resource)));
        Case { context, stuck, core, waits, holds, actors, resources }
    }

    /// The same holds and waits were there before, so all of them were there at once.
    fn confirmed(&self) -> bool {
        let capacity = |id: &ResourceId| {
            let resource = self.snapshot().resource(*id);
            resource.is_some_and(|r| self.context.confirmed_capacity(r))
        };
        self.waits.iter().all(|w| self.context.confirmed_wait(w))
            && self.holds.iter().all(|h| self.context.confirmed_hold(h))
            && self.resources.iter().all(capacity)
    }

    /// Several actors that give up after a while and try again get on, if slowly. One that waits for itself never
    /// gets what it waits for, timeout or not.
    fn is_protocol(&self) -> bool {
        self.actors.len() > 1 && self.has_way_out()
    }

    fn has_way_out(&self) -> bool {
        self.waits.iter().any(|w| self.context.has_way_out(w))
    }

    fn snapshot(&self) -> &'a Snapshot {
        self.context.now
    }

    fn finding(&self) -> Option<Finding> {
        let ids: Vec<_> = self.waits.iter().map(|w| w.id).collect();
        let (parties, marks, help) =
            if let ([_], [resource]) = (&self.actors[..], &self.resources[..]) {
                let resource = self.snapshot().resource(*resource)?;
                (Vec::new(), self.own_marks(resource), self.own_help(resource))
            } else {
                let parties = self.parties();
                let (marks, help) = (self.ring_marks(&parties), self.ring_help(&parties));
                (parties, marks, help)
            };
        let mut notes: Vec<String> = self
            .resources
            .iter()
            .filter_map(|id| self.snapshot().resource(*id))
            .take(SHOWN)
            .map(|r| words::books(self.snapshot(), r))
            .collect();
        let shown: HashSet<ActorId> = parties.iter().map(|party| party.wait.actor).collect();
        let more = self.actors.iter().filter(|actor| !shown.contains(actor)).count();
        if !parties.is_empty() && more > 0 {
            notes.push(format!("{} more in the same knot", count(more as u64, "task")));
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
        Some(Finding {
            id: identity(Code::Deadlock, &ids),
            code: Code::Deadlock,
            verdict: Verdict::Proven,
            title: self.title(&parties),
            marks,
            notes,
            help,
            since: self.waits.iter().map(|w| w.since).max().unwrap_or(Moment(0)),
            resources: self.resources.clone(),
            actors: self.actors.clone(),
            holds: self.holds.iter().map(|h| h.id).collect(),
            waits: ids,
        })
    }

    fn title(&self, parties: &[Party<'_>]) -> String {
        let resources = || self.resources.iter().filter_map(|id| self.snapshot().resource(*id));
        let several = words::plural(resources());
        let what = match (&self.waits[..], resources().next()) {
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
                if parties.len() == 2 && parties.iter().any(|party| party.hold.is_none()) =>
            {
                let (holder, front) = if parties[0].hold.is_none() { (1, 0) } else { (0, 1) };
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

    fn actor_list(&self, actors: &[ActorId]) -> String {
        if actors.len() > SHOWN {
            return count(actors.len() as u64, "task");
        }
        let mut actors = actors.to_vec();
        actors.sort_unstable();
        words::actors(self.snapshot(), &actors)
    }

    /// The marks of an actor that waits for itself: what it took, then where it waits.
    fn own_marks(&self, resource: &Resource) -> Vec<Mark> {
        let mut marks = Vec::new();
        for site in unique(self.holds.iter().map(|h| h.site)).into_iter().take(SHOWN) {
            let here: Vec<&Hold> = self.holds.iter().copied().filter(|h| h.site == site).collect();
            let units = total(&here);
            marks.extend(self.took(here[0], units, resource, ""));
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

    fn own_help(&self, resource: &Resource) -> Option<String> {
        let wait = self.waits.last()?;
        let site = self.snapshot().site(wait.site)?;
        let line = match self.holds.first().and_then(|h| self.snapshot().site(h.site)) {
            Some(outer) if outer.file == site.file && site.line > 0 => {
                format!("line {}", site.line)
            }
            _ => site.to_string(),
        };
        if matches!(resource.kind, Kind::Mutex | Kind::RwLock) {
            return Some(format!("drop the guard before {line}, or pass it to the inner step"));
        }
        let units = total(&self.holds).saturating_add(wait.units);
        let at_once = if units <= resource.capacity() {
            format!("take all at once with `acquire_many({units})`, ")
        } else {
            String::new()
        };
        Some(format!(
            "release before {line}, {at_once}or give the inner step a semaphore of its own"
        ))
    }

    /// What each party took and what it waits for, in wait order.
    fn ring_marks(&self, parties: &[Party<'_>]) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (at, party) in parties.iter().take(SHOWN).enumerate() {
            let number = format!("{}: ", at + 1);
            let snapshot = self.snapshot();
            if let Some((hold, resource)) =
                party.hold.and_then(|h| Some((h, snapshot.resource(h.resource)?)))
            {
                marks.extend(self.took(hold, hold.units, resource, &number));
            }
            let Some(resource) = snapshot.resource(party.wait.resource) else { continue };
            let who = match party.hold {
                Some(_) => "and".to_owned(),
                None => words::actor(snapshot, party.wait.actor),
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

    fn ring_help(&self, parties: &[Party<'_>]) -> Option<String> {
        if let [one] = self.resources[..] {
            let resource = self.snapshot().resource(one)?;
            let need = self
                .waits
                .iter()
                .map(|w| w.units)
                .max()?
                .saturating_add(self.holds.iter().map(|h| h.units).max()?);
            let at_once = if need <= resource.capacity() && resource.kind == Kind::Semaphore {
                "take all that a task needs at once with `acquire_many`, or "
            } else {
                ""
            };
            return Some(format!("{at_once}release before asking for more"));
        }
        // Whoever took the first resource first is in the order that the others should follow.
        let order = unique(parties.iter().filter_map(|p| p.hold).map(|h| h.resource));
        let names: Vec<String> = order
            .iter()
            .filter_map(|id| self.snapshot().resource(*id))
            .take(SHOWN)
            .map(words::resource)
            .collect();
        (names.len() > 1).then(|| {
            format!(
                "take them in the same order everywhere, for example {}",
                names.join(" before ")
            )
        })
    }

    fn took(&self, hold: &Hold, units: u64, resource: &Resource, number: &str) -> Option<Mark> {
        let what = words::taken(resource, units);
        let snapshot = self.snapshot();
        Some(Mark {
            site: snapshot.site(hold.site)?.clone(),
            label: format!(
                "{number}{} took {what} of {} here, {} ago",
                words::actor(snapshot, hold.actor),
                words::resource(resource),
                words::since(snapshot, hold.since)
            ),
            primary: false,
            stack: hold.stack,
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

    /// A shortest ring of parties through the oldest wait, in wait order; where all wait for one resource, one
    /// party for each pair of lines.
    fn parties(&self) -> Vec<Party<'a>> {
        let ring = self.ring();
        if self.resources.len() > 1 || ring.len() >= self.actors.len() {
            return ring;
        }
        let mut seen = HashSet::new();
        let mut parties = Vec::new();
        for at in &self.core.holds {
            let stuck = &self.stuck.holds[*at];
            let wait = self.stuck.waits[stuck.kept_by[0]].wait;
            if seen.insert((stuck.hold.site, wait.site)) {
                parties.push(Party { hold: Some(stuck.hold), wait });
            }
        }
        parties
    }

    fn ring(&self) -> Vec<Party<'a>> {
        let waits: HashSet<usize> = self.core.waits.iter().copied().collect();
        let mut holds: HashMap<ResourceId, Vec<usize>> = HashMap::new();
        for at in &self.core.holds {
            holds.entry(self.stuck.holds[*at].hold.resource).or_default().push(*at);
        }
        let Some(start) = self.core.waits.iter().copied().min_by_key(|at| {
            let wait = self.stuck.waits[*at].wait;
            (wait.since, wait.id)
        }) else {
            return Vec::new();
        };
        // Breadth first; `from` tells by which hold, kept by that wait, a wait was reached.
        let mut from: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            if at == start && !from.is_empty() && from.contains_key(&start) {
                break;
            }
            let mut reach = |to: usize, hold: Option<usize>| {
                if waits.contains(&to) && !from.contains_key(&to) {
                    from.insert(to, (at, hold));
                    open.push_back(to);
                }
            };
            match self.stuck.waits[at].cause {
                Cause::Behind(first) => reach(first, None),
                // Each resource's holds are followed once.
                Cause::Held => {
                    for hold in
                        holds.remove(&self.stuck.waits[at].wait.resource).unwrap_or_default()
                    {
                        for to in &self.stuck.holds[hold].kept_by {
                            reach(*to, Some(hold));
                        }
                    }
                }
                Cause::TooMany => {}
            }
        }
        let mut parties = Vec::new();
        let mut at = start;
        while let Some((previous, hold)) = from.get(&at) {
            let hold = hold.map(|hold| self.stuck.holds[hold].hold);
            parties.push(Party { hold, wait: self.stuck.waits[at].wait });
            at = *previous;
            if at == start {
                break;
            }
        }
        // Found backwards, and the start last.
        parties.reverse();
        let last = parties.len().min(1);
        parties.rotate_right(last);
        parties
    }
}

/// Whether a wait is told by what it wants; several permits are told as such.
fn one_thing(resource: &Resource, wait: &Wait) -> bool {
    wait.units == 1 || resource.kind != Kind::Semaphore
}

fn total(holds: &[&Hold]) -> u64 {
    holds.iter().fold(0, |sum, h| sum.saturating_add(h.units))
}

/// Each once, in the order of the first.
fn unique<T: Clone + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}
