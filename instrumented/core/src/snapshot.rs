//! What was true at one moment: resources, holds, waits, and who made them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A moment, in nanoseconds since holdup was first used in the observed process (monotonic).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// The time from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// One instance of a primitive. Never reused within a process.
    ResourceId(u64)
);
id!(
    /// One permit object that is alive. Never reused within a process.
    HoldId(u64)
);
id!(
    /// One acquire that has been polled and is not ready. Never reused within a process.
    WaitId(u64)
);
id!(
    /// One distinct call stack, by its addresses.
    StackId(u32)
);
id!(
    /// An index into [`Snapshot::sites`].
    SiteId(u32)
);
id!(
    /// The scope (a test, an audited region) a record was made in; 0 is the process.
    ScopeId(u64)
);

impl StackId {
    /// No stack was recorded.
    pub const NONE: StackId = StackId(0);
}

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorId {
    /// A tokio task, by the number that `tokio::task::Id` displays.
    Task(u64),
    /// A future that is no task (`block_on`, `#[tokio::main]`, a test body), by its waker's data pointer.
    Root(u64),
    /// A thread that made a blocking call outside any future, by a number of ours.
    Thread(u64),
}

/// What is known of an actor besides its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Which actor.
    pub id: ActorId,
    /// The task's name, or the name of the thread that the root future or blocking call was seen on.
    pub name: Option<Arc<str>>,
}

/// The kind of a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `Semaphore`.
    Semaphore,
    /// `Mutex`: a semaphore of one.
    Mutex,
    /// `RwLock`: a reader takes one unit, a writer all.
    RwLock,
    /// A bounded channel: the receiver gives the units back.
    Channel,
    /// A kind that this version does not know.
    Unknown,
}

impl Kind {
    /// The name in messages, for example `semaphore`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Semaphore => "semaphore",
            Kind::Mutex => "mutex",
            Kind::RwLock => "rwlock",
            Kind::Channel => "channel",
            Kind::Unknown => "unknown",
        }
    }
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The file as the compiler recorded it.
    pub file: Arc<str>,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// The observed process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// The executable's file name.
    pub name: String,
    /// The executable's path, if known.
    pub executable: String,
    /// The version of holdup in the process.
    pub version: String,
    /// Built without optimisation (more names, exact frames).
    pub debug: bool,
    /// How stacks are captured: `full`, `location` or `off`.
    pub stacks: String,
    /// The directory that relative source paths are relative to, if known.
    pub working_directory: String,
}

/// What happened on a resource so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Permits objects handed out (not units).
    pub acquired: u64,
    /// Of these, how many had to wait first.
    pub waited: u64,
    /// Permit objects given back.
    pub released: u64,
    /// `try_acquire` calls that found no permit.
    pub rejected: u64,
    /// Acquires that were dropped while waiting.
    pub cancelled: u64,
    /// The time that finished waits took, in total, in nanoseconds.
    pub wait_nanos: u64,
    /// The time that cancelled waits had waited, in total, in nanoseconds.
    pub cancelled_nanos: u64,
    /// The time that released holds had been held, in total, in nanoseconds.
    pub held_nanos: u64,
}

/// The totals of a resource's live records, for those who do not want the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Units held.
    pub held: u64,
    /// Live permit objects.
    pub holders: u64,
    /// Acquires that wait.
    pub waiting: u64,
    /// Since when the oldest hold is held.
    pub oldest_hold: Option<Moment>,
    /// Since when the oldest wait waits.
    pub oldest_wait: Option<Moment>,
}

/// What the user said of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// A hold longer than this is overdue.
    pub max_hold: Option<Duration>,
    /// Long holds are by design.
    pub long_held: bool,
    /// The capacity grows by design.
    pub grows: bool,
}

/// One instance of a primitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Which one.
    pub id: ResourceId,
    /// Of which kind.
    pub kind: Kind,
    /// The name given by the user.
    pub name: Option<Arc<str>>,
    /// Where it was created (for a `const_new`: where it was first used).
    pub created: SiteId,
    /// When.
    pub created_at: Moment,
    /// In which scope.
    pub scope: ScopeId,
    /// A borrowed permit can be anywhere: it lives in a `static`, or one was seen with another actor.
    pub is_static: bool,
    /// Units it was created with.
    pub initial: u64,
    /// Units added since.
    pub added: u64,
    /// Units forgotten since.
    pub forgotten: u64,
    /// Units that are free right now.
    pub available: u64,
    /// It was closed.
    pub closed: bool,
    /// The books balanced when they were copied. If not, records were on their way: judge nothing here.
    pub settled: bool,
    /// Totals of the live records.
    pub usage: Usage,
    /// What happened so far.
    pub counters: Counters,
    /// What the user said.
    pub settings: Settings,
}

