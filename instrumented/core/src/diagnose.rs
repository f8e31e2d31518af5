//! From what was true to what it means.
//!
//! [`diagnose`] is a pure function of two snapshots. It builds a context (the indexes that rules share, each
//! built when first asked for) and runs every rule of `rules/` on it. A rule reports only what the evidence
//! forces: where a path has no names, books were on the move, or a permit may have gone elsewhere, it says
//! nothing. All of it is linear in the snapshot, apart from sorting; nothing recurses.

#[cfg(test)]
mod anything;
mod candidates;
mod context;
mod grip;
#[cfg(test)]
mod oracle;
mod reduction;
mod relations;
mod stuck;
mod suspicion;

use crate::finding::Finding;
use crate::rules;
use crate::snapshot::{Snapshot, StackId};
pub(crate) use context::Context;
pub(crate) use grip::{Grip, Why};
pub(crate) use relations::{Mode, Relations};
use std::time::Duration;
pub(crate) use stuck::{Cause, Core, Stuck};

/// The thresholds of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What is proven must have been so in two snapshots at least this far apart.
    pub confirm: Duration,
    /// A wait is in the queue this long after it began, if its last poll does not say so earlier. Two waits that
    /// may have entered in either order are not taken to be behind each other.
    pub queue_slack: Duration,
    /// What is only suspected must have stood still for this long.
    pub stall: Duration,
    /// Units may be set aside for a wait that nobody polls for this long.
    pub futurelock: Duration,
    /// A hold may outlive the task that acquired it by this much before it looks lost.
    pub orphan_grace: Duration,
    /// A hold older than this, for which others wait, is overdue.
    pub overdue: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            confirm: Duration::from_millis(50),
            queue_slack: Duration::from_millis(10),
            stall: Duration::from_secs(5),
            futurelock: Duration::from_secs(1),
            orphan_grace: Duration::from_secs(30),
            overdue: Duration::from_secs(60),
        }
    }
}

/// What is wrong in `current`, the oldest trouble first.
///
/// `previous` is an earlier snapshot of the same process; without one, or with one that is not
/// [`Limits::confirm`] older, nothing can be proven.
#[must_use]
pub fn diagnose(current: &Snapshot, previous: Option<&Snapshot>, limits: &Limits) -> Vec<Finding> {
    let context = Context::new(current, previous, limits);
    let mut findings: Vec<Finding> = Vec::new();
    for rule in rules::ALL {
        let found = (rule.find)(&context);
        context.explain(&found);
        findings.extend(found);
    }
    findings.sort_by_key(|f| (f.since, f.code, f.id));
    findings
}

/// The stacks that [`diagnose`] would look into, each once.
///
/// Names are costly to resolve, so a monitor asks first and resolves just these. Empty as long as no wait could
/// possibly be stuck.
#[must_use]
pub fn needs_names(current: &Snapshot, limits: &Limits) -> Vec<StackId> {
    let context = Context::new(current, None, limits);
    let mut stacks: Vec<StackId> =
        rules::ALL.iter().flat_map(|rule| (rule.stacks)(&context)).collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks.retain(|id| *id != StackId::NONE);
    stacks
}
