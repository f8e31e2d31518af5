//! What several rules say of holds and waits, line by line.

use crate::diagnose::Context;
use crate::finding::Mark;
use crate::snapshot::{ActorId, Flow, Hold, Resource, SiteId, Wait};
use crate::words;
use std::collections::{HashMap, HashSet};

/// Lines of one finding that are shown; the others are counted.
pub(super) const SHOWN: usize = 4;
/// Actors that are named; more are counted.
pub(super) const NAMED: usize = 5;

/// The holds by the lines that took them, in the order of the first.
pub(super) fn by_line<'a>(holds: &[&'a Hold]) -> Vec<(SiteId, Vec<&'a Hold>)> {
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
pub(super) fn taken(
    context: &Context<'_>,
    r: &Resource,
    holds: &[&Hold],
    primary: bool,
) -> Vec<Mark> {
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
            primary,
            stack: first.stack,
        })
    };
    by_line(holds).into_iter().take(SHOWN).filter_map(mark).collect()
}

/// The flows by line and direction: several stacks may lead to one line.
pub(super) fn flows_by_line<'a>(flows: impl IntoIterator<Item = &'a Flow>) -> Vec<Flow> {
    let mut lines: Vec<Flow> = Vec::new();
    for flow in flows {
        let same = |known: &&mut Flow| (known.site, known.direction) == (flow.site, flow.direction);
        if let Some(known) = lines.iter_mut().find(same) {
            known.calls = known.calls.saturating_add(flow.calls);
            known.units = known.units.saturating_add(flow.units);
            known.several |= flow.several || known.actor != flow.actor;
            known.first = known.first.min(flow.first);
            known.last = known.last.max(flow.last);
        } else {
            lines.push(flow.clone());
        }
    }
    lines
}

/// Where those wait who want it, one mark a line.
pub(super) fn wanted(context: &Context<'_>, r: &Resource, first: &Wait) -> Vec<Mark> {
    let mut seen = HashSet::new();
    let lines = context.queue(r.id).iter().skip_while(|w| w.id != first.id);
    let lines = lines.filter(|w| seen.insert(w.site)).take(SHOWN);
    lines
        .filter_map(|wait| waits(context, wait, "", &words::wanted(r, wait.units), false))
        .collect()
}

/// Where somebody waits for `what`; `place` is in front of whom, or behind whom, if that matters.
pub(super) fn waits(
    context: &Context<'_>,
    wait: &Wait,
    place: &str,
    what: &str,
    primary: bool,
) -> Option<Mark> {
    let snapshot = context.now;
    Some(Mark {
        site: snapshot.site(wait.site)?.clone(),
        label: format!(
            "{} has been waiting here{place} for {what} for {}",
            words::actor(snapshot, wait.actor),
            words::since(snapshot, wait.since)
        ),
        primary,
        stack: wait.stack,
    })
}

/// Who else waits.
pub(super) fn behind(context: &Context<'_>, r: &Resource, first: &Wait) -> Option<String> {
    let waits: Vec<&Wait> =
        context.queue(r.id).iter().skip_while(|w| w.id != first.id).skip(1).collect();
    words::behind(context.now, &waits)
}

/// Who took these: the functions, or the actors where no name is known.
pub(super) fn takers(context: &Context<'_>, holds: &[&Hold]) -> String {
    let mut functions: Vec<String> =
        by_line(holds).iter().filter_map(|(_, line)| context.function_of(line[0].stack)).collect();
    functions.dedup();
    if functions.is_empty() || functions.len() > 2 {
        return actors(context, holds.iter().map(|h| h.actor));
    }
    words::list(&functions)
}

/// `tasks 3 and 4`, or how many if they are many.
pub(super) fn actors(context: &Context<'_>, actors: impl Iterator<Item = ActorId>) -> String {
    let mut seen = HashSet::new();
    let actors: Vec<ActorId> = actors.filter(|actor| seen.insert(*actor)).collect();
    if actors.len() > NAMED {
        return words::count(actors.len() as u64, "task");
    }
    words::actors(context.now, &actors)
}

pub(super) fn units(holds: &[&Hold]) -> u64 {
    holds.iter().fold(0, |sum, h| sum.saturating_add(h.units))
}
