//! The vocabulary of findings: the same thing is called the same everywhere.

use crate::snapshot::{ActorId, Call, Kind, Moment, Resource, Snapshot, Wait};
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

/// What is wanted of a resource, or held: `a permit`, `3 permits`, `the lock`, `a read lock`, `the write lock`,
/// `room for a message`.
pub(crate) fn wanted(r: &Resource, units: u64) -> String {
    match (r.kind, units) {
        (Kind::Mutex, _) => "the lock".to_owned(),
        (Kind::RwLock, 1) => "a read lock".to_owned(),
        (Kind::RwLock, units) if units >= r.capacity() => "the write lock".to_owned(),
        (Kind::RwLock, units) => count(units, "read lock"),
        (Kind::Channel, 1) => "room for a message".to_owned(),
        (Kind::Channel, units) => format!("room for {}", count(units, "message")),
        (_, 1) => "a permit".to_owned(),
        (_, units) => count(units, "permit"),
    }
}

/// What somebody took of a resource, with how much of it that is.
pub(crate) fn taken(r: &Resource, units: u64) -> String {
    match (r.kind, units, r.capacity()) {
        (Kind::Mutex | Kind::RwLock, ..) => wanted(r, units),
        (Kind::Channel, units, capacity) if units == capacity => "all the room".to_owned(),
        (Kind::Channel, units, capacity) => format!("room for {units} of the {capacity} messages"),
        (_, 1, 1) => "the only permit".to_owned(),
        (_, 2, 2) => "both permits".to_owned(),
        (_, units, capacity) if units == capacity => format!("all {units} permits"),
        (_, units, capacity) => format!("{units} of the {capacity} permits"),
    }
}

/// What several of these resources hand out: `permits`, `locks`, `room`.
pub(crate) fn plural<'a>(resources: impl Iterator<Item = &'a Resource>) -> &'static str {
    let (mut locks, mut channels, mut others) = (false, false, false);
    for resource in resources {
        match resource.kind {
            Kind::Mutex | Kind::RwLock => locks = true,
            Kind::Channel => channels = true,
            _ => others = true,
        }
    }
    match (locks, channels, others) {
        (true, false, false) => "locks",
        (false, true, false) => "room",
        (true, true, false) => "locks and room",
        (_, true, true) => "permits and room",
        _ => "permits",
    }
}

/// The messages of a channel that nobody has received.
pub(crate) fn unread(snapshot: &Snapshot, r: &Resource) -> u64 {
    let holds = &snapshot.holds[snapshot.holds.partition_point(|hold| hold.resource < r.id)..];
    let mut unread = holds
        .iter()
        .take_while(|hold| hold.resource == r.id)
        .filter(|hold| hold.call == Call::Receive);
    unread.next().map_or(0, |hold| hold.units)
}

