//! Between the types of [`holdup_core`] and those of the wire.
//!
//! To the wire everything fits, cut to the [`limits`]. From the wire nothing is trusted: what cannot be
//! true is an [`Error`], and what is only newer than this version becomes `Unknown`.

mod evidence;

use crate::limits;
use crate::v1;
use holdup_core::finding::{Code, Finding, FindingId, Mark, Verdict};
use holdup_core::snapshot::{
    Actor, ActorId, Call, Counters, Dropped, Frame, Hold, HoldId, Kind, Moment, Process, Resource,
    ResourceId, RuntimeId, ScopeId, Settings, Site, SiteId, Stack, StackId, Usage, Wait, WaitId,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A message that no holdup of this protocol sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    what: &'static str,
}

impl Error {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message: {}", self.what)
    }
}

impl std::error::Error for Error {}

/// At most `limit` bytes of `text`, at a character's boundary; what was cut is marked with `…`.
fn cut(text: &str, limit: usize) -> String {
    const MARK: char = '…';
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub(MARK.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut cut = String::with_capacity(end + MARK.len_utf8());
    cut.push_str(&text[..end]);
    cut.push(MARK);
    cut
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl From<&Process> for v1::Process {
    fn from(process: &Process) -> Self {
        let cut = |text: &str| cut(text, limits::PROCESS);
        Self {
            pid: process.pid,
            name: cut(&process.name),
            executable: cut(&process.executable),
            version: cut(&process.version),
            debug: process.debug,
            stacks: cut(&process.stacks),
            working_directory: cut(&process.working_directory),
        }
    }
}

impl From<v1::Process> for Process {
    fn from(process: v1::Process) -> Self {
        Self {
            pid: process.pid,
            name: process.name,
            executable: process.executable,
            version: process.version,
            debug: process.debug,
            stacks: process.stacks,
            working_directory: process.working_directory,
        }
    }
}

impl From<Kind> for v1::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Semaphore => Self::Semaphore,
            Kind::Mutex => Self::Mutex,
            Kind::RwLock => Self::RwLock,
            Kind::Channel => Self::Channel,
            _ => Self::Unspecified,
        }
    }
}

impl From<v1::Kind> for Kind {
    fn from(kind: v1::Kind) -> Self {
        match kind {
            v1::Kind::Semaphore => Self::Semaphore,
            v1::Kind::Mutex => Self::Mutex,
            v1::Kind::RwLock => Self::RwLock,
            v1::Kind::Channel => Self::Channel,
            v1::Kind::Unspecified => Self::Unknown,
        }
    }
}

impl From<Call> for v1::Call {
    fn from(call: Call) -> Self {
        match call {
            Call::Acquire => Self::Acquire,
            Call::Try => Self::Try,
            Call::Receive => Self::Receive,
            Call::Blocking => Self::Blocking,
        }
    }
}

impl From<v1::Call> for Call {
    fn from(call: v1::Call) -> Self {
        match call {
            // The plain case stands for one that is newer than this list.
            v1::Call::Acquire | v1::Call::Unspecified => Self::Acquire,
            v1::Call::Try => Self::Try,
            v1::Call::Blocking => Self::Blocking,
            v1::Call::Receive => Self::Receive,
        }
    }
}

impl From<Verdict> for v1::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Proven => Self::Proven,
            Verdict::Suspected => Self::Suspected,
            Verdict::Hazard => Self::Hazard,
            Verdict::Resolved => Self::Resolved,
            _ => Self::Unspecified,
        }
    }
}

impl From<v1::Verdict> for Verdict {
    fn from(verdict: v1::Verdict) -> Self {
        match verdict {
            v1::Verdict::Proven => Self::Proven,
            v1::Verdict::Suspected => Self::Suspected,
            v1::Verdict::Hazard => Self::Hazard,
            v1::Verdict::Resolved => Self::Resolved,
            v1::Verdict::Unspecified => Self::Unknown,
        }
    }
}

fn code(name: &str) -> Code {
    let known = Code::ALL.iter().find(|code| code.as_str() == name);
    known.copied().unwrap_or(Code::Unknown)
}

