//! Waits that keep each other, and so themselves, from ever being served.
//!
//! Proven where every permit is certain to be with who waits. Where that is only likely, all of it must have stood
//! still for a time, and the evidence is told: permits that so far always came back from the task that took them,
//! or nobody else being left who could have them. What was given to a thread, or into `spawn_blocking`, is in
//! nobody's count, so the last can be wrong; a permit that was so far released by others does not count unless it is
//! out for far longer than those before.

#[cfg(test)]
mod tests;

use super::Rule;
use super::knot::Case;
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Verdict};
use crate::snapshot::StackId;

pub(super) const RULE: Rule = Rule { find, stacks };

fn find(context: &Context<'_>) -> Vec<Finding> {
    let stuck = context.stuck();
    let cores = stuck.cores.iter().filter(|core| !core.holds.is_empty());
    let proven = cores
        .map(|core| Case::new(context, stuck, core))
        .filter(Case::confirmed)
        .filter(|case| !case.is_protocol());
    let mut findings: Vec<Finding> =
        proven.filter_map(|case| case.finding(Code::Deadlock, Verdict::Proven)).collect();
    context.explain(&findings);

    let stuck = context.suspected();
    let knots = stuck.cores.iter().filter(|core| !core.holds.is_empty() && !core.waits.is_empty());
    let suspected = knots
        .map(|core| Case::new(context, stuck, core))
        .filter(|case| !case.is_futurelock() && !case.is_explained())
        .filter(|case| case.confirmed() && !case.is_protocol())
        .filter(|case| {
            if case.is_brewing() {
                case.hold_back();
            }
            case.is_stalled()
        });
    findings.extend(suspected.filter_map(|case| case.finding(Code::Deadlock, Verdict::Suspected)));
    findings
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    [context.candidates().stacks(), context.doubtful().stacks()].concat()
}
