//! What is told once it has lasted for longer than a limit, and how it ends.

#![cfg(debug_assertions)]

#[path = "support/told.rs"]
mod told;

use holdup::ResourceExt;
use holdup::core::{Code, Verdict};
use holdup::sync::Semaphore;
use std::sync::Arc;
use std::time::Duration;
use told::{A_WHILE, lines, listed, listen, next, nothing, runtimes};

#[test]
fn a_hold_that_is_longer_than_was_said_is_told_though_nobody_waits() {
    let told = listen();
    let (quick, quick_id) = listed(|| Semaphore::new(2).max_hold(A_WHILE / 2));
    let (slow, slow_id) = listed(|| Semaphore::new(2));
    let (_any, permit) = (slow.try_acquire(), quick.try_acquire().expect("free"));
    let line = line!() - 1;
    let finding = next(&told, quick_id);
    assert_eq!((finding.code, finding.verdict), (Code::Leak, Verdict::Suspected), "{finding:#?}");
    assert_eq!(lines(&finding, file!()), [line]);
    drop(permit);
    let gone = next(&told, quick_id);
    assert_eq!((gone.id, gone.verdict), (finding.id, Verdict::Resolved));
    let [end] = &gone.notes[..] else { panic!("one note, not {:?}", gone.notes) };
    assert!(end.starts_with("returned after "), "{end}");
    nothing(&told, &[quick_id, slow_id]);
}

#[test]
fn the_limits_are_those_that_the_program_has_set() {
    let told = listen();
    holdup::limits().overdue(A_WHILE).stall(A_WHILE).set();
    for runtime in runtimes() {
        let (semaphore, id) = listed(|| Arc::new(Semaphore::new(1)));
        let held = semaphore.clone();
        let wants = semaphore.clone();
        let permit = held.try_acquire_owned().expect("free");
        // Somebody keeps it whom nobody can see through.
        let task = runtime.spawn(async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(permit);
        });
        let waits = runtime.spawn(async move { wants.acquire().await.map(drop) });
        let drive = std::thread::spawn(move || {
            runtime.block_on(async {
                waits.await.expect("no panic").expect("open");
            });
        });
        let finding = next(&told, id);
        assert_eq!((finding.code, finding.verdict), (Code::Leak, Verdict::Suspected));
        task.abort();
        let gone = next(&told, id);
        assert_eq!((gone.id, gone.verdict), (finding.id, Verdict::Resolved));
        drive.join().expect("ends");
    }
}
