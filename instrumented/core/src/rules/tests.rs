//! Situations, and what is found in them.

use crate::scenario::{Scenario, check};

#[test]
fn a_task_that_waits_for_itself() {
    check(
        "
        semaphore db 1
        task 17
          hold db: run@5 > save@42
          wait db: run@5 > save@47
        find deadlock: task 17; db
        says `app::save` waits for a permit that only it can release [proven]
        says task 17 took the only permit of `db` here, 300 ms ago
        says and has been waiting here for another one for 200 ms
        says semaphore `db`: 1 permit, 0 available, 1 held, 1 waiting (created at src/limits.rs:1:1)
        says help: release before line 47, or give the inner step a semaphore of its own
        ",
    );
}

#[test]
fn through_callees_and_recursion() {
    check(
        "
        semaphore db 2
        task 1
          hold db: walk@3
          hold db: walk@5 > box > walk@3
          wait db: walk@5 > box > walk@5 > box > walk@3
        find deadlock: task 1; db
        says task 1 took both permits of `db` here
        ",
    );
}

#[test]
fn nothing_is_said_of_what_was_seen_only_once() {
    for line in ["only", ""] {
        check(&format!(
            "
            {line}
            semaphore db 1
            task 1
              hold db
              wait db {}
            find nothing
            ",
            if line.is_empty() { "once" } else { "" }
        ));
    }
    check("semaphore a 1\n task 1\n hold a once\n wait a\n find nothing");
}

#[test]
fn opposite_orders() {
    check(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a: upload@10
        task 2
          hold b: commit@20
        task 1
          wait b: upload@12
        task 2
          wait a: commit@22
        find deadlock: task 1, task 2; a, b
        says `app::upload` and `app::commit` wait for permits that only the other can release
        says help: take them in the same order everywhere, for example
        ",
    );
}

#[test]
fn an_owned_permit_may_be_anywhere() {
    check(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a owned
        task 2
          hold b
        task 1
          wait b
        task 2
          wait a
        find nothing
        ",
    );
    check("semaphore a 1\n task 1\n hold a owned\n wait a\n find nothing");
}

#[test]
fn a_permit_that_was_moved_may_be_anywhere() {
    check("semaphore a 1\n task 1\n hold a moved 2\n wait a\n find nothing");
}

#[test]
fn the_permit_of_a_static_may_be_anywhere() {
    check("semaphore a 1 static\n task 1\n hold a\n wait a\n find nothing");
}

#[test]
fn units_from_outside_help() {
    for state in ["closed", "unsettled", "grows", "added 1", "added 1 forgotten 1", "forgotten 1"] {
        check(&format!("semaphore a 2 {state}\n task 1\n hold a x2\n wait a\n find nothing"));
        check(&format!("semaphore a 1 {state}\n task 1\n wait a x9\n find nothing"));
    }
    check("semaphore signal 0\n task 1\n wait signal\n find nothing");
    check("semaphore signal 0\n task 1\n wait signal x3\n find nothing");
}

#[test]
fn a_holder_that_does_not_wait_can_release() {
    check("semaphore a 1\n task 1\n hold a\n task 2\n wait a\n find nothing");
}

#[test]
fn another_holder_of_a_counting_semaphore_can_release() {
    check(
        "
        semaphore a 2
        task 1
          hold a
        task 2
          hold a
        task 1
          wait a
        find nothing
        ",
    );
    check(
        "
        semaphore a 1
        semaphore b 2
        task 1
          hold a
        task 2
          hold b
        task 3
          hold b
        task 1
          wait b x2
        task 2
          wait a
        find deadlock: task 1, task 2; a, b
        ",
    );
    check(
        "
        semaphore a 1
        semaphore b 2
        task 1
          hold a
        task 2
          hold b
        task 3
          hold b
        task 1
          wait b
        task 2
          wait a
        find nothing
        ",
    );
}

