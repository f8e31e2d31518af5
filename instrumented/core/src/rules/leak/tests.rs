//! What is lost, and what only looks so.

use crate::scenario::check;

/// Two handlers that wait for silent peers, and a third that waits for them.
const SILENT: &str = "
    semaphore limit 2
    task 1
      hold limit: serve@10
    task 2
      hold limit: serve@10
    after 1s
    task 3
      wait limit: run@20
    alive 3
";

#[test]
fn a_hold_that_others_wait_for_is_overdue_in_the_end() {
    check(&format!("{SILENT} after 58s\n find nothing"));
    check(&format!(
        "{SILENT} after 70s
        find leak: task 1, task 2; limit
        says `app::serve` took 2 permits of `limit` and has not released them for 71 s, while `app::run` waits for them [suspected]
        says tasks 1 and 2 took both permits of `limit` here, the first 71 s ago
        says task 3 has been waiting here for a permit for 70 s
        says nothing that was taken at src/app.rs:10:9 has come back so far
        says nothing has moved on it for 71 s
        says help: release before waiting for anything slow, or put a timeout around what it is held for
        ",
    ));
}

#[test]
fn what_moves_is_not_overdue() {
    check(
        "
        semaphore limit 2 moving
        task 1
          hold limit: serve@10
        task 2
          hold limit: serve@10
        task 3
          wait limit: run@20
        after 70s
        find nothing
        ",
    );
}

#[test]
fn a_hold_is_expected_back_as_long_as_those_before_it() {
    let scenario = |usual: &str| {
        format!(
            "
            semaphore limit 1
            task 1
              hold limit back 312 usual {usual}: serve@10
            task 3
              wait limit: run@20
            after 71s
            "
        )
    };
    check(&format!("{} find nothing", scenario("4s")));
    check(&format!(
        "{}
        find leak: task 1; limit
        says `app::serve` took a permit of `limit` and has not released it for 71 s, while `app::run` waits for it
        says 312 earlier holds from src/app.rs:10:9 came back within 40 ms
        ",
        scenario("40ms")
    ));
}

#[test]
fn nobody_waits_for_a_lease() {
    check(
        "
        semaphore role 1
        task 1
          hold role owned: lead@10
        after 9000s
        alive 0
        find nothing
        ",
    );
    check(
        "
        semaphore pool 1 long_held
        task 1
          hold pool owned: lead@10
        task 2
          wait pool: follow@20
        after 9000s
        find nothing
        ",
    );
}

#[test]
fn what_the_program_says_of_a_resource_stands_above_the_limits() {
    check(
        "
        semaphore rpc 4 max_hold 5s
        task 1
          hold rpc back 9 usual 3s: call@10
        after 6s
        find leak: task 1; rpc
        says `app::call` took a permit of `rpc` and has not released it for 6.20 s [suspected]
        says the program allows 5.00 s for it
        ",
    );
    check(
        "
        semaphore rpc 1 max_hold 100s
        task 1
          hold rpc: call@10
        task 2
          wait rpc: call@10
        after 80s
        find nothing
        ",
    );
}

#[test]
fn locks_are_spoken_of_as_locks() {
    check(
        "
        mutex config
        task 1
          hold config: reload@10
        task 2
          wait config: read@20
        task 3
          wait config: read@20
        after 70s
        find leak: task 1; config
        says `app::reload` took the lock of `config` and has not released it for 70 s, while others wait for it
        says task 1 took the lock of `config` here
        says behind it: task 3 waits too, for 70 s
        says help: release the lock before waiting for anything else, or put a timeout around that wait
        ",
    );
}

#[test]
fn it_begins_where_the_last_holder_does_not_wait() {
    // Task 2 waits for the permit of task 1, and others for its lock.
    check(
        "
        semaphore db 1
        mutex cache
        task 1
          hold db: query@10
        task 2
          hold cache: fill@20
          wait db: fill@21
        task 3
          wait cache: read@30
        after 70s
        find leak: task 1; db
        ",
    );
    // Who holds it waits for something else, which is no fault of anybody's here.
    check(
        "
        semaphore db 1
        semaphore signal 0
        task 1
          hold db: query@10
          wait signal: query@11
        task 2
          wait db: query@10
        after 70s
        find leak: task 1; db
        says task 1, which took some of it, waits itself
        ",
    );
}

