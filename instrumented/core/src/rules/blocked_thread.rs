//! Threads that run tasks and are blocked by a wait.
//!
//! A `block_on` within the poll of a task keeps its thread from all other tasks. Where the holder needs that very
//! thread it is a deadlock, which is told as such; else it is told here, once the thread has stood still for long
//! enough. Threads for blocking work may wait as long as they like.

#[cfg(test)]
mod tests;

use super::{Rule, identity, marks};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::snapshot::{Flavor, StackId, Wait, WaitId};
use crate::words;
use std::collections::HashSet;

/// Findings of one look; more blocked threads than this tell nothing new.
const MOST: usize = 16;

pub(super) const RULE: Rule = Rule { find, stacks };

fn find(context: &Context<'_>) -> Vec<Finding> {
    let told = behind_what_is_told(context);
    let waits = context.now.waits.iter().filter(|w| context.blocks_thread(w));
    let waits = waits.filter(|w| !told.contains(&w.id));
    let open = waits.filter(|w| !context.is_explained(w.id) && context.confirmed_wait(w));
    open.filter_map(|wait| finding(context, wait)).take(MOST).collect()
}

/// Who waits for others to get on, of whom an earlier rule tells.
fn behind_what_is_told(context: &Context<'_>) -> HashSet<WaitId> {
    let stuck = context.suspected();
    let id = |at: &usize| stuck.waits[*at].wait.id;
    let told = stuck.cores.iter().filter(|c| c.waits.iter().any(|at| context.is_explained(id(at))));
    told.flat_map(|core| core.behind.iter().map(id)).collect()
}

fn finding(context: &Context<'_>, wait: &Wait) -> Option<Finding> {
    let snapshot = context.now;
    let (r, runtime) = (snapshot.resource(wait.resource)?, snapshot.runtime(wait.runtime)?);
    let name = words::resource(r);
    let (who, what) = (context.who(wait), words::wanted(r, wait.units));
    let thread = match (runtime.flavor, runtime.workers) {
        (Flavor::CurrentThread, _) | (_, 1) => "the only thread of its runtime".to_owned(),
        (_, workers) => format!("one of the {workers} threads of its runtime"),
    };
    let holds: Vec<_> = context.holds(r.id).iter().collect();
    let mut lines = marks::taken(context, r, &holds, false);
    let age = words::since(snapshot, wait.since);
    lines.push(Mark {
        site: snapshot.site(wait.site)?.clone(),
        label: format!(
            "{} has been blocking its thread here for {age}, until it has {what} of {name}",
            words::actor(snapshot, wait.actor)
        ),
        primary: true,
        stack: wait.stack,
    });
    let notes = vec![
        words::books(snapshot, r),
        "the wait is in a `block_on` within a task: until it ends, its thread runs no other task"
            .to_owned(),
    ];
    Some(Finding {
        id: identity(Code::BlockedThread, &[wait.id]),
        code: Code::BlockedThread,
        verdict: Verdict::Suspected,
        title: format!("{who} blocks {thread} while it waits for {what} of {name}"),
        marks: lines,
        notes,
        help: Some(
            "`.await` it instead of blocking, or block on a thread of its own with `spawn_blocking`"
                .to_owned(),
        ),
        since: wait.since,
        resources: vec![r.id],
        actors: vec![wait.actor],
        holds: Vec::new(),
        waits: vec![wait.id],
    })
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    let waits = context.now.waits.iter().filter(|w| context.may_block(w));
    waits.map(|w| w.stack).collect()
}
