//! Random sequences of calls: the instrumented channel answers as tokio's, and after every step its books balance
//! and have as much room and as many unread messages as tokio has.

use super::Receiver;
use crate::Scope;
use holdup_core::Snapshot;
use holdup_core::balance::balance;
use holdup_core::snapshot::{Call, Resource};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Send,
    TrySend,
    Reserve,
    ReserveMany(usize),
    ReserveOwned,
    TryReserve,
    TryReserveMany(usize),
    TryReserveOwned,
    /// Polls one that waits again.
    Poll(usize),
    Cancel(usize),
    /// Sends with a permit.
    Use(usize),
    Release(usize),
    /// Takes one permit out of an iterator.
    Next(usize),
    Recv,
    RecvMany(usize),
    TryRecv,
    Close,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0usize..4;
    prop_oneof![
        8 => Just(Step::Send),
        4 => Just(Step::TrySend),
        3 => Just(Step::Reserve),
        4 => (0usize..5).prop_map(Step::ReserveMany),
        3 => Just(Step::ReserveOwned),
        1 => Just(Step::TryReserve),
        1 => (0usize..5).prop_map(Step::TryReserveMany),
        1 => Just(Step::TryReserveOwned),
        6 => which().prop_map(Step::Poll),
        2 => which().prop_map(Step::Cancel),
        3 => which().prop_map(Step::Use),
        3 => which().prop_map(Step::Release),
        3 => which().prop_map(Step::Next),
        8 => Just(Step::Recv),
        3 => (0usize..4).prop_map(Step::RecvMany),
        3 => Just(Step::TryRecv),
        1 => Just(Step::Close),
        1 => Just(Step::DropReceiver),
    ]
}

