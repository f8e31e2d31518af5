//! From the document to the domain.

use super::document::{self as doc, Document};
use super::{FORMAT, VERSION, evidence};
use crate::finding::{Code, Finding, FindingId, Mark, Verdict};
use crate::snapshot::{
    Actor, ActorId, Call, Counters, Dropped, Frame, Hold, HoldId, Kind, Moment, Process, Resource,
    ResourceId, RuntimeId, ScopeId, Settings, Site, SiteId, Snapshot, Stack, StackId, Usage, Wait,
    WaitId,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a document cannot be read.
#[derive(Debug)]
pub struct ReadError(Reason);

#[derive(Debug)]
enum Reason {
    Json(serde_json::Error),
    Format(String),
    Version(u32),
    Word { what: &'static str, value: String },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Json(_) => f.write_str("not a holdup snapshot"),
            Reason::Format(format) => write!(f, "the format is {format:?}, not {FORMAT:?}"),
            Reason::Version(version) => {
                write!(f, "the document has version {version}, this holdup reads up to {VERSION}")
            }
            Reason::Word { what, value } => write!(f, "{value:?} is no {what}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Reason::Json(error) => Some(error),
            _ => None,
        }
    }
}

fn word(what: &'static str, value: &str) -> ReadError {
    ReadError(Reason::Word { what, value: value.chars().take(80).collect() })
}

/// Reads a document that [`snapshot`](super::snapshot) made, of this or an older version.
///
/// # Errors
///
/// If the text is no such document.
pub fn read(json: &str) -> Result<(Snapshot, Vec<Finding>), ReadError> {
    let document: Document =
        serde_json::from_str(json).map_err(|error| ReadError(Reason::Json(error)))?;
    if document.format != FORMAT {
        return Err(ReadError(Reason::Format(document.format.chars().take(80).collect())));
    }
    if document.version > VERSION {
        return Err(ReadError(Reason::Version(document.version)));
    }
    let mut sites = Sites::default();
    let p = document.process;
    let mut snapshot = Snapshot {
        taken: Moment(document.taken_ns),
        process: Process {
            pid: p.pid,
            name: p.name,
            executable: p.executable,
            version: p.version,
            debug: p.debug,
            stacks: p.stacks,
            working_directory: p.working_directory,
        },
        resources: document.resources.into_iter().map(|r| resource(r, &mut sites)).collect(),
        holds: Vec::with_capacity(document.holds.len()),
        waits: Vec::with_capacity(document.waits.len()),
        actors: document
            .actors
            .into_iter()
            .filter_map(|a| Some(Actor { id: actor(&a)?, name: a.name.map(Arc::from) }))
            .collect(),
        sites: Vec::new(),
        stacks: document
            .stacks
            .into_iter()
            .map(|s| stack(s, &mut sites))
            .collect::<Result<_, _>>()?,
        dropped: Dropped {
            stacks: document.dropped.stacks,
            holds: document.dropped.holds,
            waits: document.dropped.waits,
            resources: document.dropped.resources,
            orders: document.dropped.orders,
        },
        learned: document
            .learned
            .into_iter()
            .map(|l| evidence::read::learned(l, &mut sites))
            .collect(),
        orders: document
            .orders
            .into_iter()
            .map(|o| evidence::read::order(o, &mut sites))
            .collect::<Result<_, _>>()?,
        runtimes: document.runtimes.iter().map(evidence::read::runtime).collect(),
    };
    for h in document.holds {
        if let Some(actor) = actor(&h.actor) {
            snapshot.holds.push(hold(h, actor, &mut sites)?);
        }
    }
    for w in document.waits {
        if let Some(actor) = actor(&w.actor) {
            snapshot.waits.push(wait(w, actor, &mut sites)?);
        }
    }
    snapshot.sites = sites.list;
    // Look-ups search these, and a document may come from anywhere.
    snapshot.resources.sort_by_key(|r| r.id);
    snapshot.stacks.sort_by_key(|s| s.id);
    snapshot.learned.sort_by_key(|l| l.stack);
    let findings = document.findings.into_iter().map(finding).collect::<Result<_, _>>()?;
    Ok((snapshot, findings))
}

/// Gives each distinct place its index.
#[derive(Default)]
pub(super) struct Sites {
    list: Vec<Site>,
    index: HashMap<String, SiteId>,
}

impl Sites {
    pub(super) fn id(&mut self, text: String) -> SiteId {
        let next = SiteId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        *self.index.entry(text).or_insert_with_key(|text| {
            self.list.push(site(text));
            next
        })
    }
}

/// Takes `file:line:column` apart; a file may have colons of its own.
fn site(text: &str) -> Site {
    let number = |text: &str| -> Option<(usize, u32)> {
        let (rest, digits) = text.rsplit_once(':')?;
        Some((rest.len(), digits.parse().ok()?))
    };
    let (mut file, mut line, mut column) = (text, 0, 0);
    if let Some((end, last)) = number(file) {
        (file, line) = (&text[..end], last);
        if let Some((end, first)) = number(file) {
            (file, line, column) = (&text[..end], first, last);
        }
    }
    Site { file: file.into(), line, column }
}

fn resource(r: doc::Resource, sites: &mut Sites) -> Resource {
    Resource {
        id: ResourceId(r.id),
        kind: kind(&r.kind),
        name: r.name.map(Arc::from),
        created: sites.id(r.created),
        created_at: Moment(r.created_ns),
        scope: ScopeId(r.scope),
        is_static: r.is_static,
        initial: r.initial,
        added: r.added,
        forgotten: r.forgotten,
        available: r.available,
        closed: r.closed,
        settled: r.settled,
        usage: Usage {
            held: r.held,
            holders: r.holders,
            waiting: r.waiting,
            oldest_hold: r.oldest_hold_ns.map(Moment),
            oldest_wait: r.oldest_wait_ns.map(Moment),
        },
        counters: Counters {
            acquired: r.counters.acquired,
            waited: r.counters.waited,
            released: r.counters.released,
            rejected: r.counters.rejected,
            cancelled: r.counters.cancelled,
            wait_nanos: r.counters.wait_ns,
            cancelled_nanos: r.counters.cancelled_ns,
            held_nanos: r.counters.held_ns,
        },
        settings: Settings {
            max_hold: r.settings.max_hold_ns.map(Duration::from_nanos),
            long_held: r.settings.long_held,
            grows: r.settings.grows,
        },
        history: evidence::read::history(r.history, sites),
    }
}

pub(super) fn kind(text: &str) -> Kind {
    match text {
        "semaphore" => Kind::Semaphore,
        "mutex" => Kind::Mutex,
        "rwlock" => Kind::RwLock,
        "channel" => Kind::Channel,
        _ => Kind::Unknown,
    }
}

fn hold(h: doc::Hold, holder: ActorId, sites: &mut Sites) -> Result<Hold, ReadError> {
    Ok(Hold {
        id: HoldId(h.id),
        resource: ResourceId(h.resource),
        units: h.units,
        actor: holder,
        moved_to: h.moved_to.as_ref().and_then(actor),
        scope: ScopeId(h.scope),
        stack: StackId(h.stack),
        site: sites.id(h.site),
        since: Moment(h.since_ns),
        call: call(&h.call)?,
        owned: h.owned,
        future: address(&h.future)?,
        poller: address(&h.poller)?,
        thread: h.thread,
    })
}

fn wait(w: doc::Wait, waiter: ActorId, sites: &mut Sites) -> Result<Wait, ReadError> {
    Ok(Wait {
        id: WaitId(w.id),
        resource: ResourceId(w.resource),
        units: w.units,
        actor: waiter,
        scope: ScopeId(w.scope),
        stack: StackId(w.stack),
        site: sites.id(w.site),
        since: Moment(w.since_ns),
        last_poll: Moment(w.last_poll_ns),
        call: call(&w.call)?,
        owned: w.owned,
        future: address(&w.future)?,
        poller: address(&w.poller)?,
        thread: w.thread,
        runtime: RuntimeId(w.runtime),
        granted_since: w.granted_since_ns.map(Moment),
    })
}

fn stack(s: doc::Stack, sites: &mut Sites) -> Result<Stack, ReadError> {
    let addresses: Vec<u64> = s.addresses.iter().map(|a| address(a)).collect::<Result<_, _>>()?;
    let mut frame = |f: doc::Frame| {
        let site = f.site.map(|text| {
            let id = sites.id(text);
            sites.list[id.0 as usize].clone()
        });
        Ok(Frame {
            function: f.function.into(),
            site,
            address: address(&f.address)?,
            inlined: f.inlined,
        })
    };
    let frames = s
        .frames
        .map(|frames| frames.into_iter().map(&mut frame).collect::<Result<Vec<_>, _>>())
        .transpose()?;
    Ok(Stack { id: StackId(s.id), addresses: addresses.into(), frames: frames.map(Arc::from) })
}

fn finding(f: doc::Finding) -> Result<Finding, ReadError> {
    Ok(Finding {
        id: FindingId(u64::from_str_radix(&f.id, 16).map_err(|_| word("finding id", &f.id))?),
        code: Code::ALL.iter().copied().find(|c| c.as_str() == f.code).unwrap_or(Code::Unknown),
        verdict: match f.verdict.as_str() {
            "proven" => Verdict::Proven,
            "suspected" => Verdict::Suspected,
            "hazard" => Verdict::Hazard,
            "resolved" => Verdict::Resolved,
            _ => Verdict::Unknown,
        },
        title: f.title,
        marks: f
            .marks
            .into_iter()
            .map(|m| Mark {
                site: site(&m.site),
                label: m.label,
                primary: m.primary,
                stack: StackId(m.stack),
            })
            .collect(),
        notes: f.notes,
        help: f.help,
        since: Moment(f.since_ns),
        resources: f.resources.into_iter().map(ResourceId).collect(),
        actors: f.actors.iter().filter_map(actor).collect(),
        holds: f.holds.into_iter().map(HoldId).collect(),
        waits: f.waits.into_iter().map(WaitId).collect(),
    })
}

pub(super) fn actor(a: &doc::Actor) -> Option<ActorId> {
    match a.kind.as_str() {
        "task" => Some(ActorId::Task(a.id)),
        "root" => Some(ActorId::Root(a.id)),
        "thread" => Some(ActorId::Thread(a.id)),
        _ => None,
    }
}

fn call(text: &str) -> Result<Call, ReadError> {
    match text {
        "acquire" => Ok(Call::Acquire),
        "try" => Ok(Call::Try),
        "receive" => Ok(Call::Receive),
        "blocking" => Ok(Call::Blocking),
        _ => Err(word("way to acquire", text)),
    }
}

pub(super) fn address(text: &str) -> Result<u64, ReadError> {
    let digits = text.strip_prefix("0x").ok_or_else(|| word("address", text))?;
    u64::from_str_radix(digits, 16).map_err(|_| word("address", text))
}