#[test]
fn siblings_of_a_combinator_go_on() {
    for combinator in ["join!", "try_join!", "select!"] {
        check(&format!(
            "
            semaphore a 1
            task 1
              hold a: run@5 > {combinator}1 > work@10
              wait a: run@5 > {combinator}2 > work@10
            find nothing
            "
        ));
    }
    for combinator in
        ["unordered", "for_each_concurrent > unordered", "buffer_unordered > unordered"]
    {
        check(&format!(
            "
            semaphore a 1
            task 1
              hold a poller 1: run@5 > {combinator} > work@10
              wait a poller 2: run@5 > {combinator} > work@12
            find nothing
            "
        ));
    }
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > join_all > work@10
          wait a: run@5 > join_all > work@12
        find nothing
        ",
    );
}

#[test]
fn one_child_of_a_combinator_stops() {
    check(
        "
        semaphore a 1
        task 1
          hold a poller 7: run@5 > for_each_concurrent > unordered > work@10
          wait a poller 7: run@5 > for_each_concurrent > unordered > work@12
        find deadlock: task 1; a
        ",
    );
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > join!1 > work@10
          wait a: run@5 > join!1 > work@12
        find deadlock: task 1; a
        ",
    );
}

#[test]
fn a_branch_of_join_keeps_its_guard_until_all_are_done() {
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > join!1
          wait a: run@5 > join!2 > other@9
        find deadlock: task 1; a
        ",
    );
    check(
        "
        semaphore a 2
        task 1
          hold a future 0x1000: run@5 > join_all
          hold a future 0x2000: run@5 > join_all
          wait a future 0x3000: run@5 > join_all
        find deadlock: task 1; a
        ",
    );
}

#[test]
fn a_loop_may_have_given_the_permit_away() {
    check(
        "
        semaphore a 1
        task 1
          hold a future 0x1000: run@5
          wait a future 0x1000: run@5
        find nothing
        ",
    );
}

#[test]
fn a_wait_that_can_be_given_up_ends() {
    for way_out in ["timeout", "select!1", "then > timeout"] {
        check(&format!(
            "
            semaphore a 1
            task 1
              hold a: run@5
              wait a: run@7 > {way_out} > inner@9
            find nothing
            "
        ));
    }
}

#[test]
fn a_timeout_around_all_of_it() {
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > timeout > handle@7
          wait a: run@5 > timeout > handle@9
        find deadlock: task 1; a
        says a timeout or a `select!` further out may end this wait, and not its cause
        ",
    );
    // Two that give up and try again, and two that a library would end.
    for (way_out, found) in [
        ("timeout", "nothing"),
        ("select!1", "nothing"),
        ("join!1", "deadlock: task 1, task 2; a, b"),
    ] {
        check(&format!(
            "
            semaphore a 1
            semaphore b 1
            task 1
              hold a: run@5 > {way_out} > left@7
            task 2
              hold b: run@5 > {way_out} > right@7
            task 1
              wait b: run@5 > {way_out} > left@9
            task 2
              wait a: run@5 > {way_out} > right@9
            find {found}
            "
        ));
    }
    let library = "\"axum::serve::handle::{{closure}}\"@5 > select!1";
    check(&format!(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a: {library} > left@7
        task 2
          hold b: {library} > right@7
        task 1
          wait b: {library} > left@9
        task 2
          wait a: {library} > right@9
        find deadlock: task 1, task 2; a, b
        "
    ));
}

#[test]
fn a_future_that_was_put_aside_may_be_elsewhere_now() {
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > select!1 > box > work@10
          wait a: run@7
        find nothing
        ",
    );
    // The guard itself came out of the `select!`.
    check(
        "
        semaphore a 1
        task 1
          hold a: run@5 > select!1
          wait a: run@7
        find deadlock: task 1; a
        ",
    );
}

#[test]
fn paths_without_names_tell_nothing() {
    check("semaphore a 1\n task 1\n hold a: ?\n wait a\n find nothing");
    check("semaphore a 1\n task 1\n hold a\n wait a: ?\n find nothing");
}