#[test]
fn what_another_rule_has_told_is_not_told_again() {
    check(
        "
        semaphore a 1
        mutex b
        task 1
          hold b: f@10
          hold a: f@11
          wait a: f@12
        task 2
          wait b: g@20
        after 70s
        find deadlock: task 1; a
        ",
    );
}

#[test]
fn a_wait_for_more_than_there_is_left_is_not_the_holders_fault() {
    check(
        "
        semaphore a 4
        task 9
          withdraw a x2: resize@1
        task 1
          hold a: f@10
        task 2
          wait a x3: g@20
        after 70s
        find nothing
        ",
    );
}

#[test]
fn what_was_forgotten_is_missing_beside_what_is_held() {
    check(
        "
        semaphore a 2
        task 1
          forget a: f@10
        task 2
          hold a: g@20
        task 3
          wait a: h@30
        after 70s
        alive 3
        find leak: task 2; a
        says 1 permit was forgotten here by task 1
        ",
    );
}

const ORPHANS: &str = "
    semaphore slots 8
    task 1
      hold slots owned: half@10
    task 2
      hold slots owned: half@10
";

#[test]
fn holds_that_outlive_their_tasks_one_after_the_other() {
    check(&format!(
        "{ORPHANS} after 31s\n alive 0
        find leak: task 1, task 2; slots
        says `app::half` took 2 permits of `slots` that outlived the tasks they were taken by [suspected]
        says tasks 1 and 2 took 2 of the 8 permits of `slots` here, the first 31 s ago
        says 2 tasks took something there, and nothing has ever come back
        says no task is alive that could give it back
        says help: look for what keeps them
        ",
    ));
    check(&format!(
        "{ORPHANS} task 3\n wait slots x7: run@20\n after 31s\n alive 1
        find leak: task 1, task 2; slots
        says every task that is alive waits for it, so none of them has any of it
        says task 3 has been waiting here for 7 permits
        ",
    ));
}

#[test]
fn nothing_is_orphaned_while_somebody_could_have_it() {
    for rest in [
        // Too young; a task that could have them; not known how many tasks.
        "after 29s\n alive 0",
        "after 40s\n alive 1",
        "after 40s",
        // Somebody who waits for something else may have them.
        "mutex m\n task 3\n wait m\n after 40s\n alive 1",
        // It has only begun to wait.
        "after 40s\n task 3\n wait slots x7\n alive 1",
    ] {
        check(&format!("{ORPHANS} {rest}\n find nothing"));
    }
    for holds in [
        // One task, which may have wanted several for good.
        "task 1\n hold slots owned: f@1\n hold slots owned: f@1",
        // Two lines, each once.
        "task 1\n hold slots owned: f@1\n task 2\n hold slots owned: f@2",
        // Others from there came back, or were seen with somebody else.
        "task 1\n hold slots owned back 1: f@1\n task 2\n hold slots owned: f@1",
        "task 1\n hold slots owned moved 7: f@1\n task 2\n hold slots owned: f@1",
        // Not by tasks; without names, or on a `LocalSet`, nobody counts.
        "root 1\n hold slots owned: f@1\n root 2\n hold slots owned: f@1",
        "task 1\n hold slots owned: ?\n task 2\n hold slots owned: ?",
        "task 1\n hold slots owned: \"tokio::task::local::LocalSet::tick\"@src/l.rs:3 > f@1
         task 2\n hold slots owned: \"tokio::task::local::LocalSet::tick\"@src/l.rs:3 > f@1",
    ] {
        check(&format!("semaphore slots 8\n {holds}\n after 40s\n alive 0\n find nothing"));
    }
    check(&format!(
        "{}\n after 40s\n alive 0\n find nothing",
        ORPHANS.replace("slots 8", "slots 8 long_held")
    ));
}

