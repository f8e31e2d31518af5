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
    /// One tokio runtime, by a number of ours.
    RuntimeId(u64)
);
id!(
    /// The scope (a test, an audited region) a record was made in; 0 is the process.
    ScopeId(u64)
);

impl RuntimeId {
    /// No runtime is known.
    pub const NONE: RuntimeId = RuntimeId(0);
}

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

/// What happened on a resource that its live records do not tell. All lists are bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// When units last went to somebody or came from somewhere: acquired, released, added or forgotten.
    pub moved: Moment,
    /// Where units came from outside, and where they went for good; the first ones, one for each call stack.
    pub flows: Vec<Flow>,
    /// Who gave up waiting, again and again, without ever being served; the latest ones.
    pub streaks: Vec<Streak>,
}

/// Which way units went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// They came from outside: `add_permits`.
    Added,
    /// They went for good: `forget` of a permit.
    Forgotten,
    /// They went for good without having been anybody's: `forget_permits`.
    Withdrawn,
}

/// Units that came from outside or went for good, by the call stack that did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub site: SiteId,
    /// The call stack.
    pub stack: StackId,
    /// Calls.
    pub calls: u64,
    /// Units of all calls.
    pub units: u64,
    /// Units of the largest call.
    pub most: u64,
    /// The first call.
    pub first: Moment,
    /// The last call.
    pub last: Moment,
    /// Who called first.
    pub actor: ActorId,
    /// Others called, too.
    pub several: bool,
    /// Calls by an actor that had a hold of this resource at that time.
    pub holding: u64,
    /// Of these, how many were followed by the release of that hold.
    pub then_released: u64,
}

/// Acquires that one actor gave up at one place, one after the other, with none served between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streak {
    /// Who.
    pub actor: ActorId,
    /// Where the acquire was called.
    pub site: SiteId,
    /// The call stack of the last one.
    pub stack: StackId,
    /// How many.
    pub count: u64,
    /// When the first one began to wait.
    pub since: Moment,
    /// When the last one was given up.
    pub last: Moment,
    /// What others acquired on this resource meanwhile.
    pub others: u64,
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
    /// What its live records do not tell.
    pub history: History,
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
    /// Not asked for: the unread messages of a channel, which whoever received last gives back.
    Receive,
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
    /// The thread it was acquired on, by a number of ours.
    pub thread: u64,
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
    /// The thread of its first poll, by a number of ours.
    pub thread: u64,
    /// The runtime of its first poll; [`RuntimeId::NONE`] outside any.
    pub runtime: RuntimeId,
    /// Since when it has been seen to have all its units set aside for it, without a poll.
    pub granted_since: Option<Moment>,
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

/// What was learned of the holds that came from one call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Which stack.
    pub stack: StackId,
    /// Where the acquire was called.
    pub site: SiteId,
    /// Holds so far.
    pub acquired: u64,
    /// Of these, released.
    pub released: u64,
    /// Of the released ones, how many by another actor than the one that had acquired them.
    pub elsewhere: u64,
    /// Forgotten.
    pub forgotten: u64,
    /// Of the released ones, how many were [`BRIEF`](crate::discard::BRIEF).
    pub brief: u64,
    /// The time that 99 of 100 released holds had been held for at most, rounded up to a power of two of nanoseconds.
    pub usual: Duration,
    /// The longest time that a released hold had been held for.
    pub longest: Duration,
    /// The resource that the last brief one was of; 0 if there was none.
    pub resource: ResourceId,
    /// The source has been read there: what is acquired is dropped by the statement that acquires it.
    pub discarded: bool,
}

/// How a runtime runs its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// Not known to this version.
    #[default]
    Unknown,
    /// All tasks on the thread that called `block_on`.
    CurrentThread,
    /// On several worker threads.
    MultiThread,
}

