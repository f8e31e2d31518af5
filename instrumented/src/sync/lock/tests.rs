//! How the locks keep their books, polled by hand, and that they answer as tokio's.

use crate::sync::tests::until;
use crate::sync::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use crate::{Entered, ResourceExt, Scope};
use holdup_core::Snapshot;
use holdup_core::balance::balance;
use holdup_core::snapshot::{ActorId, Call, Hold, HoldId, Kind, Resource};
use proptest::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::task::coop;
use tokio_test::task::{Spawn, spawn};
use tokio_test::{assert_pending, assert_ready};

fn in_scope<T>(make: impl FnOnce() -> T) -> (Scope, T, Entered) {
    let scope = Scope::new();
    let entered = scope.enter();
    (scope, make(), entered)
}

/// What the books say of the only resource of a scope. They balance at every step.
fn books(scope: Scope) -> (Resource, Snapshot) {
    let snapshot = scope.snapshot();
    let [resource] = &snapshot.resources[..] else {
        panic!("one resource, not {:?}", snapshot.resources)
    };
    let held = snapshot.holds.iter().map(|hold| hold.units).sum();
    let wanted = snapshot.waits.iter().map(|wait| wait.units);
    assert!(resource.settled, "{resource:?}");
    assert!(balance(resource, held, wanted).is_ok(), "{snapshot:#?}");
    (resource.clone(), snapshot)
}

fn only_hold(scope: Scope) -> Hold {
    let (_, snapshot) = books(scope);
    let [hold] = &snapshot.holds[..] else { panic!("one hold, not {:?}", snapshot.holds) };
    hold.clone()
}

fn holds(scope: Scope) -> usize {
    books(scope).1.holds.len()
}

#[test]
fn a_guard_is_in_the_books_for_as_long_as_it_lives() {
    let (scope, mutex, _entered) = in_scope(|| Mutex::new(1).named("one"));
    let line = line!() + 1;
    let mut lock = spawn(mutex.lock());
    assert_eq!(holds(scope), 0, "a lock does nothing until it is polled");
    let mut guard = assert_ready!(lock.poll());
    *guard += 1;
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.name.as_deref(), resource.kind), (Some("one"), Kind::Mutex));
    assert_eq!((resource.capacity(), resource.available, resource.usage.held), (1, 0, 1));
    let hold = only_hold(scope);
    let site = snapshot.site(hold.site).expect("known");
    assert_eq!((&*site.file, site.line), (file!(), line));
    assert_eq!((hold.units, hold.call, hold.owned), (1, Call::Acquire, false));
    assert!(matches!(hold.actor, ActorId::Root(_)));
    assert!(snapshot.stack(hold.stack).is_some_and(|stack| stack.addresses.len() > 5));
    drop(guard);
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.available, snapshot.holds.len()), (1, 0));
    drop(lock);
    assert_eq!(mutex.into_inner(), 2);
    until(|| scope.snapshot().resources.is_empty());
}

#[test]
fn waits_are_in_queue_order_and_become_holds() {
    let (scope, mutex, _entered) = in_scope(|| Arc::new(Mutex::new(())));
    let first = mutex.try_lock().expect("free");
    let mut second = spawn(mutex.lock());
    let mut third = spawn(mutex.clone().lock_owned());
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    assert_eq!(only_hold(scope).call, Call::Try);
    let (_, snapshot) = books(scope);
    assert_eq!(snapshot.waits.iter().map(|wait| wait.owned).collect::<Vec<_>>(), [false, true]);

    drop(first);
    assert!(second.is_woken());
    assert_eq!(books(scope).0.granted(), 1, "granted, not polled");
    drop(assert_ready!(second.poll()));
    assert!(third.is_woken());
    let guard = assert_ready!(third.poll());
    let (resource, snapshot) = books(scope);
    assert!(snapshot.waits.is_empty() && only_hold(scope).owned);
    assert_eq!((resource.counters.acquired, resource.counters.waited), (3, 2));

    let mut fourth = spawn(mutex.lock());
    assert_pending!(fourth.poll());
    drop(fourth);
    drop(guard);
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.available, resource.counters.cancelled), (1, 1));
    assert!(snapshot.waits.is_empty());
}

