//! Holds that have outlived the tasks that acquired them, and are nowhere where they could end.
//!
//! Nobody says that a task has ended. But where no task is alive that could have a hold, it is in no task: it lies
//! in a `static`, in a cycle of references, in what was leaked. One such hold may be a lease, taken once and kept on
//! purpose. Several from one line, by one task after the other, of which none ever came back, are no lease.
//!
//! A blocking job or a root future that was given the permits is in no count, so the verdict is never more than a
//! suspicion.

use super::{LISTED, identity, is_explained};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Verdict};
use crate::rules::marks::{behind, taken, takers, units, wanted};
use crate::snapshot::{ActorId, Call, Hold, Kind, Resource, ResourceId, SiteId, StackId};
use crate::words::{self, count};
use std::collections::{HashMap, HashSet};

/// Tasks that must have left something behind on one line.
const TASKS: usize = 2;

pub(super) fn find(context: &Context<'_>, told: &HashSet<ResourceId>) -> Vec<Finding> {
    candidates(context)
        .into_iter()
        .filter(|case| !told.contains(&case.r.id) && !is_explained(context, case.r))
        // Tasks of a `LocalSet` are in no count, and only names tell of one.
        .filter(|case| case.holds.iter().all(|h| context.is_named(h.stack)))
        // What others wait for may have a better explanation, which takes a second look. Else the age of the holds is
        // enough.
        .filter(|case| {
            context.queue(case.r.id).is_empty()
                || case.holds.iter().all(|h| context.confirmed_hold(h))
        })
        .filter_map(|case| finding(context, &case))
        .collect()
}

pub(super) fn stacks(context: &Context<'_>) -> Vec<StackId> {
    candidates(context).iter().flat_map(|case| case.holds.iter().map(|h| h.stack)).collect()
}

struct Case<'a> {
    r: &'a Resource,
    holds: Vec<&'a Hold>,
}

fn candidates<'a>(context: &Context<'a>) -> Vec<Case<'a>> {
    let Some(alive) = context.alive_tasks() else { return Vec::new() };
    // Enough for a first look: only tasks that wait may be alive.
    if alive > context.now.waits.len() as u64 {
        return Vec::new();
    }
    let returned = Returned::of(context);
    let resources = context.now.resources.iter().filter(|r| is_limit(r));
    let cases = resources.filter(|r| nobody_left(context, r, alive)).filter_map(|r| {
        let lost = |h: &&Hold| {
            matches!(h.actor, ActorId::Task(_))
                && h.moved_to.is_none()
                && h.call != Call::Receive
                && h.stack != StackId::NONE
                && context.age(h.since) >= context.limits.orphan_grace
                && returned.never(context, h)
        };
        let holds: Vec<&Hold> = context.holds(r.id).iter().filter(lost).collect();
        let mut tasks: HashMap<SiteId, HashSet<ActorId>> = HashMap::new();
        for hold in &holds {
            tasks.entry(hold.site).or_default().insert(hold.actor);
        }
        let holds: Vec<&Hold> =
            holds.into_iter().filter(|h| tasks[&h.site].len() >= TASKS).collect();
        (!holds.is_empty()).then_some(Case { r, holds })
    });
    cases.collect()
}

/// Units of it are taken and given back, and for no longer than anybody has said.
fn is_limit(r: &Resource) -> bool {
    matches!(r.kind, Kind::Semaphore | Kind::RwLock | Kind::Channel)
        && r.settled
        && !r.closed
        && r.initial > 0
        && !r.settings.long_held
}

/// Every task that is alive has been waiting for this very resource for long: it would not, with a permit to spare.
fn nobody_left(context: &Context<'_>, r: &Resource, alive: u64) -> bool {
    let stall = context.limits.stall;
    let waits = context.queue(r.id).iter();
    let waits = waits.filter(|w| w.granted_since.is_none() && context.age(w.since) >= stall);
    let tasks: HashSet<ActorId> =
        waits.map(|w| w.actor).filter(|a| matches!(a, ActorId::Task(_))).collect();
    tasks.len() as u64 == alive
}

/// What came back, by line: another path to the same line may be the one that gives back.
struct Returned(HashMap<SiteId, bool>);

impl Returned {
    fn of(context: &Context<'_>) -> Self {
        let mut returned = HashMap::new();
        for learned in &context.now.learned {
            *returned.entry(learned.site).or_insert(false) |=
                learned.released > 0 || learned.forgotten > 0 || learned.elsewhere > 0;
        }
        Returned(returned)
    }

    /// Not one hold from this line has ever ended. Where nothing was learned, nobody knows.
    fn never(&self, context: &Context<'_>, hold: &Hold) -> bool {
        context.now.learned(hold.stack).is_some() && self.0.get(&hold.site) == Some(&false)
    }
}

fn finding(context: &Context<'_>, case: &Case<'_>) -> Option<Finding> {
    let (snapshot, r, holds) = (context.now, case.r, &case.holds[..]);
    let oldest = holds.iter().map(|h| h.since).min()?;
    let mut actors: Vec<ActorId> = holds.iter().map(|h| h.actor).collect();
    actors.sort_unstable();
    actors.dedup();
    let mut marks = taken(context, r, holds, true);
    let mut notes = vec![words::books(snapshot, r)];
    notes.push(format!(
        "{} took something there, and nothing has ever come back",
        count(actors.len() as u64, "task")
    ));
    let first = context.first_unserved(r);
    notes.push(match first {
        Some(_) => {
            "every task that is alive waits for it, so none of them has any of it".to_owned()
        }
        None => "no task is alive that could give it back".to_owned(),
    });
    if let Some(first) = first {
        marks.extend(wanted(context, r, first));
        notes.extend(behind(context, r, first));
    }
    Some(Finding {
        id: identity(r),
        code: Code::Leak,
        verdict: Verdict::Suspected,
        title: format!(
            "{} took {} of {} that outlived the tasks they were taken by",
            takers(context, holds),
            words::wanted(r, units(holds)),
            words::resource(r),
        ),
        marks,
        notes,
        help: Some(
            "look for what keeps them: a `static` collection, a cycle of `Arc`s, a leaked value, `ManuallyDrop`"
                .to_owned(),
        ),
        since: oldest,
        resources: vec![r.id],
        actors,
        holds: holds.iter().take(LISTED).map(|h| h.id).collect(),
        waits: context.queue(r.id).iter().take(LISTED).map(|w| w.id).collect(),
    })
}
