//! The first in the queue wants many, and what is free is kept from smaller requests behind it.
//!
//! tokio serves in order, so this is how every large request begins. It is told when nothing moves, and a holder
//! whom the large request waits for is not one of those that come back in their time.

use crate::diagnose::Context;
use crate::finding::{Code, Finding, Verdict};
use crate::rules::marks::{SHOWN, taken, waits};
use crate::rules::of_lines;
use crate::snapshot::{ActorId, Hold, Kind, Resource, StackId, Wait};
use crate::words::{self, count};
use std::collections::HashSet;

/// Holds of a line that came back tell how long the next ones may take.
const KNOWN: u64 = 3;

pub(super) fn find<'c>(context: &'c Context<'_>) -> impl Iterator<Item = Finding> + 'c {
    candidates(context)
        .filter(|case| !case.behind.iter().chain([&case.front]).any(|w| context.is_explained(w.id)))
        .filter_map(|case| finding(context, &case))
}

pub(super) fn stacks<'c>(context: &'c Context<'_>) -> impl Iterator<Item = StackId> + 'c {
    candidates(context).flat_map(|case| {
        let holds = case.holds.iter().map(|h| h.stack).collect::<HashSet<_>>();
        holds.into_iter().chain([case.front.stack])
    })
}

struct Case<'a> {
    r: &'a Resource,
    front: &'a Wait,
    /// Those that could be served with what is free.
    behind: Vec<&'a Wait>,
    holds: &'a [Hold],
    /// Units that nobody uses.
    idle: u64,
}

fn candidates<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = Case<'a>> + 'c {
    context.now.resources.iter().filter_map(|r| {
        let [front, rest @ ..] = context.queue(r.id) else { return None };
        let idle = r.available.saturating_add(r.granted());
        let stall = context.limits.stall;
        let long = |w: &Wait| context.age(w.since) >= stall;
        if r.kind != Kind::Semaphore
            || idle == 0
            || front.units <= idle
            || front.units > r.capacity()
            || !long(front)
            || context.quiet(r) < stall
            || !context.is_judged(r)
        {
            return None;
        }
        let behind: Vec<&Wait> = rest.iter().filter(|w| w.units <= idle && long(w)).collect();
        let holds = context.holds(r.id);
        let stuck = holds.iter().any(|h| !is_expected(context, h));
        (!behind.is_empty() && stuck).then_some(Case { r, front, behind, holds, idle })
    })
}

/// Earlier holds from its line took as long, and came back.
fn is_expected(context: &Context<'_>, hold: &Hold) -> bool {
    let learned = context.now.learned(hold.stack).filter(|l| l.released >= KNOWN);
    learned.is_some_and(|l| context.age(hold.since) <= l.longest.saturating_mul(2))
}

fn finding(context: &Context<'_>, case: &Case<'_>) -> Option<Finding> {
    let (snapshot, r, front) = (context.now, case.r, case.front);
    let small = case.behind.iter().filter(|w| w.site != front.site).chain(&case.behind);
    let small = small.copied().next()?;
    let holds: Vec<&Hold> = case.holds.iter().collect();
    let mut marks = taken(context, r, &holds, false);
    let id = of_lines(Code::Starvation, [snapshot.site(front.site)?]);
    marks.push(waits(context, front, "", &count(front.units, "permit"), true)?);
    let mut seen = HashSet::from([front.site]);
    let lines = std::iter::once(&small).chain(&case.behind).filter(|w| seen.insert(w.site));
    let behind = |w: &&Wait| waits(context, w, " behind it", &count(w.units, "permit"), false);
    marks.extend(lines.take(SHOWN).filter_map(behind));
    let mut notes = vec![words::books(snapshot, r)];
    notes.push(
        "permits go out in the order of the queue: what is free is set aside for the first in it"
            .to_owned(),
    );
    let others: Vec<&Wait> = case.behind.iter().copied().filter(|w| w.id != small.id).collect();
    notes.extend(words::behind(snapshot, &others));
    let mut actors: Vec<ActorId> = vec![front.actor, small.actor];
    actors.dedup();
    Some(Finding {
        id,
        code: Code::Starvation,
        verdict: Verdict::Hazard,
        title: format!(
            "{} waits for {} of {}, and {} kept from the smaller requests behind it",
            context.who(front),
            count(front.units, "permit"),
            words::resource(r),
            if case.idle == 1 {
                "a free one is".to_owned()
            } else {
                format!("{} free ones are", case.idle)
            },
        ),
        marks,
        notes,
        help: Some(
            "ask for fewer at once, or give what is held for long a semaphore of its own"
                .to_owned(),
        ),
        since: front.since,
        resources: vec![r.id],
        actors,
        holds: holds.iter().take(SHOWN).map(|h| h.id).collect(),
        waits: context.queue(r.id).iter().take(1024).map(|w| w.id).collect(),
    })
}
