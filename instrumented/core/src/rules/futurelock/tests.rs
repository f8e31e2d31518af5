//! Futures that are alive and are not polled, and such that only look so.

use crate::scenario::check;

/// An acquire that was polled by reference, and a wait for the same permit in the handler of another branch.
fn in_the_arm(runtime: &str, more: &str) -> String {
    format!(
        "
        {runtime}
        semaphore gate 1
        task 1
          wait gate granted: run@30 > select!0 > box > first@20
          wait gate: run@35
        {more}
        "
    )
}

#[test]
fn the_turn_of_a_future_that_waits_for_its_own_body() {
    check(&in_the_arm(
        "runtime current_thread",
        "
        after 1s
        find futurelock: task 1; gate
        says `app::run` waits for a permit and no longer polls the future that has it [proven]
        says a permit was set aside for task 1 here, 1.30 s ago, and not picked up
        says and has been waiting here for another one for 1.20 s
        says semaphore `gate`: 1 permit, 0 available, 0 held, 1 set aside for the front of the queue, 2 waiting
        says help: go on polling the future meanwhile (`join!`, or spawn it as a task), or drop it before line 35
        ",
    ));
    // Not yet, and not as long as nobody can tell whether its task has been polled.
    check(&in_the_arm("runtime current_thread", "find nothing"));
    check(&in_the_arm("runtime current_thread busy", "after 20s\n find nothing"));
    check(&in_the_arm("runtime multi_thread busy", "after 20s\n find nothing"));
    check(&in_the_arm("", "only\n after 20s\n find nothing"));
}

#[test]
fn without_a_runtime_that_counts_the_actor_itself_must_have_acted() {
    check(&in_the_arm("", "after 2s\n find nothing"));
    check(&in_the_arm("", "after 9s\n find futurelock: task 1; gate"));
    check(
        "
        runtime multi_thread
        semaphore gate 1
        root 1
          wait gate granted: \"tokio::runtime::park::CachedParkThread::block_on\"@1 > run@30 > first@20
        task 2
          wait gate
        after 20s
        find nothing
        ",
    );
}

#[test]
fn the_other_tasks_that_wait_are_behind_it() {
    check(&in_the_arm(
        "runtime current_thread",
        "
        task 2
          wait gate: other@50
        after 1s
        find futurelock: task 1; gate
        says behind it: task 2 waits too, for 1.20 s
        ",
    ));
}

#[test]
fn a_branch_that_is_polled_beside_it_takes_its_turn() {
    // Its task has been polled, so it has not been woken for this yet, or is not polled for another reason.
    for path in ["run@30 > join!1 > second@25", "run@30 > unordered > second@25"] {
        check(&format!(
            "
            runtime current_thread
            semaphore gate 2
            task 1
              wait gate granted: run@30 > join!0 > first@20
              wait gate: {path}
            find nothing
            "
        ));
    }
}

#[test]
fn only_units_that_somebody_lacks_are_told_of() {
    check(
        "runtime current_thread\n semaphore gate 1\n task 1\n wait gate granted\n after 60s\n find nothing",
    );
    check(
        "
        runtime current_thread
        semaphore gate 1
        semaphore other 1
        task 1
          wait gate granted: run@30 > select!0 > box > first@20
        task 2
          hold other
        task 1
          wait other: run@35
        after 60s
        find leak: task 2; other
        ",
    );
}

#[test]
fn a_future_that_nobody_has_in_hand_starves_others() {
    let kept = |time: &str, found: &str| {
        check(&format!(
            "
            runtime current_thread
            semaphore pool 1
            task 1
              wait pool granted: cell@10 > select!0 > box > build@5
            task 2
              wait pool: other@40
            task 3
              wait pool: other@40
            after {time}
            {found}
            "
        ));
    };
    kept("1s", "find nothing");
    kept(
        "6s",
        "
        find futurelock: task 1, task 2; pool
        says the future of `app::build` was given a permit of `pool` and is not polled, while `app::other` waits for it [suspected]
        says a permit was set aside for task 1 here, 6.40 s ago, and not picked up
        says task 2 has been waiting here for a permit for 6.30 s
        says task 1 has been polled since without polling this future, or has ended and left it alive
        says behind it: task 3 waits too, for 6.20 s
        ",
    );
}

#[test]
fn it_is_told_with_what_it_keeps_from_others() {
    check(
        "
        runtime current_thread
        semaphore gate 1
        semaphore log 1
        task 1
          wait gate granted: run@30 > select!0 > box > first@20
        task 2
          hold log: writer@50
          wait gate: writer@52
        task 1
          wait log: run@35
        after 6s
        find futurelock: task 1, task 2; gate, log
        says `app::run` waits and no longer polls a future that has a permit of `gate`, for which others wait [suspected]
        ",
    );
}

#[test]
fn a_request_that_is_served_in_part_is_no_futurelock() {
    check(
        "
        runtime current_thread
        semaphore pool 4
        task 1
          hold pool
        task 2
          wait pool x4: drain@10
          wait pool: drain@20
        after 20s
        find starvation: task 2; pool
        ",
    );
}

/// A future that has the permit, and was polled by reference; then its body waits for that permit.
fn holder(path: &str, more: &str) -> String {
    format!("semaphore gate 1\n task 1\n hold gate: {path}\n wait gate: run@40\n {more}")
}

#[test]
fn what_a_suspended_future_holds() {
    let found = "
        after 6s
        find futurelock: task 1; gate
        says `app::run` waits for a permit and no longer polls the future that has it [suspected]
        says task 1 took the only permit of `gate` here, 6.30 s ago
        says the future of `app::refresh`, which took it at src/app.rs:20:9, is not polled while task 1 waits, and so cannot release it
        says nothing has moved here for 6.20 s
        ";
    for path in
        ["select!0 > box > refresh@20", "unordered > refresh@20", "timeout > box > refresh@20"]
    {
        let path = format!("run@30 > {path}");
        check(&holder(&path, found));
        check(&holder(&path, "after 3s\n find nothing"));
        check(&format!(
            "{}\n find nothing",
            holder(&path, "after 6s").replace("hold gate:", "hold gate owned:")
        ));
        check(
            &holder(&path, "after 6s\n find nothing")
                .replace("semaphore gate 1", "semaphore gate 2"),
        );
    }
    // Polled in the same round: it goes on.
    check(
        &holder("run@40 > select!0 > box > refresh@20", "after 20s\n find nothing")
            .replace("wait gate: run@40", "wait gate: run@40 > select!1 > second@25"),
    );
}

#[test]
fn a_set_that_holds_and_was_granted_and_whose_body_waits() {
    check(
        "
        runtime current_thread
        semaphore limit 2
        task 1
          hold limit: run@30 > unordered > download@20
          wait limit granted: run@30 > unordered > download@20
          wait limit: run@35
        after 6s
        find futurelock: task 1; limit
        says `app::run` waits for a permit and no longer polls the futures that have them [suspected]
        says task 1 took 1 of the 2 permits of `limit` here, 6.40 s ago
        says a permit was set aside for task 1 here, 6.30 s ago, and not picked up
        ",
    );
}
