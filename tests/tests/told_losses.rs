//! What is told of permits that limit nothing.

#![cfg(debug_assertions)]

#[path = "support/told.rs"]
mod support;

use holdup::core::{Code, Verdict};
use holdup::sync::Semaphore;
use std::sync::Arc;
use support::{lines, listed, listen, next, nothing, runtimes};

/// Calls that are enough to be looked at.
const CALLS: usize = 16;

const HELD: u32 = line!() + 2;
async fn work(limit: Arc<Semaphore>) {
    let _permit = limit.acquire().await;
    std::future::pending::<()>().await;
}

const DROPPED: u32 = line!() + 2;
async fn unlimited(limit: &Semaphore) {
    let _ = limit.acquire().await;
}

async fn turnstile(gate: &Semaphore) {
    drop(gate.acquire().await);
}

async fn short(limit: &Semaphore) -> usize {
    let _permit = limit.acquire().await;
    limit.available_permits()
}

#[test]
fn a_permit_that_its_statement_drops_is_told_by_the_source() {
    let told = listen();
    let [runtime, _] = runtimes();
    let (limit, id) = listed(|| Arc::new(Semaphore::new(4)));
    let (others, other_ids): (Vec<_>, Vec<_>) =
        (0..2).map(|_| listed(|| Arc::new(Semaphore::new(4)))).unzip();
    runtime.block_on(async {
        for limit in others.iter().chain([&limit]) {
            tokio::spawn(work(Arc::clone(limit)));
            while limit.available_permits() == 4 {
                tokio::task::yield_now().await;
            }
        }
        // A hold counts as work under the limit after a moment.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        for _ in 0..CALLS {
            unlimited(&limit).await;
            turnstile(&others[0]).await;
            short(&others[1]).await;
        }
    });
    let finding = next(&told, id);
    assert_eq!((finding.code, finding.verdict), (Code::ZeroHold, Verdict::Hazard));
    assert_eq!(lines(&finding, file!()), [DROPPED, HELD]);
    nothing(&told, &other_ids);
}
