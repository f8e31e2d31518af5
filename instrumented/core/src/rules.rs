//! One rule a file. A rule is told everything by the [`Context`] and answers with findings.

mod blocked_thread;
mod deadlock;
mod edges;
mod futurelock;
mod inversion;
mod knot;
mod leak;
mod marks;
mod nested;
mod over_release;
mod starvation;
#[cfg(test)]
mod tests;
mod unsatisfiable;
mod zero_hold;

use crate::diagnose::Context;
use crate::finding::{Code, Finding, FindingId};
use crate::snapshot::{Site, StackId, WaitId};

/// A rule.
pub(crate) struct Rule {
    /// What is wrong.
    pub(crate) find: fn(&Context<'_>) -> Vec<Finding>,
    /// The stacks whose names it would need for that.
    pub(crate) stacks: fn(&Context<'_>) -> Vec<StackId>,
}

/// Every rule, the more specific before the more general: what one has explained, the later ones leave alone
/// (see [`Context::is_explained`]).
pub(crate) const ALL: &[Rule] = &[
    futurelock::RULE,
    deadlock::RULE,
    unsatisfiable::RULE,
    starvation::RULE,
    blocked_thread::RULE,
    leak::RULE,
    over_release::RULE,
    nested::RULE,
    inversion::RULE,
    zero_hold::RULE,
];

/// The identity of a finding about these waits, independent of their order.
fn identity(code: Code, waits: &[WaitId]) -> FindingId {
    let mut ids: Vec<u64> = waits.iter().map(|w| w.0).collect();
    ids.sort_unstable();
    FindingId(fnv1a(code.as_str().bytes().chain(ids.into_iter().flat_map(u64::to_le_bytes))))
}

/// The identity of a hazard: the same lines are told once, however many resources are used on them.
fn of_lines<'a>(code: Code, sites: impl IntoIterator<Item = &'a Site>) -> FindingId {
    let mut lines: Vec<String> = sites.into_iter().map(|site| format!("\n{site}")).collect();
    lines.sort_unstable();
    lines.dedup();
    FindingId(fnv1a(code.as_str().bytes().chain(lines.iter().flat_map(|line| line.bytes()))))
}

/// A hash that is the same in every build and for ever.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}
