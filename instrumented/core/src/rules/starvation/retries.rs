//! Someone who gives up and tries again loses the place in the queue each time, and is never served.
//!
//! Whoever sheds load gives up, too. But then some are served now and then, or it is another task each time.

use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::rules::marks::taken;
use crate::rules::of_lines;
use crate::snapshot::{Hold, Resource, StackId, Streak};
use crate::text::age;
use crate::words::{self, count};

/// Acquires that were given up one after the other, with none served between.
const GIVEN_UP: u64 = 16;
/// What others got meanwhile.
const SERVED: u64 = 16;
/// It must go on for this many times the time after which something counts as standing still.
const TIMES: u32 = 2;

pub(super) fn find<'c>(context: &'c Context<'_>) -> impl Iterator<Item = Finding> + 'c {
    candidates(context).filter_map(|(r, streak)| finding(context, r, streak))
}

pub(super) fn stacks<'c>(context: &'c Context<'_>) -> impl Iterator<Item = StackId> + 'c {
    candidates(context).map(|(_, streak)| streak.stack)
}

fn candidates<'c, 'a>(
    context: &'c Context<'a>,
) -> impl Iterator<Item = (&'a Resource, &'a Streak)> + 'c {
    let open = context.now.resources.iter().filter(|r| !r.closed && r.initial > 0);
    let streaks = open.flat_map(|r| r.history.streaks.iter().map(move |streak| (r, streak)));
    streaks.filter(|(_, streak)| {
        let stall = context.limits.stall;
        streak.count >= GIVEN_UP
            && streak.others >= SERVED
            && streak.last.since(streak.since) >= stall.saturating_mul(TIMES)
            // It goes on.
            && context.age(streak.last) < stall
    })
}

fn finding(context: &Context<'_>, r: &Resource, streak: &Streak) -> Option<Finding> {
    let snapshot = context.now;
    let site = snapshot.site(streak.site)?.clone();
    let id = of_lines(Code::Starvation, [&site]);
    let lasted = streak.last.since(streak.since);
    let each = lasted / u32::try_from(streak.count).unwrap_or(u32::MAX).max(1);
    let name = words::actor(snapshot, streak.actor);
    let who = context.function_of(streak.stack).unwrap_or_else(|| name.clone());
    let mut marks = vec![Mark {
        site,
        label: format!(
            "{name} gave up here {} times in {}, and was never served",
            streak.count,
            age(lasted)
        ),
        primary: true,
        stack: streak.stack,
    }];
    // Who has it now stands for those who got it meanwhile.
    let other = context.holds(r.id).iter().find(|h| h.actor != streak.actor);
    let others: Vec<&Hold> = other.into_iter().collect();
    marks.extend(taken(context, r, &others, false));
    let notes = vec![
        words::books(snapshot, r),
        format!(
            "others took {} in that time; it gave up about every {} and lost its place in the queue",
            count(streak.others, "permit"),
            age(each)
        ),
    ];
    Some(Finding {
        id,
        code: Code::Starvation,
        verdict: Verdict::Hazard,
        title: format!("{who} gives up waiting for {} again and again, and is never served", words::resource(r)),
        marks,
        notes,
        help: Some(
            "keep the place in the queue: pin the acquire outside of the loop and poll it by reference, or wait for longer"
                .to_owned(),
        ),
        since: streak.since,
        resources: vec![r.id],
        actors: vec![streak.actor],
        holds: Vec::new(),
        waits: Vec::new(),
    })
}
