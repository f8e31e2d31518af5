//! The vocabulary of findings: the same thing is called the same everywhere.

use crate::snapshot::{ActorId, Kind, Moment, Resource, Snapshot, Wait};
use crate::text::age;
use std::collections::HashSet;

/// `1 permit`, `3 permits`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A resource within a sentence: `` `db_writes` ``, or `semaphore 3` if it has no name.
pub(crate) fn resource(r: &Resource) -> String {
    match &r.name {
        Some(name) => format!("`{name}`"),
        None => format!("{} {}", kind(r.kind), r.id),
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Unknown => "resource",
        known => known.as_str(),
    }
}

/// An actor within a sentence: `task 17`, `the root future on thread main`, `thread worker`.
pub(crate) fn actor(snapshot: &Snapshot, id: ActorId) -> String {
    let name = snapshot.actor(id).and_then(|a| a.name.as_deref());
    match (id, name) {
        (ActorId::Task(n), Some(name)) => format!("task {n} `{name}`"),
        (ActorId::Task(n), None) => format!("task {n}"),
        (ActorId::Root(_), Some(thread)) => format!("the root future on thread `{thread}`"),
        (ActorId::Root(_), None) => "a root future".to_owned(),
        (ActorId::Thread(_), Some(name)) => format!("thread `{name}`"),
        (ActorId::Thread(n), None) => format!("thread {n}"),
    }
}

/// How long ago something began.
pub(crate) fn since(snapshot: &Snapshot, moment: Moment) -> String {
    age(snapshot.taken.since(moment))
}

/// The state of a resource in one line.
pub(crate) fn books(snapshot: &Snapshot, r: &Resource) -> String {
    let name = r.name.as_ref().map_or_else(|| r.id.to_string(), |name| format!("`{name}`"));
    let granted = match r.granted() {
        0 => String::new(),
        n => format!(", {n} set aside for the front of the queue"),
    };
    let created =
        snapshot.site(r.created).map(|site| format!(" (created at {site})")).unwrap_or_default();
    format!(
        "{} {name}: {}, {} available, {} held{granted}, {} waiting{created}",
        kind(r.kind),
        count(r.capacity(), "permit"),
        r.available,
        r.usage.held,
        r.usage.waiting,
    )
}

/// Who else waits because of this.
pub(crate) fn behind(snapshot: &Snapshot, waits: &[&Wait]) -> Option<String> {
    const NAMED: usize = 5;
    let oldest = waits.iter().map(|w| w.since).min()?;
    let mut seen = HashSet::new();
    let mut ids: Vec<ActorId> = waits.iter().map(|w| w.actor).filter(|a| seen.insert(*a)).collect();
    let verb = if ids.len() == 1 { "waits too," } else { "wait too, the oldest" };
    let more = ids.len().saturating_sub(NAMED);
    ids.truncate(NAMED);
    let mut names = actors(snapshot, &ids);
    if more > 0 {
        names = format!("{} and {more} more", names.replacen(" and ", ", ", 1));
    }
    Some(format!("behind it: {names} {verb} for {}", since(snapshot, oldest)))
}

/// Several actors: `tasks 17 and 18`.
pub(crate) fn actors(snapshot: &Snapshot, ids: &[ActorId]) -> String {
    let number = |id: &ActorId| match id {
        ActorId::Task(n) if snapshot.actor(*id).is_none_or(|a| a.name.is_none()) => {
            Some(n.to_string())
        }
        _ => None,
    };
    match ids.iter().map(number).collect::<Option<Vec<_>>>() {
        Some(numbers) if numbers.len() > 1 => format!("tasks {}", list(&numbers)),
        _ => list(&ids.iter().map(|id| actor(snapshot, *id)).collect::<Vec<_>>()),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