impl Resource {
    /// All units there are: `initial + added − forgotten`.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.initial.saturating_add(self.added).saturating_sub(self.forgotten)
    }

    /// Units handed to waits that have not been polled since: `capacity − available − held`.
    ///
    /// They belong to the front of the queue, each wait taking at most what it asked for.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.capacity().saturating_sub(self.available.saturating_add(self.usage.held))
    }
}

/// How a permit was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// An async acquire.
    Acquire,
    /// A `try_` call.
    Try,
    /// A `blocking_` call.
    Blocking,
}

/// One permit object that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which one.
    pub id: HoldId,
    /// Of which resource.
    pub resource: ResourceId,
    /// How many units.
    pub units: u64,
    /// Who acquired it.
    pub actor: ActorId,
    /// Another actor that has used it since: it was moved there.
    pub moved_to: Option<ActorId>,
    /// In which scope.
    pub scope: ScopeId,
    /// The call stack of the poll that began the acquire.
    pub stack: StackId,
    /// Where the acquire was called.
    pub site: SiteId,
    /// Since when.
    pub since: Moment,
    /// How it was asked for.
    pub call: Call,
    /// It does not borrow the resource: it may have been moved to anybody.
    pub owned: bool,
    /// The acquire future's address while it was polled; 0 if there was none.
    pub future: u64,
    /// The data pointer of the waker it was polled with; 0 if there was none.
    pub poller: u64,
}

/// One acquire that has been polled and is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Which one.
    pub id: WaitId,
    /// Of which resource.
    pub resource: ResourceId,
    /// How many units it wants.
    pub units: u64,
    /// Who waits.
    pub actor: ActorId,
    /// In which scope.
    pub scope: ScopeId,
    /// The call stack of its first poll.
    pub stack: StackId,
    /// Where the acquire was called.
    pub site: SiteId,
    /// Since when it waits.
    pub since: Moment,
    /// When it was last polled.
    pub last_poll: Moment,
    /// How it asked.
    pub call: Call,
    /// It asks for an owned permit.
    pub owned: bool,
    /// The acquire future's address.
    pub future: u64,
    /// The data pointer of the waker it was last polled with.
    pub poller: u64,
}

/// One logical frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The demangled function name, without hash; empty if unknown.
    pub function: Arc<str>,
    /// Where in the source, if known.
    pub site: Option<Site>,
    /// The return address; the same for all logical frames that were inlined into one physical frame.
    pub address: u64,
    /// Inlined into the next outer frame.
    pub inlined: bool,
}

/// One distinct call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Which one.
    pub id: StackId,
    /// Return addresses, innermost first.
    pub addresses: Arc<[u64]>,
    /// Named logical frames, innermost first, inlined ones expanded; `None` until somebody has resolved them.
    pub frames: Option<Arc<[Frame]>>,
}

/// What was not recorded because a bound was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Distinct stacks beyond the limit of the intern table.
    pub stacks: u64,
    /// Holds beyond the limit.
    pub holds: u64,
    /// Waits beyond the limit.
    pub waits: u64,
    /// Resources beyond the limit.
    pub resources: u64,
}

/// What was true at one moment.
///
/// Each resource is consistent in itself (see [`Resource::settled`]); different resources were copied
/// one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When the copy began.
    pub taken: Moment,
    /// Of which process.
    pub process: Process,
    /// By id.
    pub resources: Vec<Resource>,
    /// By resource, oldest first.
    pub holds: Vec<Hold>,
    /// By resource, in queue order.
    pub waits: Vec<Wait>,
    /// What is known of the actors; those without an entry are known by their id only.
    pub actors: Vec<Actor>,
    /// By [`SiteId`].
    pub sites: Vec<Site>,
    /// The stacks that holds and waits refer to, by id.
    pub stacks: Vec<Stack>,
    /// What is missing.
    pub dropped: Dropped,
}

impl Snapshot {
    /// The resource with this id.
    #[must_use]
    pub fn resource(&self, id: ResourceId) -> Option<&Resource> {
        let at = self.resources.binary_search_by_key(&id, |r| r.id).ok()?;
        self.resources.get(at)
    }

    /// The site with this id.
    #[must_use]
    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(id.0 as usize)
    }

    /// The stack with this id.
    #[must_use]
    pub fn stack(&self, id: StackId) -> Option<&Stack> {
        let at = self.stacks.binary_search_by_key(&id, |s| s.id).ok()?;
        self.stacks.get(at)
    }

    /// What is known of an actor.
    #[must_use]
    pub fn actor(&self, id: ActorId) -> Option<&Actor> {
        self.actors.iter().find(|a| a.id == id)
    }
}
