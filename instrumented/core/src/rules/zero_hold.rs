//! Permits that are dropped in the statement that acquired them.

use super::Rule;
use crate::diagnose::Context;
use crate::finding::Finding;

pub(super) const RULE: Rule = Rule { find, stacks: |_| Vec::new() };

fn find(_: &Context<'_>) -> Vec<Finding> {
    Vec::new()
}
