//! A crawler that takes a permit before it spawns each fetch, so that at most three run at once. The loop waits for
//! a permit while all permits were acquired by the loop itself: it looks like a deadlock and is none, since each permit
//! travels into a task that gives it back.
//!
//! holdup reports nothing.

use holdup::ResourceExt as _;
use holdup::sync::Semaphore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::main]
async fn main() {
    let fetches = Arc::new(Semaphore::new(3).named("fetches"));
    let mut page = 0;
    loop {
        let permit = Arc::clone(&fetches)
            // MARK: slot
            .acquire_owned()
            .await
            .expect("the limit is never closed");
        page += 1;
        tokio::spawn(async move {
            fetch(page).await;
            drop(permit);
        });
    }
}

/// Stands for a request over the network.
async fn fetch(_page: u64) {
    sleep(Duration::from_millis(30)).await;
}
