//! Units that nothing will give back: forgotten, kept by what has outlived its task, or held for far too long.

mod forgotten;
mod orphaned;
mod overdue;
#[cfg(test)]
mod tests;

use super::Rule;
use crate::diagnose::Context;
use crate::finding::{Code, Finding, FindingId};
use crate::rules::fnv1a;
use crate::snapshot::{Resource, ResourceId, StackId};
use std::collections::HashSet;

pub(super) const RULE: Rule = Rule { find, stacks };

/// Holds and waits that a finding lists; a large leak grows without end.
const LISTED: usize = 1024;

/// One leak of a resource is told once, by the most specific of its three faces.
fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = forgotten::find(context);
    for face in [orphaned::find, overdue::find] {
        let told: HashSet<ResourceId> = findings.iter().map(|f| f.resources[0]).collect();
        findings.extend(face(context, &told));
    }
    findings
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    [forgotten::stacks, orphaned::stacks, overdue::stacks]
        .iter()
        .flat_map(|stacks| stacks(context))
        .collect()
}

/// The resource, not its holds: more of them may be lost while the trouble lasts.
fn identity(r: &Resource) -> FindingId {
    FindingId(fnv1a(Code::Leak.as_str().bytes().chain(r.id.0.to_le_bytes())))
}

/// Whether an earlier rule tells why this resource does not move.
fn is_explained(context: &Context<'_>, r: &Resource) -> bool {
    context.queue(r.id).iter().any(|w| context.is_explained(w.id))
        || context.holds(r.id).iter().any(|h| context.is_explained_hold(h.id))
}
