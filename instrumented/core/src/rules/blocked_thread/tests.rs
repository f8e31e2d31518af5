//! Threads that a wait blocks, and such that may be blocked.

use crate::scenario::check;

/// One worker blocks, and the holder may be on another.
fn one_of_four(path: &str, runtime: &str, more: &str) {
    check(&format!(
        "
        runtime {runtime}
        semaphore limit 1
        task 2
          hold limit on 2: holder@10
        task 1
          wait limit: {path}
        after {more}
        "
    ));
}

#[test]
fn a_worker_that_blocks_for_long() {
    let path = "run@20 > block_on";
    one_of_four(
        path,
        "multi_thread workers 4 busy",
        "6s
        find blocked-thread: task 1; limit
        says `app::run` blocks one of the 4 threads of its runtime while it waits for a permit of `limit` [suspected]
        says task 2 took the only permit of `limit` here, 6.30 s ago
        says task 1 has been blocking its thread here for 6.20 s, until it has a permit of `limit`
        says help: `.await` it instead of blocking, or block on a thread of its own with `spawn_blocking`
        ",
    );
    one_of_four(path, "multi_thread workers 4 busy", "4s\n find nothing");
    one_of_four(
        path,
        "current_thread busy",
        "6s\n find blocked-thread: task 1; limit\n says blocks the only thread of its runtime",
    );
}

#[test]
fn threads_that_may_block_and_waits_that_do_not() {
    for path in
        ["run@20", "spawn_blocking > run@20 > block_on", "run@20 > block_in_place > block_on", "?"]
    {
        one_of_four(path, "multi_thread workers 4 busy", "20s\n find nothing");
    }
    // Each worker has been idle since: none of them is blocked.
    one_of_four("run@20 > block_on", "multi_thread workers 4", "20s\n find nothing");
}

#[test]
fn every_worker_blocked_by_what_a_task_of_theirs_holds() {
    let workers = |n: u64, found: &str| {
        check(&format!(
            "
            runtime multi_thread workers {n} busy
            semaphore limit 1
            task 3
              hold limit on 2: holder@10
            task 1
              wait limit on 1: run@20 > block_on
            task 2
              wait limit on 2: run@20 > block_on
            after 6s
            {found}
            "
        ));
    };
    workers(2, "find deadlock: task 1, task 3; limit\n says behind it: task 2 waits too");
    workers(3, "find blocked-thread: task 1; limit\n find blocked-thread: task 2; limit");
}