/// A tokio runtime that has used an instrumented primitive. The tasks of a `LocalSet` are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runtime {
    /// Which one.
    pub id: RuntimeId,
    /// How it runs its tasks.
    pub flavor: Flavor,
    /// Worker threads.
    pub workers: u64,
    /// Spawned tasks that have not ended; with the first runtime also the threads of the process that may run blocking
    /// jobs, as far as they can be told.
    pub alive_tasks: u64,
    /// Each worker has been idle at some time after this: a task that was woken before has been polled since.
    pub rested: Moment,
}

/// What an [`Order`] knows of one side; its resource may be gone by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Of which resource.
    pub resource: ResourceId,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Where it was created.
    pub created: SiteId,
    /// Its capacity.
    pub capacity: u64,
    /// Units asked for.
    pub units: u64,
    /// Where the acquire was called.
    pub site: SiteId,
    /// The call stack.
    pub stack: StackId,
    /// It does not borrow the resource.
    pub owned: bool,
    /// A borrowed permit of the resource can be anywhere.
    pub is_static: bool,
    /// The acquire future's address, the first time.
    pub future: u64,
    /// The data pointer of its waker, the first time.
    pub poller: u64,
}

/// Somebody who was seen to acquire in an [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who.
    pub actor: ActorId,
    /// When first.
    pub at: Moment,
    /// When last.
    pub last: Moment,
    /// Tasks of its runtime that had not ended at the first time, itself included; 0 if not known.
    pub alive_tasks: u64,
    /// A task with a larger number than this was spawned after the first time; 0 if not known.
    pub newest: u64,
}

/// The largest requests for a resource that is nested in itself: whoever asks for so much may have to wait for the
/// outer hold, and the inner acquire stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Units asked for.
    pub units: u64,
    /// Where the first of them was called.
    pub site: SiteId,
    /// Its call stack.
    pub stack: StackId,
    /// Who asked: the first few, each once.
    pub seen: Vec<Seen>,
}

/// Something was acquired (not tried) while its actor had a hold, one for each pair of resources and call stacks.
///
/// Where both are of one resource it is a nested acquire, else an edge of the lock-order graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What was held.
    pub outer: Side,
    /// What was acquired.
    pub inner: Side,
    /// The most units of the outer resource that the actor had in all.
    pub held: u64,
    /// How often.
    pub count: u64,
    /// How often the outer hold was released by its own actor, after the inner one was acquired.
    pub released: u64,
    /// How often it was released or used by another.
    pub elsewhere: u64,
    /// The first time.
    pub first: Moment,
    /// The last time.
    pub last: Moment,
    /// Who did it: the first few, each once.
    pub seen: Vec<Seen>,
    /// What was held each time, since before the outer one: resources with their capacity and the units held.
    pub gates: Vec<Gate>,
    /// Of a nested acquire: the largest requests for its resource since it was first seen.
    pub largest: Option<Largest>,
}

/// A resource that was held around an [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Which one.
    pub resource: ResourceId,
    /// Its capacity.
    pub capacity: u64,
    /// Units held of it, at least.
    pub units: u64,
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
    /// Orders of acquires beyond the limit.
    pub orders: u64,
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
    /// The stacks that anything in here refers to, by id.
    pub stacks: Vec<Stack>,
    /// What was learned of the call stacks that live holds came from, by stack.
    pub learned: Vec<Learned>,
    /// What was acquired while something was held.
    pub orders: Vec<Order>,
    /// The runtimes that are known, by id.
    pub runtimes: Vec<Runtime>,
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

    /// What was learned of the holds from this stack.
    #[must_use]
    pub fn learned(&self, id: StackId) -> Option<&Learned> {
        let at = self.learned.binary_search_by_key(&id, |l| l.stack).ok()?;
        self.learned.get(at)
    }

    /// The runtime with this id.
    #[must_use]
    pub fn runtime(&self, id: RuntimeId) -> Option<&Runtime> {
        self.runtimes.iter().find(|r| r.id == id)
    }

    /// What is known of an actor.
    #[must_use]
    pub fn actor(&self, id: ActorId) -> Option<&Actor> {
        self.actors.iter().find(|a| a.id == id)
    }
}
