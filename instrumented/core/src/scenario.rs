//! Situations as a few lines of text, with what should be found in them.
//!
//! ```text
//! semaphore a 1
//! semaphore b 1
//! task 1
//!   hold a
//!   wait b
//! task 2
//!   hold b
//!   wait a
//! find deadlock: task 1, task 2; a, b
//! ```
//!
//! - `semaphore NAME CAPACITY`, `channel NAME CAPACITY`, `mutex NAME`, `rwlock NAME` with, as needed: `static`, `closed`,
//!   `unsettled`, `grows`, `long_held`, `max_hold TIME`, `added N`, `forgotten N`, `released N`, `rejected N` (totals), `moving` (units went
//!   to and fro until now). What is neither held nor added goes to the front of the queue, as tokio does it, or is
//!   available.
//! - `task N`, `root N`, `thread N`: who does the lines below it.
//! - `hold NAME` and `wait NAME`, in the order of time, 100 ms apart, with, as needed: `xN` (units), `owned`, `try`,
//!   `unread` (a channel's messages, by who received last), `unasked` (by who made the channel), `moved N` (to that task), `once` (not yet there in the earlier snapshot), `soon` (1 ms after the line before),
//!   `polled` (once more, 0.1 ms later),
//!   `back N` (so many earlier holds from this stack came back), `usual TIME` (after at most so long), `elsewhere N` (of
//!   these, released by others), `future N`, `poller N` (a number for the address), and `: PATH`. Without a path, all that an actor does is in
//!   one `async` body, each line at a place of its own.
//! - `add NAME`, `forget NAME`, `withdraw NAME`: units that came or went, with, as needed: `xN` (units a call), `calls N`,
//!   `several`, `holding N`, `released N` (of these, followed by the release of the hold), and `: PATH`.
//! - `gave_up NAME` with `times N`, `for TIME`, `others N` (acquired meanwhile), and `: PATH`.
//! - `dropped NAME times N: PATH`: so many holds that ended at once, by a statement that drops what it acquires.
//! - `granted` at a wait: all it wants has been set aside for it since, and nobody polls it. `on N` at a hold or wait:
//!   the thread.
//! - `runtime current_thread` or `runtime multi_thread` with, as needed: `workers N`, `alive N`, `busy` (no worker has
//!   been idle).
//! - `outer NAME` and `inner NAME`: the one was held while the other was acquired, and went well, with the words of a
//!   hold and `held N` (units in all), `released N`, `elsewhere N`; before them, `around NAME` for what was held around
//!   both. `asked NAME`: of one that is nested, so much at once. With `alive N` and `newest N` (tasks, and the number
//!   that the next one gets) where not all tasks were there all the time.
//! - `after TIME`, such as `after 70s`: so much later. `alive N`: a runtime with so many tasks.
//! - `PATH` is written outermost first, `run@10 > join!1 > save@12`; see [`frames`].
//! - `optimised`, and `only` (there is no earlier snapshot).
//! - `find CODE: ACTORS; SEMAPHORES` and `find nothing`; `says TEXT` for a part of the report.

mod orders;

use crate::diagnose::{Limits, diagnose};
use crate::finding::Finding;
use crate::rules::fnv1a;
use crate::snapshot::{
    ActorId, Call, Counters, Direction, Flavor, Flow, Frame, Gate, History, Hold, HoldId, Kind,
    Learned, Moment, Resource, ResourceId, Runtime, RuntimeId, ScopeId, Settings, Site, SiteId,
    Snapshot, Stack, StackId, Streak, Usage, Wait, WaitId,
};
use crate::text::{NoSources, Style, render};
use std::sync::Arc;
use std::time::Duration;

/// Time between two lines, in nanoseconds.
const STEP: u64 = 100_000_000;

/// A situation, seen twice.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What is true now.
    pub current: Snapshot,
    /// What was true 100 ms before; `None` if nobody looked.
    pub previous: Option<Snapshot>,
    found: Vec<String>,
    says: Vec<String>,
}

