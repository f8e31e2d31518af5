//! Holds that last far longer than any should, while others wait.
//!
//! It is what is told of a hang whose holders wait for something that nobody can see here: a silent peer, a
//! barrier, a job that finds no thread. So it needs time more than anything else: the wait and the holds are old,
//! and for as long nothing has moved on the resource at all.

use super::{LISTED, forgotten, identity, is_explained};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Verdict};
use crate::rules::marks::{SHOWN, behind, by_line, taken, takers, units, wanted};
use crate::snapshot::{ActorId, Call, Hold, Kind, Resource, ResourceId, SiteId, StackId, Wait};
use crate::text::age;
use crate::words::{self, count};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A hold is expected back until it is this many times as old as those before it.
const UNUSUAL: u32 = 20;

pub(super) fn find(context: &Context<'_>, told: &HashSet<ResourceId>) -> Vec<Finding> {
    let mut told = told.clone();
    let waiting = Waiting::of(context);
    let mut findings = Vec::new();
    let mut later = Vec::new();
    // What explains it better has to be confirmed, too: nothing is told at the first look.
    let confirmed = |case: &Case<'_>| {
        case.first.is_none_or(|w| context.confirmed_wait(w))
            && case.holds.iter().all(|h| context.confirmed_hold(h))
    };
    let cases = candidates(context).filter(confirmed);
    let cases = cases.filter(|case| !is_explained(context, case.r));
    for case in cases.filter(|case| !told.contains(&case.r.id)).collect::<Vec<_>>() {
        // A holder who waits himself is not where it begins.
        let (held_up, roots): (Vec<&Hold>, Vec<&Hold>) =
            case.holds.iter().partition(|h| waiting.of_hold(context, h).next().is_some());
        if roots.is_empty() {
            later.push(case);
        } else if let Some(finding) = finding(context, &case, &roots, &held_up) {
            told.insert(case.r.id);
            findings.push(finding);
        }
    }
    for case in later {
        let mut waits = case.holds.iter().flat_map(|h| waiting.of_hold(context, h));
        if waits.any(|w| context.is_explained(w.id) || told.contains(&w.resource)) {
            continue;
        }
        if let Some(finding) = finding(context, &case, &case.holds, &case.holds) {
            told.insert(case.r.id);
            findings.push(finding);
        }
    }
    findings
}

pub(super) fn stacks(context: &Context<'_>) -> Vec<StackId> {
    let stacks = |case: Case<'_>| {
        let holds = case.holds.into_iter().map(|h| h.stack).collect::<HashSet<_>>();
        holds.into_iter().chain(case.first.map(|w| w.stack)).collect::<Vec<_>>()
    };
    candidates(context).flat_map(stacks).collect()
}

struct Case<'a> {
    r: &'a Resource,
    /// Who has waited for longest, if anybody.
    first: Option<&'a Wait>,
    holds: Vec<&'a Hold>,
}

fn candidates<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = Case<'a>> + 'c {
    context.now.resources.iter().filter_map(|r| {
        let known = matches!(r.kind, Kind::Semaphore | Kind::Mutex | Kind::RwLock | Kind::Channel);
        if !known || !r.settled || r.closed || r.initial == 0 || r.settings.long_held {
            return None;
        }
        let holds = context.holds(r.id);
        // What a receiver does not read is not held by anybody in particular.
        if holds.iter().any(|h| h.call == Call::Receive) {
            return None;
        }
        let limit = r.settings.max_hold.unwrap_or(context.limits.overdue);
        let first = waits_in_vain(context, r, limit);
        if first.is_none() && r.settings.max_hold.is_none() {
            return None;
        }
        let overdue = |h: &&Hold| context.age(h.since) >= limit && is_unusual(context, h);
        let holds: Vec<&Hold> = holds.iter().filter(overdue).collect();
        (!holds.is_empty()).then_some(Case { r, first, holds })
    })
}

/// The first who lacks units that only holds can give back, if nothing has moved since.
fn waits_in_vain<'a>(context: &Context<'a>, r: &Resource, limit: Duration) -> Option<&'a Wait> {
    if r.settings.grows || context.quiet(r) < limit || !context.balances(r) {
        return None;
    }
    let first = context.first_unserved(r)?;
    (context.age(first.since) >= limit && first.units <= r.capacity()).then_some(first)
}

/// Older than what is known of its line lets expect. What the user has said of the resource stands above that.
fn is_unusual(context: &Context<'_>, hold: &Hold) -> bool {
    let set = context.now.resource(hold.resource).is_some_and(|r| r.settings.max_hold.is_some());
    let usual = context.now.learned(hold.stack).filter(|l| l.released > 0).map(|l| l.usual);
    set || usual.is_none_or(|usual| context.age(hold.since) >= usual.saturating_mul(UNUSUAL))
}

