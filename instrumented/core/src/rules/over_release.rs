//! A limit that grew, because more was given back than was taken.
//!
//! Nobody says whether units are added to give back or to make the limit larger, so it is read from what goes with
//! it. Either everything that is acquired is forgotten and added back by those who take, as credits are, and more
//! came back than went. Or whoever adds has a permit at that time and drops it then, each and every time.
//!
//! A refill by somebody who never takes, a limit that is also made smaller, additions beside releases without any:
//! these are adjusted on purpose. And as an adjustment may be under way, it is told when nothing moves any more, or
//! when it has gone too far to be meant.

#[cfg(test)]
mod tests;

use super::{Rule, of_lines};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::rules::marks::{SHOWN, actors, flows_by_line};
use crate::snapshot::{ActorId, Direction, Flow, Kind, Resource, Site, StackId};
use crate::words::{self, count};

pub(super) const RULE: Rule = Rule { find, stacks };

/// Additions that are more than a coincidence.
const TWICE: u64 = 2;
/// What does not rest is told from so many additions on, when they have made the limit so many times as large.
const MANY: u64 = 1024;
const TIMES: u64 = 4;

fn find(context: &Context<'_>) -> Vec<Finding> {
    let cases = candidates(context).filter(|case| is_confirmed(context, case));
    cases.filter_map(|case| finding(context, &case)).collect()
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    candidates(context).flat_map(|case| case.adds.into_iter().map(|flow| flow.stack)).collect()
}

struct Case<'a> {
    r: &'a Resource,
    /// Where too much is given back.
    adds: Vec<&'a Flow>,
    forgets: Vec<&'a Flow>,
}

fn candidates<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = Case<'a>> + 'c {
    context.now.resources.iter().filter_map(|r| {
        let limit = r.kind == Kind::Semaphore && r.settled && !r.closed && r.initial > 0;
        if !limit || r.settings.grows || r.capacity() <= r.initial {
            return None;
        }
        let flows = |direction: Direction| {
            r.history.flows.iter().filter(move |flow| flow.direction == direction)
        };
        let adds: Vec<&Flow> = flows(Direction::Added).collect();
        let forgets: Vec<&Flow> = flows(Direction::Forgotten).collect();
        let calls = total(&adds, |flow| flow.calls);
        let gone_far = calls >= MANY && r.capacity() >= r.initial.saturating_mul(TIMES);
        let rests = context.quiet(r) >= context.limits.stall;
        // Where not all is on record, it cannot be held against what was taken.
        let complete = total(&adds, |flow| flow.units) == r.added
            && total(&forgets, |flow| flow.units) == r.forgotten;
        if !complete || !(rests || gone_far) {
            return None;
        }
        let adds = if forgets.is_empty() {
            dropped_too(r, adds)
        } else {
            credits(context, r, &forgets, adds)
        };
        (!adds.is_empty()).then_some(Case { r, adds, forgets })
    })
}

/// The excess was there before: it is not about to be taken. What rests has been there for as long.
fn is_confirmed(context: &Context<'_>, case: &Case<'_>) -> bool {
    if context.quiet(case.r) >= context.limits.stall {
        return true;
    }
    let before = context.resource_before(case.r.id);
    before.is_some_and(|before| before.settled && before.capacity() > before.initial)
}

/// All additions, if each was made by someone who had a permit and dropped it, and no permit was dropped without.
fn dropped_too<'a>(r: &Resource, adds: Vec<&'a Flow>) -> Vec<&'a Flow> {
    let dropped = total(&adds, |flow| flow.then_released);
    let each = adds.iter().all(|flow| flow.holding == flow.calls && is_even(flow));
    let pending = total(&adds, |flow| flow.holding).saturating_sub(dropped);
    let all = dropped == r.counters.released && pending <= r.usage.holders;
    if dropped >= TWICE && each && all { adds } else { Vec::new() }
}

