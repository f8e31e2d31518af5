//! What a case is, and its labels.

use futures::future::{BoxFuture, LocalBoxFuture};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    SelfDeadlock,
    NestedHazard,
    CircularWait,
    OrderInversion,
    Leak,
    Forgotten,
    EscapedTask,
    Futurelock,
    BlockedExecutor,
    OverRelease,
    Starvation,
    HeldAcrossCancel,
    Benign,
}

/// Machine-readable expectations used in `Case::expect` and `Case::also_ok`.
pub mod expect {
    /// Someone waits for ever because of a cycle that includes the wait itself.
    pub const DEADLOCK: &str = "deadlock";
    /// Permits that nothing will give back.
    pub const LEAK: &str = "leak";
    /// A future that holds, or is queued for, the primitive is alive but no longer polled.
    pub const FUTURELOCK: &str = "futurelock";
    /// A second acquire of a primitive its own task (or its parent) already holds, which happened to succeed.
    pub const NESTED_HAZARD: &str = "nested-acquire";
    /// Two primitives taken in both orders, which happened not to collide.
    pub const ORDER_INVERSION: &str = "order-inversion";
    /// More permits given back than were taken.
    pub const OVER_RELEASE: &str = "over-release";
    /// A waiter passed over for ever although the semaphore keeps working or has permits left.
    pub const STARVATION: &str = "starvation";
    /// A wait that no sequence of releases by present holders can satisfy.
    pub const UNSATISFIABLE: &str = "unsatisfiable";
    /// No finding.
    pub const CLEAN: &str = "clean";

    pub const ALL: &[&str] = &[
        DEADLOCK,
        LEAK,
        FUTURELOCK,
        NESTED_HAZARD,
        ORDER_INVERSION,
        OVER_RELEASE,
        STARVATION,
        UNSATISFIABLE,
        CLEAN,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// current_thread runtime
    CurrentThread,
    /// multi_thread runtime with this many workers
    MultiThread(usize),
    /// current_thread runtime, the case inside a LocalSet
    Local,
}

/// What the case does under plain tokio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// Never returns.
    Hangs,
    /// Returns on its own (within 1 s, or 2 s where `slow` is set).
    Returns,
}

/// Permit accounting the case reports through `probe::balance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    NotReported,
    /// everything came back
    Whole,
    /// this many are missing
    Missing(usize),
    /// this many too many
    Excess(usize),
}

#[derive(Clone, Copy)]
pub enum Entry {
    Send(fn() -> BoxFuture<'static, ()>),
    Local(fn() -> LocalBoxFuture<'static, ()>),
}

#[derive(Clone, Copy)]
pub struct Case {
    /// Stable name, equal to the file's name.
    pub id: &'static str,
    pub title: &'static str,
    pub class: Class,
    /// The one finding a detector should report (`expect::CLEAN`: none).
    pub expect: &'static str,
    /// Further findings that are true of the case and not to be counted as false alarms.
    pub also_ok: &'static [&'static str],
    pub plain: Plain,
    /// Healthy but slow: allowed up to 2 s.
    pub slow: bool,
    pub primitives: &'static [&'static str],
    pub flavor: Flavor,
    pub max_blocking_threads: Option<usize>,
    /// Real report(s) the pattern is taken from.
    pub source: &'static str,
    /// Tags present in the file as `// CULPRIT:<tag>`; the tagged lines are the
    /// ones a report should name (holder, waiter, forget, release, ...).
    pub culprits: &'static [&'static str],
    /// Marks that must have been reached (for a hanging case: within about 200 ms);
    /// `name:n` means exactly n times.
    pub must_reach: &'static [&'static str],
    /// Marks that must never be reached.
    pub never_reach: &'static [&'static str],
    pub balance: Balance,
    pub entry: Entry,
    // The rest is filled in by the registry.
    pub heldout: bool,
    pub file: &'static str,
    pub text: &'static str,
}

fn nothing() -> BoxFuture<'static, ()> {
    Box::pin(async {})
}

impl Case {
    pub const BASE: Case = Case {
        id: "",
        title: "",
        class: Class::Benign,
        expect: expect::CLEAN,
        also_ok: &[],
        plain: Plain::Returns,
        slow: false,
        primitives: &["Semaphore"],
        flavor: Flavor::MultiThread(2),
        max_blocking_threads: None,
        source: "",
        culprits: &[],
        must_reach: &[],
        never_reach: &[],
        balance: Balance::NotReported,
        entry: Entry::Send(nothing),
        heldout: false,
        file: "",
        text: "",
    };

    pub fn is_buggy(&self) -> bool {
        self.class != Class::Benign
    }

    /// One-based numbers of the lines tagged `// CULPRIT:<tag>`.
    pub fn lines(&self, tag: &str) -> Vec<u32> {
        let want = format!("// CULPRIT:{tag}");
        self.text
            .lines()
            .enumerate()
            .filter(|(_, l)| {
                l.find(&want).is_some_and(|at| {
                    !l[at + want.len()..]
                        .starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
                })
            })
            .map(|(n, _)| n as u32 + 1)
            .collect()
    }
}

/// Splits `name:n`.
pub fn mark_and_count(mark: &str) -> (&str, Option<usize>) {
    match mark.rsplit_once(':') {
        Some((name, n)) => (name, Some(n.parse().expect("count after ':'"))),
        None => (mark, None),
    }
}

/// What every case file starts from.
pub mod prelude {
    pub use super::{expect, Balance, Case, Class, Entry, Flavor, Plain};
    pub use crate::probe::{balance, keep, reach};
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    pub async fn nap(n: u64) {
        tokio::time::sleep(ms(n)).await
    }

    /// Waits, off to the side, until a condition holds.
    pub async fn until(mut f: impl FnMut() -> bool) {
        while !f() {
            nap(1).await
        }
    }

    /// Stands in for lucky timing: makes it repeatable that certain steps do not
    /// overlap in this run. It is no part of the program under test (which has
    /// nothing that orders these steps), and it is invisible to the primitives.
    #[derive(Default)]
    pub struct Luck(std::sync::atomic::AtomicUsize);

    impl Luck {
        pub async fn turn(&self, n: usize) {
            until(|| self.0.load(std::sync::atomic::Ordering::Relaxed) == n).await
        }

        pub fn over(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// On a current_thread runtime: lets every other ready task run until it waits.
    pub async fn settle() {
        for _ in 0..8 {
            tokio::task::yield_now().await
        }
    }
}
