//! How the instrumented semaphore keeps its books, polled by hand, and what traits the instrumented types have.

use crate::registry;
use crate::sync::{Semaphore, TryAcquireError};
use crate::{ResourceExt, Scope};
use holdup_core::Snapshot;
use holdup_core::snapshot::{ActorId, Call, Resource};
use std::cell::Cell;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok};

#[test]
fn auto_traits_are_tokios() {
    /// Whether a type implements a trait: the inherent constant exists only if it does.
    macro_rules! implements {
        ($type:ty: $($trait:path),*) => {
            [$({
                trait Otherwise {
                    const YES: bool = false;
                }
                impl<T: ?Sized> Otherwise for T {}
                struct Probe<T: ?Sized>(PhantomData<T>);
                impl<T: ?Sized + $trait> Probe<T> {
                    const YES: bool = true;
                }
                // Both are used, whatever the type.
                let _ = (<i32 as Otherwise>::YES, <Probe<i32>>::YES);
                (stringify!($trait), <Probe<$type>>::YES)
            }),*]
        };
    }
    macro_rules! same {
        ($($($name:ident)::+ $(<$($argument:tt),*>)?),*) => {
            $(assert_eq!(
                implements!(crate::sync::$($name)::+ $(<$($argument),*>)?: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Debug, Display, Clone, Default),
                implements!(tokio::sync::$($name)::+ $(<$($argument),*>)?: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, Debug, Display, Clone, Default),
                stringify!($($name)::+ $(<$($argument),*>)?)
            );)*
        };
    }
    macro_rules! same_locks {
        ($($value:tt),*) => {
            $(same!(
                Mutex<$value>, MutexGuard<'static, $value>, MappedMutexGuard<'static, $value>,
                OwnedMutexGuard<$value>, OwnedMappedMutexGuard<$value, u8>, OwnedMappedMutexGuard<u8, $value>,
                RwLock<$value>, RwLockReadGuard<'static, $value>, RwLockWriteGuard<'static, $value>,
                RwLockMappedWriteGuard<'static, $value>, OwnedRwLockWriteGuard<$value>,
                OwnedRwLockReadGuard<$value, u8>, OwnedRwLockReadGuard<u8, $value>,
                OwnedRwLockMappedWriteGuard<$value, u8>, OwnedRwLockMappedWriteGuard<u8, $value>
            );)*
        };
    }
    macro_rules! same_channels {
        ($($message:tt),*) => {
            $(same!(
                mpsc::Sender<$message>, mpsc::WeakSender<$message>, mpsc::Receiver<$message>,
                mpsc::Permit<'static, $message>, mpsc::PermitIterator<'static, $message>,
                mpsc::OwnedPermit<$message>
            );)*
        };
    }
    struct Plain;
    type SendOnly = Cell<u8>;
    type Neither = Rc<u8>;
    type Exclusive = &'static mut u8;
    type SyncOnly = std::sync::MutexGuard<'static, u8>;
    same!(Semaphore, SemaphorePermit<'static>, OwnedSemaphorePermit);
    same_channels!(u8, Plain, SendOnly, SyncOnly, Neither, Exclusive);
    same_locks!(u8, str, Plain, SendOnly, SyncOnly, Neither, Exclusive);
}

/// What the books say of the only resource of a scope.
fn only(scope: Scope) -> (Resource, Snapshot) {
    let snapshot = scope.snapshot();
    let [resource] = &snapshot.resources[..] else {
        panic!("one resource, not {:?}", snapshot.resources)
    };
    assert!(resource.settled, "the books do not balance: {resource:?}");
    (resource.clone(), snapshot)
}

fn in_scope<T>(make: impl FnOnce() -> T) -> (Scope, T, crate::Entered) {
    let scope = Scope::new();
    let entered = scope.enter();
    (scope, make(), entered)
}

/// Waits for what the thread that watches may delay: whoever looks at a resource keeps it for that moment.
pub(super) fn until(so: impl Fn() -> bool) {
    while !so() {
        std::thread::yield_now();
    }
}

#[test]
fn a_permit_is_in_the_books_for_as_long_as_it_lives() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(3).named("three"));
    let line = line!() + 1;
    let mut acquire = spawn(sem.acquire());
    assert!(only(scope).1.holds.is_empty(), "an acquire does nothing until it is polled");
    let permit = assert_ready_ok!(acquire.poll());
    let (resource, snapshot) = only(scope);
    assert_eq!(resource.name.as_deref(), Some("three"));
    assert_eq!((resource.capacity(), resource.available, resource.usage.held), (3, 2, 1));
    let [hold] = &snapshot.holds[..] else { panic!("one hold") };
    let site = snapshot.site(hold.site).expect("known");
    assert_eq!((&*site.file, site.line), (file!(), line));
    assert!(matches!(hold.actor, ActorId::Root(_)));
    assert_eq!((hold.units, hold.call, hold.owned), (1, Call::Acquire, false));
    assert!(snapshot.stack(hold.stack).is_some_and(|stack| stack.addresses.len() > 5));
    drop(permit);
    let (resource, snapshot) = only(scope);
    assert_eq!((resource.available, snapshot.holds.len()), (3, 0));
    assert_eq!((resource.counters.acquired, resource.counters.released), (1, 1));
}