impl From<ActorId> for v1::ActorId {
    fn from(id: ActorId) -> Self {
        use v1::actor_id::Id;
        let id = match id {
            ActorId::Task(id) => Id::Task(id),
            ActorId::Root(id) => Id::Root(id),
            ActorId::Thread(id) => Id::Thread(id),
        };
        Self { id: Some(id) }
    }
}

impl TryFrom<v1::ActorId> for ActorId {
    type Error = Error;

    fn try_from(id: v1::ActorId) -> Result<Self, Error> {
        use v1::actor_id::Id;
        match id.id {
            Some(Id::Task(id)) => Ok(Self::Task(id)),
            Some(Id::Root(id)) => Ok(Self::Root(id)),
            Some(Id::Thread(id)) => Ok(Self::Thread(id)),
            None => Err(Error::new("an actor of no known kind")),
        }
    }
}

fn actor_id(id: Option<v1::ActorId>) -> Result<ActorId, Error> {
    id.ok_or(Error::new("an actor without an id"))?.try_into()
}

impl From<&Actor> for v1::Actor {
    fn from(actor: &Actor) -> Self {
        Self {
            id: Some(actor.id.into()),
            name: actor.name.as_deref().map(|name| cut(name, limits::ACTOR_NAME)),
        }
    }
}

impl TryFrom<v1::Actor> for Actor {
    type Error = Error;

    fn try_from(actor: v1::Actor) -> Result<Self, Error> {
        Ok(Self { id: actor_id(actor.id)?, name: actor.name.map(Arc::from) })
    }
}

impl From<&Site> for v1::Site {
    fn from(site: &Site) -> Self {
        Self { file: cut(&site.file, limits::FILE), line: site.line, column: site.column }
    }
}

impl From<v1::Site> for Site {
    fn from(site: v1::Site) -> Self {
        Self { file: site.file.into(), line: site.line, column: site.column }
    }
}

impl From<&Usage> for v1::Usage {
    fn from(usage: &Usage) -> Self {
        Self {
            held: usage.held,
            holders: usage.holders,
            waiting: usage.waiting,
            oldest_hold: usage.oldest_hold.map(|since| since.0),
            oldest_wait: usage.oldest_wait.map(|since| since.0),
        }
    }
}

impl From<v1::Usage> for Usage {
    fn from(usage: v1::Usage) -> Self {
        Self {
            held: usage.held,
            holders: usage.holders,
            waiting: usage.waiting,
            oldest_hold: usage.oldest_hold.map(Moment),
            oldest_wait: usage.oldest_wait.map(Moment),
        }
    }
}

impl From<&Counters> for v1::Counters {
    fn from(counters: &Counters) -> Self {
        Self {
            acquired: counters.acquired,
            waited: counters.waited,
            released: counters.released,
            rejected: counters.rejected,
            cancelled: counters.cancelled,
            wait_nanos: counters.wait_nanos,
            cancelled_nanos: counters.cancelled_nanos,
            held_nanos: counters.held_nanos,
        }
    }
}

impl From<v1::Counters> for Counters {
    fn from(counters: v1::Counters) -> Self {
        Self {
            acquired: counters.acquired,
            waited: counters.waited,
            released: counters.released,
            rejected: counters.rejected,
            cancelled: counters.cancelled,
            wait_nanos: counters.wait_nanos,
            cancelled_nanos: counters.cancelled_nanos,
            held_nanos: counters.held_nanos,
        }
    }
}

impl From<&Settings> for v1::Settings {
    fn from(settings: &Settings) -> Self {
        Self {
            max_hold: settings.max_hold.map(nanos),
            long_held: settings.long_held,
            grows: settings.grows,
        }
    }
}

impl From<v1::Settings> for Settings {
    fn from(settings: v1::Settings) -> Self {
        Self {
            max_hold: settings.max_hold.map(Duration::from_nanos),
            long_held: settings.long_held,
            grows: settings.grows,
        }
    }
}

impl From<&Resource> for v1::Resource {
    fn from(resource: &Resource) -> Self {
        Self {
            id: resource.id.0,
            kind: v1::Kind::from(resource.kind).into(),
            name: resource.name.as_deref().map(|name| cut(name, limits::NAME)),
            created: resource.created.0,
            created_at: resource.created_at.0,
            scope: resource.scope.0,
            is_static: resource.is_static,
            initial: resource.initial,
            added: resource.added,
            forgotten: resource.forgotten,
            available: resource.available,
            closed: resource.closed,
            settled: resource.settled,
            usage: Some((&resource.usage).into()),
            counters: Some((&resource.counters).into()),
            settings: Some((&resource.settings).into()),
            history: Some((&resource.history).into()),
        }
    }
}

