//! The thread that watches: it looks, thinks (`holdup_core::diagnose`), and publishes what it found.
//!
//! It sleeps while nothing is held or waited for. While somebody waits for longer than a moment it looks every
//! [`TICK`], and more rarely while nothing changes. While something is only held it dozes, and looks now and then
//! once a hold is old enough to be of interest. It spends at most about a fiftieth of its time looking.

mod discards;
mod told;

use crate::{limits, registry, report, stack};
use discards::Discards;
use holdup_core::diagnose::{Limits, diagnose, needs_names};
use holdup_core::{Finding, Snapshot};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use told::Told;

/// The time between two looks. Above `Limits::confirm`, so that each look can confirm the one before.
const TICK: Duration = Duration::from_millis(55);
/// The longest time between two looks while somebody waits, or something may be withdrawn.
const SLOWEST: Duration = Duration::from_secs(1);
/// The times between two looks while something is only held: a part of the shortest limit within these bounds.
const DOZE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The longest time between two looks while nothing is held, but permits were once added or forgotten.
const DEEPEST: Duration = Duration::from_secs(60);
/// Waits younger than this are not worth a look.
const YOUNG: Duration = Duration::from_millis(20);
/// For each unit of time spent on a look, this many are spent asleep.
const REST: u32 = 49;
/// Looks at the same waits after which looking becomes rarer.
const SAME: u32 = 4;
/// Looks after something was learned of which no hold or wait tells.
const FOLLOW: u32 = 2;
/// The time between such looks.
const NEWS_EVERY: Duration = Duration::from_secs(1);

/// The watching thread looks by itself.
const AWAKE: u8 = 0;
/// It has a time at which it wakes by itself, but whoever waits wakes it.
const DOZING: u8 = 1;
/// It wakes when somebody waits or takes anything (or has not been started yet).
const ASLEEP: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ASLEEP);
static NEWS: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<Option<Thread>> = OnceLock::new();
static CURRENT: Mutex<Current> = Mutex::new(Current { revision: 0, findings: Vec::new() });

static CHANGES: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::channel(0).0);

struct Current {
    revision: u64,
    findings: Vec<Finding>,
}

/// What is true now, with a number that changes whenever it does.
pub(crate) fn findings() -> (u64, Vec<Finding>) {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    (current.revision, current.findings.clone())
}

/// Changes with the revision of [`findings`], so that a client need not wait for its next picture.
#[cfg(feature = "server")]
pub(crate) fn changes() -> watch::Receiver<u64> {
    CHANGES.subscribe()
}

/// Somebody waits: called after the wait is in the books. One load while the thread is awake.
pub(crate) fn wake() {
    // Pairs with the fences in `doze` and `sleep`: either we see that it fell asleep, or it sees our wait.
    fence(Ordering::SeqCst);
    if STATE.load(Ordering::Relaxed) != AWAKE {
        wake_up();
    }
}

/// Something is held, or was changed for good: called after it is counted. One load unless the thread is fast
/// asleep; what is held is of no interest for a while.
pub(crate) fn stir() {
    // The count is in one order with this, so either we see that it fell asleep, or it sees what was counted.
    if STATE.load(Ordering::SeqCst) == ASLEEP {
        wake_up();
    }
}

/// Something was learned that is worth a look, although nobody waits.
pub(crate) fn news() {
    if !NEWS.swap(true, Ordering::SeqCst) {
        wake();
    }
}

#[cold]
fn wake_up() {
    if STATE.swap(AWAKE, Ordering::SeqCst) == AWAKE {
        return;
    }
    let thread = THREAD.get_or_init(|| {
        let builder = std::thread::Builder::new().name("holdup-monitor".to_owned());
        // Without a thread nothing is diagnosed, and the program goes on.
        builder.spawn(watch).ok().map(|handle| handle.thread().clone())
    });
    if let Some(thread) = thread {
        thread.unpark();
    }
}

