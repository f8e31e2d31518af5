//! Futures that hold, or were given what they queued for, are alive, and are no longer polled.
//!
//! tokio assigns permits to the front of the queue before that future is polled. A future that was polled once, in a
//! `select!` that another branch won, for example, and is still alive, keeps its place in the queue, and what it is
//! given there is nobody's to use.

#[cfg(test)]
mod tests;

use super::knot::{Case, set_aside};
use super::{Rule, identity};
use crate::diagnose::{Context, Grip};
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::rules::marks;
use crate::snapshot::{ResourceId, StackId, Wait, WaitId};
use crate::words;
use std::collections::{BTreeMap, HashSet};

pub(super) const RULE: Rule = Rule { find, stacks };

fn find(context: &Context<'_>) -> Vec<Finding> {
    let proven: HashSet<_> = context.stuck().waits.iter().map(|stuck| stuck.wait.id).collect();
    let stuck = context.suspected();
    let knots = stuck.cores.iter().filter(|core| !core.holds.is_empty() && !core.waits.is_empty());
    let told = knots
        .filter(|core| !core.waits.iter().any(|at| proven.contains(&stuck.waits[*at].wait.id)));
    let cases = told.map(|core| Case::new(context, stuck, core)).filter(Case::is_futurelock);
    let mut findings: Vec<Finding> = cases
        .filter(|case| case.confirmed() && !case.is_protocol())
        .filter_map(|case| {
            if case.is_certain() {
                return case.finding(Code::Futurelock, Verdict::Proven);
            }
            case.is_stalled().then(|| case.finding(Code::Futurelock, Verdict::Suspected)).flatten()
        })
        .collect();
    findings.extend(left_behind(context, &proven));
    findings
}

/// What was given to a future whose task has gone on, to who knows what, or has ended. It may come back to it, so
/// only what others have waited for in vain is told.
fn left_behind(context: &Context<'_>, proven: &HashSet<WaitId>) -> Vec<Finding> {
    let stuck = context.suspected();
    let mut cases: BTreeMap<ResourceId, (Vec<&Wait>, Vec<&Wait>)> = BTreeMap::new();
    for core in stuck.cores.iter().filter(|core| core.waits.is_empty()) {
        let behind = || core.behind.iter().map(|at| stuck.waits[*at].wait);
        for grip in core.holds.iter().map(|at| stuck.holds[*at].grip) {
            let Grip::Granted(wait) = grip else { continue };
            let (granted, waiting) = cases.entry(wait.resource).or_default();
            granted.push(wait);
            let open = |w: &&Wait| w.resource == wait.resource && !proven.contains(&w.id);
            waiting.extend(behind().filter(open));
        }
    }
    let told = cases.into_iter().filter_map(|(id, (granted, mut waiting))| {
        waiting.sort_by_key(|w| (w.since, w.id));
        waiting.dedup_by_key(|w| w.id);
        forgotten(context, id, &granted, &waiting)
    });
    told.collect()
}

fn forgotten(
    context: &Context<'_>,
    id: ResourceId,
    granted: &[&Wait],
    waiting: &[&Wait],
) -> Option<Finding> {
    let snapshot = context.now;
    let first = *waiting.first()?;
    let r = snapshot.resource(id)?;
    let shelved = *granted.iter().min_by_key(|w| w.granted_since)?;
    let since = shelved.granted_since?;
    let stall = context.limits.stall;
    let old = |since| context.age(since) >= stall;
    let confirmed = granted.iter().all(|w| context.confirmed_wait(w))
        && context.confirmed_wait(first)
        && context.confirmed_capacity(r);
    if !old(since) || !old(first.since) || !confirmed || context.quiet(r) < stall {
        return None;
    }
    let units = granted.iter().fold(0u64, |sum, w| sum.saturating_add(w.units));
    let mut seen = HashSet::new();
    let lines = granted.iter().filter(|w| seen.insert(w.site)).take(marks::SHOWN);
    let mut lines: Vec<Mark> = lines
        .filter_map(|w| {
            let since = words::since(snapshot, w.granted_since?);
            let actor = words::actor(snapshot, w.actor);
            Some(Mark {
                site: snapshot.site(w.site)?.clone(),
                label: set_aside(&actor, r, w.units, &since),
                primary: true,
                stack: w.stack,
            })
        })
        .collect();
    lines.extend(marks::wanted(context, r, first));
    let function = context.function(shelved);
    let queued =
        function.map_or_else(|| "a future".to_owned(), |name| format!("the future of {name}"));
    let mut notes = vec![words::books(snapshot, r)];
    notes.push(format!(
        "{} has been polled since without polling this future, or has ended and left it alive",
        words::actor(snapshot, shelved.actor)
    ));
    notes.extend(words::behind(snapshot, &waiting[1..]));
    let mut ids: Vec<_> = granted.iter().map(|w| w.id).collect();
    let identity = identity(Code::Futurelock, &ids);
    ids.extend(waiting.iter().map(|w| w.id));
    let mut actors: Vec<_> = granted.iter().map(|w| w.actor).chain([first.actor]).collect();
    actors.sort_unstable();
    actors.dedup();
    Some(Finding {
        id: identity,
        code: Code::Futurelock,
        verdict: Verdict::Suspected,
        title: format!(
            "{queued} was given {} of {} and is not polled, while {} waits for it",
            words::wanted(r, units),
            words::resource(r),
            context.who(first),
        ),
        marks: lines,
        notes,
        help: Some(
            "go on polling a future that has begun to queue, or drop it: a spawned task is polled by itself, a dropped acquire leaves the queue"
                .to_owned(),
        ),
        since,
        resources: vec![id],
        actors,
        holds: Vec::new(),
        waits: ids,
    })
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    context.doubtful().stacks()
}