#[test]
fn a_mapped_guard_is_the_same_hold() {
    let (scope, mutex, _entered) = in_scope(|| Arc::new(Mutex::new((1, [2, 3]))));
    let guard = mutex.try_lock().expect("free");
    let hold = only_hold(scope);
    let guard = MutexGuard::try_map(guard, |_| None::<&mut u8>).expect_err("nothing there");
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &*mutex));
    let part = MutexGuard::map(guard, |value| &mut value.1);
    let part = MappedMutexGuard::try_map(part, |_| None::<&mut u8>).expect_err("nothing there");
    let mut last = MappedMutexGuard::map(part, |value| &mut value[1]);
    *last = 4;
    assert_eq!(only_hold(scope), hold);
    drop(last);
    assert_eq!(holds(scope), 0);

    let guard = mutex.clone().try_lock_owned().expect("free");
    let hold = only_hold(scope);
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    let part = OwnedMutexGuard::map(guard, |value| &mut value.1[1]);
    drop(mutex);
    assert_eq!((only_hold(scope), *part), (hold, 4), "the guard keeps the mutex alive");
    drop(part);
    until(|| scope.snapshot().resources.is_empty());
}

#[test]
fn a_panic_while_mapping_gives_back() {
    let (scope, lock, _entered) = in_scope(|| Arc::new(RwLock::new(1)));
    fn fail(_: &i32) -> &i32 {
        panic!("on purpose")
    }
    fn fail_mut(_: &mut i32) -> &mut i32 {
        panic!("on purpose")
    }
    let attempts: [&dyn Fn(); 4] = [
        &|| drop(RwLockWriteGuard::map(lock.try_write().expect("free"), fail_mut)),
        &|| drop(RwLockWriteGuard::downgrade_map(lock.try_write().expect("free"), fail)),
        &|| drop(RwLockReadGuard::map(lock.try_read().expect("free"), fail)),
        &|| {
            let guard = lock.clone().try_write_owned().expect("free");
            drop(OwnedRwLockWriteGuard::map(guard, fail_mut));
        },
    ];
    for attempt in attempts {
        assert!(catch_unwind(AssertUnwindSafe(attempt)).is_err());
        assert_eq!(holds(scope), 0);
    }
}

#[test]
fn readers_share_and_a_writer_takes_all() {
    let (scope, lock, _entered) = in_scope(|| RwLock::with_max_readers(5, 4));
    let one = lock.try_read().expect("free");
    let two = lock.try_read().expect("room");
    assert_eq!(*one + *two, 10);
    assert!(lock.try_write().is_err());
    let mut write = spawn(lock.write());
    assert_pending!(write.poll());
    let mut read = spawn(lock.read());
    assert_pending!(read.poll());
    let (resource, snapshot) = books(scope);
    assert_eq!(resource.kind, Kind::RwLock);
    assert_eq!((resource.capacity(), resource.available, resource.granted()), (4, 0, 2));
    assert_eq!(snapshot.waits.iter().map(|wait| wait.units).collect::<Vec<_>>(), [4, 1]);
    assert_eq!(resource.counters.rejected, 1);

    drop((one, two));
    let mut guard = assert_ready!(write.poll());
    *guard = 6;
    assert_eq!(only_hold(scope).units, 4);
    drop(guard);
    assert_eq!(*assert_ready!(read.poll()), 6);
    assert_eq!(books(scope).0.available, 4);
}

