//! A bank that admits six requests at a time and books their transfers one by one, so its ledger has a semaphore of
//! one permit. Large transfers also go into the audit trail, which writes under the same limit. The first large transfer
//! holds the only permit, asks for a second one, and never returns. Everybody else queues up behind it, until the
//! bank admits nobody any more.
//!
//! holdup reports a `deadlock`, proven, with the two lines that cause it, and nothing about those who only suffer.

use holdup::ResourceExt as _;
use holdup::sync::{AcquireError, Semaphore};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// From here on the law wants an entry in the audit trail.
const AUDITED_FROM: u64 = 10_000;

/// The amounts that customers ask for, in this order.
const TRANSFERS: [u64; 12] = [120, 75, 9_900, 25_000, 310, 40, 1_250, 88, 17, 430, 5_000, 260];

#[tokio::main]
async fn main() -> Result<(), AcquireError> {
    let bank = Arc::new(Bank::new());
    let mut requests = JoinSet::new();
    for amount in TRANSFERS {
        requests.spawn(Arc::clone(&bank).transfer(amount));
        sleep(Duration::from_millis(20)).await;
    }
    while let Some(Ok(transferred)) = requests.join_next().await {
        println!("transferred {}", transferred?);
    }
    Ok(())
}

struct Bank {
    requests: Semaphore,
    ledger: Ledger,
}

impl Bank {
    fn new() -> Self {
        Bank { requests: Semaphore::new(6).named("requests"), ledger: Ledger::new() }
    }

    /// Handles one request.
    async fn transfer(self: Arc<Self>, amount: u64) -> Result<u64, AcquireError> {
        // MARK: admitted
        let _admitted = self.requests.acquire().await?;
        self.ledger.book(amount).await?;
        Ok(amount)
    }
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
        println!("audited {amount}");
        write_to_disk().await;
        Ok(())
    }
}

/// Stands for a write that takes a few milliseconds.
async fn write_to_disk() {
    sleep(Duration::from_millis(5)).await;
}
