//! How the channel keeps its books, polled by hand, and that neither messages nor wakers are handled under its lock.

use super::{Receiver, Sender, channel, error::SendTimeoutError};
use crate::{Entered, ResourceExt, Scope};
use holdup_core::Snapshot;
use holdup_core::balance::balance;
use holdup_core::snapshot::{ActorId, Call, Hold, Kind, Resource};
use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok};

fn in_scope<T>(capacity: usize) -> (Scope, (Sender<T>, Receiver<T>), Entered) {
    let scope = Scope::new();
    let entered = scope.enter();
    (scope, channel(capacity), entered)
}

/// What the books say of the only resource of a scope. They balance at every step.
fn books(scope: Scope) -> (Resource, Snapshot) {
    let snapshot = scope.snapshot();
    let [resource] = &snapshot.resources[..] else {
        panic!("one resource, not {:?}", snapshot.resources)
    };
    adds_up(resource, &snapshot);
    (resource.clone(), snapshot)
}

fn adds_up(resource: &Resource, snapshot: &Snapshot) {
    let holds = snapshot.holds.iter().filter(|hold| hold.resource == resource.id);
    let waits = snapshot.waits.iter().filter(|wait| wait.resource == resource.id);
    let balance = balance(resource, holds.map(|hold| hold.units).sum(), waits.map(|w| w.units));
    assert!(resource.settled && balance.is_ok(), "{balance:?} {snapshot:#?}");
}

/// Whether it was received, how many units, and in which line it was asked for.
fn holds(scope: Scope) -> Vec<(Call, u64, u32)> {
    let (_, snapshot) = books(scope);
    let told = |hold: &Hold| {
        let site = snapshot.site(hold.site).expect("known");
        assert_eq!(&*site.file, file!());
        (hold.call, hold.units, site.line)
    };
    snapshot.holds.iter().map(told).collect()
}

#[test]
fn a_permit_becomes_a_message_that_is_unread_and_then_room_again() {
    let created = line!() + 1;
    let (scope, (sender, mut receiver), _entered) = in_scope(2);
    let sender = sender.named("jobs");
    let reserved = line!() + 1;
    let mut reserve = spawn(sender.reserve());
    assert!(holds(scope).is_empty(), "nothing happens until it is polled");
    let permit = assert_ready_ok!(reserve.poll());
    assert_eq!(holds(scope), [(Call::Acquire, 1, reserved)]);
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.name.as_deref(), resource.kind), (Some("jobs"), Kind::Channel));
    assert_eq!((resource.capacity(), resource.available), (2, 1));
    assert!(!snapshot.holds[0].owned && matches!(snapshot.holds[0].actor, ActorId::Root(_)));
    assert!(snapshot.stack(snapshot.holds[0].stack).is_some_and(|it| it.addresses.len() > 5));

    permit.send('a');
    let (_, snapshot) = books(scope);
    let [unread] = &snapshot.holds[..] else { panic!("one hold") };
    assert_eq!((unread.call, unread.units, unread.owned), (Call::Receive, 1, true));
    assert_eq!(unread.site, resource.created, "nobody has received: it is who made the channel");
    assert!(created < reserved, "in this file");

    sender.try_send('b').expect("there is room");
    assert_eq!(books(scope).0.available, 0);
    let received = line!() + 1;
    assert_eq!(assert_ready!(spawn(receiver.recv()).poll()), Some('a'));
    assert_eq!(holds(scope), [(Call::Receive, 1, received)]);
    assert_eq!(receiver.try_recv(), Ok('b'));
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.available, snapshot.holds.len()), (2, 0));
    let counters = resource.counters;
    assert_eq!((counters.acquired, counters.released, counters.waited), (2, 2, 0));
}

