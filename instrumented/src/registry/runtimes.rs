//! The tokio runtimes that use what is instrumented: how many tasks they have, and when they were last idle.
//!
//! A handle keeps parts of its runtime alive, so handles are kept only while there is something to diagnose
//! ([`release`]), and are then noted anew.

use super::rest::Rest;
use super::threads;
use crate::actor::number;
use holdup_core::snapshot::{ActorId, Flavor, Moment, Runtime, RuntimeId};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Handle, RuntimeFlavor, RuntimeMetrics};

/// Runtimes that are known at a time.
const MAX_RUNTIMES: usize = 64;

struct Known {
    id: RuntimeId,
    flavor: Flavor,
    metrics: RuntimeMetrics,
    rest: Rest,
    /// What the worker was called on which it was noted.
    named: Option<String>,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// Changes whenever runtimes have been forgotten, so that threads note them again.
static GENERATION: AtomicU64 = AtomicU64::new(1);
/// There was no room for a runtime.
static MISSING: AtomicBool = AtomicBool::new(false);

/// What this thread noted last: in which generation, on behalf of whom, and which runtime.
type Noted = (u64, Option<ActorId>, RuntimeId);

thread_local! {
    static NOTED: Cell<Noted> = const { Cell::new((0, None, RuntimeId::NONE)) };
}

fn known() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the runtime that `actor` acts in. Does next to nothing if the same one acted on this thread before: a task
/// stays in its runtime.
#[inline]
pub(super) fn note(actor: ActorId) {
    // A thread that is being torn down is in no runtime.
    let Ok((generation, last, _)) = NOTED.try_with(Cell::get) else { return };
    if last != Some(actor) || generation != GENERATION.load(Ordering::SeqCst) {
        current(Some(actor));
    }
}

/// The runtime that this thread is in, noted on behalf of `actor`.
pub(super) fn current(actor: Option<ActorId>) -> RuntimeId {
    let Ok(handle) = Handle::try_current() else {
        let noted = (GENERATION.load(Ordering::SeqCst), actor, RuntimeId::NONE);
        let _ = NOTED.try_with(|cell| cell.set(noted));
        return RuntimeId::NONE;
    };
    let id = RuntimeId(number(handle.id()));
    // Before the look at the table: if it is emptied meanwhile, the next one notes it again.
    let generation = GENERATION.load(Ordering::SeqCst);
    let last = NOTED.try_with(|cell| cell.replace((generation, actor, id)));
    if last
        .is_ok_and(|(last_generation, _, last_id)| (last_generation, last_id) == (generation, id))
    {
        return id;
    }
    let mut known = known();
    let mut gone = None;
    if !known.iter().any(|runtime| runtime.id == id) {
        if known.len() == MAX_RUNTIMES {
            // One that has no task says nothing of who could act, and is noted again if it does something.
            if let Some(idle) = known.iter().position(|it| it.metrics.num_alive_tasks() == 0) {
                gone = Some(known.remove(idle));
                GENERATION.fetch_add(1, Ordering::SeqCst);
            } else {
                MISSING.store(true, Ordering::Relaxed);
            }
        }
        if known.len() < MAX_RUNTIMES {
            let flavor = match handle.runtime_flavor() {
                RuntimeFlavor::CurrentThread => Flavor::CurrentThread,
                RuntimeFlavor::MultiThread => Flavor::MultiThread,
                _ => Flavor::Unknown,
            };
            // Whatever runs a task of several workers is one of them.
            let worker = flavor == Flavor::MultiThread && matches!(actor, Some(ActorId::Task(_)));
            let named = std::thread::current().name().filter(|_| worker).map(str::to_owned);
            let (metrics, rest) = (handle.metrics(), Rest::default());
            known.push(Known { id, flavor, metrics, rest, named });
        }
    }
    drop(known);
    // What a runtime has left ends here, and not under the lock.
    drop(gone);
    id
}

/// Tasks that have not ended, in the runtime that this thread is in; 0 outside any.
pub(super) fn alive() -> u64 {
    Handle::try_current().map_or(0, |handle| handle.metrics().num_alive_tasks() as u64)
}

/// What is known of the runtimes now, by id. Empty if that is not all there are.
pub(super) fn sample(now: Moment) -> Vec<Runtime> {
    let mut known = known();
    if MISSING.load(Ordering::Relaxed) {
        return Vec::new();
    }
    let mut runtimes: Vec<Runtime> = known
        .iter_mut()
        .map(|Known { id, flavor, metrics, rest, .. }| {
            let workers = metrics.num_workers();
            Runtime {
                id: *id,
                flavor: *flavor,
                workers: workers as u64,
                alive_tasks: metrics.num_alive_tasks() as u64,
                rested: rest.look(now, counts(metrics, workers)),
            }
        })
        .collect();
    let named: Vec<String> = known.iter().filter_map(|it| it.named.clone()).collect();
    // Files are read, and not under the lock.
    drop(known);
    runtimes.sort_unstable_by_key(|runtime| runtime.id);
    // Of which runtime they are cannot be told, and does not matter.
    if let Some(first) = runtimes.first().map(|first| first.alive_tasks) {
        let many = runtimes.iter().filter(|it| it.flavor == Flavor::MultiThread);
        let workers = many.map(|it| it.workers).sum::<u64>();
        let workers = usize::try_from(workers).unwrap_or(usize::MAX);
        runtimes[0].alive_tasks = first.saturating_add(threads::beyond(workers, &named));
    }
    runtimes
}

/// Counts the tasks once more, after the records were copied: who was spawned meanwhile is not missed.
pub(super) fn count_again(runtimes: &mut [Runtime]) {
    for known in known().iter() {
        if let Some(runtime) = runtimes.iter_mut().find(|runtime| runtime.id == known.id) {
            let alive = known.metrics.num_alive_tasks() as u64;
            runtime.alive_tasks = runtime.alive_tasks.max(alive);
        }
    }
}

/// How often each worker has fallen asleep or woken.
#[cfg(target_has_atomic = "64")]
fn counts(metrics: &RuntimeMetrics, workers: usize) -> impl Iterator<Item = u64> {
    (0..workers).map(|worker| metrics.worker_park_unpark_count(worker))
}

/// tokio does not count that here.
#[cfg(not(target_has_atomic = "64"))]
fn counts(_: &RuntimeMetrics, _: usize) -> impl Iterator<Item = u64> {
    std::iter::empty()
}

/// Forgets all runtimes, unless something `is_used` after all.
pub(super) fn release(is_used: impl Fn() -> bool) {
    let mut gone = {
        let mut known = known();
        if known.is_empty() {
            return;
        }
        GENERATION.fetch_add(1, Ordering::SeqCst);
        std::mem::take(&mut *known)
    };
    // Whoever took or waits for something before we look is seen here; who does so later sees the new generation.
    fence(Ordering::SeqCst);
    if is_used() {
        let mut known = known();
        for old in std::mem::take(&mut gone) {
            if known.iter().any(|new| new.id == old.id) {
                gone.push(old);
            } else if known.len() < MAX_RUNTIMES {
                known.push(old);
            } else {
                MISSING.store(true, Ordering::Relaxed);
                gone.push(old);
            }
        }
    } else {
        MISSING.store(false, Ordering::Relaxed);
    }
    // What a runtime has left ends here, and not under the lock.
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Semaphore;
    use holdup_core::Snapshot;
    use holdup_core::snapshot::{ResourceId, Wait};
    use std::sync::{Arc, Barrier};
    use std::time::{Duration, Instant};
    use tokio::runtime::Builder;

    /// Looks until there is `enough` to be seen of the only wait for a resource, for a minute at most.
    #[track_caller]
    fn look(
        resource: ResourceId,
        enough: impl Fn(&Snapshot, &Wait, &Runtime) -> bool,
    ) -> (Snapshot, Wait, Runtime) {
        let begin = Instant::now();
        loop {
            let snapshot = crate::snapshot();
            let wait = snapshot.waits.iter().find(|wait| wait.resource == resource).cloned();
            if let Some(wait) = wait
                && let Some(runtime) = snapshot.runtime(wait.runtime).cloned()
                && enough(&snapshot, &wait, &runtime)
            {
                return (snapshot, wait, runtime);
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{snapshot:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_idle_runtime_rests_and_counts_its_tasks() {
        let multi = Builder::new_multi_thread().worker_threads(3).build().expect("a runtime");
        let current = Builder::new_current_thread().build().expect("a runtime");
        let ids = [number(multi.handle().id()), number(current.handle().id())].map(RuntimeId);
        for (runtime_is, id, flavor, workers) in
            [(multi, ids[0], Flavor::MultiThread, 3), (current, ids[1], Flavor::CurrentThread, 1)]
        {
            let semaphore = Arc::new(Semaphore::new(1));
            let held = semaphore.try_acquire().expect("free");
            let (sender, stop) = tokio::sync::oneshot::channel::<()>();
            let waiting = semaphore.clone();
            let thread = std::thread::spawn(move || {
                runtime_is.block_on(async move {
                    tokio::spawn(std::future::pending::<()>());
                    let task = tokio::spawn(async move {
                        drop(waiting.acquire().await);
                    });
                    let _ = stop.await;
                    task.await.expect("ends");
                });
            });
            let id_of_ours = semaphore.resource().id();
            let (.., seen) = look(id_of_ours, |_, wait, runtime| runtime.rested > wait.last_poll);
            assert_eq!(seen, Runtime { id, flavor, workers, alive_tasks: 2, rested: seen.rested });
            drop(held);
            sender.send(()).expect("somebody listens");
            thread.join().expect("ends");
            drop(semaphore);
        }
    }

    #[test]
    fn a_runtime_with_a_thread_that_is_busy_does_not_rest() {
        let rt = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let semaphore = Arc::new(Semaphore::new(1));
        let resource = semaphore.resource().id();
        let _held = semaphore.clone().try_acquire_owned().expect("free");
        let (busy, done) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (here, there) = (busy.clone(), done.clone());
        rt.spawn(async move {
            here.wait();
            there.wait();
        });
        busy.wait();
        rt.spawn(async move {
            drop(semaphore.acquire().await);
        });
        let after = Duration::from_secs(1);
        let (seen, wait, runtime) =
            look(resource, |snapshot, wait, _| snapshot.taken.since(wait.since) > after);
        assert!(runtime.rested < wait.since, "{runtime:?} {wait:?}");
        done.wait();
        look(resource, |_, _, runtime| runtime.rested > seen.taken);
    }

    #[test]
    fn what_is_in_use_is_not_released() {
        let rt = Builder::new_current_thread().build().expect("a runtime");
        let id = RuntimeId(number(rt.handle().id()));
        let is_known = || known().iter().any(|known| known.id == id);
        rt.block_on(async {
            let semaphore = Semaphore::new(1);
            let _permit = semaphore.acquire().await;
            super::super::rest();
            assert!(is_known());
        });
        // As when the last permit goes back at the moment at which all is found to be unused.
        release(|| true);
        assert!(is_known());
    }
}
