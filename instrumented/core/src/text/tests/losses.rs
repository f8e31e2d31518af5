//! The texts of what is lost, passed over, or given back twice.

use super::{Style, file, report_of};
use insta::assert_snapshot;
use std::sync::Arc;

fn sources(name: &str) -> Option<Arc<str>> {
    let text = match name {
        "src/session.rs" => {
            "
async fn open(slots: Arc<Semaphore>, id: u32) {
    let slot = slots.acquire_owned().await.unwrap();
    table().lock().unwrap().insert(id, Session { slot });
}

pub async fn run(slots: Arc<Semaphore>) {
    let _third = slots.acquire().await.unwrap();
    serve().await
}
"
        }
        "src/rpc.rs" => {
            "
async fn submit(queue: &Semaphore) -> Result<(), Error> {
    let slot = queue.acquire().await?;
    slot.forget();
    issue().await?;
    queue.add_permits(1);
    Ok(())
}
"
        }
        "src/bulk.rs" => {
            "
    let _all = quota.acquire_many(4).await?;
    copy().await
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
fn a_hold_that_is_overdue() {
    assert_snapshot!(report(
        "
        semaphore slots 1
        task 17
          hold slots back 312 usual 40ms: session::open@src/session.rs:11:22
        after 1s
        task 18
          wait slots: session::run@src/session.rs:16:24
        task 19
          wait slots: session::run@src/session.rs:16:24
        after 70s"
    ));
}

#[test]
fn a_hold_that_is_longer_than_the_program_allows() {
    assert_snapshot!(report(
        "
        semaphore slots 4 max_hold 5s
        task 17
          hold slots: session::open@src/session.rs:11:22
        after 7s"
    ));
}

#[test]
fn holds_that_outlived_their_tasks() {
    assert_snapshot!(report(
        "
        semaphore slots 2
        task 3
          hold slots owned: session::open@src/session.rs:11:22
        task 4
          hold slots owned: session::open@src/session.rs:11:22
        task 2
          wait slots: session::run@src/session.rs:16:24
        alive 1
        after 31s"
    ));
}

#[test]
fn permits_that_were_forgotten_and_are_waited_for() {
    assert_snapshot!(report(
        "
        semaphore queue 2
        task 3
          forget queue calls 2: rpc::submit@src/rpc.rs:12:10
          wait queue: rpc::submit@src/rpc.rs:11:22
        alive 1
        after 9s"
    ));
}

#[test]
fn permits_that_were_forgotten_and_never_added_back() {
    assert_snapshot!(report(
        "
        semaphore queue 3
        task 3
          forget queue calls 3 several: rpc::submit@src/rpc.rs:12:10
          add queue: rpc::submit@src/rpc.rs:14:11
        alive 0
        after 900s"
    ));
}

#[test]
fn a_large_request_before_small_ones() {
    assert_snapshot!(report(
        "
        semaphore quota 4
        task 1
          hold quota: session::open@src/session.rs:11:22
        task 2
          wait quota x4: bulk::copy_all@src/bulk.rs:10:22
        task 3
          wait quota: session::run@src/session.rs:16:24
        after 6s"
    ));
}

#[test]
fn retries_that_never_win() {
    assert_snapshot!(report(
        "
        semaphore gate 1
        after 60s
        task 3
          gave_up gate times 1000 for 11s others 180: session::run@src/session.rs:16:24
        task 1
          hold gate: session::open@src/session.rs:11:22"
    ));
}

#[test]
fn credits_that_come_back_twice() {
    assert_snapshot!(report(
        "
        semaphore queue 3
        task 1
          forget queue calls 2: rpc::submit@src/rpc.rs:12:10
          add queue calls 3: rpc::submit@src/rpc.rs:14:11
        after 6s"
    ));
}

#[test]
fn permits_that_are_added_and_dropped() {
    assert_snapshot!(report(
        "
        semaphore queue 2 released 2
        task 1
          add queue calls 2 several holding 2 released 2: rpc::submit@src/rpc.rs:14:11
        after 6s"
    ));
}

#[test]
fn a_permit_that_is_dropped_by_its_statement() {
    assert_snapshot!(report(
        "
        semaphore slots 4
        task 1
          dropped slots times 64: session::run@src/session.rs:16:24
        task 2
          hold slots: session::open@src/session.rs:11:22
        after 1s"
    ));
}
