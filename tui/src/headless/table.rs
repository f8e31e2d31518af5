//! Tables as text.

use super::headline;
use crate::format;
use crate::history;
use crate::message::Candidate;
use holdup_core::snapshot::{ActorId, Call, Kind, Resource, Site, SiteId, Snapshot, StackId};
use holdup_core::text::{self, Sources, Style};
use holdup_proto::parts::Picture;

/// Resources that are listed.
const LISTED: usize = 200;

/// The side on which a column's text lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}
use Side::{Left, Right};

/// Rows under a head, each column as wide as it must be.
fn table(indent: usize, head: &[(&str, Side)], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, (word, _))| {
            let cells =
                rows.iter().filter_map(|row| row.get(column)).map(|cell| format::width(cell));
            cells.chain([format::width(word)]).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    let heads = head.iter().map(|(word, _)| (*word).to_string()).collect();
    for row in [&heads].into_iter().chain(rows) {
        let mut line = " ".repeat(indent);
        for ((cell, width), (_, side)) in row.iter().zip(&widths).zip(head) {
            let cell = if *side == Left {
                format::fit(cell, *width)
            } else {
                format::fit_right(cell, *width)
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The processes that can be looked at.
pub(super) fn processes(found: &[Candidate]) -> String {
    let rows: Vec<_> = found
        .iter()
        .map(|it| {
            let up = it.up.map_or("–".into(), format::age);
            vec![it.pid.to_string(), format::clean(&it.name).into_owned(), up, it.address.clone()]
        })
        .collect();
    table(0, &[("PID", Right), ("NAME", Left), ("UP", Right), ("ADDRESS", Left)], &rows)
}

/// All of a snapshot: findings, resources, holders and waiters.
pub(super) fn snapshot(
    snapshot: &Snapshot,
    picture: &Picture,
    limit: usize,
    sources: &dyn Sources,
    width: Option<u16>,
) -> String {
    let mut out = headline(snapshot);
    out.push_str("\n\n");
    if picture.findings.is_empty() {
        out.push_str("nothing to report\n\n");
    }
    for finding in &picture.findings {
        out.push_str(&text::render(finding, sources, &Style { width, color: false }));
        out.push_str("\n\n");
    }
    if snapshot.resources.is_empty() {
        out.push_str("The program has made no semaphore with holdup yet.\n");
        return out;
    }
    out.push_str(&resources(snapshot, picture));
    for resource in sorted(snapshot, picture) {
        let part = records(snapshot, resource, limit);
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    out
}

/// The resources, those in trouble and those in use first.
fn sorted<'a>(snapshot: &'a Snapshot, picture: &Picture) -> Vec<&'a Resource> {
    let mut sorted: Vec<&Resource> = snapshot.resources.iter().collect();
    sorted.sort_by_key(|r| {
        let troubled = picture.findings.iter().any(|f| f.resources.contains(&r.id));
        (!troubled, std::cmp::Reverse((r.usage.waiting, r.usage.holders)), r.id)
    });
    sorted
}

/// The resources as a table.
pub(super) fn resources(snapshot: &Snapshot, picture: &Picture) -> String {
    let rows: Vec<_> = sorted(snapshot, picture)
        .into_iter()
        .take(LISTED)
        .map(|r| resource_row(snapshot, r))
        .collect();
    let head = [
        ("RESOURCE", Left),
        ("KIND", Left),
        ("USED", Right),
        ("WAITING", Right),
        ("OLDEST", Right),
        ("CREATED", Left),
    ];
    let mut out = table(0, &head, &rows);
    let rest =
        (snapshot.resources.len().saturating_sub(LISTED)) as u64 + picture.resources_left_out;
    if rest > 0 {
        out.push_str(&format!("… {} more\n", format::thousands(rest)));
    }
    out
}

fn resource_row(snapshot: &Snapshot, resource: &Resource) -> Vec<String> {
    let usage = &resource.usage;
    let granted = if resource.settled { resource.granted() } else { 0 };
    let granted = if granted > 0 { format!(" (+{granted} granted)") } else { String::new() };
    vec![
        name(snapshot, resource),
        resource.kind.as_str().into(),
        format!(
            "{}{granted}{}",
            format::used(resource, format::thousands),
            if resource.closed { " closed" } else { "" }
        ),
        format::thousands(usage.waiting),
        usage.oldest_hold.map_or("–".into(), |at| format::age(snapshot.taken.since(at))),
        site(snapshot, resource.created),
    ]
}

/// What a permit is worth: a number, and a word for the two ways into a lock.
fn units(resource: &Resource, units: u64) -> String {
    match resource.kind {
        Kind::RwLock => format::units(resource, units),
        _ => units.to_string(),
    }
}

/// The holders and waiters of a resource that the snapshot has; empty if there are none.
pub(super) fn records(snapshot: &Snapshot, resource: &Resource, limit: usize) -> String {
    let since = |at| format::age(snapshot.taken.since(at));
    let holds: Vec<_> =
        snapshot.holds.iter().filter(|h| h.resource == resource.id).take(limit).collect();
    let waits: Vec<_> =
        snapshot.waits.iter().filter(|w| w.resource == resource.id).take(limit).collect();
    let history = history::sentences(resource, snapshot.taken, &snapshot.sites);
    if holds.is_empty() && waits.is_empty() && history.is_empty() {
        return String::new();
    }
    let (holders, waiters) = (resource.usage.holders, resource.usage.waiting);
    let mut out = format!(
        "{}: {}, {}\n",
        name(snapshot, resource),
        format::plural(holders, "holder"),
        format::plural(waiters, "waiter")
    );
    let mut rows = Vec::new();
    for hold in &holds {
        let who = actor(snapshot, hold.moved_to.unwrap_or(hold.actor));
        let verb = if hold.call == Call::Receive { "left unread" } else { "holds" };
        rows.push(vec![
            verb.into(),
            units(resource, hold.units),
            since(hold.since),
            who,
            function(snapshot, hold.stack),
            site(snapshot, hold.site),
        ]);
    }
    for wait in &waits {
        let verb = match wait.granted_since {
            Some(at) => format!("granted, not polled for {}", since(at)),
            None => "waits for".into(),
        };
        rows.push(vec![
            verb,
            units(resource, wait.units),
            since(wait.since),
            actor(snapshot, wait.actor),
            function(snapshot, wait.stack),
            site(snapshot, wait.site),
        ]);
    }
    let head = [
        ("", Left),
        ("PERMITS", Right),
        ("SINCE", Right),
        ("WHO", Left),
        ("FUNCTION", Left),
        ("AT", Left),
    ];
    if !rows.is_empty() {
        out.push_str(&table(2, &head, &rows));
    }
    let more = (holders + waiters).saturating_sub((holds.len() + waits.len()) as u64);
    if more > 0 {
        out.push_str(&format!("  … {} more\n", format::thousands(more)));
    }
    for sentence in history {
        out.push_str(&format!("  {sentence}\n"));
    }
    out
}

fn name(snapshot: &Snapshot, resource: &Resource) -> String {
    format::resource(resource, &snapshot.sites)
}

fn actor(snapshot: &Snapshot, id: ActorId) -> String {
    format::actor_named(id, snapshot.actor(id))
}

fn site(snapshot: &Snapshot, id: SiteId) -> String {
    snapshot.site(id).map_or("–".into(), |s: &Site| format::clean(&s.to_string()).into_owned())
}

fn function(snapshot: &Snapshot, id: StackId) -> String {
    let frames = snapshot.stack(id).and_then(|s| s.frames.as_deref());
    frames.and_then(format::own_frame).map_or("–".into(), |f| format::function_short(&f.function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_core::snapshot::{
        Direction, Flow, Frame, History, Hold, HoldId, Moment, Process, ResourceId, Stack, Streak,
        Usage, Wait, WaitId,
    };
    use holdup_core::text::NoSources;
    use holdup_core::{Code, Finding, FindingId, Mark, Verdict};
    use std::sync::Arc;

    fn picture() -> Picture {
        let now = Moment(71_000_000_000);
        let site = |line| Site { file: "src/store.rs".into(), line, column: 22 };
        let resource = |id: u64, name: Option<&str>, capacity, held, waiting| Resource {
            id: ResourceId(id),
            kind: Kind::Semaphore,
            name: name.map(Arc::from),
            created: SiteId(0),
            created_at: Moment(0),
            scope: Default::default(),
            is_static: false,
            initial: capacity,
            added: 0,
            forgotten: 0,
            available: capacity - held,
            closed: false,
            settled: true,
            usage: Usage {
                held,
                holders: held,
                waiting,
                oldest_hold: (held > 0).then_some(Moment(1)),
                oldest_wait: (waiting > 0).then_some(Moment(1)),
            },
            counters: Default::default(),
            settings: Default::default(),
            history: Default::default(),
        };
        let hold = Hold {
            id: HoldId(1),
            resource: ResourceId(2),
            units: 1,
            actor: ActorId::Task(17),
            moved_to: None,
            scope: Default::default(),
            stack: StackId(1),
            site: SiteId(1),
            since: Moment(1_000_000_000),
            call: Call::Acquire,
            owned: false,
            future: 0,
            poller: 0,
            thread: 1,
        };
        let wait = Wait {
            id: WaitId(2),
            resource: ResourceId(2),
            units: 1,
            actor: ActorId::Thread(3),
            scope: Default::default(),
            stack: StackId::NONE,
            site: SiteId(2),
            since: Moment(70_999_920_000),
            last_poll: Moment(70_999_920_000),
            call: Call::Blocking,
            owned: false,
            future: 0,
            poller: 0,
            thread: 1,
            runtime: holdup_core::snapshot::RuntimeId::NONE,
            granted_since: None,
        };
        let granted = Wait {
            id: WaitId(3),
            resource: ResourceId(3),
            actor: ActorId::Task(21),
            granted_since: Some(Moment(67_900_000_000)),
            call: Call::Acquire,
            ..wait.clone()
        };
        let unread = Hold {
            id: HoldId(2),
            resource: ResourceId(3),
            units: 6,
            call: Call::Receive,
            ..hold.clone()
        };
        let flow = |direction, calls, units| Flow {
            direction,
            site: SiteId(1),
            stack: StackId(1),
            calls,
            units,
            most: units,
            first: Moment(0),
            last: Moment(70_000_000_000),
            actor: ActorId::Task(17),
            several: false,
            holding: 0,
            then_released: 0,
        };
        let streak = Streak {
            actor: ActorId::Task(17),
            site: SiteId(2),
            stack: StackId(1),
            count: 9,
            since: Moment(59_000_000_000),
            last: Moment(70_000_000_000),
            others: 40,
        };
        let mut lossy = resource(4, Some("lossy"), 4, 0, 0);
        lossy.history = History {
            moved: Moment(70_000_000_000),
            flows: vec![
                flow(Direction::Forgotten, 1, 1),
                flow(Direction::Added, 1_234, 5_000),
                flow(Direction::Withdrawn, 2, 3),
            ],
            streaks: vec![streak],
        };
        let channel = Resource { kind: Kind::Channel, ..resource(3, Some("設定"), 9, 6, 1) };
        let frame = |function: &str| Frame {
            function: function.into(),
            site: None,
            address: 1,
            inlined: false,
        };
        let frames = [frame("holdup::stack::capture"), frame("app::store::save::{{closure}}")];
        let snapshot = Snapshot {
            taken: now,
            process: Process {
                pid: 4711,
                name: "evil\x1b[2J".into(),
                stacks: "full".into(),
                ..Process::default()
            },
            resources: vec![
                resource(1, None, 1 << 61, 0, 0),
                resource(2, Some("db_writes"), 1, 1, 1_234),
                channel,
                lossy,
            ],
            holds: vec![hold, unread],
            waits: vec![wait, granted],
            sites: vec![site(14), site(42), site(47)],
            stacks: vec![Stack {
                id: StackId(1),
                addresses: Arc::from([1]),
                frames: Some(Arc::from(frames)),
            }],
            ..Snapshot::default()
        };
        let finding = Finding {
            id: FindingId(1),
            code: Code::Deadlock,
            verdict: Verdict::Proven,
            title: "`save` waits for a permit that only it can release".into(),
            marks: vec![Mark {
                site: site(47),
                label: "and waits here".into(),
                primary: true,
                stack: StackId(1),
            }],
            notes: Vec::new(),
            help: None,
            since: Moment(1),
            resources: vec![ResourceId(2)],
            actors: Vec::new(),
            holds: vec![HoldId(1)],
            waits: vec![WaitId(2)],
        };
        Picture {
            revision: 1,
            snapshot,
            resources_left_out: 7,
            findings_revision: 1,
            findings: vec![finding],
            findings_left_out: 0,
        }
    }

    #[test]
    fn a_snapshot_as_text() {
        let picture = picture();
        insta::assert_snapshot!(snapshot(&picture.snapshot, &picture, 10, &NoSources, None));
    }

    #[test]
    fn an_empty_snapshot_as_text() {
        let picture = Picture { snapshot: Snapshot::default(), findings: Vec::new(), ..picture() };
        let text = snapshot(&picture.snapshot, &picture, 10, &NoSources, None);
        assert!(text.contains("nothing to report"), "{text}");
        assert!(text.contains("no semaphore with holdup yet"), "{text}");
    }
}