#[test]
fn senders_wait_in_queue_order_and_are_served_by_who_receives() {
    let (scope, (sender, mut receiver), _entered) = in_scope(1);
    sender.try_send(0).expect("there is room");
    let mut first = spawn(sender.send(1));
    let (second_line, mut second) = (line!(), spawn(sender.reserve()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    assert_eq!(sender.try_send(9).map_err(super::error::TrySendError::into_inner), Err(9));
    let (resource, snapshot) = books(scope);
    let lines: Vec<_> =
        snapshot.waits.iter().map(|w| snapshot.site(w.site).expect("known").line).collect();
    assert_eq!(lines, [second_line - 1, second_line]);
    assert_eq!((resource.usage.waiting, resource.counters.rejected), (2, 1));

    // Its room is set aside for the first, which has not been polled since.
    assert_eq!(assert_ready!(spawn(receiver.recv()).poll()), Some(0));
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.granted(), resource.available), (1, 0));
    assert!(snapshot.waits[0].granted_since.is_some());
    assert!(snapshot.waits[1].granted_since.is_none());
    drop(first);
    assert!(second.is_woken(), "it is next");
    let permit = assert_ready_ok!(second.poll());
    let (resource, snapshot) = books(scope);
    assert_eq!((snapshot.waits.len(), resource.usage.held, resource.granted()), (0, 1, 0));
    assert_eq!((resource.counters.cancelled, resource.counters.waited), (1, 1));
    drop(permit);
    assert_eq!((books(scope).0.available, sender.capacity()), (1, 1));
}

#[test]
fn many_permits_are_one_hold_until_they_are_taken_out() {
    let (scope, (sender, mut receiver), _entered) = in_scope(3);
    let mut reserve = spawn(sender.reserve_many(3));
    let mut permits = assert_ready_ok!(reserve.poll());
    let units = || books(scope).1.holds.iter().map(|hold| hold.units).collect::<Vec<_>>();
    assert_eq!(units(), [3]);
    let first = permits.next().expect("three");
    assert_eq!((units(), permits.len()), (vec![2, 1], 2));
    first.send(1);
    permits.next().expect("two").send(2);
    assert_eq!(units(), [1, 2], "one that is left, and two messages");
    let last = permits.next().expect("one");
    assert!(permits.next().is_none());
    drop(permits);
    assert_eq!(units(), [1, 2]);
    drop(last);
    let mut both = Vec::new();
    assert_eq!(assert_ready!(spawn(receiver.recv_many(&mut both, 9)).poll()), 2);
    assert_eq!((units(), books(scope).0.available), (vec![], 3));
    assert!(assert_ready_err!(spawn(sender.reserve_many(4)).poll()) == super::error::SendError(()));
}

#[test]
fn an_owned_permit_keeps_the_books_and_gives_the_sender_back() {
    let (scope, (sender, receiver), _entered) = in_scope(1);
    let permit = assert_ready_ok!(spawn(sender.reserve_owned()).poll());
    assert!(books(scope).1.holds[0].owned);
    let sender = permit.send('a');
    let sender = match sender.try_reserve_owned() {
        Err(super::error::TrySendError::Full(sender)) => sender,
        other => panic!("it is full, not {other:?}"),
    };
    let mut waiting = spawn(sender.clone().reserve_owned());
    assert_pending!(waiting.poll());
    assert!(books(scope).1.waits[0].owned);
    drop(waiting);
    assert_eq!(books(scope).1.waits.len(), 0);
    drop(receiver);
    let error = sender.try_reserve_owned().err();
    assert!(matches!(error, Some(super::error::TrySendError::Closed(_))));

    let (scope, (sender, _receiver), _entered) = in_scope::<u8>(1);
    let permit = sender.try_reserve_owned().expect("there is room");
    assert_eq!(holds(scope).len(), 1);
    let sender = permit.release();
    assert_eq!((holds(scope).len(), sender.capacity()), (0, 1));
}

