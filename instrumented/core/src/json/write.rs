//! From the domain to the document.

use super::document::{self as doc, Document};
use super::{FORMAT, VERSION, evidence};
use crate::finding::Finding;
use crate::snapshot::{
    Actor, ActorId, Call, Hold, Resource, ResourceId, Site, SiteId, Snapshot, Stack, Wait,
};
use crate::text::{self, NoSources, Style};
use std::time::Duration;

/// The document of a snapshot and what was found in it.
#[must_use]
pub fn snapshot(snapshot: &Snapshot, findings: &[Finding]) -> Document {
    let p = &snapshot.process;
    Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        taken_ns: snapshot.taken.0,
        process: doc::Process {
            pid: p.pid,
            name: p.name.clone(),
            executable: p.executable.clone(),
            version: p.version.clone(),
            debug: p.debug,
            stacks: p.stacks.clone(),
            working_directory: p.working_directory.clone(),
        },
        resources: snapshot.resources.iter().map(|r| resource(snapshot, r)).collect(),
        holds: snapshot.holds.iter().map(|h| hold(snapshot, h)).collect(),
        waits: snapshot.waits.iter().map(|w| wait(snapshot, w)).collect(),
        actors: snapshot.actors.iter().map(named).collect(),
        stacks: snapshot.stacks.iter().map(stack).collect(),
        learned: snapshot.learned.iter().map(|l| evidence::write::learned(snapshot, l)).collect(),
        orders: snapshot.orders.iter().map(|o| evidence::write::order(snapshot, o)).collect(),
        runtimes: snapshot.runtimes.iter().map(evidence::write::runtime).collect(),
        findings: findings.iter().map(finding).collect(),
        dropped: doc::Dropped {
            stacks: snapshot.dropped.stacks,
            holds: snapshot.dropped.holds,
            waits: snapshot.dropped.waits,
            resources: snapshot.dropped.resources,
            orders: snapshot.dropped.orders,
        },
    }
}

fn resource(snapshot: &Snapshot, r: &Resource) -> doc::Resource {
    doc::Resource {
        id: r.id.0,
        kind: r.kind.as_str().to_owned(),
        name: r.name.as_deref().map(str::to_owned),
        created: site(snapshot, r.created),
        created_ns: r.created_at.0,
        scope: r.scope.0,
        is_static: r.is_static,
        capacity: r.capacity(),
        available: r.available,
        held: r.usage.held,
        granted: r.granted(),
        holders: r.usage.holders,
        waiting: r.usage.waiting,
        oldest_hold_ns: r.usage.oldest_hold.map(|m| m.0),
        oldest_wait_ns: r.usage.oldest_wait.map(|m| m.0),
        initial: r.initial,
        added: r.added,
        forgotten: r.forgotten,
        closed: r.closed,
        settled: r.settled,
        counters: doc::Counters {
            acquired: r.counters.acquired,
            waited: r.counters.waited,
            released: r.counters.released,
            rejected: r.counters.rejected,
            cancelled: r.counters.cancelled,
            wait_ns: r.counters.wait_nanos,
            cancelled_ns: r.counters.cancelled_nanos,
            held_ns: r.counters.held_nanos,
        },
        settings: doc::Settings {
            max_hold_ns: r.settings.max_hold.map(nanos),
            long_held: r.settings.long_held,
            grows: r.settings.grows,
        },
        history: evidence::write::history(snapshot, &r.history),
    }
}

fn hold(snapshot: &Snapshot, h: &Hold) -> doc::Hold {
    doc::Hold {
        id: h.id.0,
        resource: h.resource.0,
        name: name(snapshot, h.resource),
        units: h.units,
        actor: actor(h.actor),
        moved_to: h.moved_to.map(actor),
        scope: h.scope.0,
        site: site(snapshot, h.site),
        since_ns: h.since.0,
        age_ns: snapshot.taken.0.saturating_sub(h.since.0),
        call: call(h.call).to_owned(),
        owned: h.owned,
        stack: h.stack.0,
        future: address(h.future),
        poller: address(h.poller),
        thread: h.thread,
    }
}

fn wait(snapshot: &Snapshot, w: &Wait) -> doc::Wait {
    doc::Wait {
        id: w.id.0,
        resource: w.resource.0,
        name: name(snapshot, w.resource),
        units: w.units,
        actor: actor(w.actor),
        scope: w.scope.0,
        site: site(snapshot, w.site),
        since_ns: w.since.0,
        age_ns: snapshot.taken.0.saturating_sub(w.since.0),
        last_poll_ns: w.last_poll.0,
        call: call(w.call).to_owned(),
        owned: w.owned,
        stack: w.stack.0,
        future: address(w.future),
        poller: address(w.poller),
        thread: w.thread,
        runtime: w.runtime.0,
        granted_since_ns: w.granted_since.map(|m| m.0),
    }
}

fn stack(s: &Stack) -> doc::Stack {
    doc::Stack {
        id: s.id.0,
        addresses: s.addresses.iter().map(|a| address(*a)).collect(),
        frames: s.frames.as_ref().map(|frames| {
            let frame = |f: &crate::snapshot::Frame| doc::Frame {
                function: f.function.to_string(),
                site: f.site.as_ref().map(Site::to_string),
                address: address(f.address),
                inlined: f.inlined,
            };
            frames.iter().map(frame).collect()
        }),
    }
}

fn finding(f: &Finding) -> doc::Finding {
    let mut sites: Vec<String> = Vec::new();
    for mark in &f.marks {
        let site = mark.site.to_string();
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    doc::Finding {
        id: format!("{:016x}", f.id.0),
        code: f.code.as_str().to_owned(),
        verdict: f.verdict.as_str().to_owned(),
        title: f.title.clone(),
        sites,
        marks: f
            .marks
            .iter()
            .map(|m| doc::Mark {
                site: m.site.to_string(),
                label: m.label.clone(),
                primary: m.primary,
                stack: m.stack.0,
            })
            .collect(),
        notes: f.notes.clone(),
        help: f.help.clone(),
        since_ns: f.since.0,
        resources: f.resources.iter().map(|id| id.0).collect(),
        actors: f.actors.iter().map(|a| actor(*a)).collect(),
        holds: f.holds.iter().map(|id| id.0).collect(),
        waits: f.waits.iter().map(|id| id.0).collect(),
        text: text::render(f, &NoSources, &Style::default()),
    }
}

fn name(snapshot: &Snapshot, id: ResourceId) -> Option<String> {
    snapshot.resource(id)?.name.as_deref().map(str::to_owned)
}

pub(super) fn site(snapshot: &Snapshot, id: SiteId) -> String {
    snapshot.site(id).map(Site::to_string).unwrap_or_default()
}

pub(super) fn address(address: u64) -> String {
    format!("{address:#x}")
}

/// Whole nanoseconds, as many as there is room for.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn call(call: Call) -> &'static str {
    match call {
        Call::Acquire => "acquire",
        Call::Try => "try",
        Call::Receive => "receive",
        Call::Blocking => "blocking",
    }
}

pub(super) fn actor(id: ActorId) -> doc::Actor {
    let (kind, id) = match id {
        ActorId::Task(id) => ("task", id),
        ActorId::Root(id) => ("root", id),
        ActorId::Thread(id) => ("thread", id),
    };
    doc::Actor { kind: kind.to_owned(), id, name: None }
}

fn named(a: &Actor) -> doc::Actor {
    doc::Actor { name: a.name.as_deref().map(str::to_owned), ..actor(a.id) }
}
