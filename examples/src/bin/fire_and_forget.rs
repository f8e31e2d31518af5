//! A decorator that makes the writes of any store fire-and-forget. The caller goes on at once; the writes run in
//! tasks of their own, at most four at a time. Bursts wait their turn, and every permit comes back.
//!
//! holdup reports nothing: waiting is not a fault.

use holdup::ResourceExt as _;
use holdup::sync::Semaphore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::main]
async fn main() {
    let store = Background::new(Disk, 4);
    let mut reading = 0;
    loop {
        for _ in 0..12 {
            store.write(reading).await;
            reading += 1;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Keeps the readings of a sensor.
trait Store: Send + Sync + 'static {
    fn write(&self, reading: u64) -> impl Future<Output = ()> + Send;
}

/// Stands for a disk that takes a while.
struct Disk;

impl Store for Disk {
    async fn write(&self, _reading: u64) {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Writes in the background, with bounded concurrency.
struct Background<S> {
    inner: Arc<S>,
    limit: Arc<Semaphore>,
}

impl<S: Store> Background<S> {
    fn new(inner: S, writes_at_once: usize) -> Self {
        Background {
            inner: Arc::new(inner),
            limit: Arc::new(Semaphore::new(writes_at_once).named("background_writes")),
        }
    }
}

impl<S: Store> Store for Background<S> {
    async fn write(&self, reading: u64) {
        let inner = Arc::clone(&self.inner);
        let limit = Arc::clone(&self.limit);
        tokio::spawn(async move {
            // MARK: write
            let _permit = limit.acquire().await.expect("the limit is never closed");
            inner.write(reading).await;
        });
    }
}