/// One channel with the permits and waits that the steps work on. Twice the same code, for two modules.
macro_rules! machine {
    ($name:ident, $($module:ident)::+) => {
        mod $name {
            use super::Step;
            use std::pin::Pin;
            use std::task::Poll;
            use tokio_test::task::{Spawn, spawn};
            use $($module)::+ as mpsc;

            pub(super) enum Got {
                Sent,
                One(mpsc::Permit<'static, u32>),
                Many(mpsc::PermitIterator<'static, u32>),
                Owned(mpsc::OwnedPermit<u32>),
            }

            type Wait = Pin<Box<dyn Future<Output = Result<Got, String>>>>;

            pub(super) struct Machine {
                pub(super) sender: &'static mpsc::Sender<u32>,
                pub(super) receiver: Option<mpsc::Receiver<u32>>,
                permits: Vec<Got>,
                pub(super) waits: Vec<Spawn<Wait>>,
                message: u32,
            }

            impl Machine {
                pub(super) fn new(capacity: usize) -> Self {
                    let (sender, receiver) = mpsc::channel(capacity);
                    // A permit borrows from it, so it has to be there for as long as the machine is.
                    let sender = Box::leak(Box::new(sender));
                    let (permits, waits) = (Vec::new(), Vec::new());
                    Machine { sender, receiver: Some(receiver), permits, waits, message: 0 }
                }

                /// Takes a step, and tells all that can be seen from outside.
                pub(super) fn step(&mut self, step: &Step) -> String {
                    let answer = self.answer(step);
                    let woken: Vec<_> = self.waits.iter().map(|wait| wait.is_woken()).collect();
                    let tx = self.sender;
                    let room = (tx.capacity(), tx.max_capacity(), tx.is_closed());
                    let unread = self.receiver.as_ref().map(|rx| (rx.len(), rx.is_empty()));
                    let counts = (tx.strong_count(), tx.weak_count());
                    format!("{answer} {woken:?} {room:?} {unread:?} {counts:?}")
                }

                fn answer(&mut self, step: &Step) -> String {
                    let at = |at: usize, len: usize| (len > 0).then(|| at % len);
                    let tx = self.sender;
                    self.message += 1;
                    let message = self.message;
                    match *step {
                        Step::Send => self.wait(async move {
                            let sent = tx.send(message).await;
                            sent.map(|()| Got::Sent).map_err(|error| error.to_string())
                        }),
                        Step::Reserve => self.wait(async {
                            tx.reserve().await.map(Got::One).map_err(|error| error.to_string())
                        }),
                        Step::ReserveMany(n) => self.wait(async move {
                            let permits = tx.reserve_many(n).await;
                            permits.map(Got::Many).map_err(|error| error.to_string())
                        }),
                        Step::ReserveOwned => self.wait(async {
                            let permit = tx.clone().reserve_owned().await;
                            permit.map(Got::Owned).map_err(|error| error.to_string())
                        }),
                        Step::TrySend => format!("{:?}", tx.try_send(message)),
                        Step::TryReserve => self.got(tx.try_reserve().map(Got::One)),
                        Step::TryReserveMany(n) => self.got(tx.try_reserve_many(n).map(Got::Many)),
                        Step::TryReserveOwned => {
                            let permit = tx.clone().try_reserve_owned();
                            self.got(permit.map(Got::Owned).map_err(|error| error.to_string()))
                        }
                        Step::Poll(n) => {
                            at(n, self.waits.len()).map(|at| self.poll(at)).unwrap_or_default()
                        }
                        Step::Cancel(n) => {
                            at(n, self.waits.len()).map(|at| drop(self.waits.remove(at)));
                            String::new()
                        }
                        Step::Use(n) => {
                            match at(n, self.permits.len()).map(|at| self.permits.remove(at)) {
                                Some(Got::One(permit)) => permit.send(message),
                                Some(Got::Owned(permit)) => drop(permit.send(message)),
                                Some(Got::Many(permits)) => {
                                    permits.for_each(|permit| permit.send(message));
                                }
                                Some(Got::Sent) | None => {}
                            }
                            String::new()
                        }
                        Step::Release(n) => {
                            match at(n, self.permits.len()).map(|at| self.permits.remove(at)) {
                                Some(Got::Owned(permit)) => drop(permit.release()),
                                other => drop(other),
                            }
                            String::new()
                        }
                        Step::Next(n) => {
                            let at = at(n, self.permits.len());
                            let one = match at.map(|at| &mut self.permits[at]) {
                                Some(Got::Many(permits)) => permits.next(),
                                _ => None,
                            };
                            self.permits.extend(one.map(Got::One));
                            String::new()
                        }
                        Step::Recv => {
                            self.receive(|rx| format!("{:?}", spawn(rx.recv()).poll()))
                        }
                        Step::RecvMany(limit) => self.receive(|rx| {
                            let mut buffer = Vec::new();
                            let n = spawn(rx.recv_many(&mut buffer, limit)).poll();
                            format!("{n:?} {buffer:?}")
                        }),
                        Step::TryRecv => self.receive(|rx| format!("{:?}", rx.try_recv())),
                        Step::Close => self.receive(|rx| {
                            rx.close();
                            String::new()
                        }),
                        Step::DropReceiver => {
                            self.receiver = None;
                            String::new()
                        }
                    }
                }

                fn receive(&mut self, f: impl FnOnce(&mut mpsc::Receiver<u32>) -> String) -> String {
                    self.receiver.as_mut().map(f).unwrap_or_default()
                }

                fn wait(
                    &mut self,
                    wait: impl Future<Output = Result<Got, String>> + 'static,
                ) -> String {
                    self.waits.push(spawn(Box::pin(wait)));
                    self.poll(self.waits.len() - 1)
                }

                fn poll(&mut self, at: usize) -> String {
                    match self.waits[at].poll() {
                        Poll::Pending => "waits".to_owned(),
                        Poll::Ready(result) => {
                            drop(self.waits.remove(at));
                            self.got(result)
                        }
                    }
                }

                fn got<E: std::fmt::Display>(&mut self, result: Result<Got, E>) -> String {
                    match result {
                        Ok(got) => {
                            self.permits.push(got);
                            "ok".to_owned()
                        }
                        Err(error) => error.to_string(),
                    }
                }

                /// The units of the permits that reserve some, smallest first.
                pub(super) fn reserved(&self) -> Vec<u64> {
                    let units = |got: &Got| match got {
                        Got::Sent => 0,
                        Got::One(_) | Got::Owned(_) => 1,
                        Got::Many(permits) => permits.len() as u64,
                    };
                    let mut reserved: Vec<u64> =
                        self.permits.iter().map(units).filter(|units| *units > 0).collect();
                    reserved.sort_unstable();
                    reserved
                }
            }
        }
    };
}

machine!(ours, crate::sync::mpsc);
machine!(theirs, tokio::sync::mpsc);

/// Checks a resource against the records of it.
fn adds_up(snapshot: &Snapshot, resource: &Resource) {
    assert!(resource.settled, "{resource:?}");
    let held = snapshot.holds.iter().map(|hold| hold.units).sum();
    let balance = balance(resource, held, snapshot.waits.iter().map(|wait| wait.units));
    assert!(balance.is_ok(), "{balance:?} {snapshot:#?}");
}

proptest! {
    #[test]
    fn answers_as_tokio_and_balances_after_every_step(
        capacity in 1usize..4,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let scope = Scope::new();
        let _entered = scope.enter();
        let (mut ours, mut theirs) = (ours::Machine::new(capacity), theirs::Machine::new(capacity));
        for step in &steps {
            prop_assert_eq!(ours.step(step), theirs.step(step), "{:?}", step);
            let snapshot = scope.snapshot();
            let resource = &snapshot.resources[0];
            adds_up(&snapshot, resource);
            prop_assert_eq!(ours.waits.len(), snapshot.waits.len());
            prop_assert_eq!(resource.closed, ours.sender.is_closed());
            let (unread, reserved): (Vec<_>, Vec<_>) =
                snapshot.holds.iter().partition(|hold| hold.call == Call::Receive);
            let expected = ours.receiver.as_ref().map_or(0, Receiver::len) as u64;
            prop_assert_eq!(unread.iter().map(|hold| hold.units).sum::<u64>(), expected);
            prop_assert!(unread.len() < 2);
            let mut reserved: Vec<_> =
                reserved.iter().map(|hold| hold.units).filter(|units| *units > 0).collect();
            reserved.sort_unstable();
            prop_assert_eq!(&reserved, &ours.reserved());
            prop_assert_eq!(reserved, theirs.reserved());
            if !resource.closed {
                prop_assert_eq!(resource.available, ours.sender.capacity() as u64);
            }
        }
    }
}