#[test]
fn unread_messages_are_whose_who_received_last() {
    let (scope, (sender, mut receiver), _entered) = in_scope(4);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (task, receiver) = runtime.block_on(async {
        for n in 0..4 {
            sender.send(n).await.expect("there is room");
        }
        let task = tokio::spawn(async move {
            receiver.recv().await;
            (tokio::task::id().to_string(), receiver)
        });
        task.await.expect("runs")
    });
    let (_, snapshot) = books(scope);
    let [unread] = &snapshot.holds[..] else { panic!("one hold") };
    assert_eq!(unread.actor, ActorId::Task(task.parse().expect("a number")));
    assert_eq!(unread.units, 3);

    // Whoever asks in vain is who will receive what comes.
    let mut receiver = receiver;
    for _ in 0..3 {
        receiver.blocking_recv();
    }
    let mut task = spawn(());
    let line = line!() + 1;
    assert_pending!(task.enter(|cx, _| receiver.poll_recv(cx)));
    sender.try_send(4).expect("there is room");
    assert!(task.is_woken());
    assert_eq!(holds(scope), [(Call::Receive, 1, line)]);
}

#[test]
fn closing_ends_waits_and_what_is_left_can_be_received() {
    let (scope, (sender, mut receiver), _entered) = in_scope(1);
    sender.try_send(1).expect("there is room");
    let mut waiting = spawn(sender.send(2));
    assert_pending!(waiting.poll());
    receiver.close();
    assert!(books(scope).0.closed);
    assert_eq!(assert_ready_err!(waiting.poll()).0, 2);
    drop(waiting);
    let (_, snapshot) = books(scope);
    assert_eq!((snapshot.waits.len(), snapshot.holds.len()), (0, 1));
    assert_eq!(assert_ready!(spawn(receiver.recv()).poll()), Some(1));
    assert_eq!(assert_ready!(spawn(receiver.recv()).poll()), None);
    assert!(books(scope).1.holds.is_empty());
}

#[test]
fn a_channel_leaves_the_books_with_its_two_halves() {
    let (scope, (sender, receiver), _entered) = in_scope(2);
    sender.try_send(1).expect("there is room");
    let weak = sender.downgrade();
    drop(receiver);
    let (resource, snapshot) = books(scope);
    assert!(resource.closed && snapshot.holds.is_empty());
    drop(weak.upgrade().expect("there is a sender"));
    drop(sender);
    // Whoever looks at a resource keeps it for that moment.
    while !scope.snapshot().resources.is_empty() {
        std::thread::yield_now();
    }
    assert!(weak.clone().upgrade().is_none());
}

#[test]
fn blocking_calls_wait_as_threads() {
    let (scope, (sender, mut receiver), _entered) = in_scope(1);
    sender.blocking_send(1).expect("there is room");
    assert_eq!(books(scope).0.counters.waited, 0);
    std::thread::scope(|threads| {
        let waiter = threads.spawn(|| {
            let _entered = scope.enter();
            sender.blocking_send(2)
        });
        let wait = loop {
            if let Some(wait) = scope.snapshot().waits.pop() {
                break wait;
            }
            std::thread::yield_now();
        };
        assert_eq!(wait.call, Call::Blocking);
        assert!(matches!(wait.actor, ActorId::Thread(_)));
        assert_eq!(receiver.blocking_recv(), Some(1));
        waiter.join().expect("no panic").expect("somebody receives");
    });
    let mut all = Vec::new();
    assert_eq!(receiver.blocking_recv_many(&mut all, 8), 1);
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.available, resource.counters.waited, snapshot.waits.len()), (1, 1, 0));
}