impl TryFrom<v1::Resource> for Resource {
    type Error = Error;

    fn try_from(resource: v1::Resource) -> Result<Self, Error> {
        let usage = Usage::from(resource.usage.unwrap_or_default());
        // Sums that the core makes of these must not overflow.
        if resource.initial.checked_add(resource.added).is_none()
            || resource.available.checked_add(usage.held).is_none()
        {
            return Err(Error::new("a resource of impossible size"));
        }
        Ok(Self {
            id: ResourceId(resource.id),
            kind: resource.kind().into(),
            name: resource.name.map(Arc::from),
            created: SiteId(resource.created),
            created_at: Moment(resource.created_at),
            scope: ScopeId(resource.scope),
            is_static: resource.is_static,
            initial: resource.initial,
            added: resource.added,
            forgotten: resource.forgotten,
            available: resource.available,
            closed: resource.closed,
            settled: resource.settled,
            usage,
            counters: resource.counters.unwrap_or_default().into(),
            settings: resource.settings.unwrap_or_default().into(),
            history: resource.history.unwrap_or_default().try_into()?,
        })
    }
}

impl From<&Hold> for v1::Hold {
    fn from(hold: &Hold) -> Self {
        Self {
            id: hold.id.0,
            resource: hold.resource.0,
            units: hold.units,
            actor: Some(hold.actor.into()),
            moved_to: hold.moved_to.map(Into::into),
            scope: hold.scope.0,
            stack: hold.stack.0,
            site: hold.site.0,
            since: hold.since.0,
            call: v1::Call::from(hold.call).into(),
            owned: hold.owned,
            future: hold.future,
            poller: hold.poller,
            thread: hold.thread,
        }
    }
}

impl TryFrom<v1::Hold> for Hold {
    type Error = Error;

    fn try_from(hold: v1::Hold) -> Result<Self, Error> {
        Ok(Self {
            id: HoldId(hold.id),
            resource: ResourceId(hold.resource),
            units: hold.units,
            actor: actor_id(hold.actor)?,
            moved_to: hold.moved_to.map(ActorId::try_from).transpose()?,
            scope: ScopeId(hold.scope),
            stack: StackId(hold.stack),
            site: SiteId(hold.site),
            since: Moment(hold.since),
            call: hold.call().into(),
            owned: hold.owned,
            future: hold.future,
            poller: hold.poller,
            thread: hold.thread,
        })
    }
}

impl From<&Wait> for v1::Wait {
    fn from(wait: &Wait) -> Self {
        Self {
            id: wait.id.0,
            resource: wait.resource.0,
            units: wait.units,
            actor: Some(wait.actor.into()),
            scope: wait.scope.0,
            stack: wait.stack.0,
            site: wait.site.0,
            since: wait.since.0,
            last_poll: wait.last_poll.0,
            call: v1::Call::from(wait.call).into(),
            owned: wait.owned,
            future: wait.future,
            poller: wait.poller,
            thread: wait.thread,
            runtime: wait.runtime.0,
            granted_since: wait.granted_since.map(|since| since.0),
        }
    }
}

impl TryFrom<v1::Wait> for Wait {
    type Error = Error;

    fn try_from(wait: v1::Wait) -> Result<Self, Error> {
        Ok(Self {
            id: WaitId(wait.id),
            resource: ResourceId(wait.resource),
            units: wait.units,
            actor: actor_id(wait.actor)?,
            scope: ScopeId(wait.scope),
            stack: StackId(wait.stack),
            site: SiteId(wait.site),
            since: Moment(wait.since),
            last_poll: Moment(wait.last_poll),
            call: wait.call().into(),
            owned: wait.owned,
            future: wait.future,
            poller: wait.poller,
            thread: wait.thread,
            runtime: RuntimeId(wait.runtime),
            granted_since: wait.granted_since.map(Moment),
        })
    }
}