/// The state of a resource in one line.
pub(crate) fn books(snapshot: &Snapshot, r: &Resource) -> String {
    let name = r.name.as_ref().map_or_else(|| r.id.to_string(), |name| format!("`{name}`"));
    let created =
        snapshot.site(r.created).map(|site| format!(" (created at {site})")).unwrap_or_default();
    let kind = kind(r.kind);
    let waiting = match r.kind {
        Kind::Channel => format!("{} waiting", count(r.usage.waiting, "sender")),
        _ => format!("{} waiting", r.usage.waiting),
    };
    let state = match r.kind {
        Kind::Mutex | Kind::RwLock if r.usage.held == 0 && r.granted() > 0 => {
            "set aside for the front of the queue".to_owned()
        }
        Kind::Mutex | Kind::RwLock if r.usage.held == 0 => "free".to_owned(),
        Kind::Mutex => "locked".to_owned(),
        Kind::RwLock if r.usage.held >= r.capacity() => "locked for writing".to_owned(),
        Kind::RwLock => format!("locked by {}", count(r.usage.holders, "reader")),
        Kind::Channel => {
            let unread = unread(snapshot, r);
            let (reserved, granted) = (r.usage.held.saturating_sub(unread), r.granted());
            let mut state = format!("{unread} of {} unread", count(r.capacity(), "message"));
            for (units, what) in [
                (reserved, "reserved"),
                (granted, "set aside for the front of the queue"),
                (r.available, "free"),
            ] {
                if units > 0 {
                    state = format!("{state}, room for {units} {what}");
                }
            }
            state
        }
        _ => {
            let granted = match r.granted() {
                0 => String::new(),
                n => format!(", {n} set aside for the front of the queue"),
            };
            let (free, held) = (r.available, r.usage.held);
            format!("{}, {free} available, {held} held{granted}", count(r.capacity(), "permit"))
        }
    };
    format!("{kind} {name}: {state}, {waiting}{created}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::snapshot::{Counters, History, ResourceId, ScopeId, Settings, SiteId, Usage};

    fn state(kind: Kind, capacity: u64, held: u64, holders: u64) -> Resource {
        Resource {
            id: ResourceId(7),
            kind,
            name: None,
            created: SiteId(0),
            created_at: Moment(0),
            scope: ScopeId(0),
            is_static: false,
            initial: capacity,
            added: 0,
            forgotten: 0,
            available: capacity - held,
            closed: false,
            settled: true,
            usage: Usage { held, holders, waiting: 2, ..Usage::default() },
            counters: Counters::default(),
            settings: Settings::default(),
            history: History::default(),
        }
    }

    #[test]
    fn each_kind_has_its_words() {
        let many = u64::from(u32::MAX >> 3);
        let (semaphore, mutex) = (state(Kind::Semaphore, 4, 1, 1), state(Kind::Mutex, 1, 1, 1));
        let (read, write) = (state(Kind::RwLock, many, 3, 3), state(Kind::RwLock, many, many, 1));
        let channel = state(Kind::Channel, 8, 6, 3);
        let table = [
            (wanted(&semaphore, 1), "a permit"),
            (wanted(&semaphore, 2), "2 permits"),
            (wanted(&mutex, 1), "the lock"),
            (wanted(&read, 1), "a read lock"),
            (wanted(&read, many), "the write lock"),
            (taken(&semaphore, 4), "all 4 permits"),
            (taken(&semaphore, 1), "1 of the 4 permits"),
            (taken(&mutex, 1), "the lock"),
            (taken(&write, many), "the write lock"),
            (wanted(&channel, 1), "room for a message"),
            (wanted(&channel, 3), "room for 3 messages"),
            (taken(&channel, 1), "room for 1 of the 8 messages"),
            (taken(&channel, 8), "all the room"),
        ];
        for (said, expected) in table {
            assert_eq!(said, expected);
        }
        let table = [
            (&semaphore, "semaphore 7: 4 permits, 3 available, 1 held, 2 waiting"),
            (&mutex, "mutex 7: locked, 2 waiting"),
            (&state(Kind::Mutex, 1, 0, 0), "mutex 7: free, 2 waiting"),
            (&read, "rwlock 7: locked by 3 readers, 2 waiting"),
            (&write, "rwlock 7: locked for writing, 2 waiting"),
        ];
        for (resource, expected) in table {
            assert_eq!(books(&Snapshot::default(), resource), expected);
        }
        let plurals: [(&[&Resource], &str); 6] = [
            (&[&mutex, &read], "locks"),
            (&[&mutex, &semaphore], "permits"),
            (&[&channel], "room"),
            (&[&channel, &mutex], "locks and room"),
            (&[&semaphore, &channel, &mutex], "permits and room"),
            (&[], "permits"),
        ];
        for (resources, expected) in plurals {
            assert_eq!(plural(resources.iter().copied()), expected);
        }
    }

    #[test]
    fn a_channel_tells_what_is_unread_and_what_is_reserved() {
        let told = |text: &str| {
            let snapshot = Scenario::read(text).expect("well-formed").current;
            let told = books(&snapshot, &snapshot.resources[1]);
            told.split_once(" (").map(|(state, _)| state.to_owned())
        };
        let semaphore = "semaphore a 1\n task 1\n hold a";
        assert_eq!(
            told(&format!("{semaphore}\n channel b 8\n hold b x5 unread\n hold b x2 owned"))
                .as_deref(),
            Some(
                "channel `b`: 5 of 8 messages unread, room for 2 reserved, room for 1 free, 0 senders waiting"
            )
        );
        assert_eq!(
            told(&format!("{semaphore}\n channel b 3\n hold b x2 unread\n task 2\n wait b"))
                .as_deref(),
            Some(
                "channel `b`: 2 of 3 messages unread, room for 1 set aside for the front of the queue, 1 sender waiting"
            )
        );
    }
}