#[test]
fn forgotten_credits_that_somebody_waits_for() {
    let scenario = "
        semaphore queue 2
        task 1
          forget queue calls 2: submit@12
          wait queue: submit@10
    ";
    check(&format!("{scenario} after 4s\n alive 1\n find nothing"));
    check(&format!(
        "{scenario} after 6s\n alive 1
        find leak: task 1; queue
        says `app::submit` forgets permits of `queue`, and nothing adds them back [suspected]
        says 2 permits were forgotten here by task 1, the last one 6.30 s ago
        says task 1 has been waiting here for a permit for 6.20 s
        says it was created with 2 permits; 2 are missing
        says no task is left that could add them back
        says help: keep the permit, so that dropping it gives it back on every path, or add permits in a `Drop`
        ",
    ));
    // Somebody is there who may add them back, for a while.
    check(&format!("{scenario} after 58s\n alive 2\n find nothing"));
    check(&format!("{scenario} after 61s\n alive 2\n find leak: task 1; queue"));
}

#[test]
fn credits_that_are_added_back_are_a_protocol() {
    for rest in [
        // Each came back; a hold can serve it.
        "task 1\n forget a calls 5: f@1\n add a calls 5: f@2\n wait a x3: g@9",
        "task 1\n hold a: h@3\n task 2\n forget a: f@1\n task 3\n wait a: g@9",
        // A signal has none to begin with.
        "semaphore s 0\n task 1\n add s calls 3: f@1\n forget s calls 4: f@2\n task 2\n wait s: f@3",
        // Made smaller on purpose.
        "task 1\n withdraw a x2: f@1\n task 2\n wait a: g@9",
    ] {
        check(&format!("semaphore a 2\n {rest}\n after 40s\n alive 1\n find nothing"));
    }
    check(
        "semaphore a 2 grows\n task 1\n forget a calls 2: f@1\n wait a: f@2\n after 90s\n find nothing",
    );
}

#[test]
fn a_server_keeps_a_forgotten_permit_as_long_as_a_connection() {
    let server = "
        semaphore connections 2
        task 2
          forget connections calls 5 several: accept@10
        task 3
          add connections calls 3 several: drop@20
        task 1
          wait connections: accept@9
        after 9000s
    ";
    check(&format!("{server} alive 3\n find nothing"));
    check(&format!("{server} find nothing"));
    // Two are missing, and one task could have one.
    check(&format!("{server} alive 2\n find leak: task 2; connections"));
}

#[test]
fn forgotten_credits_when_all_is_over() {
    let scenario = "
        semaphore credits 3
        task 1
          forget credits calls 2: call@12
    ";
    check(&format!(
        "{scenario} after 31s\n alive 0
        find leak: task 1; credits
        says `app::call` forgets permits of `credits`, and nothing adds them back [hazard]
        ",
    ));
    check(&format!(
        "{scenario} add credits: call@14\n after 31s\n alive 0
        find leak: task 1; credits
        says `app::call` forgets permits of `credits`, and 1 of 2 were not added back [hazard]
        says 1 permit was added back here by task 1, 31 s ago
        ",
    ));
    check(&format!("{scenario} after 29s\n alive 0\n find nothing"));
    check(&format!("{scenario} after 31s\n alive 1\n find nothing"));
    check(&format!("{scenario} after 31s\n find nothing"));
}

#[test]
fn a_limit_may_be_made_smaller_by_forgetting() {
    for (settings, rest) in [
        // Once; beside permits that come back; where most only try; together with `forget_permits`.
        ("", "task 1\n forget a x3: resize@1"),
        ("released 10", "task 1\n forget a calls 2: resize@1"),
        ("rejected 1", "task 1\n forget a calls 2: ticket@1"),
        ("", "task 1\n forget a calls 2: resize@1\n withdraw a: resize@2"),
        ("long_held", "task 1\n forget a calls 2: resize@1"),
        ("", "root 1\n forget a calls 2: resize@1"),
        ("", "task 2\n hold a: f@1\n task 1\n forget a calls 2: resize@1"),
    ] {
        check(&format!("semaphore a 8 {settings}\n {rest}\n after 40s\n alive 0\n find nothing"));
    }
}