#[test]
fn a_ring_of_three() {
    check(
        "
        semaphore a 1
        semaphore b 1
        semaphore c 1
        task 1
          hold a: first@10
        task 2
          hold b: second@10
        task 3
          hold c: third@10
        task 1
          wait b: first@12
        task 2
          wait c: second@12
        task 3
          wait a: third@12
        find deadlock: task 1, task 2, task 3; a, b, c
        says wait for each other in a ring
        says 1: task 1 took the only permit of `a` here
        ",
    );
}

#[test]
fn victims_are_named_and_are_no_findings() {
    check(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a
          wait a
        task 18
          wait a
        task 21
          hold b
          wait a
        task 22
          wait b
        find deadlock: task 1; a
        says behind it: tasks 18, 21 and 22 wait too, the oldest for 500 ms
        ",
    );
}

#[test]
fn a_victim_in_front_in_the_queue_is_still_a_victim() {
    check(
        "
        semaphore a 1
        task 1
          hold a
        task 2
          wait a
        task 1
          wait a
        find deadlock: task 1; a
        says behind it: task 2 waits too
        ",
    );
}

#[test]
fn two_hangs_are_two_findings() {
    check(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a
          wait a
        task 2
          hold b
          wait b
        find deadlock: task 1; a
        find deadlock: task 2; b
        ",
    );
}

#[test]
fn the_cause_is_found_behind_a_ring_that_depends_on_it() {
    // If task 3 went on, task 2 would, and then task 1.
    check(
        "
        semaphore a 2
        semaphore b 1
        task 1
          hold a
        task 2
          hold a
        task 3
          hold b
          wait b
        task 1
          wait a
        task 2
          wait b
        find deadlock: task 3; b
        says behind it: tasks 1 and 2 wait too
        ",
    );
}

#[test]
fn everybody_holds_one_and_wants_another() {
    check(
        "
        semaphore rpc 4
        task 1
          hold rpc: request@3
        task 2
          hold rpc: request@3
        task 3
          hold rpc: request@3
        task 4
          hold rpc: request@3
        task 1
          wait rpc: request@8
        task 2
          wait rpc: request@8
        task 3
          wait rpc: request@8
        task 4
          wait rpc: request@8
        find deadlock: task 1, task 2, task 3, task 4; rpc
        says tasks 1, 2, 3 and 4 wait for permits of `rpc` that only they can release
        says take all that a task needs at once with `acquire_many`
        ",
    );
}

#[test]
fn a_partial_grant_belongs_to_the_front() {
    // Task 1 has two, wants three more, and one of those is free for it already.
    check(
        "
        semaphore a 4
        task 1
          hold a x2
        task 2
          hold a
        task 1
          wait a x2
        find nothing
        ",
    );
    check(
        "
        semaphore a 3
        task 1
          hold a x2
          wait a x2
        find deadlock: task 1; a
        says has been waiting here for 2 permits for
        ",
    );
}

#[test]
fn taking_everything_while_holding_something() {
    check(
        "
        semaphore sessions 3
        task 1
          hold sessions: park@4
          wait sessions x3: park@6
        find deadlock: task 1; sessions
        says waits for permits that only it can release
        ",
    );
}

#[test]
fn a_full_grant_that_nobody_picked_up_is_not_stuck() {
    check("semaphore a 1\n task 1\n wait a\n find nothing");
    check("semaphore a 2\n task 1\n hold a\n wait a\n find nothing");
}

#[test]
fn a_queue_is_served_in_its_order() {
    check(
        "
        semaphore heap 4
        task 1
          hold heap: mutate@3
        task 2
          wait heap x4: collect@7
        task 1
          wait heap: mutate@9
        find deadlock: task 1, task 2; heap
        says `app::mutate` waits behind `app::collect`, which waits for what only `app::mutate` can release
        says task 2 has been waiting here for 4 permits of `heap`
        ",
    );
    // In the other order task 1 is served first.
    check(
        "
        semaphore heap 4
        task 1
          hold heap: mutate@3
          wait heap: mutate@9
        task 2
          wait heap x4: collect@7
        find nothing
        ",
    );
    // What stands in front may give up.
    check(
        "
        semaphore heap 4
        task 1
          hold heap: mutate@3
        task 2
          wait heap x4: collect@7 > timeout
        task 1
          wait heap: mutate@9
        find nothing
        ",
    );
    // A poll tells that it was in the queue by then.
    check(
        "
        semaphore heap 4
        task 1
          hold heap: mutate@3
        task 2
          wait heap x4 polled: collect@7
        task 1
          wait heap soon: mutate@9
        find deadlock: task 1, task 2; heap
        ",
    );
    // Who came first is not certain.
    check(
        "
        semaphore heap 4
        task 1
          hold heap: mutate@3
        task 2
          wait heap x4: collect@7
        task 1
          wait heap soon: mutate@9
        find nothing
        ",
    );
}