/// Reads a situation, diagnoses it, and compares.
///
/// # Panics
///
/// If the text is wrong, or something else is found.
#[track_caller]
pub fn check(text: &str) {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{error}"));
    let findings = scenario.diagnose();
    let found: Vec<String> = findings.iter().map(|f| scenario.summary(f)).collect();
    // So wide that no sentence is broken.
    let style = Style { width: Some(1000), color: false };
    let report: Vec<String> = findings.iter().map(|f| render(f, &NoSources, &style)).collect();
    let report = report.join("\n\n");
    assert!(
        found == scenario.found,
        "expected {:?}, found {found:?}\n{text}\n{report}",
        scenario.found
    );
    for part in &scenario.says {
        assert!(report.contains(part), "the report does not say {part:?}:\n{report}");
    }
}

impl Scenario {
    /// Reads a situation.
    ///
    /// # Errors
    ///
    /// If a line cannot be understood: which, and why.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut reader = Reader::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                reader.line(line).map_err(|error| format!("line {}: {error}: {line}", at + 1))?;
            }
        }
        Ok(reader.finish())
    }

    /// What is found in it.
    #[must_use]
    pub fn diagnose(&self) -> Vec<Finding> {
        diagnose(&self.current, self.previous.as_ref(), &Limits::default())
    }

    /// A finding in the words of a `find` line.
    #[must_use]
    pub fn summary(&self, finding: &Finding) -> String {
        let name = |id: &ResourceId| {
            self.current.resource(*id).and_then(|r| r.name.as_deref().map(str::to_owned))
        };
        let mut actors = finding.actors.clone();
        actors.sort_unstable();
        let actors: Vec<String> = actors
            .iter()
            .map(|actor| match actor {
                ActorId::Task(n) => format!("task {n}"),
                ActorId::Root(n) => format!("root {n}"),
                ActorId::Thread(n) => format!("thread {n}"),
            })
            .collect();
        let mut resources: Vec<String> = finding.resources.iter().filter_map(name).collect();
        resources.sort_unstable();
        format!("{}: {}; {}", finding.code, actors.join(", "), resources.join(", "))
    }
}

#[derive(Default)]
struct Reader {
    snapshot: Snapshot,
    actor: Option<ActorId>,
    clock: u64,
    lines: u32,
    only: bool,
    /// Records that the earlier snapshot does not have.
    late_holds: Vec<HoldId>,
    late_waits: Vec<WaitId>,
    /// No worker of the runtime has been idle.
    busy: bool,
    /// Units of these go to and fro.
    moving: Vec<ResourceId>,
    optimised: bool,
    /// Of the order that is being told.
    around: Vec<Gate>,
    outer: Option<Record>,
    found: Vec<String>,
    says: Vec<String>,
}

