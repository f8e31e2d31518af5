//! A bank that books transfers one at a time, so its ledger has a semaphore of one permit. Large transfers
//! also go into the audit trail, which writes under the same limit. The first large transfer holds the only
//! permit, asks for a second one, and never returns; everybody else queues up behind it.
//!
//! holdup reports a `deadlock`, proven, with both lines.

use holdup::ResourceExt as _;
use holdup::sync::{AcquireError, Semaphore};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// From here on the law wants an entry in the audit trail.
const AUDITED_FROM: u64 = 10_000;

/// The amounts that customers ask for, in this order.
const TRANSFERS: [u64; 6] = [120, 75, 9_900, 25_000, 310, 40];

#[tokio::main]
async fn main() -> Result<(), AcquireError> {
    let ledger = Arc::new(Ledger::new());
    let mut requests = JoinSet::new();
    for amount in TRANSFERS {
        requests.spawn(transfer(Arc::clone(&ledger), amount));
        sleep(Duration::from_millis(20)).await;
    }
    while let Some(Ok(booked)) = requests.join_next().await {
        println!("transferred {}", booked?);
    }
    Ok(())
}

/// Handles one request.
async fn transfer(ledger: Arc<Ledger>, amount: u64) -> Result<u64, AcquireError> {
    ledger.book(amount).await?;
    Ok(amount)
}

struct Ledger {
    writes: Semaphore,
}

impl Ledger {
    fn new() -> Self {
        Ledger { writes: Semaphore::new(1).named("ledger_writes") }
    }

    async fn book(&self, amount: u64) -> Result<(), AcquireError> {
        // MARK: outer
        let _permit = self.writes.acquire().await?;
        write_to_disk().await;
        if amount >= AUDITED_FROM {
            self.audit(amount).await?;
        }
        Ok(())
    }

    /// Careful on its own, and wrong below `book`.
    async fn audit(&self, amount: u64) -> Result<(), AcquireError> {
        // MARK: inner
        let _permit = self.writes.acquire().await?;
        println!("audit: {amount}");
        write_to_disk().await;
        Ok(())
    }
}

/// Stands for a write that takes a few milliseconds.
async fn write_to_disk() {
    sleep(Duration::from_millis(5)).await;
}
