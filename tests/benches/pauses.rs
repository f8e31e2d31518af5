//! What looking costs the program: one million holds over 1,000 semaphores, and a thread that acquires and
//! releases while another takes snapshot after snapshot.
//!
//! `cargo bench -p holdup-tests --features always-on --bench pauses`

use holdup::sync::Semaphore;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SEMAPHORES: usize = 1_000;
const HOLDS: usize = 1_000;
const ROUNDS: usize = 400_000;

fn main() {
    if !holdup::INSTRUMENTED {
        println!("nothing is recorded in this build: add --features always-on");
        return;
    }
    let semaphores: Vec<Semaphore> = (0..SEMAPHORES).map(|_| Semaphore::new(HOLDS + 1)).collect();
    let holds: Vec<_> = semaphores
        .iter()
        .flat_map(|semaphore| {
            (0..HOLDS).map(move |_| semaphore.try_acquire().expect("one is free"))
        })
        .collect();
    println!("{} holds over {} semaphores", holds.len(), semaphores.len());

    report("alone", &acquire(&semaphores));

    let done = AtomicBool::new(false);
    let (times, snapshots) = std::thread::scope(|threads| {
        let looker = threads.spawn(|| {
            let mut took = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                let snapshot = holdup::snapshot();
                took.push(start.elapsed());
                assert!(snapshot.holds.len() >= SEMAPHORES * HOLDS);
            }
            took
        });
        let times = acquire(&semaphores);
        done.store(true, Ordering::Relaxed);
        (times, looker.join().expect("no panic"))
    });
    report("while snapshots are taken", &times);
    report("a snapshot", &snapshots);
}

/// How long each acquire and release took.
fn acquire(semaphores: &[Semaphore]) -> Vec<Duration> {
    let mut next = 0;
    (0..ROUNDS)
        .map(|_| {
            // Another semaphore each time, in an order without a pattern.
            next = (next * 1_103 + 12_345) % semaphores.len();
            let start = Instant::now();
            drop(semaphores[next].try_acquire().expect("one is free"));
            start.elapsed()
        })
        .collect()
}

fn report(what: &str, times: &[Duration]) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000];
    println!(
        "{what}: {} times, median {:?}, 99% {:?}, 99.9% {:?}, longest {:?}",
        times.len(),
        at(500),
        at(990),
        at(999),
        at(1000)
    );
}
