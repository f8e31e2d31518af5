//! Of a program that has given everything back, nothing is kept, and nobody looks at it.

#![cfg(all(debug_assertions, target_os = "linux"))]

use holdup::sync::Semaphore;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long it may take at the most, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runtimes of which anything is left: each has one of these.
fn runtimes() -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("a list of files").flatten();
    let polls = files.filter_map(|file| fs::read_link(file.path()).ok());
    polls.filter(|file| file.to_string_lossy().contains("eventpoll")).count()
}

/// How often the watching thread has gone to sleep so far.
fn looks() -> String {
    let threads = fs::read_dir("/proc/self/task").expect("a list of threads").flatten();
    let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).ok();
    let monitor = threads.filter_map(status).find(|status| status.contains("holdup-monitor"));
    let monitor = monitor.expect("the thread is there");
    let switches = monitor.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
    switches.expect("Linux counts them").to_owned()
}

#[test]
fn who_is_idle_is_left_alone() {
    assert_eq!(runtimes(), 0);
    let semaphore = Arc::new(Semaphore::new(2));
    let mut permits = Vec::new();
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            permits = vec![semaphore.clone().acquire_owned().await.expect("open")];
            drop(semaphore.acquire().await);
        });
    }
    assert!(runtimes() > 0, "who could still have a part in it is known while something is held");
    permits.clear();
    let begin = Instant::now();
    while runtimes() > 0 {
        assert!(begin.elapsed() < PATIENCE, "something is kept of {} runtimes", runtimes());
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may be on its way to sleep.
    let mut before = looks();
    loop {
        std::thread::sleep(Duration::from_secs(2));
        let now = looks();
        if now == before {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "somebody looks: {before}, then {now}");
        before = now;
    }
}