#[test]
fn a_downgraded_guard_is_the_same_hold_with_one_unit() {
    let (scope, lock, _entered) = in_scope(|| Arc::new(RwLock::new((1, 2))));
    let guard = lock.try_write().expect("free");
    let before = only_hold(scope);
    let mut read = spawn(lock.read());
    assert_pending!(read.poll());
    let guard =
        RwLockWriteGuard::try_downgrade_map(guard, |_| None::<&u8>).expect_err("nothing there");
    assert_eq!(only_hold(scope), before);
    let guard = guard.downgrade();
    assert_eq!(only_hold(scope), Hold { units: 1, ..before });
    let second = assert_ready!(read.poll());
    let part = RwLockReadGuard::map(guard, |value| &value.1);
    assert_eq!((second.0, *part, holds(scope)), (1, 2, 2));
    drop((part, second));

    let guard = lock.clone().try_write_owned().expect("free");
    let before = only_hold(scope);
    let part = OwnedRwLockWriteGuard::downgrade_map(guard, |value| &value.0);
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&part), &lock));
    assert_eq!(Hold { moved_to: None, ..only_hold(scope) }, Hold { units: 1, ..before });
    drop(part);
    let (resource, _) = books(scope);
    assert_eq!(resource.available, resource.capacity());
    assert_eq!(resource.counters.acquired, resource.counters.released);
}

#[test]
fn blocking_calls_are_recorded_as_such() {
    let (scope, mutex, _entered) = in_scope(|| Arc::new(Mutex::new(0)));
    let guard = mutex.blocking_lock();
    assert_eq!(only_hold(scope).call, Call::Blocking);
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| {
            let _entered = scope.enter();
            *mutex.clone().blocking_lock_owned() += 1;
        });
        while scope.snapshot().waits.is_empty() {
            std::thread::yield_now();
        }
        drop(guard);
        waiter.join().expect("no panic");
    });
    assert_eq!((books(scope).0.counters.waited, *mutex.blocking_lock()), (1, 1));

    let lock = RwLock::new(0);
    *lock.blocking_write() += 1;
    assert_eq!(*lock.blocking_read(), 1);
}

#[test]
fn without_budget_a_lock_is_taken_and_handed_out_later() {
    let (scope, mutex, _entered) = in_scope(|| Mutex::new(()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        while coop::has_budget_remaining() {
            coop::consume_budget().await;
        }
        let mut lock = pin!(mutex.lock());
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(lock.as_mut().poll(cx).is_pending());
        let (resource, snapshot) = books(scope);
        assert_eq!((resource.available, resource.granted(), snapshot.waits.len()), (0, 1, 1));
        tokio::task::yield_now().await;
        assert!(lock.as_mut().poll(cx).is_ready());
    });
    assert_eq!(books(scope).0.counters.waited, 1);
}

#[test]
fn only_one_thread_at_a_time_has_the_value() {
    const ROUNDS: usize = 2000;
    let (scope, (mutex, lock), entered) =
        in_scope(|| (Arc::new(Mutex::new(0)), Arc::new(RwLock::new((0, 0)))));
    drop(entered);
    std::thread::scope(|threads| {
        for thread in 0..3 {
            let (mutex, lock) = (mutex.clone(), lock.clone());
            threads.spawn(move || {
                for round in 0..ROUNDS {
                    *mutex.blocking_lock() += 1;
                    if (round + thread) % 2 == 0 {
                        let mut both = lock.blocking_write();
                        both.0 += 1;
                        both.1 += 1;
                        let both = both.downgrade();
                        assert_eq!(both.0, both.1);
                    } else {
                        let both = lock.blocking_read();
                        assert_eq!(both.0, both.1);
                    }
                }
            });
        }
    });
    assert_eq!(*mutex.blocking_lock(), 3 * ROUNDS);
    assert_eq!(lock.blocking_read().0, 3 * ROUNDS / 2);
    let snapshot = scope.snapshot();
    assert!(snapshot.holds.is_empty() && snapshot.resources.iter().all(|it| it.settled));
}

#[test]
fn values_without_a_size_can_be_locked() {
    let slice: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2, 3]));
    slice.try_lock().expect("free")[1] = 5;
    let any: Arc<Mutex<dyn Any + Send>> = Arc::new(Mutex::new(7u8)).named("any");
    let guard = any.try_lock_owned().expect("free");
    assert_eq!(guard.downcast_ref(), Some(&7u8));
    let last = OwnedMutexGuard::map(slice.try_lock_owned().expect("free"), |it| &mut it[1..]);
    assert_eq!(*last, [5, 3]);
    let text: &RwLock<[u8]> = &RwLock::new(*b"text");
    assert_eq!(&*text.try_read().expect("free"), b"text");
}

