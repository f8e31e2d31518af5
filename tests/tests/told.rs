//! What the watching thread tells of running programs, and of which it says nothing.

#![cfg(debug_assertions)]

#[path = "support/told.rs"]
mod support;

use futures::stream::{self, FuturesUnordered, StreamExt};
use holdup::ResourceExt;
use holdup::core::snapshot::ResourceId;
use holdup::core::{Code, Verdict};
use holdup::sync::Semaphore;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use support::{A_WHILE, lines, listed, listen, next, nothing, runtimes};
use tokio::sync::Notify;

/// A semaphore with its number in the books.
fn semaphore(permits: usize) -> (Arc<Semaphore>, ResourceId) {
    listed(|| Arc::new(Semaphore::new(permits)))
}

const INNER: u32 = line!() + 2;
async fn inner(semaphore: &Semaphore) {
    let _permit = semaphore.acquire().await;
}

const OUTER: u32 = line!() + 2;
async fn outer(semaphore: Arc<Semaphore>) {
    let _permit = semaphore.acquire().await;
    inner(&semaphore).await;
}

#[test]
fn a_task_that_waits_for_itself_is_told_once_and_withdrawn_when_it_ends() {
    let told = listen();
    for runtime in runtimes() {
        let (semaphore, id) = semaphore(1);
        let (task, closer) = (outer(Arc::clone(&semaphore)), Arc::clone(&semaphore));
        let running = std::thread::spawn(move || {
            runtime.block_on(async { tokio::spawn(task).await.expect("no panic") });
        });
        let finding = next(&told, id);
        assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Proven));
        assert_eq!(lines(&finding, file!()), [OUTER, INNER]);
        assert!(finding.title.contains("inner"), "{}", finding.title);
        assert!(holdup::findings().iter().any(|current| current.id == finding.id));
        nothing(&told, &[id]);

        closer.close();
        running.join().expect("it ends");
        let end = next(&told, id);
        assert_eq!((end.id, end.verdict), (finding.id, Verdict::Resolved));
        assert!(!holdup::findings().iter().any(|current| current.id == finding.id));
    }
}

#[test]
fn a_root_future_that_waits_for_itself_is_told() {
    let told = listen();
    for runtime in runtimes() {
        let (semaphore, id) = semaphore(1);
        let closer = Arc::clone(&semaphore);
        let running = std::thread::spawn(move || runtime.block_on(outer(semaphore)));
        assert_eq!(lines(&next(&told, id), file!()), [OUTER, INNER]);
        closer.close();
        running.join().expect("it ends");
    }
}

#[test]
fn two_tasks_in_opposite_orders_are_told_with_all_four_lines() {
    async fn both(first: Arc<Semaphore>, second: Arc<Semaphore>, mine: &Notify, other: &Notify) {
        let _first = first.acquire().await;
        mine.notify_one();
        other.notified().await;
        let _second = second.acquire().await;
    }
    let told = listen();
    let [_, runtime] = runtimes();
    let ((a, id), (b, _)) = (semaphore(1), semaphore(1));
    let signals = Arc::new((Notify::new(), Notify::new()));
    for (first, second, swap) in [(&a, &b, false), (&b, &a, true)] {
        let (first, second, signals) =
            (Arc::clone(first), Arc::clone(second), Arc::clone(&signals));
        runtime.spawn(async move {
            let (mine, other) =
                if swap { (&signals.1, &signals.0) } else { (&signals.0, &signals.1) };
            both(first, second, mine, other).await;
        });
    }
    let finding = next(&told, id);
    assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Proven));
    assert_eq!((finding.actors.len(), finding.resources.len(), finding.marks.len()), (2, 2, 4));
    runtime.shutdown_background();
}

#[test]
fn a_request_for_more_than_there_is_is_told() {
    let told = listen();
    let [_, runtime] = runtimes();
    let (semaphore, id) = semaphore(2);
    let line = line!() + 1;
    runtime.spawn(async move { semaphore.acquire_many(3).await.map(drop) });
    let finding = next(&told, id);
    assert_eq!((finding.code, finding.verdict), (Code::Unsatisfiable, Verdict::Proven));
    assert_eq!(lines(&finding, file!())[0], line);
    runtime.shutdown_background();
}

/// Work under a permit that takes longer than any threshold of the watching thread.
async fn work(semaphore: &Semaphore) {
    let _permit = semaphore.acquire().await;
    tokio::time::sleep(Duration::from_millis(250)).await;
}