impl From<&Frame> for v1::Frame {
    fn from(frame: &Frame) -> Self {
        Self {
            function: cut(&frame.function, limits::FUNCTION),
            site: frame.site.as_ref().map(Into::into),
            address: frame.address,
            inlined: frame.inlined,
        }
    }
}

impl From<v1::Frame> for Frame {
    fn from(frame: v1::Frame) -> Self {
        Self {
            function: frame.function.into(),
            site: frame.site.map(Into::into),
            address: frame.address,
            inlined: frame.inlined,
        }
    }
}

impl From<&Stack> for v1::Stack {
    fn from(stack: &Stack) -> Self {
        let frames = stack.frames.as_deref();
        Self {
            id: stack.id.0,
            addresses: stack.addresses.iter().copied().take(limits::FRAMES).collect(),
            named: frames.is_some(),
            frames: frames
                .unwrap_or_default()
                .iter()
                .take(limits::FRAMES)
                .map(Into::into)
                .collect(),
        }
    }
}

impl From<v1::Stack> for Stack {
    fn from(stack: v1::Stack) -> Self {
        Self {
            id: StackId(stack.id),
            addresses: stack.addresses.into(),
            frames: stack.named.then(|| stack.frames.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<&Dropped> for v1::Dropped {
    fn from(dropped: &Dropped) -> Self {
        Self {
            stacks: dropped.stacks,
            holds: dropped.holds,
            waits: dropped.waits,
            resources: dropped.resources,
            orders: dropped.orders,
        }
    }
}

impl From<v1::Dropped> for Dropped {
    fn from(dropped: v1::Dropped) -> Self {
        Self {
            stacks: dropped.stacks,
            holds: dropped.holds,
            waits: dropped.waits,
            resources: dropped.resources,
            orders: dropped.orders,
        }
    }
}

impl From<&Mark> for v1::Mark {
    fn from(mark: &Mark) -> Self {
        Self {
            site: Some((&mark.site).into()),
            label: cut(&mark.label, limits::SENTENCE),
            primary: mark.primary,
            stack: mark.stack.0,
        }
    }
}

impl TryFrom<v1::Mark> for Mark {
    type Error = Error;

    fn try_from(mark: v1::Mark) -> Result<Self, Error> {
        Ok(Self {
            site: mark.site.ok_or(Error::new("a mark without a site"))?.into(),
            label: mark.label,
            primary: mark.primary,
            stack: StackId(mark.stack),
        })
    }
}

impl From<&Finding> for v1::Finding {
    fn from(finding: &Finding) -> Self {
        fn parties<T: Copy, U>(ids: &[T], id: impl Fn(T) -> U) -> Vec<U> {
            ids.iter().copied().take(limits::PARTIES).map(id).collect()
        }
        let sentence = |text: &str| cut(text, limits::SENTENCE);
        Self {
            id: finding.id.0,
            code: finding.code.as_str().to_owned(),
            verdict: v1::Verdict::from(finding.verdict).into(),
            title: sentence(&finding.title),
            marks: finding.marks.iter().take(limits::MARKS).map(Into::into).collect(),
            notes: finding.notes.iter().take(limits::MARKS).map(|note| sentence(note)).collect(),
            help: finding.help.as_deref().map(sentence),
            since: finding.since.0,
            resources: parties(&finding.resources, |id| id.0),
            actors: parties(&finding.actors, Into::into),
            holds: parties(&finding.holds, |id| id.0),
            waits: parties(&finding.waits, |id| id.0),
        }
    }
}

impl TryFrom<v1::Finding> for Finding {
    type Error = Error;

    fn try_from(finding: v1::Finding) -> Result<Self, Error> {
        Ok(Self {
            id: FindingId(finding.id),
            code: code(&finding.code),
            verdict: finding.verdict().into(),
            title: finding.title,
            marks: finding.marks.into_iter().map(Mark::try_from).collect::<Result<_, _>>()?,
            notes: finding.notes,
            help: finding.help,
            since: Moment(finding.since),
            resources: finding.resources.into_iter().map(ResourceId).collect(),
            actors: finding.actors.into_iter().map(ActorId::try_from).collect::<Result<_, _>>()?,
            holds: finding.holds.into_iter().map(HoldId).collect(),
            waits: finding.waits.into_iter().map(WaitId).collect(),
        })
    }
}
