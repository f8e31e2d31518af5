//! Units that nothing will give back: forgotten, kept by what has outlived its task, or held for far too long.

mod forgotten;
mod orphaned;
mod overdue;
#[cfg(test)]
mod tests;

use super::Rule;
use crate::diagnose::Context;
use crate::finding::{Code, Finding, FindingId, Mark};
use crate::rules::fnv1a;
use crate::snapshot::{ActorId, Hold, Resource, ResourceId, SiteId, StackId, Wait};
use crate::words;
use std::collections::{HashMap, HashSet};

pub(super) const RULE: Rule = Rule { find, stacks };

/// Lines of one finding that are shown; the others are counted.
const SHOWN: usize = 4;
/// Actors that are named; more are counted.
const NAMED: usize = 5;

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

/// The holds by the lines that took them, in the order of the first.
fn by_line<'a>(holds: &[&'a Hold]) -> Vec<(SiteId, Vec<&'a Hold>)> {
    let mut places: HashMap<SiteId, usize> = HashMap::new();
    let mut lines: Vec<(SiteId, Vec<&Hold>)> = Vec::new();
    for hold in holds {
        let at = *places.entry(hold.site).or_insert_with(|| {
            lines.push((hold.site, Vec::new()));
            lines.len() - 1
        });
        lines[at].1.push(hold);
    }
    lines
}

/// What was taken, by whom and when, one mark a line.
fn taken(context: &Context<'_>, r: &Resource, holds: &[&Hold]) -> Vec<Mark> {
    let snapshot = context.now;
    let mark = |(site, holds): (SiteId, Vec<&Hold>)| {
        let first = holds.iter().min_by_key(|h| h.since)?;
        let ago = if holds.len() > 1 { "the first " } else { "" };
        Some(Mark {
            site: snapshot.site(site)?.clone(),
            label: format!(
                "{} took {} of {} here, {ago}{} ago",
                actors(context, holds.iter().map(|h| h.actor)),
                words::taken(r, units(&holds)),
                words::resource(r),
                words::since(snapshot, first.since)
            ),
            primary: true,
            stack: first.stack,
        })
    };
    by_line(holds).into_iter().take(SHOWN).filter_map(mark).collect()
}

/// Where those wait who want it, one mark a line.
fn wanted(context: &Context<'_>, r: &Resource, first: &Wait) -> Vec<Mark> {
    let snapshot = context.now;
    let mut seen = HashSet::new();
    let lines = context.queue(r.id).iter().skip_while(|w| w.id != first.id);
    let lines = lines.filter(|w| seen.insert(w.site)).take(SHOWN);
    let mark = |wait: &Wait| {
        Some(Mark {
            site: snapshot.site(wait.site)?.clone(),
            label: format!(
                "{} has been waiting here for {} for {}",
                words::actor(snapshot, wait.actor),
                words::wanted(r, wait.units),
                words::since(snapshot, wait.since)
            ),
            primary: false,
            stack: wait.stack,
        })
    };
    lines.filter_map(mark).collect()
}

/// Who else waits.
fn behind(context: &Context<'_>, r: &Resource, first: &Wait) -> Option<String> {
    let waits: Vec<&Wait> =
        context.queue(r.id).iter().skip_while(|w| w.id != first.id).skip(1).collect();
    words::behind(context.now, &waits)
}

/// Who took these: the functions, or the actors where no name is known.
fn takers(context: &Context<'_>, holds: &[&Hold]) -> String {
    let mut functions: Vec<String> =
        by_line(holds).iter().filter_map(|(_, line)| context.function_of(line[0].stack)).collect();
    functions.dedup();
    if functions.is_empty() || functions.len() > 2 {
        return actors(context, holds.iter().map(|h| h.actor));
    }
    words::list(&functions)
}

/// `tasks 3 and 4`, or how many if they are many.
fn actors(context: &Context<'_>, actors: impl Iterator<Item = ActorId>) -> String {
    let mut seen = HashSet::new();
    let actors: Vec<ActorId> = actors.filter(|actor| seen.insert(*actor)).collect();
    if actors.len() > NAMED {
        return words::count(actors.len() as u64, "task");
    }
    words::actors(context.now, &actors)
}

fn units(holds: &[&Hold]) -> u64 {
    holds.iter().fold(0, |sum, h| sum.saturating_add(h.units))
}
