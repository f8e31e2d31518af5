//! What the watching thread tells of mutexes and reader-writer locks, and of which it says nothing.

#![cfg(debug_assertions)]

#[path = "support/told.rs"]
mod support;

use futures::stream::{FuturesUnordered, StreamExt};
use holdup::core::snapshot::ResourceId;
use holdup::core::{Code, Finding, Verdict};
use holdup::sync::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use support::{lines, listed, listen, next, nothing, runtimes};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Longer than any threshold of the watching thread.
const LONG: Duration = Duration::from_millis(250);

/// What is proven of a task that waits for itself, while it runs. It is aborted then, which withdraws the finding.
fn proven(
    told: &Receiver<Finding>,
    resource: ResourceId,
    runtime: Runtime,
    task: impl Future<Output = ()> + Send + 'static,
) -> Finding {
    let task = runtime.spawn(task);
    let abort = task.abort_handle();
    let running = std::thread::spawn(move || runtime.block_on(task).expect_err("aborted"));
    let finding = next(told, resource);
    assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Proven));
    abort.abort();
    running.join().expect("no panic");
    let end = next(told, resource);
    assert_eq!((end.id, end.verdict), (finding.id, Verdict::Resolved));
    finding
}

const AGAIN: u32 = line!() + 2;
async fn again(mutex: &Mutex<u8>) {
    *mutex.lock().await += 1;
}

const TWICE: u32 = line!() + 2;
async fn twice(mutex: Arc<Mutex<u8>>) {
    let _guard = mutex.lock().await;
    again(&mutex).await;
}

#[test]
fn a_task_that_locks_a_mutex_twice_is_told() {
    let told = listen();
    for runtime in runtimes() {
        let (mutex, id) = listed(|| Arc::new(Mutex::new(0)));
        let finding = proven(&told, id, runtime, twice(mutex));
        assert_eq!(lines(&finding, file!()), [TWICE, AGAIN]);
    }
}

const WRITE: u32 = line!() + 2;
async fn write_then_read(lock: Arc<RwLock<u8>>) {
    let _guard = lock.write().await;
    let _never = lock.read().await;
}

const READ: u32 = line!() + 2;
async fn read_then_write(lock: Arc<RwLock<u8>>) {
    let _guard = lock.read().await;
    let _never = lock.write().await;
}

#[test]
fn a_task_that_reads_what_it_writes_is_told() {
    let told = listen();
    for runtime in runtimes() {
        let (lock, id) = listed(|| Arc::new(RwLock::new(0)));
        let finding = proven(&told, id, runtime, write_then_read(lock));
        assert_eq!(lines(&finding, file!()), [WRITE, WRITE + 1]);
    }
    for runtime in runtimes() {
        let (lock, id) = listed(|| Arc::new(RwLock::new(0)));
        let finding = proven(&told, id, runtime, read_then_write(lock));
        assert_eq!(lines(&finding, file!()), [READ, READ + 1]);
    }
}

#[test]
fn two_tasks_that_lock_two_mutexes_in_opposite_orders_are_told_with_all_four_lines() {
    async fn both(
        first: Arc<Mutex<u8>>,
        second: Arc<Mutex<u8>>,
        mine: Arc<Notify>,
        other: Arc<Notify>,
    ) {
        let _first = first.lock().await;
        mine.notify_one();
        other.notified().await;
        let _second = second.lock().await;
    }
    let told = listen();
    let [_, runtime] = runtimes();
    let ((a, id), (b, _)) =
        (listed(|| Arc::new(Mutex::new(0))), listed(|| Arc::new(Mutex::new(0))));
    let (x, y) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    runtime.spawn(both(a.clone(), b.clone(), x.clone(), y.clone()));
    runtime.spawn(both(b, a, y, x));
    let finding = next(&told, id);
    assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Proven));
    assert_eq!((finding.actors.len(), finding.resources.len(), finding.marks.len()), (2, 2, 4));
    runtime.shutdown_background();
}

const FIRST: u32 = line!() + 2;
async fn read_twice(lock: Arc<RwLock<u8>>, reads: Arc<Notify>, waits: Arc<Notify>) {
    let _first = lock.read().await;
    reads.notify_one();
    waits.notified().await;
    let _second = lock.read().await;
}

#[test]
fn a_second_read_behind_a_writer_is_told() {
    let told = listen();
    // On one thread, the writer is in the queue before the reader goes on.
    let [runtime, _] = runtimes();
    let (lock, id) = listed(|| Arc::new(RwLock::new(0)));
    let (reads, waits) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let reader = read_twice(lock.clone(), reads.clone(), waits.clone());
    let line = line!() + 4;
    runtime.spawn(async move {
        reads.notified().await;
        waits.notify_one();
        *lock.write().await += 1;
    });
    let finding = proven(&told, id, runtime, reader);
    let mut shown = lines(&finding, file!());
    shown.sort_unstable();
    assert_eq!(shown, [FIRST, FIRST + 3, line]);
    assert_eq!((finding.actors.len(), finding.holds.len(), finding.waits.len()), (2, 1, 2));
}

async fn work(mutex: &Mutex<u8>) {
    let mut guard = mutex.lock().await;
    tokio::time::sleep(LONG).await;
    *guard += 1;
}

#[test]
fn healthy_programs_are_not_told() {
    let told = listen();
    for runtime in runtimes() {
        let (mutexes, mut ids): (Vec<_>, Vec<_>) =
            (0..3).map(|_| listed(|| Arc::new(Mutex::new(0)))).unzip();
        let [joined, unordered, held] = <[_; 3]>::try_from(mutexes).expect("three");
        let (lock, id) = listed(|| Arc::new(RwLock::new(0)));
        ids.push(id);
        let watched = std::thread::spawn(move || {
            runtime.block_on(async move {
                let siblings = tokio::spawn(async move {
                    tokio::join!(work(&joined), work(&joined), work(&joined));
                    let mut set: FuturesUnordered<_> = (0..3).map(|_| work(&unordered)).collect();
                    while set.next().await.is_some() {}
                });
                // One branch waits for what the other one holds across a join of its own.
                let nested = tokio::spawn(async move {
                    let guard = async {
                        let _guard = held.lock().await;
                        tokio::join!(tokio::time::sleep(LONG), tokio::time::sleep(2 * LONG));
                    };
                    tokio::join!(guard, work(&held));
                });
                let nested_reads = tokio::spawn(async move {
                    let (one, two) = (lock.read().await, lock.read().await);
                    let writer = {
                        let lock = lock.clone();
                        tokio::spawn(async move {
                            let _downgraded = lock.write().await.downgrade();
                            tokio::time::sleep(LONG).await;
                        })
                    };
                    tokio::time::sleep(LONG).await;
                    drop((one, two));
                    let reader = async {
                        let _guard = lock.read().await;
                        tokio::time::sleep(LONG).await;
                    };
                    tokio::join!(reader, async { *lock.write().await += 1 });
                    writer.await.expect("no panic");
                });
                for task in [siblings, nested, nested_reads] {
                    task.await.expect("no panic");
                }
            });
        });
        while !watched.is_finished() {
            nothing(&told, &ids);
        }
        watched.join().expect("no panic");
    }
}
