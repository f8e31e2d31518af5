//! Nothing is told of permits that blocking jobs have, however long they take: no runtime counts these.

#![cfg(all(debug_assertions, target_os = "linux"))]

#[path = "support/told.rs"]
mod told;

use holdup::core::{Code, Verdict};
use holdup::sync::Semaphore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use told::{A_WHILE, lines, listed, listen, next, nothing, runtimes};

#[test]
fn whoever_waits_for_his_own_jobs_is_no_deadlock() {
    let told = listen();
    holdup::limits().stall(A_WHILE / 8).overdue(Duration::from_secs(3600)).set();
    for runtime in runtimes() {
        let (limit, id) = listed(|| Arc::new(Semaphore::new(2)));
        let (mut ends, mut jobs) = (Vec::new(), Vec::new());
        let all = limit.clone();
        let drain = runtime.spawn(async move {
            for _ in 0..2 {
                let permit = all.clone().acquire_owned().await.expect("open");
                let (end, ended) = oneshot::channel::<()>();
                ends.push(end);
                jobs.push(tokio::task::spawn_blocking(move || {
                    let _ = ended.blocking_recv();
                    drop(permit);
                }));
            }
            let sleep = std::thread::Builder::new().name("ends them".to_owned()).spawn(move || {
                std::thread::sleep(3 * A_WHILE);
                drop(ends);
            });
            let _drained = all.acquire_many(2).await.expect("open");
            sleep.expect("a thread").join().expect("no panic");
        });
        runtime.block_on(drain).expect("no panic");
        nothing(&told, &[id]);
    }
    // The same without jobs is told: it was looked at closely enough.
    for at in 0..2 {
        // No other at the same time: nobody knows what its threads have.
        let runtime = runtimes().into_iter().nth(at).expect("two");
        let (limit, id) = listed(|| Arc::new(Semaphore::new(1)));
        std::thread::Builder::new()
            .name("drives".to_owned())
            .spawn(move || {
                let stuck = runtime.spawn(async move {
                    let _outer = limit.clone().acquire_owned().await;
                    let _inner = limit.acquire().await;
                });
                let _ = runtime.block_on(stuck);
            })
            .expect("a thread");
        let finding = next(&told, id);
        assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Suspected));
        assert_eq!(lines(&finding, file!()).len(), 2, "{finding:#?}");
    }
}
