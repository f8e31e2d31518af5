//! Units that were forgotten and not added back.
//!
//! To forget a permit is no fault: the units may be credits that are added back when an answer comes, a limit may
//! be made smaller for good. So it takes one of two signs. Either somebody waits for units that no hold can give
//! back, while nothing moves and, as far as can be told, nobody is left who could add any. Or all that was ever
//! acquired was forgotten, as credits are, and everybody who could add them back has ended.

use super::{LISTED, identity, is_explained};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::rules::marks::{NAMED, SHOWN, actors, behind, flows_by_line, wanted};
use crate::rules::of_lines;
use crate::snapshot::{ActorId, Direction, Flow, Kind, Resource, Site, StackId, Wait};
use crate::text::age;
use crate::words::{self, count};

/// Calls without anybody who waits: one may be anything.
const CALLS: u64 = 2;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    candidates(context)
        .filter(|case| !is_explained(context, case.r))
        .filter(|case| case.is_stall(context) || case.is_over(context))
        .filter_map(|case| finding(context, &case))
        .collect()
}

pub(super) fn stacks(context: &Context<'_>) -> Vec<StackId> {
    candidates(context)
        .flat_map(|case| case.forgets().map(|f| f.stack).collect::<Vec<_>>())
        .collect()
}

struct Case<'a> {
    r: &'a Resource,
    /// Forgotten, and not added back.
    lost: u64,
    /// Who cannot be served by any hold.
    first: Option<&'a Wait>,
}

fn candidates<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = Case<'a>> + 'c {
    context.now.resources.iter().filter_map(|r| {
        if r.kind != Kind::Semaphore || !r.settled || r.closed || r.initial == 0 || r.settings.grows
        {
            return None;
        }
        let lost = lost(r);
        let first = context
            .first_unserved(r)
            .filter(|first| first.units > r.capacity() && context.balances(r));
        (lost > 0 && units(r, Direction::Forgotten) > 0).then_some(Case { r, lost, first })
    })
}

fn units(r: &Resource, direction: Direction) -> u64 {
    flows(r, direction).fold(0, |sum, flow| sum.saturating_add(flow.units))
}

fn flows(r: &Resource, direction: Direction) -> impl Iterator<Item = &Flow> {
    r.history.flows.iter().filter(move |flow| flow.direction == direction)
}

impl<'a> Case<'a> {
    fn forgets(&self) -> impl Iterator<Item = &'a Flow> + use<'a> {
        flows(self.r, Direction::Forgotten)
    }

    /// Somebody waits for it, and nobody is left who could add it back, or nobody has for very long.
    fn is_stall(&self, context: &Context<'_>) -> bool {
        let Some(first) = self.first else { return false };
        let stood = context.age(first.since).min(context.quiet(self.r));
        let limits = context.limits;
        context.confirmed_wait(first)
            && (stood >= limits.overdue && !self.is_under_way(context)
                || stood >= limits.stall && self.is_abandoned(context))
    }

    /// Units have been added back before, and there are tasks enough that could add the missing ones, one each: a
    /// server may keep one for as long as a connection lasts.
    fn is_under_way(&self, context: &Context<'_>) -> bool {
        self.r.added > 0 && context.free_tasks().is_none_or(|free| free >= self.lost)
    }

    /// Credits of which some never came back, and all is over.
    fn is_over(&self, context: &Context<'_>) -> bool {
        let r = self.r;
        let calls = self.forgets().fold(0, |sum: u64, flow| sum.saturating_add(flow.calls));
        let credits = r.counters.released == 0
            // Who only tries may well use them up for good.
            && r.counters.rejected == 0
            && flows(r, Direction::Withdrawn).next().is_none();
        let last = self.forgets().map(|flow| flow.last).max();
        credits
            && !r.settings.long_held
            && calls >= CALLS
            && context.holds(r.id).is_empty()
            && context.queue(r.id).is_empty()
            && last.is_some_and(|last| context.age(last) >= context.limits.orphan_grace)
            && self.is_abandoned(context)
    }

