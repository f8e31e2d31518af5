//! Waits that are passed over, although the resource works or has units left.

mod queue;
mod retries;
#[cfg(test)]
mod tests;

use super::Rule;
use crate::diagnose::Context;
use crate::finding::Finding;

pub(super) const RULE: Rule = Rule {
    find,
    stacks: |context| queue::stacks(context).chain(retries::stacks(context)).collect(),
};

fn find(context: &Context<'_>) -> Vec<Finding> {
    queue::find(context).chain(retries::find(context)).collect()
}