#[test]
fn more_than_there_is() {
    check(
        "
        semaphore a 3
        task 5
          wait a x4: bulk@8
        task 6
          wait a
        find unsatisfiable: task 5; a
        says `app::bulk` waits for 4 permits of `a`, which has 3
        says behind it: task 6 waits too
        ",
    );
    check("semaphore a 3\n task 5\n wait a x4 once\n find nothing");
    check("semaphore a 3\n task 5\n wait a x3\n find nothing");
}

#[test]
fn wanting_more_than_there_is_is_no_deadlock_even_of_a_holder() {
    check(
        "
        semaphore a 3
        task 5
          hold a
          wait a x4
        find unsatisfiable: task 5; a
        ",
    );
}

#[test]
fn two_branches_of_one_task_in_opposite_orders() {
    check(
        "
        semaphore a 1
        semaphore b 1
        task 1
          hold a: run@5 > join!1 > left@10
          hold b: run@5 > join!2 > right@10
          wait b: run@5 > join!1 > left@12
          wait a: run@5 > join!2 > right@12
        find deadlock: task 1; a, b
        says task 1 waits in two places for permits that only it can release
        ",
    );
}

#[test]
fn optimised_builds_may_merge_branches_that_are_alike() {
    let situation = |addresses: (u64, u64)| {
        format!(
            "
            optimised
            semaphore a 1
            task 1
              hold a future {}: run@5 > join!1 > work@10
              wait a future {}: run@5 > join!1 > work@12
            ",
            addresses.0, addresses.1
        )
    };
    check(&format!("{} find nothing", situation((0x1000, 0x1040))));
    check(&format!("{} find deadlock: task 1; a", situation((0x1000, 0x1020))));
}

#[test]
fn a_root_future_and_a_task() {
    check(
        "
        semaphore a 1
        semaphore b 1
        root 140
          hold a
        task 2
          hold b
        root 140
          wait b
        task 2
          wait a
        find deadlock: task 2, root 140; a, b
        ",
    );
}

#[test]
fn an_identity_does_not_depend_on_order_and_lasts() {
    let text = "
        semaphore a 1
        semaphore b 1
        task 1
          hold a
        task 2
          hold b
        task 1
          wait b
        task 2
          wait a";
    let scenario = Scenario::read(text).expect("well-formed");
    let first = scenario.diagnose();
    let mut later = scenario.clone();
    later.current.taken.0 += 1_000_000_000;
    later.current.waits.reverse();
    let second = later.diagnose();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].id, second[0].id);
    let other =
        Scenario::read("semaphore a 1\n task 1\n hold a\n wait a").expect("well-formed").diagnose();
    assert_ne!(first[0].id, other[0].id);
}

#[test]
fn no_names_are_needed_while_nothing_can_be_stuck() {
    let stacks = |text: &str| {
        let scenario = Scenario::read(text).expect("well-formed");
        crate::diagnose::needs_names(&scenario.current, &crate::Limits::default()).len()
    };
    assert_eq!(stacks("semaphore a 1\n task 1\n hold a\n task 2\n wait a"), 0);
    assert_eq!(stacks("semaphore a 1\n task 1\n hold a owned\n wait a"), 0);
    assert_eq!(stacks("semaphore a 1\n task 1\n hold a\n wait a"), 2);
    assert_eq!(stacks("semaphore a 1\n task 1\n wait a x2"), 1);
}