/// What can be said of a hold or a wait.
#[derive(Debug)]
struct Record {
    resource: ResourceId,
    units: u64,
    owned: bool,
    call: Call,
    moved_to: Option<ActorId>,
    once: bool,
    polled: bool,
    granted: bool,
    thread: u64,
    future: u64,
    poller: u64,
    since: Moment,
    site: SiteId,
    stack: StackId,
    /// Of earlier holds from the same stack.
    back: u64,
    elsewhere: u64,
    usual: Duration,
    /// Of a flow or a streak.
    calls: u64,
    several: bool,
    holding: u64,
    released: u64,
    others: u64,
    /// Of an order.
    held: u64,
    alive: Option<u64>,
    newest: Option<u64>,
    lasted: Duration,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "semaphore" => self.semaphore(Kind::Semaphore, rest),
            "mutex" => self.semaphore(Kind::Mutex, &with_capacity(rest, 1)),
            "rwlock" => self.semaphore(Kind::RwLock, &with_capacity(rest, READERS)),
            "channel" => self.semaphore(Kind::Channel, rest),
            "runtime" => self.runtime(rest),
            "task" => self.actor(ActorId::Task, rest),
            "root" => self.actor(ActorId::Root, rest),
            "thread" => self.actor(ActorId::Thread, rest),
            "hold" => self.hold(rest),
            "wait" => self.wait(rest),
            "add" => self.flow(Direction::Added, rest),
            "forget" => self.flow(Direction::Forgotten, rest),
            "withdraw" => self.flow(Direction::Withdrawn, rest),
            "around" => self.around(rest),
            "outer" => self.outer(rest),
            "inner" => self.inner(rest),
            "asked" => self.asked(rest),
            "gave_up" => self.gave_up(rest),
            "dropped" => self.dropped(rest),
            "after" => {
                self.clock += nanos(time(rest)?);
                Ok(())
            }
            "alive" => {
                let alive_tasks = parse(rest)?;
                self.snapshot.runtimes.push(Runtime {
                    id: RuntimeId(1),
                    alive_tasks,
                    ..Runtime::default()
                });
                Ok(())
            }
            "optimised" => {
                self.optimised = true;
                Ok(())
            }
            "only" => {
                self.only = true;
                Ok(())
            }
            "find" if rest == "nothing" => Ok(()),
            "find" => {
                self.found.push(rest.to_owned());
                Ok(())
            }
            "says" => {
                self.says.push(rest.to_owned());
                Ok(())
            }
            _ => Err("unknown word".to_owned()),
        }
    }

    fn actor(&mut self, kind: fn(u64) -> ActorId, number: &str) -> Result<(), String> {
        self.actor = Some(kind(parse(number)?));
        Ok(())
    }

    fn semaphore(&mut self, kind: Kind, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or("no name")?;
        let initial = parse(words.next().ok_or("no capacity")?)?;
        let created = self.site(Site { file: "src/limits.rs".into(), line: 1, column: 1 });
        let mut resource = Resource {
            id: ResourceId(self.snapshot.resources.len() as u64 + 1),
            kind,
            name: Some(name.into()),
            created,
            created_at: Moment(0),
            scope: ScopeId(0),
            is_static: false,
            initial,
            added: 0,
            forgotten: 0,
            available: 0,
            closed: false,
            settled: true,
            usage: Usage::default(),
            counters: Counters::default(),
            settings: Settings::default(),
            history: History::default(),
        };
        while let Some(word) = words.next() {
            match word {
                "static" => resource.is_static = true,
                "closed" => resource.closed = true,
                "unsettled" => resource.settled = false,
                "grows" => resource.settings.grows = true,
                "long_held" => resource.settings.long_held = true,
                "moving" => self.moving.push(resource.id),
                "max_hold" => {
                    resource.settings.max_hold = Some(time(words.next().ok_or("how long?")?)?);
                }
                total => {
                    let number = parse(words.next().unwrap_or_default())
                        .map_err(|_| format!("a {} cannot be {word:?}", kind.as_str()))?;
                    match total {
                        "added" => resource.added = number,
                        "forgotten" => resource.forgotten = number,
                        "released" => resource.counters.released = number,
                        "rejected" => resource.counters.rejected = number,
                        _ => return Err(format!("nothing has {word:?}")),
                    }
                }
            }
        }
        self.snapshot.resources.push(resource);
        Ok(())
    }

    fn hold(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let id = HoldId(self.snapshot.holds.len() as u64 + 1);
        if record.once {
            self.late_holds.push(id);
        }
        self.learn(&record);
        self.snapshot.holds.push(Hold {
            id,
            resource: record.resource,
            units: record.units,
            actor: self.actor.ok_or("nobody holds")?,
            moved_to: record.moved_to,
            scope: ScopeId(0),
            stack: record.stack,
            site: record.site,
            since: record.since,
            call: record.call,
            owned: record.owned,
            future: record.future,
            poller: record.poller,
            thread: record.thread,
        });
        Ok(())
    }

    fn wait(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let id = WaitId(self.snapshot.waits.len() as u64 + 1);
        if record.once {
            self.late_waits.push(id);
        }
        self.snapshot.waits.push(Wait {
            id,
            resource: record.resource,
            units: record.units,
            actor: self.actor.ok_or("nobody waits")?,
            scope: ScopeId(0),
            stack: record.stack,
            site: record.site,
            since: record.since,
            last_poll: Moment(record.since.0 + if record.polled { STEP / 1000 } else { 0 }),
            call: record.call,
            owned: record.owned,
            future: record.future,
            poller: record.poller,
            thread: record.thread,
            runtime: RuntimeId::NONE,
            granted_since: record.granted.then_some(record.since),
        });
        Ok(())
    }

    fn runtime(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let flavor = match words.next() {
            Some("current_thread") => Flavor::CurrentThread,
            Some("multi_thread") => Flavor::MultiThread,
            _ => return Err("which runtime?".to_owned()),
        };
        let mut runtime = Runtime {
            id: RuntimeId(1),
            flavor,
            workers: 1,
            alive_tasks: 1_000,
            ..Runtime::default()
        };
        while let Some(word) = words.next() {
            match word {
                "busy" => self.busy = true,
                "workers" => runtime.workers = parse(words.next().ok_or("how many?")?)?,
                "alive" => runtime.alive_tasks = parse(words.next().ok_or("how many?")?)?,
                _ => return Err(format!("a runtime cannot be {word:?}")),
            }
        }
        self.snapshot.runtimes.push(runtime);
        Ok(())
    }

    /// What is known of a stack by the holds that came from it.
    fn learn(&mut self, record: &Record) {
        let learned = &mut self.snapshot.learned;
        let known = learned.iter_mut().find(|l| l.stack == record.stack);
        if record.stack == StackId::NONE {
            return;
        }
        if let Some(known) = known {
            known.acquired += 1;
            return;
        }
        learned.push(Learned {
            stack: record.stack,
            site: record.site,
            acquired: record.back + 1,
            released: record.back,
            elsewhere: record.elsewhere,
            forgotten: 0,
            brief: 0,
            usual: record.usual,
            longest: record.usual,
            resource: record.resource,
            discarded: false,
        });
    }

    fn flow(&mut self, direction: Direction, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let resource = self.snapshot.resources.iter_mut().find(|r| r.id == record.resource);
        let (resource, actor) = resource.zip(self.actor).ok_or("by whom?")?;
        let units = record.units * record.calls;
        let total = match direction {
            Direction::Added => &mut resource.added,
            Direction::Forgotten | Direction::Withdrawn => &mut resource.forgotten,
        };
        *total += units;
        resource.history.flows.push(Flow {
            direction,
            site: record.site,
            stack: record.stack,
            calls: record.calls,
            units,
            most: record.units,
            first: Moment(record.since.0.saturating_sub(nanos(record.lasted))),
            last: record.since,
            actor,
            several: record.several,
            holding: record.holding,
            then_released: record.released,
        });
        Ok(())
    }

    fn dropped(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        self.snapshot.learned.push(Learned {
            stack: record.stack,
            site: record.site,
            acquired: record.calls,
            released: record.calls,
            brief: record.calls,
            longest: Duration::from_micros(9),
            resource: record.resource,
            discarded: true,
            ..Learned::default()
        });
        Ok(())
    }

    fn gave_up(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let resource = self.snapshot.resources.iter_mut().find(|r| r.id == record.resource);
        let (resource, actor) = resource.zip(self.actor).ok_or("by whom?")?;
        resource.history.streaks.push(Streak {
            actor,
            site: record.site,
            stack: record.stack,
            count: record.calls,
            since: Moment(record.since.0.saturating_sub(nanos(record.lasted))),
            last: record.since,
            others: record.others,
        });
        Ok(())
    }

    fn record(&mut self, rest: &str) -> Result<Record, String> {
        let (rest, path) =
            rest.split_once(": ").map_or((rest, None), |(rest, path)| (rest, Some(path.trim())));
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or("of which semaphore?")?;
        let named = self.snapshot.resources.iter().find(|r| r.name.as_deref() == Some(name));
        let resource = named.ok_or_else(|| format!("no semaphore {name:?}"))?.id;
        self.lines += 1;
        let mut record = Record {
            resource,
            units: 1,
            owned: false,
            call: Call::Acquire,
            moved_to: None,
            once: false,
            polled: false,
            granted: false,
            thread: 1,
            future: 0x1000 * u64::from(self.lines),
            poller: 0x7000_0000,
            since: Moment(0),
            site: SiteId(0),
            stack: StackId::NONE,
            back: 0,
            elsewhere: 0,
            usual: Duration::ZERO,
            calls: 1,
            several: false,
            holding: 0,
            released: 0,
            others: 0,
            held: 0,
            alive: None,
            newest: None,
            lasted: Duration::ZERO,
        };
        let (mut step, mut unasked) = (STEP, false);
        while let Some(word) = words.next() {
            let mut number = || parse(words.next().ok_or("which?")?);
            match word {
                "owned" => record.owned = true,
                "try" => record.call = Call::Try,
                "unread" => (record.call, record.owned) = (Call::Receive, true),
                "unasked" => unasked = true,
                "once" => record.once = true,
                "polled" => record.polled = true,
                "granted" => record.granted = true,
                "on" => record.thread = number()?,
                "soon" => step = STEP / 100,
                "moved" => record.moved_to = Some(ActorId::Task(number()?)),
                "usual" => record.usual = time(words.next().ok_or("how long?")?)?,
                "for" => record.lasted = time(words.next().ok_or("how long?")?)?,
                "several" => record.several = true,
                "back" => record.back = number()?,
                "elsewhere" => record.elsewhere = number()?,
                "calls" | "times" => record.calls = number()?,
                "holding" => record.holding = number()?,
                "released" => record.released = number()?,
                "held" => record.held = number()?,
                "alive" => record.alive = Some(number()?),
                "newest" => record.newest = Some(number()?),
                "others" => record.others = number()?,
                "future" => record.future = number()?,
                "poller" => record.poller = number()?,
                units if units.starts_with('x') => record.units = parse(&units[1..])?,
                _ => return Err(format!("unknown word {word:?}")),
            }
        }
        self.clock += step;
        record.since = Moment(self.clock);
        let body = match self.actor {
            Some(ActorId::Task(n)) => format!("task_{n}@{}", 10 * self.lines),
            Some(ActorId::Root(n)) => format!("root_{n}@{}", 10 * self.lines),
            Some(ActorId::Thread(n)) => format!("thread_{n}@{}", 10 * self.lines),
            None => return Err("by whom?".to_owned()),
        };
        let path = path.unwrap_or(&body);
        if path != "?" {
            let frames = frames(path)?;
            let own = frames
                .iter()
                .filter_map(|f| f.site.as_ref())
                .find(|site| site.file.starts_with("src/"));
            let site = own.ok_or("a path without a place")?.clone();
            record.site = self.site(site);
            record.stack = self.stack(frames);
        } else {
            record.site =
                self.site(Site { file: "src/app.rs".into(), line: 10 * self.lines, column: 9 });
        }
        if unasked {
            record.site = self.site(Site { file: "src/limits.rs".into(), line: 1, column: 1 });
        }
        Ok(record)
    }

    fn site(&mut self, site: Site) -> SiteId {
        let sites = &mut self.snapshot.sites;
        let at = sites.iter().position(|known| *known == site).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        });
        SiteId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    fn stack(&mut self, frames: Vec<Frame>) -> StackId {
        let addresses: Arc<[u64]> = frames.iter().map(|f| f.address).collect();
        let stacks = &mut self.snapshot.stacks;
        if let Some(known) = stacks.iter().find(|s| s.addresses == addresses) {
            return known.id;
        }
        let id = StackId(u32::try_from(stacks.len()).unwrap_or(u32::MAX) + 1);
        stacks.push(Stack { id, addresses, frames: Some(frames.into()) });
        id
    }

    fn finish(mut self) -> Scenario {
        let mut snapshot = std::mem::take(&mut self.snapshot);
        snapshot.process.debug = !self.optimised;
        snapshot.holds.sort_by_key(|h| h.resource);
        snapshot.waits.sort_by_key(|w| w.resource);
        snapshot.learned.sort_by_key(|l| l.stack);
        orders::fill_in(&mut snapshot);
        for r in &mut snapshot.resources {
            let holds = snapshot.holds.iter().filter(|h| h.resource == r.id).map(|h| h.since);
            let moved = holds.chain(r.history.flows.iter().map(|flow| flow.last)).max();
            r.history.moved = moved.unwrap_or_default();
            if self.moving.contains(&r.id) {
                r.history.moved = Moment(self.clock + STEP);
            }
        }
        let rested = Moment(if self.busy { 0 } else { self.clock + STEP });
        for runtime in snapshot.runtimes.iter_mut().filter(|r| r.flavor != Flavor::Unknown) {
            runtime.rested = rested;
            snapshot.waits.iter_mut().for_each(|wait| wait.runtime = runtime.id);
        }
        let mut previous = snapshot.clone();
        previous.holds.retain(|h| !self.late_holds.contains(&h.id));
        previous.waits.retain(|w| !self.late_waits.contains(&w.id));
        for (snapshot, taken) in
            [(&mut previous, self.clock + STEP), (&mut snapshot, self.clock + 2 * STEP)]
        {
            snapshot.taken = Moment(taken);
            settle(snapshot);
        }
        Scenario {
            current: snapshot,
            previous: (!self.only).then_some(previous),
            found: self.found,
            says: self.says,
        }
    }
}

