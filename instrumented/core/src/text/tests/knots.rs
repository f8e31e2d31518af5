//! The texts of what waits for itself without being certain, is not polled, or blocks a thread.

use super::{Style, file, report_of};
use insta::assert_snapshot;
use std::sync::Arc;

fn sources(name: &str) -> Option<Arc<str>> {
    let text = match name {
        "src/refresh.rs" => {
            "
async fn refresh(gate: &Semaphore) {
    let _permit = gate.acquire().await.unwrap();
    fetch().await;
}

pub async fn run(gate: &Semaphore) {
    let mut refresh = Box::pin(refresh(gate));
    select! { _ = &mut refresh => {}, _ = sleep(TICK) => {} }
    let _permit = gate.acquire().await.unwrap();
    refresh.await;
}
"
        }
        "src/pool.rs" => {
            "
async fn begin(&self) -> Transaction {
    let slot = self.slots.clone().acquire_owned().await.unwrap();
    Transaction { slot }
}

async fn look_up(&self) -> u32 {
    let _slot = self.slots.acquire().await.unwrap();
"
        }
        "src/events.rs" => {
            "
    while let Some(event) = events.recv().await {
        state.lock().await.apply(event);
    }

    let state = state.lock().await;
    events.send(state.snapshot()).await;

    let _permit = block_on(limit.acquire()).unwrap();
"
        }
        _ => return None,
    };
    Some(file(10, text))
}

fn report(scenario: &str) -> String {
    report_of(scenario, |_| {}, &sources, &Style::default())
}

#[test]
fn the_turn_of_a_future_that_is_not_polled() {
    assert_snapshot!(report(
        "
        runtime current_thread
        semaphore gate 1
        task 17
          wait gate granted: refresh::run@17 > select!0 > box > refresh::refresh@src/refresh.rs:11:24
          wait gate: refresh::run@src/refresh.rs:18:24
        task 18
          wait gate: refresh::run@src/refresh.rs:18:24
        after 3s"
    ));
}

#[test]
fn a_permit_of_a_future_that_is_not_polled() {
    assert_snapshot!(report(
        "
        semaphore gate 1
        task 17
          hold gate: refresh::run@17 > select!0 > box > refresh::refresh@src/refresh.rs:11:24
          wait gate: refresh::run@src/refresh.rs:18:24
        after 6s"
    ));
}

#[test]
fn a_future_that_is_kept_by_nobody_who_polls_it() {
    assert_snapshot!(report(
        "
        runtime current_thread
        semaphore gate 1
        task 17
          wait gate granted: refresh::run@17 > select!0 > box > refresh::refresh@src/refresh.rs:11:24
        task 18
          wait gate: refresh::run@src/refresh.rs:18:24
        task 19
          wait gate: refresh::run@src/refresh.rs:18:24
        after 8s"
    ));
}

#[test]
fn owned_permits_that_never_went_elsewhere() {
    assert_snapshot!(report(
        "
        semaphore slots 1
        task 17
          hold slots owned back 312 usual 40ms: Pool::run@3 > Pool::begin@src/pool.rs:11:35
          wait slots: Pool::run@5 > Pool::look_up@src/pool.rs:16:28
        after 6s"
    ));
}

#[test]
fn owned_permits_where_nobody_else_is_left() {
    assert_snapshot!(report(
        "
        runtime current_thread alive 1
        semaphore slots 1
        task 17
          hold slots owned: Pool::run@3 > Pool::begin@src/pool.rs:11:35
          wait slots: Pool::run@5 > Pool::look_up@src/pool.rs:16:28
        after 12s"
    ));
}

#[test]
fn a_receiver_that_waits_for_a_sender() {
    assert_snapshot!(report(
        "
        channel events 8
        mutex state
        task 2
          hold events x8 unread: events::consume@src/events.rs:10:36
        task 3
          hold state: events::publish@src/events.rs:14:23
          wait events: events::publish@src/events.rs:15:12
        task 2
          wait state: events::consume@src/events.rs:11:15
        after 6s"
    ));
}

#[test]
fn a_receiver_that_sends_to_itself() {
    assert_snapshot!(report(
        "
        channel events 8
        task 2
          hold events x8 unread: events::consume@src/events.rs:10:36
          wait events: events::consume@src/events.rs:15:12
        after 6s"
    ));
}

#[test]
fn a_thread_that_the_holder_needs() {
    assert_snapshot!(report(
        "
        runtime current_thread busy
        semaphore limit 1
        task 2
          hold limit: refresh::refresh@src/refresh.rs:11:24
        task 1
          wait limit: events::callback@src/events.rs:17:34 > block_on
        after 6s"
    ));
}

#[test]
fn a_worker_that_is_blocked() {
    assert_snapshot!(report(
        "
        runtime multi_thread workers 4 busy
        semaphore limit 1
        task 2
          hold limit on 2: refresh::refresh@src/refresh.rs:11:24
        task 1
          wait limit: events::callback@src/events.rs:17:34 > block_on
        after 6s"
    ));
}
