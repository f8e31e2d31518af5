//! Random sequences of calls: the instrumented semaphore answers as tokio's, its books balance after every
//! step, and what a snapshot says is settled adds up even while threads are at it.

use crate::Scope;
use crate::registry;
use crate::sync::{OwnedSemaphorePermit, Semaphore};
use holdup_core::Snapshot;
use holdup_core::balance::balance;
use holdup_core::snapshot::{ActorId, HoldId, Resource};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio_test::task::{Spawn, spawn};

#[derive(Clone, Debug)]
enum Step {
    Try(u32),
    Acquire(u32),
    /// Polls a waiting acquire again.
    Poll(usize),
    Cancel(usize),
    Release(usize),
    Forget(usize),
    Split(usize, usize),
    Merge(usize, usize),
    Add(usize),
    Withdraw(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0usize..4;
    prop_oneof![
        4 => (0u32..3).prop_map(Step::Try),
        6 => (0u32..4).prop_map(Step::Acquire),
        6 => which().prop_map(Step::Poll),
        2 => which().prop_map(Step::Cancel),
        8 => which().prop_map(Step::Release),
        1 => which().prop_map(Step::Forget),
        2 => (which(), 0usize..3).prop_map(|(at, n)| Step::Split(at, n)),
        2 => (which(), which()).prop_map(|(a, b)| Step::Merge(a, b)),
        1 => (0usize..3).prop_map(Step::Add),
        1 => (0usize..3).prop_map(Step::Withdraw),
        1 => Just(Step::Close),
    ]
}

/// One semaphore with the permits and waits that the steps work on. Twice the same code, for two types.
macro_rules! machine {
    ($name:ident, $semaphore:ty, $permit:ty) => {
        struct $name {
            semaphore: Arc<$semaphore>,
            permits: Vec<$permit>,
            waits: Vec<
                Spawn<Pin<Box<dyn Future<Output = Result<$permit, tokio::sync::AcquireError>>>>>,
            >,
        }

        impl $name {
            fn new(permits: usize) -> Self {
                let semaphore = Arc::new(<$semaphore>::new(permits));
                $name { semaphore, permits: Vec::new(), waits: Vec::new() }
            }

            /// Takes a step, and tells all that can be seen from outside.
            fn step(&mut self, step: &Step) -> String {
                let at = |at: usize, len: usize| (len > 0).then(|| at % len);
                let answer = match *step {
                    Step::Try(n) => {
                        let permit = self.semaphore.clone().try_acquire_many_owned(n);
                        let answer = permit.as_ref().map(|_| ()).map_err(ToString::to_string);
                        self.permits.extend(permit);
                        format!("{answer:?}")
                    }
                    Step::Acquire(n) => {
                        let acquire = self.semaphore.clone().acquire_many_owned(n);
                        self.waits.push(spawn(Box::pin(acquire)));
                        self.poll(self.waits.len() - 1)
                    }
                    Step::Poll(n) => {
                        at(n, self.waits.len()).map(|at| self.poll(at)).unwrap_or_default()
                    }
                    Step::Cancel(n) => {
                        at(n, self.waits.len()).map(|at| drop(self.waits.remove(at)));
                        String::new()
                    }
                    Step::Release(n) => {
                        at(n, self.permits.len()).map(|at| drop(self.permits.remove(at)));
                        String::new()
                    }
                    Step::Forget(n) => {
                        at(n, self.permits.len()).map(|at| self.permits.remove(at).forget());
                        String::new()
                    }
                    Step::Split(n, units) => {
                        let part =
                            at(n, self.permits.len()).and_then(|at| self.permits[at].split(units));
                        let answer = format!("{:?}", part.as_ref().map(|part| part.num_permits()));
                        self.permits.extend(part);
                        answer
                    }
                    Step::Merge(a, b) => {
                        if let (Some(a), Some(b)) =
                            (at(a, self.permits.len()), at(b, self.permits.len()))
                            && a != b
                        {
                            let other = self.permits.remove(b);
                            self.permits[a - usize::from(b < a)].merge(other);
                        }
                        String::new()
                    }
                    Step::Add(n) => {
                        self.semaphore.add_permits(n);
                        String::new()
                    }
                    Step::Withdraw(n) => self.semaphore.forget_permits(n).to_string(),
                    Step::Close => {
                        self.semaphore.close();
                        String::new()
                    }
                };
                let units: Vec<_> =
                    self.permits.iter().map(|permit| permit.num_permits()).collect();
                let woken: Vec<_> = self.waits.iter().map(|wait| wait.is_woken()).collect();
                let (free, closed) =
                    (self.semaphore.available_permits(), self.semaphore.is_closed());
                format!("{answer} {units:?} {woken:?} {free} {closed}")
            }

            fn poll(&mut self, at: usize) -> String {
                match self.waits[at].poll() {
                    Poll::Pending => "waits".to_owned(),
                    Poll::Ready(result) => {
                        drop(self.waits.remove(at));
                        let answer = result.as_ref().map(|_| ()).map_err(ToString::to_string);
                        self.permits.extend(result);
                        format!("{answer:?}")
                    }
                }
            }
        }
    };
}

machine!(Ours, Semaphore, OwnedSemaphorePermit);
machine!(Theirs, tokio::sync::Semaphore, tokio::sync::OwnedSemaphorePermit);

/// Checks a resource against the records of it.
fn adds_up(snapshot: &Snapshot, resource: &Resource) {
    let holds = snapshot.holds.iter().filter(|hold| hold.resource == resource.id);
    let waits: Vec<_> = snapshot.waits.iter().filter(|wait| wait.resource == resource.id).collect();
    assert_eq!(waits.len() as u64, resource.usage.waiting);
    let held = holds.map(|hold| hold.units).sum();
    let balance = balance(resource, held, waits.iter().map(|wait| wait.units));
    assert!(balance.is_ok(), "{balance:?} {resource:#?} {snapshot:#?}");
}

/// The holds that their actors are listed to have, with the units.
fn listed(snapshot: &Snapshot, resource: &Resource) -> BTreeSet<(HoldId, u64)> {
    let actors: BTreeSet<ActorId> = snapshot.holds.iter().map(|hold| hold.actor).collect();
    actors.into_iter().flat_map(|actor| registry::listed(actor, resource.id)).collect()
}

fn recorded(snapshot: &Snapshot, resource: &Resource) -> BTreeSet<(HoldId, u64)> {
    let holds = snapshot.holds.iter().filter(|hold| hold.resource == resource.id);
    holds.map(|hold| (hold.id, hold.units)).collect()
}

proptest! {
    #[test]
    fn answers_as_tokio_and_balances_after_every_step(
        permits in 0usize..4,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let scope = Scope::new();
        let _entered = scope.enter();
        let (mut ours, mut theirs) = (Ours::new(permits), Theirs::new(permits));
        for step in &steps {
            prop_assert_eq!(ours.step(step), theirs.step(step), "{:?}", step);
            let snapshot = scope.snapshot();
            let resource = &snapshot.resources[0];
            prop_assert!(resource.settled, "{:?}", resource);
            adds_up(&snapshot, resource);
            let mut units: Vec<_> = ours.permits.iter().map(|it| it.num_permits() as u64).collect();
            let mut held: Vec<_> = snapshot.holds.iter().map(|hold| hold.units).collect();
            units.sort_unstable();
            held.sort_unstable();
            prop_assert_eq!(units, held);
            prop_assert_eq!(listed(&snapshot, resource), recorded(&snapshot, resource));
            prop_assert_eq!(ours.waits.len(), snapshot.waits.len());
            if !resource.closed {
                let woken = ours.waits.iter().map(Spawn::is_woken);
                let granted = snapshot.waits.iter().map(|wait| wait.granted_since.is_some());
                prop_assert!(woken.eq(granted), "{:#?}", snapshot.waits);
            }
        }
    }
}

#[test]
fn what_is_settled_adds_up_while_threads_are_at_it() {
    const THREADS: usize = 3;
    let scope = Scope::new();
    let entered = scope.enter();
    let semaphores: Vec<_> = (1..4).map(|permits| Arc::new(Semaphore::new(permits))).collect();
    drop(entered);
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (semaphores, done) = (&semaphores, &done);
            threads.spawn(move || {
                let _entered = scope.enter();
                let mut round = thread;
                let mut waits = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    round += 1;
                    let semaphore = &semaphores[round % semaphores.len()];
                    let mut wait =
                        spawn(semaphore.clone().acquire_many_owned(1 + (round % 2) as u32));
                    if let Poll::Ready(permit) = wait.poll() {
                        drop(permit);
                    } else {
                        waits.push(wait);
                    }
                    if waits.len() > 3 {
                        // One is polled, the oldest is given up.
                        if let Poll::Ready(permit) = waits[1].poll() {
                            drop((permit, waits.remove(1)));
                        }
                        drop(waits.remove(0));
                    }
                }
            });
        }
        let mut settled = 0;
        while settled < 300 {
            let snapshot = scope.snapshot();
            for resource in snapshot.resources.iter().filter(|resource| resource.settled) {
                settled += 1;
                adds_up(&snapshot, resource);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let snapshot = scope.snapshot();
    assert!(snapshot.holds.is_empty() && snapshot.waits.is_empty());
    for (resource, semaphore) in snapshot.resources.iter().zip(&semaphores) {
        assert!(resource.settled);
        assert_eq!(resource.available, semaphore.available_permits() as u64);
        assert_eq!(resource.available, resource.initial);
    }
}