/// Who has been waiting for long enough to be held up by it.
struct Waiting<'a>(HashMap<ActorId, Vec<&'a Wait>>);

impl<'a> Waiting<'a> {
    fn of(context: &Context<'a>) -> Self {
        let mut waiting: HashMap<ActorId, Vec<&Wait>> = HashMap::new();
        let stall = context.limits.stall;
        for wait in context.now.waits.iter().filter(|w| context.age(w.since) >= stall) {
            waiting.entry(wait.actor).or_default().push(wait);
        }
        Waiting(waiting)
    }

    /// The waits of whoever has the hold; none if it may be with anybody.
    fn of_hold<'s>(
        &'s self,
        context: &Context<'_>,
        h: &Hold,
    ) -> impl Iterator<Item = &'a Wait> + 's {
        let given_away = context.now.learned(h.stack).is_some_and(|l| l.elsewhere > 0);
        let actor = h.moved_to.or((!given_away).then_some(h.actor));
        actor.and_then(|actor| self.0.get(&actor)).into_iter().flatten().copied()
    }
}

fn finding(
    context: &Context<'_>,
    case: &Case<'_>,
    holds: &[&Hold],
    held_up: &[&Hold],
) -> Option<Finding> {
    let (snapshot, r) = (context.now, case.r);
    let oldest = holds.iter().map(|h| h.since).min()?;
    let mut marks = taken(context, r, holds, true);
    if marks.is_empty() {
        return None;
    }
    let who = takers(context, holds);
    let what = words::wanted(r, units(holds));
    let them = if r.kind == Kind::Semaphore && units(holds) > 1 { "them" } else { "it" };
    let mut notes = vec![words::books(snapshot, r)];
    notes.extend(history(context, holds));
    let mut why = String::new();
    if let Some(first) = case.first {
        marks.extend(wanted(context, r, first));
        // What was forgotten is missing, too, although these holds would do.
        if r.kind == Kind::Semaphore && forgotten::lost(r) > 0 {
            marks.extend(forgotten::forgets(context, r));
        }
        notes.push(format!("nothing has moved on it for {}", age(context.quiet(r))));
        notes.extend(behind(context, r, first));
        let mut waits = context.queue(r.id).iter();
        why = if waits.all(|w| w.actor == first.actor) {
            let named = context.function(first).filter(|name| !who.contains(name));
            let waiter = named.unwrap_or_else(|| words::actor(snapshot, first.actor));
            format!(", while {waiter} waits for {them}")
        } else {
            format!(", while others wait for {them}")
        };
    }
    if let Some(limit) = r.settings.max_hold {
        notes.push(format!("the program allows {} for it", age(limit)));
    }
    if let Some(hold) = held_up.first() {
        let name = words::actor(snapshot, hold.moved_to.unwrap_or(hold.actor));
        notes.push(format!("{name}, which took some of it, waits itself"));
    }
    let mut actors: Vec<ActorId> = holds.iter().map(|h| h.moved_to.unwrap_or(h.actor)).collect();
    actors.sort_unstable();
    actors.dedup();
    Some(Finding {
        id: identity(r),
        code: Code::Leak,
        verdict: Verdict::Suspected,
        title: format!(
            "{who} took {what} of {} and has not released {them} for {}{why}",
            words::resource(r),
            words::since(snapshot, oldest),
        ),
        marks,
        notes,
        help: Some(help(r).to_owned()),
        since: case.first.map_or(oldest, |w| w.since.max(oldest)),
        resources: vec![r.id],
        actors,
        holds: holds.iter().take(LISTED).map(|h| h.id).collect(),
        waits: context.queue(r.id).iter().take(LISTED).map(|w| w.id).collect(),
    })
}

/// What earlier holds from these lines did.
fn history(context: &Context<'_>, holds: &[&Hold]) -> Vec<String> {
    let note = |(site, line): (SiteId, Vec<&Hold>)| {
        let site = context.now.site(site)?;
        let learned = context.now.learned(line[0].stack)?;
        Some(match learned.released {
            0 => format!("nothing that was taken at {site} has come back so far"),
            n => format!(
                "{} from {site} came back within {}",
                count(n, "earlier hold"),
                age(learned.usual)
            ),
        })
    };
    by_line(holds).into_iter().take(SHOWN).filter_map(note).collect()
}

fn help(r: &Resource) -> &'static str {
    match r.kind {
        Kind::Mutex | Kind::RwLock => {
            "release the lock before waiting for anything else, or put a timeout around that wait"
        }
        _ => {
            "release before waiting for anything slow, or put a timeout around what it is held for"
        }
    }
}