/// Fills in the totals.
fn settle(snapshot: &mut Snapshot) {
    let Snapshot { resources, holds, waits, .. } = snapshot;
    for r in resources {
        let holds = holds.iter().filter(|h| h.resource == r.id);
        let waits = waits.iter().filter(|w| w.resource == r.id);
        r.usage = Usage {
            held: holds.clone().map(|h| h.units).sum(),
            holders: holds.clone().count() as u64,
            waiting: waits.clone().count() as u64,
            oldest_hold: holds.map(|h| h.since).min(),
            oldest_wait: waits.map(|w| w.since).min(),
        };
        r.available =
            if r.usage.waiting > 0 { 0 } else { r.capacity().saturating_sub(r.usage.held) };
    }
}

/// The readers that tokio's lock has room for.
const READERS: u64 = (u32::MAX >> 3) as u64;

fn with_capacity(rest: &str, capacity: u64) -> String {
    let (name, settings) = rest.split_once(' ').unwrap_or((rest, ""));
    format!("{name} {capacity} {settings}")
}

/// `70s`, `40ms`.
fn time(text: &str) -> Result<Duration, String> {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => Ok(Duration::from_millis(parse(number)?)),
        (None, Some(number)) => Ok(Duration::from_secs(parse(number)?)),
        _ => Err(format!("{text:?} is no time")),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn parse(text: &str) -> Result<u64, String> {
    let number =
        text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    number.map_err(|_| format!("{text:?} is no number"))
}

/// The frames of a path, innermost first, as a stack has them.
///
/// The path is written outermost first, with ` > ` between the frames, and begins below the runtime's poll of the
/// task. A frame is one of
///
/// - `save@12`, `save@12:5`, `save@src/db.rs:12:5`: the `async` body of `app::save`, at that line and column;
/// - `join!N`, `try_join!N`, `select!N`: tokio's macro, in its Nth branch; `join N` of futures is `Join::N`;
/// - `unordered`, `buffer_unordered`, `for_each_concurrent`, `join_all`, `select_all`, `timeout`, `box`, `then`;
/// - a function's name as the compiler has it, in quotes: `"<app::Mine as Future>::poll"@3`. With `~` before it,
///   it is inlined into the frame before; with `+N` at the end, it is another call in the same place.
///
/// # Errors
///
/// If the text is no such path.
pub fn frames(path: &str) -> Result<Vec<Frame>, String> {
    let mut frames = vec![frame(
        "tokio::runtime::task::core::Core<T,S>::poll",
        "/r/tokio-1.54.1/src/runtime/task/core.rs",
        380,
        24,
        0,
    )];
    for part in split(path) {
        let before = frames.len();
        part_frames(&part, &mut frames)?;
        for frame in &mut frames[before..] {
            let place = frame.site.as_ref().map(|site| (site.line, site.column));
            let call = format!("{} {place:?} {}", frame.function, frame.address);
            frame.address = fnv1a(call.bytes()) >> 17;
        }
    }
    // A physical frame has the address of what is innermost in it.
    for at in (0..frames.len() - 1).rev() {
        if frames[at + 1].inlined {
            frames[at].address = frames[at + 1].address;
        }
    }
    frames.reverse();
    Ok(frames)
}

/// The frames of a path's text; a `>` within quotes is part of a name.
fn split(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn part_frames(part: &str, frames: &mut Vec<Frame>) -> Result<(), String> {
    const POLL_FN: &str =
        "<core::future::poll_fn::PollFn<F> as core::future::future::Future>::poll";
    const TOKIO: &str = "/r/tokio-1.54.1/src";
    const FUTURES: &str = "/r/futures-util-0.3.34/src";
    let (inlined, part) = part.strip_prefix('~').map_or((false, part), |part| (true, part));
    let (part, variant) = match part.rsplit_once('+') {
        Some((rest, n)) if !rest.ends_with('"') || n.parse::<u64>().is_ok() => (rest, parse(n)?),
        _ => (part, 0),
    };
    let before = frames.len();
    if let Some((name, branch)) = part.split_once('!') {
        let branch = parse(branch)?;
        let outer = frames.last().map_or("app::f::{{closure}}", |f| &f.function).to_owned();
        frames.push(frame(POLL_FN, "/rustc/1/library/core/src/future/poll_fn.rs", 151, 9, variant));
        frames.push(frame(
            &format!("{outer}::{{{{closure}}}}"),
            &format!("{TOKIO}/macros/{name}.rs"),
            179,
            24,
            branch,
        ));
        if name != "select" {
            frames.push(frame(
                "<tokio::future::maybe_done::MaybeDone<Fut> as core::future::future::Future>::poll",
                &format!("{TOKIO}/future/maybe_done.rs"),
                65,
                63,
                variant,
            ));
        }
    } else if let Some((name, place)) = part.rsplit_once('@') {
        let (file, place) = match place.split_once(".rs:") {
            Some((file, place)) => (format!("{file}.rs"), place),
            None => ("src/app.rs".to_owned(), place),
        };
        let (line, column) = place.split_once(':').unwrap_or((place, "9"));
        let number =
            |text: &str| u32::try_from(parse(text)?).map_err(|_| format!("{text:?} is too large"));
        let (line, column) = (number(line)?, number(column)?);
        let raw = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let function = raw.map_or_else(|| format!("app::{name}::{{{{closure}}}}"), str::to_owned);
        frames.push(frame(&function, &file, line, column, variant));
    } else {
        let known: &[(&str, &str, &str)] = &[
            (
                "unordered",
                "<futures_util::stream::futures_unordered::FuturesUnordered<Fut> as futures_core::stream::Stream>::poll_next",
                "stream/futures_unordered/mod.rs",
            ),
            (
                "buffer_unordered",
                "<futures_util::stream::stream::buffer_unordered::BufferUnordered<St> as futures_core::stream::Stream>::poll_next",
                "stream/stream/buffer_unordered.rs",
            ),
            (
                "for_each_concurrent",
                "<futures_util::stream::stream::for_each_concurrent::ForEachConcurrent<St,Fut,F> as core::future::future::Future>::poll",
                "stream/stream/for_each_concurrent.rs",
            ),
            (
                "join_all",
                "<futures_util::future::join_all::JoinAll<F> as core::future::future::Future>::poll",
                "future/join_all.rs",
            ),
            (
                "select_all",
                "<futures_util::future::select_all::SelectAll<Fut> as core::future::future::Future>::poll",
                "future/select_all.rs",
            ),
            (
                "then",
                "<futures_util::future::future::Then<Fut1,Fut2,F> as core::future::future::Future>::poll",
                "future/future/mod.rs",
            ),
            (
                "timeout",
                "<tokio::time::timeout::Timeout<T> as core::future::future::Future>::poll",
                "",
            ),
            (
                "block_in_place",
                "tokio::runtime::scheduler::multi_thread::worker::block_in_place",
                "",
            ),
            ("block_on", "futures_executor::local_pool::block_on", ""),
            (
                "spawn_blocking",
                "<tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll",
                "",
            ),
            ("box", "<core::pin::Pin<P> as core::future::future::Future>::poll", ""),
        ];
        let Some((_, function, file)) = known.iter().find(|(name, ..)| *name == part) else {
            return Err(format!("no frame {part:?}"));
        };
        frames.push(frame(function, &format!("{FUTURES}/{file}"), 100, 9, variant));
    }
    if inlined && let Some(first) = frames.get_mut(before) {
        first.inlined = true;
    }
    Ok(())
}

/// A frame whose address is, for now, only its variant.
fn frame(function: &str, file: &str, line: u32, column: u32, variant: u64) -> Frame {
    let site = Site { file: file.into(), line, column };
    Frame {
        function: function.into(),
        site: (line > 0).then_some(site),
        address: variant,
        inlined: false,
    }
}
