//! What goes wrong in a program that is otherwise healthy, each with resources of its own.

use futures::stream::{FuturesUnordered, StreamExt};
use holdup::core::Code;
use holdup::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::spawn;
use tokio::time::sleep;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A task waits for what only it can release.
    SelfNested,
    /// Two tasks each hold what the other waits for.
    OppositeOrders,
    /// Permits are forgotten, and somebody waits.
    Forgotten,
    /// A task ends and leaves its permit in a `static`.
    Static,
    /// More is asked for than there is.
    Unsatisfiable,
    /// A permit is added for one that comes back by itself.
    OverRelease,
    /// Two locks are taken in both orders, and nobody happens to meet.
    Inversion,
    /// The permit is dropped where it is acquired, by those who meant to hold it.
    ZeroHold,
    /// A future queues, is no longer polled, and its task waits behind it.
    Futurelock,
    /// The same in a set of futures whose loop acquires.
    UnorderedSet,
}

impl Fault {
    pub(crate) const ALL: &'static [Fault] = &[
        Fault::SelfNested,
        Fault::OppositeOrders,
        Fault::Forgotten,
        Fault::Static,
        Fault::Unsatisfiable,
        Fault::OverRelease,
        Fault::Inversion,
        Fault::ZeroHold,
        Fault::Futurelock,
        Fault::UnorderedSet,
    ];

    /// What may be told of it.
    pub(crate) fn codes(self) -> &'static [Code] {
        match self {
            Fault::SelfNested => &[Code::Deadlock],
            // The inversion may be seen before it is a deadlock.
            Fault::OppositeOrders => &[Code::Deadlock, Code::OrderInversion],
            Fault::Forgotten | Fault::Static => &[Code::Leak],
            Fault::Unsatisfiable => &[Code::Unsatisfiable],
            Fault::OverRelease => &[Code::OverRelease],
            Fault::Inversion => &[Code::OrderInversion],
            Fault::ZeroHold => &[Code::ZeroHold],
            Fault::Futurelock | Fault::UnorderedSet => &[Code::Futurelock, Code::Deadlock],
        }
    }
}

const OPEN: &str = "nobody closes it";
const A_MOMENT: Duration = Duration::from_millis(10);

pub(crate) async fn commit(fault: Fault) {
    match fault {
        Fault::SelfNested => nested(&Semaphore::new(1)).await,
        Fault::OppositeOrders => opposite_orders().await,
        Fault::Forgotten => forgotten().await,
        Fault::Static => kept_in_a_static().await,
        Fault::Unsatisfiable => drop(Semaphore::new(3).acquire_many(4).await),
        Fault::OverRelease => over_release().await,
        Fault::Inversion => inversion().await,
        Fault::ZeroHold => zero_hold().await,
        Fault::Futurelock => futurelock().await,
        Fault::UnorderedSet => unordered_set().await,
    }
}

async fn nested(semaphore: &Semaphore) {
    let _outer = semaphore.acquire().await.expect(OPEN);
    sleep(A_MOMENT).await;
    inner(semaphore).await;
}

async fn inner(semaphore: &Semaphore) {
    let _inner = semaphore.acquire().await.expect(OPEN);
    sleep(A_MOMENT).await;
}

async fn opposite_orders() {
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let met = Arc::new(Barrier::new(2));
    let tasks = [(&a, &b), (&b, &a)].map(|(first, second)| {
        let (first, second, met) = (Arc::clone(first), Arc::clone(second), Arc::clone(&met));
        spawn(async move {
            let _first = first.lock().await;
            met.wait().await;
            let _second = second.lock().await;
        })
    });
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn forgotten() {
    let semaphore = Semaphore::new(2);
    for _ in 0..2 {
        let permit = semaphore.acquire().await.expect(OPEN);
        sleep(A_MOMENT).await;
        permit.forget();
    }
    inner(&semaphore).await;
}

static KEPT: StdMutex<Vec<OwnedSemaphorePermit>> = StdMutex::new(Vec::new());

async fn kept_in_a_static() {
    let semaphore = Arc::new(Semaphore::new(1));
    let keeper = Arc::clone(&semaphore);
    spawn(async move {
        let permit = keeper.acquire_owned().await.expect(OPEN);
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(permit);
    });
    sleep(A_MOMENT).await;
    inner(&semaphore).await;
}

async fn over_release() {
    let semaphore = Semaphore::new(3);
    for _ in 0..6 {
        let _permit = semaphore.acquire().await.expect(OPEN);
        sleep(A_MOMENT).await;
        semaphore.add_permits(1);
    }
    // It is told of what rests, and only while it is there.
    pending::<()>().await;
}

async fn futurelock() {
    let lock = Arc::new(Mutex::new(()));
    let held = Arc::clone(&lock).lock_owned().await;
    spawn(async move {
        sleep(5 * A_MOMENT).await;
        drop(held);
    });
    let mut first = pin!(async {
        let _guard = lock.lock().await;
    });
    tokio::select! {
        () = &mut first => {}
        () = sleep(A_MOMENT) => {
            let _guard = lock.lock().await;
        }
    }
}

async fn unordered_set() {
    let semaphore = Semaphore::new(1);
    let mut set: FuturesUnordered<_> = (0..3).map(|_| inner(&semaphore)).collect();
    while set.next().await.is_some() {
        inner(&semaphore).await;
    }
}

async fn zero_hold() {
    let semaphore = Arc::new(Semaphore::new(2));
    let other = Arc::clone(&semaphore);
    let task = spawn(async move {
        loop {
            inner(&other).await;
            sleep(A_MOMENT).await;
        }
    });
    while !task.is_finished() {
        let _ = semaphore.acquire().await;
        sleep(A_MOMENT).await;
    }
}

async fn inversion() {
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let tasks = [(&a, &b, 0), (&b, &a, 8)].map(|(first, second, late)| {
        let (first, second) = (Arc::clone(first), Arc::clone(second));
        spawn(async move {
            sleep(late * A_MOMENT).await;
            let _first = first.lock().await;
            sleep(A_MOMENT).await;
            let _second = second.lock().await;
            sleep(A_MOMENT).await;
        })
    });
    for task in tasks {
        task.await.expect("no panic");
    }
}