#[test]
fn waits_are_in_queue_order_and_become_holds() {
    let (scope, sem, _entered) = in_scope(|| Arc::new(Semaphore::new(1)));
    let first = sem.try_acquire().expect("free");
    let mut second = spawn(sem.acquire());
    let mut third = spawn(sem.clone().acquire_owned());
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    let (_, snapshot) = only(scope);
    assert_eq!(snapshot.waits.len(), 2);
    assert!(snapshot.waits[0].since <= snapshot.waits[1].since);
    assert_eq!((snapshot.waits[0].owned, snapshot.waits[1].owned), (false, true));
    assert_ne!(snapshot.waits[0].future, snapshot.waits[1].future);
    assert_eq!(snapshot.holds[0].call, Call::Try);

    drop(first);
    assert!(second.is_woken());
    let (resource, _) = only(scope);
    assert_eq!(
        (resource.available, resource.usage.held, resource.granted()),
        (0, 0, 1),
        "granted, not polled"
    );
    let second = assert_ready_ok!(second.poll());
    assert_pending!(third.poll());
    let (resource, snapshot) = only(scope);
    assert_eq!((snapshot.holds.len(), snapshot.waits.len(), resource.granted()), (1, 1, 0));
    assert_eq!(resource.counters.waited, 1);

    drop(third);
    drop(second);
    let (resource, snapshot) = only(scope);
    assert_eq!((snapshot.waits.len(), resource.counters.cancelled, resource.available), (0, 1, 1));
}

#[test]
fn a_large_request_hoards_and_gives_back_when_it_gives_up() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(4));
    let one = sem.try_acquire().expect("free");
    let mut all = spawn(sem.acquire_many(4));
    assert_pending!(all.poll());
    let (resource, _) = only(scope);
    assert_eq!((resource.available, resource.granted()), (0, 3));
    drop(all);
    let (resource, _) = only(scope);
    assert_eq!((resource.available, resource.granted()), (3, 0));
    drop(one);
}

#[test]
fn closing_ends_waits() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(0));
    let mut wait = spawn(sem.acquire());
    assert_pending!(wait.poll());
    sem.close();
    only(scope);
    assert!(wait.is_woken());
    assert_ready_err!(wait.poll());
    let (resource, snapshot) = only(scope);
    assert!(resource.closed && snapshot.waits.is_empty());
    assert_ready_err!(spawn(sem.acquire()).poll());
    assert_eq!(sem.try_acquire().expect_err("closed"), TryAcquireError::Closed);
    assert_eq!(only(scope).0.counters.rejected, 0, "closed is not full");
}

#[test]
fn merge_split_forget_and_add_keep_the_balance() {
    let (scope, sem, _entered) = in_scope(|| Arc::new(Semaphore::new(5)));
    let mut three = sem.clone().try_acquire_many_owned(3).expect("free");
    let two = three.split(2).expect("enough");
    assert!(three.split(2).is_none());
    let mut other = sem.try_acquire().expect("free");
    other.merge(sem.try_acquire().expect("free"));
    let (resource, snapshot) = only(scope);
    assert_eq!((resource.usage.held, snapshot.holds.len()), (5, 3));
    assert_eq!(sem.try_acquire().expect_err("full"), TryAcquireError::NoPermits);

    other.forget();
    sem.add_permits(1);
    assert_eq!(sem.forget_permits(9), 1);
    drop(two);
    three.merge(sem.clone().try_acquire_owned().expect("free"));
    assert_eq!(three.num_permits(), 2);
    let (resource, snapshot) = only(scope);
    assert_eq!((resource.capacity(), resource.forgotten, resource.added), (3, 3, 1));
    assert_eq!((resource.usage.held, snapshot.holds.len(), resource.counters.rejected), (2, 1, 1));
    drop(three);
    assert_eq!(only(scope).0.available, 3);
}

