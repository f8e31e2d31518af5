//! What the watching thread tells of bounded channels, and of which it says nothing.

#![cfg(debug_assertions)]

#[path = "support/told.rs"]
mod support;

use holdup::core::{Code, Verdict};
use holdup::sync::mpsc::{Receiver, Sender, channel};
use holdup::sync::{Mutex, oneshot};
use std::sync::Arc;
use std::time::Duration;
use support::{A_WHILE, lines, listed, listen, next, nothing, runtimes};

/// Nothing moves for much longer than the limit that is set here.
const LONG: Duration = Duration::from_millis(2500);

/// Sooner than a program would want it.
fn impatient() {
    holdup::limits().stall(Duration::from_millis(400)).set();
}

const SEND: u32 = line!() + 4;
async fn produce(state: Arc<Mutex<u8>>, events: Sender<u8>) {
    let mut last = state.lock().await;
    for event in 0..9 {
        events.send(event).await.expect("somebody receives");
        *last = event;
    }
}

const RECEIVE: u32 = line!() + 2;
async fn consume(state: Arc<Mutex<u8>>, mut events: Receiver<u8>) {
    while let Some(event) = events.recv().await {
        *state.lock().await = event;
    }
}

#[test]
fn a_sender_that_holds_what_the_receiver_needs_is_told_with_all_four_lines() {
    impatient();
    let told = listen();
    for runtime in runtimes() {
        let ((events, receiver), id) = listed(|| channel(2));
        let state = Arc::new(Mutex::new(0));
        runtime.spawn(produce(state.clone(), events));
        let consumer = runtime.spawn(consume(state, receiver));
        let running = std::thread::spawn(move || runtime.block_on(consumer).is_err());
        let finding = next(&told, id);
        assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Suspected));
        let mut shown = lines(&finding, file!());
        shown.sort_unstable();
        assert_eq!(shown, [SEND - 2, SEND, RECEIVE, RECEIVE + 1], "{finding:#?}");
        // Nothing ends it: it goes with the process.
        assert!(!running.is_finished());
    }
}

#[test]
fn a_task_that_sends_more_than_fits_to_itself_is_told() {
    impatient();
    let told = listen();
    let [runtime, _] = runtimes();
    let ((sender, mut receiver), id) = listed(|| channel(2));
    let task = runtime.spawn(async move {
        sender.send(0).await.expect("it is open");
        while let Some(n) = receiver.recv().await {
            for _ in 0..3 {
                sender.send(n + 1).await.expect("it is open");
            }
        }
    });
    let running = std::thread::spawn(move || runtime.block_on(task).is_err());
    let finding = next(&told, id);
    assert_eq!((finding.code, finding.verdict), (Code::Deadlock, Verdict::Suspected));
    assert!(finding.title.contains("from which only it receives"), "{finding:#?}");
    assert!(!running.is_finished());
}

#[test]
fn healthy_programs_are_not_told() {
    impatient();
    let told = listen();
    let (ids, known) = std::sync::mpsc::channel();
    let watched = runtimes().map(|runtime| {
        let ids = ids.clone();
        std::thread::spawn(move || {
            // A channel belongs to the task that makes it.
            let make = move || {
                let (halves, id) = listed(|| channel::<u8>(1));
                ids.send(id).expect("the test waits");
                halves
            };
            let [late, slow, shared, beside] = std::array::from_fn(|_| make.clone());
            runtime.block_on(async move {
                // Who makes a channel fills it long before somebody comes to receive.
                let late = tokio::spawn(async move {
                    let (sender, mut receiver) = late();
                    let consumer = tokio::spawn(async move {
                        tokio::time::sleep(LONG).await;
                        while receiver.recv().await.is_some() {}
                    });
                    for n in 0..3 {
                        sender.send(n).await.expect("somebody receives");
                    }
                    drop(sender);
                    consumer.await.expect("no panic");
                });
                // A receiver that is busy.
                let slow = tokio::spawn(async move {
                    let (sender, mut receiver) = slow();
                    let producer = tokio::spawn(async move {
                        for n in 0..4 {
                            sender.send(n).await.expect("somebody receives");
                        }
                    });
                    while receiver.recv().await.is_some() {
                        tokio::time::sleep(LONG / 2).await;
                    }
                    producer.await.expect("no panic");
                });
                // Workers share a receiver. The one that received last waits for the sender; the other one is busy,
                // and receives next.
                let shared = tokio::spawn(async move {
                    let (sender, receiver) = shared();
                    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
                    let state = Arc::new(Mutex::new(0));
                    let worker = |busy: Duration, state: Arc<Mutex<u8>>| {
                        let receiver = receiver.clone();
                        async move {
                            while let Some(job) = { receiver.lock().await.recv().await } {
                                tokio::time::sleep(busy).await;
                                *state.lock().await = job;
                            }
                        }
                    };
                    let busy = tokio::spawn(worker(LONG, Arc::new(Mutex::new(0))));
                    sender.send(0).await.expect("somebody receives");
                    let (begun, begin) = oneshot::channel();
                    let waits = {
                        let state = state.clone();
                        let worker = worker(Duration::ZERO, state);
                        tokio::spawn(async move {
                            begin.await.expect("it is told");
                            worker.await;
                        })
                    };
                    let mut last = state.lock().await;
                    begun.send(()).expect("it waits");
                    for job in 1..5 {
                        sender.send(job).await.expect("somebody receives");
                        *last = job;
                    }
                    drop((last, sender));
                    busy.await.expect("no panic");
                    waits.await.expect("no panic");
                });
                // One branch receives while the other one waits to send.
                let beside = tokio::spawn(async move {
                    let (sender, mut receiver) = beside();
                    let receive = async {
                        for _ in 0..3 {
                            receiver.recv().await.expect("it is sent");
                            tokio::time::sleep(LONG / 2).await;
                        }
                    };
                    let send = async {
                        for n in 0..3 {
                            sender.send(n).await.expect("somebody receives");
                        }
                    };
                    tokio::join!(receive, send);
                });
                for task in [late, slow, shared, beside] {
                    task.await.expect("no panic");
                }
            });
        })
    });
    let mut findings = Vec::new();
    while !watched.iter().all(std::thread::JoinHandle::is_finished) {
        findings.extend(told.recv_timeout(A_WHILE));
    }
    for running in watched {
        running.join().expect("no panic");
    }
    drop(ids);
    let ids: Vec<_> = known.iter().collect();
    assert_eq!(ids.len(), 8);
    findings.retain(|finding| finding.resources.iter().any(|id| ids.contains(id)));
    assert!(findings.is_empty(), "false alarms: {findings:#?}");
    nothing(&told, &ids);
}
