//! What happened on a resource that its holders and waiters do not tell, one sentence each.

use crate::format;
use holdup_core::snapshot::{Direction, Flow, Moment, Resource, Site, SiteId, Streak};

/// Cells that a place may take.
const PLACE: usize = 48;

/// Where permits came from and went for good, and who gave up again and again. Empty for most resources.
#[must_use]
pub fn sentences(resource: &Resource, now: Moment, sites: &[Site]) -> Vec<String> {
    let history = &resource.history;
    let flows = history.flows.iter().map(|it| flow(it, now, sites));
    let streaks = history.streaks.iter().map(|it| streak(it, sites));
    flows.chain(streaks).collect()
}

fn flow(flow: &Flow, now: Moment, sites: &[Site]) -> String {
    let verb = match flow.direction {
        Direction::Added => "added",
        Direction::Forgotten => "forgotten",
        Direction::Withdrawn => "taken out",
    };
    let (calls, last) = match flow.calls {
        0 | 1 => (String::new(), ""),
        calls => (format!(" in {} calls", format::thousands(calls)), "the last "),
    };
    let permits = format::plural(flow.units, "permit");
    let age = format::age(now.since(flow.last));
    format!("{permits} {verb}{calls}{}, {last}{age} ago", place(flow.site, sites))
}

fn streak(streak: &Streak, sites: &[Site]) -> String {
    format!(
        "{} gave up {} in a row{} within {}; others were served {} meanwhile",
        format::actor(streak.actor),
        format::plural(streak.count, "wait"),
        place(streak.site, sites),
        format::age(streak.last.since(streak.since)),
        format::plural(streak.others, "time"),
    )
}

fn place(id: SiteId, sites: &[Site]) -> String {
    sites.get(id.0 as usize).map_or(String::new(), |it| format!(" at {}", format::site(it, PLACE)))
}