#[test]
fn merging_permits_of_different_semaphores_panics_and_loses_nothing() {
    let (scope, (a, b), _entered) = in_scope(|| (Semaphore::new(1), Semaphore::new(1)));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let mut mine = a.try_acquire().expect("free");
        mine.merge(b.try_acquire().expect("free"));
    }));
    assert!(panic.is_err());
    let snapshot = scope.snapshot();
    assert!(
        snapshot.holds.is_empty()
            && snapshot.resources.iter().all(|r| r.available == 1 && r.settled)
    );
}

#[test]
fn a_static_is_listed_from_its_first_use_and_its_permits_can_be_anywhere() {
    static SEM: Semaphore = Semaphore::const_new(2);
    let scope = Scope::new();
    let _entered = scope.enter();
    assert!(scope.snapshot().resources.is_empty());
    let permit = SEM.try_acquire().expect("free");
    let (resource, snapshot) = only(scope);
    assert!(resource.is_static);
    assert_eq!(snapshot.site(resource.created).map(|site| &*site.file), Some(file!()));
    drop(permit);
    let local = Semaphore::new(1);
    let permit = local.try_acquire().expect("free");
    assert!(scope.snapshot().resources.iter().any(|resource| !resource.is_static));
    drop(permit);
}

#[test]
fn a_borrowed_permit_that_shows_up_elsewhere_is_remembered() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(1));
    let permit = sem.try_acquire().expect("free");
    std::thread::scope(|threads| {
        threads.spawn(move || drop(permit));
    });
    assert!(only(scope).0.is_static);
}

#[test]
fn a_dropped_semaphore_leaves_the_books() {
    let (scope, sem, _entered) = in_scope(|| Arc::new(Semaphore::new(1)));
    let permit = sem.clone().try_acquire_owned().expect("free");
    drop(sem);
    assert_eq!(only(scope).1.holds.len(), 1, "the permit keeps it alive");
    drop(permit);
    until(|| scope.snapshot().resources.is_empty());
}

#[test]
fn blocking_calls_wait_as_threads() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(1));
    let permit = sem.blocking_acquire().expect("open");
    assert_eq!(only(scope).1.holds[0].call, Call::Blocking);
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| {
            let _entered = scope.enter();
            sem.blocking_acquire_many(1).map(drop)
        });
        let wait = loop {
            if let Some(wait) = scope.snapshot().waits.pop() {
                break wait;
            }
            std::thread::yield_now();
        };
        assert_eq!(wait.call, Call::Blocking);
        assert!(matches!(wait.actor, ActorId::Thread(_)));
        drop(permit);
        waiter.join().expect("no panic").expect("open");
    });
    let (resource, snapshot) = only(scope);
    assert_eq!((resource.available, snapshot.waits.len(), resource.counters.waited), (1, 0, 1));
}

#[test]
fn a_blocking_call_that_panics_leaves_no_wait_behind() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let panic = runtime
        .block_on(async { catch_unwind(AssertUnwindSafe(|| sem.blocking_acquire().map(drop))) });
    assert!(panic.is_err(), "tokio forbids it");
    assert!(only(scope).1.waits.is_empty());
}