    /// Everybody who forgot some was a task, and no task is left but those that wait.
    fn is_abandoned(&self, context: &Context<'_>) -> bool {
        context.free_tasks() == Some(0)
            && self
                .forgets()
                .all(|f| matches!(f.actor, ActorId::Task(_)) && context.is_named(f.stack))
    }
}

fn finding(context: &Context<'_>, case: &Case<'_>) -> Option<Finding> {
    let (snapshot, r) = (context.now, case.r);
    let mut marks = forgets(context, r);
    let sites: Vec<Site> = marks.iter().map(|mark| mark.site.clone()).collect();
    let first = case.forgets().next().filter(|_| !marks.is_empty())?;
    marks.extend(flows(r, Direction::Added).take(SHOWN).filter_map(|flow| mark(context, flow)));
    let mut notes = vec![words::books(snapshot, r)];
    notes.push(format!(
        "it was created with {}; {} {} missing",
        count(r.initial, "permit"),
        case.lost,
        if case.lost == 1 { "is" } else { "are" }
    ));
    if let Some(first) = case.first {
        marks.extend(wanted(context, r, first));
        notes.push(format!("nothing has moved on it for {}", age(context.quiet(r))));
        notes.extend(behind(context, r, first));
    }
    if case.is_abandoned(context) {
        notes.push("no task is left that could add them back".to_owned());
    }
    let (verdict, id) = match case.first {
        Some(_) => (Verdict::Suspected, identity(r)),
        // Told once for these lines, however many such resources there are.
        None => (Verdict::Hazard, of_lines(Code::Leak, &sites)),
    };
    let mut who: Vec<ActorId> = case.forgets().map(|flow| flow.actor).collect();
    who.sort_unstable();
    who.dedup();
    who.truncate(NAMED);
    let name = context.function_of(first.stack);
    let name = name.unwrap_or_else(|| actors(context, who.iter().copied()));
    Some(Finding {
        id,
        code: Code::Leak,
        verdict,
        title: if r.added == 0 {
            format!(
                "{name} forgets permits of {}, and nothing adds them back",
                words::resource(r)
            )
        } else {
            format!(
                "{name} forgets permits of {}, and {} of {} were not added back",
                words::resource(r),
                case.lost,
                case.lost.saturating_add(r.added)
            )
        },
        marks,
        notes,
        help: Some(
            "keep the permit, so that dropping it gives it back on every path, or add permits in a `Drop`"
                .to_owned(),
        ),
        since: case.first.map_or(first.first, |w| w.since),
        resources: vec![r.id],
        actors: who,
        holds: Vec::new(),
        waits: context.queue(r.id).iter().take(LISTED).map(|w| w.id).collect(),
    })
}

/// Where units were forgotten.
pub(super) fn forgets(context: &Context<'_>, r: &Resource) -> Vec<Mark> {
    let lines = flows_by_line(flows(r, Direction::Forgotten));
    lines.iter().take(SHOWN).filter_map(|flow| mark(context, flow)).collect()
}

/// Units that were forgotten and not added back.
pub(super) fn lost(r: &Resource) -> u64 {
    let withdrawn = units(r, Direction::Withdrawn);
    r.forgotten.saturating_sub(withdrawn).saturating_sub(r.added)
}

fn mark(context: &Context<'_>, flow: &Flow) -> Option<Mark> {
    let forgets = flow.direction != Direction::Added;
    let verb = if forgets { "forgotten" } else { "added back" };
    let by = if flow.several {
        "by several tasks".to_owned()
    } else {
        format!("by {}", words::actor(context.now, flow.actor))
    };
    let last = if flow.calls > 1 { "the last one " } else { "" };
    Some(Mark {
        site: context.now.site(flow.site)?.clone(),
        label: format!(
            "{} {} {verb} here {by}, {last}{} ago",
            count(flow.units, "permit"),
            if flow.units == 1 { "was" } else { "were" },
            words::since(context.now, flow.last)
        ),
        primary: forgets,
        stack: flow.stack,
    })
}
