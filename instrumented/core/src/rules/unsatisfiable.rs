//! A wait for more units than there are.

use super::marks::waits;
use super::{Rule, identity};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Verdict};
use crate::snapshot::{Resource, StackId, Wait};
use crate::words::{self, count};

pub(super) const RULE: Rule = Rule { find, stacks };

fn find(context: &Context<'_>) -> Vec<Finding> {
    candidates(context)
        .filter(|(r, w)| context.confirmed_wait(w) && context.confirmed_capacity(r))
        .filter_map(|(r, w)| finding(context, r, w))
        .collect()
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    candidates(context).map(|(_, w)| w.stack).collect()
}

fn candidates<'a>(context: &Context<'a>) -> impl Iterator<Item = (&'a Resource, &'a Wait)> {
    context.now.waits.iter().filter_map(|w| {
        let r = context.now.resource(w.resource)?;
        (w.units > r.capacity() && context.is_judged(r)).then_some((r, w))
    })
}

fn finding(context: &Context<'_>, r: &Resource, w: &Wait) -> Option<Finding> {
    let snapshot = context.now;
    let mut notes = vec![words::books(snapshot, r)];
    let stuck = context.stuck();
    let core = stuck
        .cores
        .iter()
        .find(|core| core.waits.iter().any(|at| stuck.waits[*at].wait.id == w.id));
    let behind: Vec<&Wait> =
        core.iter().flat_map(|core| &core.behind).map(|at| stuck.waits[*at].wait).collect();
    notes.extend(words::behind(snapshot, &behind));
    Some(Finding {
        id: identity(Code::Unsatisfiable, &[w.id]),
        code: Code::Unsatisfiable,
        verdict: Verdict::Proven,
        title: format!(
            "{} waits for {} of {}, which has {}",
            context.who(w),
            count(w.units, "permit"),
            words::resource(r),
            r.capacity()
        ),
        marks: vec![waits(context, w, "", &count(w.units, "permit"), true)?],
        notes,
        help: Some(format!(
            "ask for {} at most, or create it with {}",
            r.capacity(),
            count(w.units, "permit")
        )),
        since: w.since,
        resources: vec![r.id],
        actors: vec![w.actor],
        holds: Vec::new(),
        waits: vec![w.id],
    })
}