#[test]
fn a_value_may_borrow() {
    let text = String::from("text");
    let mutex = Arc::new(Mutex::new(&text[..]));
    let guard = mutex.clone().try_lock_owned().expect("free");
    let guard = OwnedMutexGuard::map(guard, |text| text);
    assert_eq!(*guard, "text");
}

#[test]
fn a_static_is_listed_from_its_first_use() {
    static MUTEX: Mutex<u8> = Mutex::const_new(1);
    static LOCK: RwLock<u8> = RwLock::const_with_max_readers(1, 2);
    let scope = Scope::new();
    let _entered = scope.enter();
    assert!(scope.snapshot().resources.is_empty());
    let guard = MUTEX.try_lock().expect("free");
    let (resource, snapshot) = books(scope);
    assert!(resource.is_static);
    assert_eq!(snapshot.site(resource.created).map(|site| &*site.file), Some(file!()));
    drop(guard);
    drop(LOCK.try_read().expect("free"));
    assert_eq!(scope.snapshot().resources.len(), 2);
}

#[test]
fn what_can_be_seen_looks_like_tokios_and_seeing_is_not_recorded() {
    let (scope, ours, _entered) = in_scope(|| Mutex::new(1));
    let theirs = tokio::sync::Mutex::new(1);
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    let (our_guard, their_guard) =
        (ours.try_lock().expect("free"), theirs.try_lock().expect("free"));
    assert_eq!(format!("{our_guard:?} {our_guard}"), format!("{their_guard:?} {their_guard}"));
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    assert_eq!(
        ours.try_lock().expect_err("locked").to_string(),
        theirs.try_lock().expect_err("locked").to_string()
    );
    let counters = books(scope).0.counters;
    assert_eq!((counters.acquired, counters.rejected), (1, 1));

    let (ours, theirs) = (RwLock::from(1), tokio::sync::RwLock::from(1));
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    let (our_guard, their_guard) =
        (ours.try_read().expect("free"), theirs.try_read().expect("free"));
    assert_eq!(format!("{ours:?} {our_guard:?}"), format!("{theirs:?} {their_guard:?}"));
}