#[test]
fn a_task_is_the_actor_of_its_acquires() {
    let (scope, sem, _entered) = in_scope(|| Arc::new(Semaphore::new(1)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (id, permit) = runtime.block_on(async {
        let task =
            tokio::spawn(
                async move { (tokio::task::id(), sem.acquire_owned().await.expect("open")) },
            );
        task.await.expect("no panic")
    });
    let hold = &only(scope).1.holds[0];
    assert_eq!(hold.actor, ActorId::Task(id.to_string().parse().expect("a number")));
    assert!(hold.owned && hold.moved_to.is_none());
    assert_eq!(permit.num_permits(), 1);
    let moved = only(scope).1.holds[0].moved_to;
    assert!(matches!(moved, Some(ActorId::Thread(_))), "used outside the task: {moved:?}");
}

#[test]
fn the_cooperative_budget_is_spent_as_tokio_spends_it() {
    async fn until_it_yields(sem: impl AsyncFn()) -> usize {
        let mut served = 0;
        std::future::poll_fn(|cx| {
            loop {
                let mut acquire = std::pin::pin!(sem());
                match acquire.as_mut().poll(cx) {
                    std::task::Poll::Ready(()) => served += 1,
                    std::task::Poll::Pending => return std::task::Poll::Ready(()),
                }
            }
        })
        .await;
        served
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (ours, theirs) = (Semaphore::new(1), tokio::sync::Semaphore::new(1));
    let ours = runtime.block_on(until_it_yields(async || drop(ours.acquire().await)));
    let theirs = runtime.block_on(until_it_yields(async || drop(theirs.acquire().await)));
    assert_eq!(ours, theirs);
}

#[test]
fn debug_looks_like_tokios() {
    let (ours, theirs) = (Semaphore::new(2), tokio::sync::Semaphore::new(2));
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    assert_eq!(format!("{:?}", ours.try_acquire()), format!("{:?}", theirs.try_acquire()));
}

#[test]
fn pages_go_through_all_records_in_order() {
    let (scope, sem, _entered) = in_scope(|| Semaphore::new(3000));
    let permits: Vec<_> = (0..2500).map(|_| sem.try_acquire().expect("free")).collect();
    let resource = only(scope).0.id;
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = registry::holds(resource, after, 700).expect("it is there");
        let Some(last) = page.last() else { break };
        after = Some((last.since, last.id));
        seen.extend(page.iter().map(|hold| hold.id));
    }
    assert_eq!(seen.len(), permits.len());
    assert!(seen.is_sorted());
    let mut waits: Vec<_> = (0..20).map(|_| spawn(sem.acquire_many(3000))).collect();
    for wait in &mut waits {
        assert_pending!(wait.poll());
    }
    let pages: Vec<_> =
        (0..4).map(|n| registry::waits(resource, n * 7, 7).expect("it is there")).collect();
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 6, 0]);
    drop((waits, permits));
    drop(sem);
    until(|| registry::holds(resource, None, 10).is_none());
}

#[test]
fn what_comes_and_goes_has_its_line_and_who_gives_up_again_and_again_is_known() {
    let (scope, semaphore, _entered) = in_scope(|| Semaphore::new(2));
    let mut lines = Vec::new();
    for _ in 0..2 {
        semaphore.add_permits(3);
    }
    lines.push(line!() - 2);
    semaphore.try_acquire_many(2).expect("free").forget();
    lines.push(line!() - 1);
    semaphore.forget_permits(1);
    lines.push(line!() - 1);
    // Nothing came or went.
    semaphore.add_permits(0);
    let all = semaphore.try_acquire_many(5).expect("free");
    for _ in 0..3 {
        let mut wait = spawn(semaphore.acquire());
        assert_pending!(wait.poll());
    }
    lines.push(line!() - 3);
    let (resource, snapshot) = only(scope);
    let line = |site| snapshot.site(site).expect("known").line;
    let flows: Vec<_> =
        resource.history.flows.iter().map(|f| (line(f.site), f.calls, f.units)).collect();
    assert_eq!(flows, [(lines[0], 2, 6), (lines[1], 1, 2), (lines[2], 1, 1)]);
    // Whether it is one streak depends on where the test's wakers happen to lie.
    let streaks = &resource.history.streaks;
    assert_eq!(streaks.iter().map(|s| s.count).sum::<u64>(), 3, "{streaks:?}");
    assert!(streaks.iter().all(|s| line(s.site) == lines[3]), "{streaks:?}");
    for stack in resource.history.flows.iter().map(|f| f.stack) {
        assert!(snapshot.stack(stack).is_some(), "{stack:?} is in the snapshot");
    }

    // Closed while it waits: that is no giving up.
    let before = streaks.len();
    let mut wait = spawn(semaphore.acquire());
    assert_pending!(wait.poll());
    semaphore.close();
    assert_ready_err!(wait.poll());
    assert_eq!(only(scope).0.history.streaks.len(), before);
    drop(all);
}
