//! One case in this process, watched from outside its runtime, which may be stuck for good.

use crate::case::{mark_and_count, Balance, Case, Entry, Flavor, Plain};
use crate::probe;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A hanging case must be stuck by then, and still be stuck at the end of the watch.
pub const STUCK_BY: Duration = Duration::from_millis(300);

/// How long a case is watched.
pub struct Watch {
    /// A case that is to return has this long.
    pub returns: Duration,
    /// Time left to background tasks after it has returned, unless whoever looks at it has seen enough.
    pub linger: Duration,
    /// A case that is to hang is watched for this long,
    pub hangs: Duration,
    /// and on, while whoever looks at it has not seen enough, up to this long.
    pub hangs_at_most: Duration,
}

/// What was seen of a case.
pub struct Ran {
    pub what: String,
    /// Where it did not do as its label says.
    pub wrong: Vec<String>,
}

pub fn run(c: Case, watch: &Watch, enough: &dyn Fn() -> bool) -> Ran {
    let mut wrong = Vec::new();
    let t0 = Instant::now();
    let rx = start(c);
    let end = match c.plain {
        Plain::Returns => wait(&rx, watch.returns, &|| false),
        Plain::Hangs => {
            let more = watch.hangs_at_most.saturating_sub(watch.hangs);
            wait(&rx, watch.hangs, &|| false).or_else(|| wait(&rx, more, enough))
        }
    };
    let took = t0.elapsed();
    let returned = end.is_some();
    if let Some(Err(e)) = end {
        wrong.push(e);
    }
    if returned {
        linger(watch.linger, enough);
    }
    let s = probe::snapshot();
    match (c.plain, returned) {
        (Plain::Hangs, true) => wrong.push(format!("labelled as hanging, returned after {took:?}")),
        (Plain::Returns, false) => wrong.push(format!("still not returned after {took:?}")),
        _ => {}
    }
    let mut last = Duration::ZERO;
    for m in c.must_reach {
        let (name, want) = mark_and_count(m);
        match s.marks.get(name) {
            None => wrong.push(format!("mark '{name}' not reached")),
            Some((n, first, latest)) => {
                if want.is_some_and(|w| w != *n) {
                    wrong.push(format!("mark '{m}' reached {n} times"));
                }
                // with a count all of them have to be in; without, the first one tells
                last = last.max(if want.is_some() { *latest } else { *first });
            }
        }
    }
    if c.plain == Plain::Hangs && last > STUCK_BY {
        wrong.push(format!("stuck state only after {last:?}"));
    }
    for m in c.never_reach {
        if s.marks.contains_key(m) {
            wrong.push(format!("mark '{m}' reached"));
        }
    }
    let seen = match s.balance {
        None => Balance::NotReported,
        Some((a, b)) if a == b => Balance::Whole,
        Some((a, b)) if a > b => Balance::Missing(a - b),
        Some((a, b)) => Balance::Excess(b - a),
    };
    if seen != c.balance {
        wrong.push(format!("balance {:?}, labelled {:?}", seen, c.balance));
    }
    let what = format!(
        "{} at {} ms, all marks by {} ms, balance {:?}",
        if returned { "returned" } else { "stuck" },
        took.as_millis(),
        last.as_millis(),
        seen
    );
    Ran { what, wrong }
}

fn start(c: Case) -> Receiver<Result<(), String>> {
    let (tx, rx) = channel();
    std::thread::Builder::new()
        .name("case-runtime".into())
        .spawn(move || {
            let mut b = match c.flavor {
                Flavor::MultiThread(n) => {
                    let mut b = tokio::runtime::Builder::new_multi_thread();
                    b.worker_threads(n);
                    b
                }
                _ => tokio::runtime::Builder::new_current_thread(),
            };
            if let Some(n) = c.max_blocking_threads {
                b.max_blocking_threads(n);
            }
            let rt = b.enable_all().build().expect("a runtime");
            probe::start();
            let done = move |r: Result<(), tokio::task::JoinError>| {
                let _ = tx.send(r.map_err(|e| format!("panicked: {e}")));
            };
            // The case always runs inside a task, so that it has a task id.
            match c.entry {
                Entry::Send(f) => rt.block_on(async move {
                    done(tokio::spawn(f()).await);
                    std::future::pending::<()>().await;
                }),
                Entry::Local(f) => {
                    rt.block_on(tokio::task::LocalSet::new().run_until(async move {
                        done(tokio::task::spawn_local(f()).await);
                        std::future::pending::<()>().await;
                    }))
                }
            }
        })
        .expect("a thread");
    rx
}

/// Leaves the case alone for `limit` or until `enough`.
fn linger(limit: Duration, enough: &dyn Fn() -> bool) {
    let (_alive, nothing) = channel();
    wait(&nothing, limit, enough);
}

/// Waits up to `limit` or until `enough`, not counting time the whole machine stood still. `None`: not returned.
fn wait(
    rx: &Receiver<Result<(), String>>,
    limit: Duration,
    enough: &dyn Fn() -> bool,
) -> Option<Result<(), String>> {
    let mut left = limit;
    while !left.is_zero() && !enough() {
        let t = Instant::now();
        match rx.recv_timeout(Duration::from_millis(10).min(left)) {
            Ok(end) => return Some(end),
            Err(RecvTimeoutError::Timeout) => {
                left -= t.elapsed().min(Duration::from_millis(20)).min(left);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Some(Err("runtime thread died".to_owned()))
            }
        }
    }
    None
}