#[derive(Clone, Debug)]
enum Step {
    Read,
    Write,
    TryRead,
    TryWrite,
    /// Polls a waiting acquire again.
    Poll(usize),
    Cancel(usize),
    Release(usize),
    /// Downgrades a guard, or maps it if it reads already.
    Downgrade(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0usize..4;
    prop_oneof![
        4 => Just(Step::Read),
        3 => Just(Step::Write),
        1 => Just(Step::TryRead),
        1 => Just(Step::TryWrite),
        5 => which().prop_map(Step::Poll),
        2 => which().prop_map(Step::Cancel),
        7 => which().prop_map(Step::Release),
        2 => which().prop_map(Step::Downgrade),
    ]
}

/// One lock with the guards and waits that the steps work on. Twice the same code, for two libraries.
macro_rules! machine {
    ($name:ident, $root:tt::$sync:ident) => {
        mod $name {
            use super::{Arc, Pin, Poll, Spawn, Step, spawn};
            use $root::$sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

            pub(super) enum Guard {
                Read(OwnedRwLockReadGuard<u64>),
                Write(OwnedRwLockWriteGuard<u64>),
            }

            impl Guard {
                /// A writer changes the value.
                fn touch(&mut self) -> u64 {
                    match self {
                        Guard::Read(guard) => **guard,
                        Guard::Write(guard) => {
                            **guard += 1;
                            **guard
                        }
                    }
                }

                fn downgrade(self) -> Self {
                    Guard::Read(match self {
                        Guard::Read(guard) => OwnedRwLockReadGuard::map(guard, |value| value),
                        Guard::Write(guard) => guard.downgrade(),
                    })
                }
            }

            pub(super) struct Machine {
                lock: Arc<RwLock<u64>>,
                pub(super) guards: Vec<Guard>,
                pub(super) waits: Vec<Spawn<Pin<Box<dyn Future<Output = Guard>>>>>,
            }

            impl Machine {
                pub(super) fn new(readers: u32) -> Self {
                    let lock = Arc::new(RwLock::with_max_readers(0, readers));
                    Machine { lock, guards: Vec::new(), waits: Vec::new() }
                }

                /// Takes a step, and tells all that can be seen from outside.
                pub(super) fn step(&mut self, step: &Step) -> String {
                    let at = |at: usize, len: usize| (len > 0).then(|| at % len);
                    let lock = self.lock.clone();
                    let answer = match *step {
                        Step::Read => {
                            self.wait(Box::pin(async { Guard::Read(lock.read_owned().await) }))
                        }
                        Step::Write => {
                            self.wait(Box::pin(async { Guard::Write(lock.write_owned().await) }))
                        }
                        Step::TryRead => self.tried(lock.try_read_owned().map(Guard::Read).ok()),
                        Step::TryWrite => self.tried(lock.try_write_owned().map(Guard::Write).ok()),
                        Step::Poll(n) => {
                            at(n, self.waits.len()).map(|at| self.poll(at)).unwrap_or_default()
                        }
                        Step::Cancel(n) => {
                            at(n, self.waits.len()).map(|at| drop(self.waits.remove(at)));
                            String::new()
                        }
                        Step::Release(n) => {
                            at(n, self.guards.len()).map(|at| drop(self.guards.remove(at)));
                            String::new()
                        }
                        Step::Downgrade(n) => {
                            if let Some(at) = at(n, self.guards.len()) {
                                let guard = self.guards.remove(at).downgrade();
                                self.guards.push(guard);
                            }
                            String::new()
                        }
                    };
                    let values: Vec<_> = self.guards.iter_mut().map(Guard::touch).collect();
                    let woken: Vec<_> = self.waits.iter().map(|wait| wait.is_woken()).collect();
                    format!("{answer} {values:?} {woken:?} {:?}", self.lock)
                }

                fn wait(&mut self, wait: Pin<Box<dyn Future<Output = Guard>>>) -> String {
                    self.waits.push(spawn(wait));
                    self.poll(self.waits.len() - 1)
                }

                fn tried(&mut self, guard: Option<Guard>) -> String {
                    let answer = guard.is_some().to_string();
                    self.guards.extend(guard);
                    answer
                }

                fn poll(&mut self, at: usize) -> String {
                    match self.waits[at].poll() {
                        Poll::Pending => "waits".to_owned(),
                        Poll::Ready(guard) => {
                            drop(self.waits.remove(at));
                            self.guards.push(guard);
                            "served".to_owned()
                        }
                    }
                }
            }
        }
    };
}

machine!(ours, crate::sync);
machine!(theirs, tokio::sync);

proptest! {
    #[test]
    fn answers_as_tokio_and_balances_after_every_step(
        readers in 1u32..4,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let scope = Scope::new();
        let _entered = scope.enter();
        let mut ours = ours::Machine::new(readers);
        let mut theirs = theirs::Machine::new(readers);
        for step in &steps {
            prop_assert_eq!(ours.step(step), theirs.step(step), "{:?}", step);
            let (_, snapshot) = books(scope);
            let mut expected: Vec<_> = ours.guards.iter().map(|guard| match guard {
                ours::Guard::Read(_) => 1,
                ours::Guard::Write(_) => u64::from(readers),
            }).collect();
            let mut held: Vec<_> = snapshot.holds.iter().map(|hold| hold.units).collect();
            expected.sort_unstable();
            held.sort_unstable();
            prop_assert_eq!(held, expected);
            prop_assert_eq!(snapshot.waits.len(), ours.waits.len());
            let ids: Vec<HoldId> = snapshot.holds.iter().map(|hold| hold.id).collect();
            prop_assert!(ids.is_sorted());
        }
    }
}
