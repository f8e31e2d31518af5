//! The thread that watches: it looks, thinks (`holdup_core::diagnose`), and publishes what it found.
//!
//! It sleeps while nobody waits. While somebody waits for longer than a moment it looks every [`TICK`], but
//! spends at most about a fiftieth of its time looking, and looks more rarely while nothing changes.

use crate::{limits, registry, report, stack};
use holdup_core::diagnose::{diagnose, needs_names};
use holdup_core::snapshot::{Moment, Wait};
use holdup_core::{Finding, FindingId, Snapshot, Verdict};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time between two looks. Above `Limits::confirm`, so that each look can confirm the one before.
const TICK: Duration = Duration::from_millis(55);
/// The longest time between two looks while somebody waits.
const SLOWEST: Duration = Duration::from_secs(1);
/// Waits younger than this are not worth a look.
const YOUNG: Duration = Duration::from_millis(20);
/// For each unit of time spent on a look, this many are spent asleep.
const REST: u32 = 49;
/// Looks that must miss a finding before it is withdrawn: books in motion hide one for a moment.
const MISSES: u32 = 2;
/// Looks at the same waits after which looking becomes rarer.
const SAME: u32 = 4;
/// Findings that are kept; a program with more has one cause for most of them.
const MAX_FINDINGS: usize = 256;

/// The watching thread sleeps until it is unparked (or has not been started yet).
static ASLEEP: AtomicBool = AtomicBool::new(true);
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
    // Pairs with the fence in `sleep`: either we see that it fell asleep, or it sees our wait.
    fence(Ordering::SeqCst);
    if ASLEEP.load(Ordering::Relaxed) && ASLEEP.swap(false, Ordering::Relaxed) {
        let thread = THREAD.get_or_init(|| {
            let builder = std::thread::Builder::new().name("holdup-monitor".to_owned());
            // Without a thread nothing is diagnosed, and the program goes on.
            builder.spawn(watch).ok().map(|handle| handle.thread().clone())
        });
        if let Some(thread) = thread {
            thread.unpark();
        }
    }
}

fn sleep() {
    ASLEEP.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    while registry::oldest_wait().is_none() {
        registry::rest();
        std::thread::park();
        if !ASLEEP.load(Ordering::Relaxed) {
            return;
        }
    }
    ASLEEP.store(false, Ordering::Relaxed);
}

fn watch() {
    limits::complain();
    let mut monitor = Monitor::default();
    loop {
        let Some(oldest) = registry::oldest_wait() else {
            // The last picture can be large, and confirms nothing any more.
            monitor.before = None;
            monitor.publish(Vec::new());
            if monitor.told.is_empty() {
                sleep();
            } else {
                std::thread::sleep(TICK);
            }
            continue;
        };
        let age = registry::now().since(oldest);
        if age < YOUNG && monitor.told.is_empty() {
            std::thread::sleep(YOUNG.saturating_sub(age).max(Duration::from_millis(1)));
            continue;
        }
        let start = registry::now();
        let cost = monitor.look();
        let rest = (cost * REST).min(10 * SLOWEST);
        let pause = if monitor.same > SAME { TICK * (monitor.same - SAME) } else { TICK };
        // From snapshot to snapshot: the time that names took is not waited for again.
        let pause = pause.min(SLOWEST).saturating_sub(registry::now().since(start)).max(rest);
        std::thread::sleep(pause);
    }
}

#[derive(Default)]
struct Monitor {
    before: Option<Snapshot>,
    /// A digest of the waits at the last look, and how many looks have seen the same.
    waits: u64,
    same: u32,
    /// What has been told and not withdrawn, with the looks that missed it since.
    told: HashMap<FindingId, (Finding, u32)>,
}

impl Monitor {
    /// Thinks about what is true now, together with the look before, and publishes what it finds.
    ///
    /// Returns the time that each look takes; names are read only once.
    fn look(&mut self) -> Duration {
        let start = Instant::now();
        let mut snapshot = registry::snapshot();
        let limits = limits::get();
        let unnamed = needs_names(&snapshot, &limits);
        let naming = Instant::now();
        for stack in stack::named(unnamed) {
            if let Ok(at) = snapshot.stacks.binary_search_by_key(&stack.id, |stack| stack.id) {
                snapshot.stacks[at] = stack;
            }
        }
        let naming = naming.elapsed();
        let findings = diagnose(&snapshot, self.before.as_ref(), &limits);
        let waits = digest(&snapshot.waits);
        self.same = if waits == self.waits { self.same.saturating_add(1) } else { 0 };
        self.waits = waits;
        self.before = Some(snapshot);
        registry::looked();
        let cost = start.elapsed().saturating_sub(naming);
        self.publish(findings);
        cost
    }

    /// Tells what is new, withdraws what has gone, and makes the rest known to those who ask.
    fn publish(&mut self, mut findings: Vec<Finding>) {
        findings.truncate(MAX_FINDINGS);
        let mut tell = Vec::new();
        for (id, (finding, misses)) in &mut self.told {
            match findings.iter().find(|seen| seen.id == *id) {
                Some(seen) => (*finding, *misses) = (seen.clone(), 0),
                None => *misses += 1,
            }
        }
        for finding in findings {
            self.told.entry(finding.id).or_insert_with(|| {
                tell.push(finding.clone());
                (finding, 0)
            });
        }
        let now = registry::now();
        self.told.retain(|_, (finding, misses)| {
            let stays = *misses < MISSES;
            if !stays {
                tell.push(withdrawn(finding, now));
            }
            stays
        });
        let mut current: Vec<Finding> =
            self.told.values().map(|(finding, _)| finding.clone()).collect();
        current.sort_unstable_by_key(|finding| (finding.since, finding.id));
        let mut shared = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.findings != current {
            shared.revision += 1;
            shared.findings = current;
        }
        let revision = shared.revision;
        drop(shared);
        // Wakes whoever listens, so not under the lock.
        CHANGES.send_if_modified(|last| std::mem::replace(last, revision) != revision);
        for finding in &tell {
            report::tell(finding);
        }
    }
}

/// The finding as it is told when it has gone away.
fn withdrawn(finding: &Finding, now: Moment) -> Finding {
    let lasted = holdup_core::text::age(now.since(finding.since));
    Finding {
        verdict: Verdict::Resolved,
        notes: vec![format!("it ended after {lasted}: those who waited were served or gave up")],
        help: None,
        ..finding.clone()
    }
}

fn digest(waits: &[Wait]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for wait in waits {
        wait.id.hash(&mut hasher);
    }
    hasher.finish()
}