/// Sleeps for `time`, or until somebody waits or, if they are not `old`, there are news.
fn doze(time: Duration, old: bool) {
    STATE.store(DOZING, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    if !registry::is_waited_for() && (old || !NEWS.load(Ordering::SeqCst)) {
        std::thread::park_timeout(time);
    }
    STATE.store(AWAKE, Ordering::SeqCst);
}

/// Sleeps until anything is held.
fn sleep() {
    STATE.store(ASLEEP, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    while registry::is_unused() && !NEWS.load(Ordering::SeqCst) {
        registry::rest();
        std::thread::park();
        if STATE.load(Ordering::Relaxed) != ASLEEP {
            return;
        }
    }
    STATE.store(AWAKE, Ordering::SeqCst);
}

fn watch() {
    limits::complain();
    let mut monitor = Monitor::default();
    loop {
        match monitor.step() {
            Next::Look(pause) => std::thread::sleep(pause),
            Next::Doze(pause) => monitor.doze(pause),
            Next::Sleep => sleep(),
        }
    }
}

/// What to do until the next step.
enum Next {
    /// Somebody waits, or something is to be confirmed or withdrawn: nothing shortens the pause.
    Look(Duration),
    Doze(Duration),
    Sleep,
}

#[derive(Default)]
struct Monitor {
    before: Option<Snapshot>,
    /// A digest of the last look, and how many looks have seen the same.
    seen: u64,
    same: u32,
    /// Looks to be made although nobody waits.
    follow: u32,
    /// When that was decided last.
    news: Option<Instant>,
    /// Rest that earlier looks are owed.
    debt: Duration,
    costs: Costs,
    told: Told,
    discards: Discards,
}

impl Monitor {
    fn step(&mut self) -> Next {
        let limits = limits::get();
        if self.until_news().is_some_and(|time| time.is_zero()) {
            NEWS.store(false, Ordering::SeqCst);
            self.follow = FOLLOW;
            self.news = Some(Instant::now());
        }
        let is_idle = self.follow == 0 && self.told.is_settled();
        let now = registry::now();
        match registry::oldest_wait() {
            Some(oldest) => {
                let age = now.since(oldest);
                if is_idle && age < YOUNG {
                    return Next::Look((YOUNG - age).max(Duration::from_millis(1)));
                }
                let cost = self.look(&limits);
                let pause = self.pause().saturating_sub(registry::now().since(now));
                Next::Look(self.with_rest(pause, cost))
            }
            None if !is_idle => {
                let cost = self.look(&limits);
                Next::Look(self.with_rest(self.pause(), cost))
            }
            None => self.idle(&limits),
        }
    }

    /// How long news must wait for a look, if there are any: some programs make them without end.
    fn until_news(&self) -> Option<Duration> {
        let since = self.news.map_or(NEWS_EVERY, |last| last.elapsed());
        NEWS.load(Ordering::SeqCst).then(|| NEWS_EVERY.saturating_sub(since))
    }

    fn doze(&self, pause: Duration) {
        let news = self.until_news();
        doze(news.map_or(pause, |news| news.min(pause)), news.is_some());
    }

    /// Nobody waits, and nothing that was told can go away.
    fn idle(&mut self, limits: &Limits) -> Next {
        let start = Instant::now();
        let shortest = limits.orphan_grace.min(limits.overdue).min(registry::shortest_max_hold());
        let often = (shortest / 4).clamp(DOZE.0, DOZE.1);
        let Some(due) = registry::due(limits) else {
            // The last picture can be large, and confirms nothing any more.
            self.before = None;
            let over = registry::is_unused() && self.until_news().is_none();
            return if over { Next::Sleep } else { Next::Doze(often) };
        };
        let ahead = due.since(registry::now());
        if !ahead.is_zero() {
            self.before = None;
            return Next::Doze(ahead.min(often).max(rest(start.elapsed())));
        }
        let cost = self.look(limits);
        if self.told.is_pending() {
            return Next::Look(self.with_rest(TICK, cost));
        }
        // What is added and forgotten while nothing is held is of less and less interest.
        let same = if registry::is_used() { 0 } else { self.same.saturating_sub(4 * SAME) };
        Next::Doze(self.with_rest((often * same.max(1)).min(DEEPEST), cost))
    }

    /// The pause after a look of this cost. What is about to be told is not kept waiting for long; the rest that is
    /// missing then comes after the next look.
    fn with_rest(&mut self, pause: Duration, cost: Duration) -> Duration {
        let rest = rest(cost) + std::mem::take(&mut self.debt);
        if !self.told.is_pending() && self.follow == 0 {
            return pause.max(rest);
        }
        let pause = pause.max(rest / 8);
        self.debt = rest.saturating_sub(pause).min(10 * SLOWEST);
        pause
    }

    /// The time until the next look.
    fn pause(&self) -> Duration {
        if self.same <= SAME || self.told.is_pending() || self.follow > 0 {
            TICK
        } else {
            (TICK * (self.same - SAME)).min(SLOWEST)
        }
    }

    /// Thinks about what is true now, together with the look before, and publishes what it finds.
    ///
    /// Returns the time that each look takes; names are read only once.
    fn look(&mut self, limits: &Limits) -> Duration {
        let start = Instant::now();
        self.follow = self.follow.saturating_sub(1);
        let mut snapshot = registry::snapshot();
        self.discards.note(&mut snapshot);
        let unnamed = needs_names(&snapshot, limits);
        let naming = Instant::now();
        for stack in stack::named(unnamed) {
            if let Ok(at) = snapshot.stacks.binary_search_by_key(&stack.id, |stack| stack.id) {
                snapshot.stacks[at] = stack;
            }
        }
        let naming = naming.elapsed();
        let findings = diagnose(&snapshot, self.before.as_ref(), limits);
        let seen = digest(&snapshot);
        self.same = if seen == self.seen { self.same.saturating_add(1) } else { 0 };
        self.seen = seen;
        let tell = self.told.update(findings, &snapshot);
        self.before = Some(snapshot);
        registry::looked();
        let cost = self.costs.add(start.elapsed().saturating_sub(naming));
        publish(self.told.current());
        for finding in &tell {
            report::tell(finding);
        }
        cost
    }
}

/// Makes what is true known to those who ask.
fn publish(current: Vec<Finding>) {
    let mut shared = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.findings != current {
        shared.revision += 1;
        shared.findings = current;
    }
    let revision = shared.revision;
    drop(shared);
    // Wakes whoever listens, so not under the lock.
    CHANGES.send_if_modified(|last| std::mem::replace(last, revision) != revision);
}

/// What the latest looks have cost. The quickest of them counts: on a busy machine the others were interrupted, and
/// time in which others worked needs no rest.
#[derive(Default)]
struct Costs {
    latest: [Duration; 4],
    looks: usize,
}

impl Costs {
    fn add(&mut self, cost: Duration) -> Duration {
        self.latest[self.looks % self.latest.len()] = cost;
        self.looks = self.looks.wrapping_add(1);
        let known = self.latest.iter().take(self.looks);
        known.min().copied().unwrap_or(cost)
    }
}

/// The rest that a look of this cost needs.
fn rest(cost: Duration) -> Duration {
    (cost * REST).min(10 * SLOWEST)
}

/// Who waits, or while nobody does, what was added and forgotten.
fn digest(snapshot: &Snapshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    for wait in &snapshot.waits {
        wait.id.hash(&mut hasher);
    }
    if snapshot.waits.is_empty() {
        for resource in &snapshot.resources {
            (resource.added, resource.forgotten).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_were_interrupted_cost_what_the_quickest_did() {
        let mut costs = Costs::default();
        let added = [5, 90, 7, 6, 60, 70, 80, 90].map(Duration::from_millis);
        let expected = [5, 5, 5, 5, 6, 6, 6, 60].map(Duration::from_millis);
        assert_eq!(added.map(|cost| costs.add(cost)), expected);
    }
}