#[test]
fn healthy_programs_that_hold_and_wait_in_one_task_are_not_told() {
    let told = listen();
    for runtime in runtimes() {
        let (semaphores, ids): (Vec<_>, Vec<_>) = (0..6).map(|_| semaphore(1)).unzip();
        let [joined, unordered, buffered, concurrent, spawned, looped] =
            <[_; 6]>::try_from(semaphores).expect("six");
        let watched = std::thread::spawn(move || {
            runtime.block_on(async move {
                let spawner = tokio::spawn(async move {
                    for _ in 0..3 {
                        let permit = Arc::clone(&spawned).acquire_owned().await;
                        tokio::spawn(async move {
                            tokio::time::sleep(Duration::from_millis(250)).await;
                            drop(permit);
                        });
                    }
                });
                let limited = tokio::spawn(async move {
                    // Borrowed permits that go into a set, which is polled beside the next acquire.
                    let mut running = FuturesUnordered::new();
                    let mut left = 3;
                    while left > 0 || !running.is_empty() {
                        tokio::select! {
                            permit = looped.acquire(), if left > 0 => {
                                left -= 1;
                                running.push(async move {
                                    tokio::time::sleep(Duration::from_millis(250)).await;
                                    drop(permit);
                                });
                            }
                            Some(()) = running.next() => {}
                        }
                    }
                });
                let here = tokio::spawn(async move {
                    tokio::join!(work(&joined), work(&joined));
                    let mut set: FuturesUnordered<_> = (0..3).map(|_| work(&unordered)).collect();
                    while set.next().await.is_some() {}
                    stream::iter(0..3)
                        .map(|_| work(&buffered))
                        .buffer_unordered(3)
                        .collect::<Vec<_>>()
                        .await;
                    stream::iter(0..3).for_each_concurrent(3, |_| work(&concurrent)).await;
                });
                for task in [spawner, limited, here] {
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

/// Tells this binary, when it is started again, what to do.
const ROLE: &str = "HOLDUP_TOLD_ROLE";

/// Starts this test binary again, to do what `role` says; returns what it wrote to stderr.
fn run(role: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.args(["--exact", "program", "--nocapture"]).env(ROLE, role).env_remove("HOLDUP");
    command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output().expect("it runs");
    String::from_utf8(output.stderr).expect("text")
}

/// Is the program that the tests below start; without a role it has nothing to do.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let told = listen();
    if role == "traced" {
        let to_stderr = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
        to_stderr.without_time().init();
    }
    let [_, runtime] = runtimes();
    let (semaphore, id) = semaphore_or_none();
    runtime.spawn(outer(semaphore));
    match id {
        // The callback is called before the rest; the resolution of the next one comes after it.
        Some(id) => {
            let found = next(&told, id);
            assert_eq!(found.verdict, Verdict::Proven);
            runtime.shutdown_background();
            assert_eq!(next(&told, id).verdict, Verdict::Resolved);
        }
        None => assert_eq!(told.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout)),
    }
}

/// The number in the books is `None` if there are none.
fn semaphore_or_none() -> (Arc<Semaphore>, Option<ResourceId>) {
    let semaphore = Arc::new(Semaphore::new(1).named("only"));
    let id = holdup::snapshot().resources.first().map(|resource| resource.id);
    (semaphore, id)
}

#[test]
fn without_a_subscriber_it_is_told_on_stderr_with_the_source() {
    let said = run("plain", &[]);
    assert!(
        said.contains("deadlock: `told::inner` waits for a permit that only it can release"),
        "{said}"
    );
    assert!(said.contains("let _permit = semaphore.acquire().await;"), "{said}");
    assert!(said.contains(&format!("told.rs:{INNER}")), "{said}");
    assert!(!said.contains('\u{1b}'), "no colours for a file: {said}");
}

#[test]
fn with_a_subscriber_it_is_an_event() {
    let said = run("traced", &[]);
    assert_eq!(said.matches("ERROR holdup: deadlock: `told::inner`").count(), 1, "{said}");
    assert!(said.contains("code=\"deadlock\" verdict=\"proven\""), "{said}");
}

#[test]
fn turned_off_it_says_and_records_nothing() {
    assert_eq!(run("plain", &[("HOLDUP", "off")]), "");
}