#[test]
fn a_blocking_call_that_panics_leaves_no_wait_behind() {
    let (scope, (sender, _receiver), _entered) = in_scope(1);
    sender.try_send(1).expect("there is room");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let panic =
        runtime.block_on(async { catch_unwind(AssertUnwindSafe(|| sender.blocking_send(2))) });
    assert!(panic.is_err(), "tokio forbids it");
    assert!(books(scope).1.waits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_send_that_gives_up_returns_its_message() {
    let (scope, (sender, mut receiver), _entered) = in_scope(1);
    sender.send_timeout(1, Duration::from_secs(1)).await.expect("there is room");
    let late = sender.send_timeout(2, Duration::from_secs(1)).await;
    assert_eq!(late, Err(SendTimeoutError::Timeout(2)));
    let (resource, snapshot) = books(scope);
    assert_eq!((resource.counters.cancelled, snapshot.waits.len()), (1, 0));
    let (sent, received) =
        tokio::join!(sender.send_timeout(3, Duration::from_secs(1)), receiver.recv());
    assert_eq!((sent, received), (Ok(()), Some(1)));
    assert_eq!(books(scope).0.counters.waited, 1);
}

#[test]
fn the_cooperative_budget_is_spent_as_tokio_spends_it() {
    async fn until_it_yields(call: impl AsyncFn()) -> usize {
        let mut served = 0;
        poll_fn(|cx| {
            loop {
                match pin!(call()).poll(cx) {
                    Poll::Ready(()) => served += 1,
                    Poll::Pending => return Poll::Ready(()),
                }
            }
        })
        .await;
        served
    }
    macro_rules! counts {
        ($channel:path) => {{
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let (sender, mut receiver) = $channel(1000);
            let sent = runtime
                .block_on(until_it_yields(async || sender.send(1).await.expect("there is room")));
            let receiver = RefCell::new(&mut receiver);
            let received = runtime.block_on(until_it_yields(async || {
                let message = poll_fn(|cx| receiver.borrow_mut().poll_recv(cx)).await;
                message.expect("it was sent");
            }));
            (sent, received)
        }};
    }
    assert_eq!(counts!(channel), counts!(tokio::sync::mpsc::channel));
}

/// As text, without addresses.
fn shown(what: impl std::fmt::Debug) -> String {
    let text = format!("{what:?}");
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

#[test]
fn debug_looks_like_tokios() {
    let (ours, theirs) = (channel::<u8>(4), tokio::sync::mpsc::channel::<u8>(4));
    assert_eq!(shown(&ours), shown(&theirs));
    assert_eq!(shown(ours.0.try_reserve()), shown(theirs.0.try_reserve()));
    assert_eq!(shown(ours.0.try_reserve_many(2)), shown(theirs.0.try_reserve_many(2)));
    assert_eq!(shown(ours.0.downgrade()), shown(theirs.0.downgrade()));
    assert_eq!(shown(ours.0.try_reserve_owned()), shown(theirs.0.try_reserve_owned()));
}

#[test]
fn messages_may_borrow_and_stay_on_their_thread() {
    let text = "a b".to_owned();
    let (_, (sender, mut receiver), _entered) = in_scope(2);
    sender.try_send(Rc::new(text.as_str())).expect("there is room");
    assert_eq!(receiver.try_recv().as_deref(), Ok(&"a b"));
}

#[test]
fn a_message_may_look_at_the_books_when_it_is_dropped() {
    struct Looks(Scope, Sender<Looks>, Arc<AtomicUsize>);
    impl Drop for Looks {
        fn drop(&mut self) {
            // Both would wait for ever for a lock that is held meanwhile.
            assert!(!self.0.snapshot().resources.is_empty());
            drop(self.1.try_reserve());
            self.2.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (scope, (sender, mut receiver), _entered) = in_scope(4);
    for _ in 0..3 {
        let message = Looks(scope, sender.clone(), dropped.clone());
        assert!(sender.try_send(message).is_ok());
    }
    drop(receiver.try_recv());
    let message = Looks(scope, sender.clone(), dropped.clone());
    let mut full = spawn(sender.send(message));
    assert!(matches!(full.poll(), Poll::Ready(Ok(()))));
    drop(receiver);
    assert_eq!(dropped.load(Ordering::Relaxed), 4);
    let message = Looks(scope, sender.clone(), dropped.clone());
    assert!(sender.try_send(message).is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 5);
}

#[test]
fn a_waker_may_look_at_the_books() {
    struct Looks(Scope, AtomicUsize);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            // It would wait for ever for a lock that is held meanwhile.
            assert_eq!(self.0.snapshot().resources.len(), 1);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (scope, (sender, mut receiver), _entered) = in_scope(1);
    let looks = Arc::new(Looks(scope, AtomicUsize::new(0)));
    let waker = Waker::from(looks.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(receiver.poll_recv(&mut cx).is_pending());
    sender.try_send(1).expect("there is room");
    {
        let mut waiting = pin!(sender.send(2));
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        assert!(receiver.poll_recv(&mut cx).is_ready());
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
        let mut waiting = pin!(sender.send(3));
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        receiver.close();
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
    }
    assert_eq!(looks.1.load(Ordering::Relaxed), 3);
}

#[test]
fn what_is_settled_adds_up_while_threads_are_at_it_and_all_of_it_is_right_when_they_rest() {
    let scope = Scope::new();
    let entered = scope.enter();
    let (senders, receivers): (Vec<_>, Vec<_>) = (1..4).map(channel::<usize>).unzip();
    drop(entered);
    let done = AtomicBool::new(false);
    let (permits, receivers) = std::thread::scope(|threads| {
        let receiving: Vec<_> = receivers
            .into_iter()
            .map(|mut receiver| {
                let done = &done;
                threads.spawn(move || {
                    let _entered = scope.enter();
                    while !done.load(Ordering::Relaxed) {
                        if receiver.try_recv().is_err() {
                            std::thread::yield_now();
                        }
                    }
                    receiver
                })
            })
            .collect();
        let sending: Vec<_> = (0..2)
            .map(|thread| {
                let (senders, done) = (senders.clone(), &done);
                threads.spawn(move || {
                    let _entered = scope.enter();
                    let (mut round, mut waits, mut permits) = (thread, Vec::new(), Vec::new());
                    while !done.load(Ordering::Relaxed) {
                        round += 1;
                        let sender = &senders[round % senders.len()];
                        if round % 3 == 0 {
                            let _ = sender.try_send(round);
                        } else {
                            let sender = sender.clone();
                            waits.push(spawn(Box::pin(sender.reserve_owned())));
                        }
                        waits.retain_mut(|wait| match wait.poll() {
                            Poll::Ready(permit) => {
                                permits.push(permit.expect("somebody receives"));
                                false
                            }
                            Poll::Pending => true,
                        });
                        if waits.len() > 2 {
                            drop(waits.remove(round % 2));
                        }
                        match round % 5 {
                            0 => permits.clear(),
                            _ => permits.drain(..).for_each(|permit| drop(permit.send(round))),
                        }
                    }
                    waits.clear();
                    permits.extend(senders[thread].clone().try_reserve_owned());
                    permits
                })
            })
            .collect();
        let mut settled = 0;
        while settled < 300 {
            let snapshot = scope.snapshot();
            for resource in snapshot.resources.iter().filter(|resource| resource.settled) {
                settled += 1;
                adds_up(resource, &snapshot);
            }
        }
        done.store(true, Ordering::Relaxed);
        let permits: Vec<_> =
            sending.into_iter().flat_map(|it| it.join().expect("no panic")).collect();
        let receivers: Vec<_> =
            receiving.into_iter().map(|it| it.join().expect("no panic")).collect();
        (permits, receivers)
    });
    let snapshot = scope.snapshot();
    assert!(snapshot.waits.is_empty());
    for ((resource, sender), receiver) in snapshot.resources.iter().zip(&senders).zip(&receivers) {
        adds_up(resource, &snapshot);
        assert_eq!(resource.available, sender.capacity() as u64);
        let unread = snapshot.holds.iter().filter(|it| it.resource == resource.id);
        let unread = unread.filter(|hold| hold.call == Call::Receive);
        assert_eq!(unread.map(|hold| hold.units).sum::<u64>(), receiver.len() as u64);
    }
    drop(permits);
}