/// The additions of those who take, if everything that was taken was forgotten, and they gave back more.
fn credits<'a>(
    context: &Context<'_>,
    r: &Resource,
    forgets: &[&Flow],
    adds: Vec<&'a Flow>,
) -> Vec<&'a Flow> {
    let credits = r.counters.released == 0 && context.holds(r.id).is_empty();
    let takes = |flow: &Flow| flow.several || forgets.iter().any(|taken| taken.actor == flow.actor);
    let adds: Vec<&Flow> = adds.into_iter().filter(|flow| takes(flow)).collect();
    let size = forgets[0].most;
    let even = adds.iter().chain(forgets).all(|flow| is_even(flow) && flow.most == size);
    let back = total(&adds, |flow| flow.units);
    if credits && even && back > total(forgets, |flow| flow.units) { adds } else { Vec::new() }
}

/// Every call was for the same number of units.
fn is_even(flow: &Flow) -> bool {
    flow.calls.checked_mul(flow.most) == Some(flow.units)
}

fn total(flows: &[&Flow], of: fn(&Flow) -> u64) -> u64 {
    flows.iter().fold(0, |sum, flow| sum.saturating_add(of(flow)))
}

fn finding(context: &Context<'_>, case: &Case<'_>) -> Option<Finding> {
    let (snapshot, r) = (context.now, case.r);
    let credits = !case.forgets.is_empty();
    let mark = |flow: &Flow| {
        let by = if flow.several {
            "by several tasks".to_owned()
        } else {
            format!("by {}", words::actor(snapshot, flow.actor))
        };
        let (what, verb) =
            (count(flow.units, "permit"), if flow.units == 1 { "was" } else { "were" });
        let label = match flow.direction {
            Direction::Added if credits => format!("{what} {verb} added back here {by}"),
            Direction::Added => format!("{what} {verb} added here {by}, and as many dropped"),
            _ => format!("{what} {verb} forgotten here {by}"),
        };
        Some(Mark {
            site: snapshot.site(flow.site)?.clone(),
            label,
            primary: flow.direction == Direction::Added,
            stack: flow.stack,
        })
    };
    let mut marks: Vec<Mark> =
        flows_by_line(case.adds.iter().copied()).iter().take(SHOWN).filter_map(mark).collect();
    let sites: Vec<Site> = marks.iter().map(|mark| mark.site.clone()).collect();
    let first = case.adds.iter().min_by_key(|flow| flow.first).filter(|_| !marks.is_empty())?;
    marks.extend(flows_by_line(case.forgets.iter().copied()).iter().take(SHOWN).filter_map(mark));
    let mut who: Vec<ActorId> = case.adds.iter().map(|flow| flow.actor).collect();
    who.sort_unstable();
    who.dedup();
    let name =
        context.function_of(first.stack).unwrap_or_else(|| actors(context, who.iter().copied()));
    let of = words::resource(r);
    let (title, help) = if credits {
        let (back, taken) =
            (total(&case.adds, |flow| flow.units), total(&case.forgets, |flow| flow.units));
        (
            format!("{name} adds back more permits of {of} than were taken: {back} for {taken}"),
            "add each back in one place, for example in the `Drop` of a guard; if the limit is meant to grow, say so with `grows`",
        )
    } else {
        (
            format!("{name} adds permits to {of} that come back once more when they are dropped"),
            "let dropping the permit give it back, and add none; if the limit is meant to grow, say so with `grows`",
        )
    };
    Some(Finding {
        id: of_lines(Code::OverRelease, &sites),
        code: Code::OverRelease,
        verdict: Verdict::Hazard,
        title,
        marks,
        notes: vec![
            words::books(snapshot, r),
            format!("the limit was {} and is {} now", r.initial, r.capacity()),
        ],
        help: Some(help.to_owned()),
        since: first.first,
        resources: vec![r.id],
        actors: who,
        holds: Vec::new(),
        waits: Vec::new(),
    })
}
