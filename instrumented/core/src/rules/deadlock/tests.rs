//! What is not proven, and likely enough to be told after a time.

use crate::scenario::check;

/// A task that waits for what it seems to have.
fn own(hold: &str, wait: &str, more: &str) -> String {
    format!("semaphore pool 1\n task 1\n hold pool {hold}\n wait pool: {wait}\n {more}")
}

#[test]
fn owned_permits_that_always_came_back_from_their_task() {
    let hold = "owned back 300 usual 40ms: run@10 > begin@5";
    check(&own(hold, "run@12 > look_up@20", "after 4s\n find nothing"));
    check(&own(
        hold,
        "run@12 > look_up@20",
        "
        after 5s
        find deadlock: task 1; pool
        says `app::look_up` waits for a permit that only it can release [suspected]
        says task 1 took the only permit of `pool` here, 5.30 s ago
        says 300 earlier permits from src/app.rs:5:9 came back within 40 ms, released by whoever had taken them
        says nothing has moved here for 5.20 s
        says help: release before line 20, or
        ",
    ));
}

#[test]
fn owned_permits_of_which_too_little_is_known() {
    for hold in ["owned", "owned back 2", "owned back 300 elsewhere 1", "owned moved 2 back 300"] {
        check(&own(&format!("{hold}: run@10"), "run@12", "after 50s\n find nothing"));
    }
    // The next round of a loop that gives them away.
    check(
        &own("owned back 300 future 7: run@10", "run@10", "after 50s\n find nothing")
            .replace("wait pool:", "wait pool owned future 7:"),
    );
    check(
        &own("owned back 300: run@10", "run@12", "once after 50s\n find nothing")
            .replace("once after", "after")
            .replace("find nothing", "find deadlock: task 1; pool"),
    );
}

#[test]
fn nobody_else_is_left() {
    let found = "
        after 11s
        find deadlock: task 1; pool
        says no other task is left that could have it, unless it was moved to a thread or into `spawn_blocking`
        ";
    let alive = |n: u64| {
        format!("runtime current_thread alive {n}\n {}", own("owned: run@10", "run@12", ""))
    };
    check(&format!("{}{found}", alive(1)));
    check(&format!("{}\n after 7s\n find nothing", alive(1)));
    check(&format!("{}\n after 50s\n find nothing", alive(2)));
    // The later rules leave it alone until then.
    let told = format!("{}\n after 7s\n find nothing", alive(1));
    check(&told.replace("semaphore pool 1", "semaphore pool 1 max_hold 6s"));
    check(
        &told
            .replace("alive 1", "alive 2")
            .replace("semaphore pool 1", "semaphore pool 1 max_hold 6s")
            .replace("find nothing", "find leak: task 1; pool"),
    );
    // Two who wait, and one of them may give up, or goes on beside.
    for path in ["idle@9 > timeout > acquire@8", "idle@9 > join!0 > acquire@8", "?"] {
        check(&format!(
            "{}\n semaphore other 1\n task 2\n hold other\n wait other: {path}\n after 20s\n find nothing",
            alive(2)
        ));
    }
}

#[test]
fn a_spare_permit_of_a_loop_that_gave_the_others_away() {
    let spare = |usual: &str, more: &str| {
        check(&format!(
            "
            runtime multi_thread alive 1
            semaphore slots 2
            task 1
              hold slots owned back 1 elsewhere 1 usual {usual}: run@10
              wait slots x2: run@30
            {more}
            "
        ));
    };
    spare(
        "16ms",
        "
        after 11s
        find deadlock: task 1; slots
        says 1 earlier permit from src/app.rs:10:9 came back within 16 ms, 1 of them released by others
        ",
    );
    // Those before took as long.
    spare("5s", "after 20s\n find nothing");
}

#[test]
fn a_lock_before_a_select() {
    // The other branch may end the wait, but nothing else will.
    check(
        "
        mutex table
        task 1
          hold table: run@10
          wait table: run@12 > select!0 > inner@20
        after 6s
        find deadlock: task 1; table
        says a timeout or a `select!` further out may end this wait, and not its cause
        says help: drop the guard before line 20
        ",
    );
}

#[test]
fn permits_that_pile_up_in_a_loop() {
    let text = "
        semaphore pool 1
        task 1
          hold pool future 7 back 3: run@10
          wait pool future 7: run@10
        after 6s
        ";
    check(&format!("{text} find deadlock: task 1; pool"));
    check(&format!("{} find nothing", text.replace("back 3", "")));
    // A sibling could take them over.
    check(&format!("{} find nothing", text.replace("run@10", "run@5 > join!0 > fill@10")));
}

#[test]
fn two_tasks_with_owned_permits_in_opposite_orders() {
    let text = "
        semaphore a 1
        semaphore b 1
        task 1
          hold a owned back 9: left@10
        task 2
          hold b owned back 9: right@20
        task 1
          wait b: left@12
        task 2
          wait a: right@22
        after 6s
        ";
    check(&format!("{text} find deadlock: task 1, task 2; a, b"));
    check(&format!(
        "{} find nothing",
        text.replace("wait b: left@12", "wait b: left@12 > timeout > inner@3")
    ));
    check(&format!("{} find nothing", text.replace("semaphore a 1", "semaphore a 1 moving")));
}

#[test]
fn a_sender_that_holds_what_the_receiver_needs() {
    let text = "
        channel events 2
        mutex state
        task 1
          hold events x2 unread: consume@10
        task 2
          hold state: produce@20
          wait events: produce@22
        task 1
          wait state: consume@12
        ";
    check(&format!("{text} after 3s\n find nothing"));
    check(&format!(
        "{text} after 6s
        find deadlock: task 1, task 2; events, state
        says `app::consume` waits instead of receiving from `events`, and `app::produce` waits for room there with what it waits for [suspected]
        says task 1 received from `events` here last; 2 messages unread
        says has been waiting here for room for a message of `events` for
        says nobody else has received from the channel since
        says channel `events`: 2 of 2 messages unread, 1 sender waiting
        says help: release before sending, or receive in a task that needs nothing the senders hold
        "
    ));
    // Another branch goes on receiving; or it gives up; or the channel is closed.
    for (old, new) in [
        ("consume@12", "consume@10 > join!1 > other@12"),
        ("consume@12", "consume@12 > timeout > other@14"),
        ("events 2", "events 2 closed"),
    ] {
        check(&format!("{} after 20s\n find nothing", text.replace(old, new)));
    }
}

#[test]
fn a_receiver_that_sends_to_itself() {
    check(
        "
        channel work 1
        task 1
          hold work unread: run@10
          wait work: run@14
        after 6s
        find deadlock: task 1; work
        says `app::run` waits for room in `work`, from which only it receives [suspected]
        says help: receive in a task that does not send here
        ",
    );
}

#[test]
fn a_receiver_that_several_use_is_with_any_of_them() {
    check(
        "
        channel jobs 1
        mutex state
        task 1
          hold jobs unread moved 3: work@10
        task 2
          hold state: produce@20
          wait jobs: produce@22
        task 1
          wait state: work@12
        after 20s
        find nothing
        ",
    );
}

#[test]
fn a_channel_that_nobody_has_begun_to_receive_from() {
    let text = |alive: u64, time: &str| {
        format!(
            "
            runtime multi_thread alive {alive}
            channel work 2
            task 1
              hold work x2 unread unasked: run@10
              wait work: run@14
            after {time}
            "
        )
    };
    check(&format!(
        "{}
        find deadlock: task 1; work
        says `app::run` waits for room in `work`, which nobody has begun to receive from [suspected]
        says task 1 made `work` here; 2 messages unread
        says no other task is left that could receive, unless the receiver was moved to a thread or into `spawn_blocking`
        says help: begin to receive, in another task, before sending more than the channel has room for
        ",
        text(1, "11s")
    ));
    // The receiver may be with another task, which has not come to it yet.
    check(&format!("{} find nothing", text(2, "50s")));
    check(&format!("{} find nothing", text(1, "7s")));
}

#[test]
fn a_blocked_thread_that_the_holder_needs() {
    let text = "
        runtime current_thread busy
        semaphore limit 1
        task 2
          hold limit: holder@10
        task 1
          wait limit: run@20 > block_on
        ";
    check(&format!("{text} after 3s\n find nothing"));
    check(&format!(
        "{text} after 6s
        find deadlock: task 1, task 2; limit
        says `app::run` blocks the thread that `app::holder` needs to release a permit for it [suspected]
        says 1: task 2 took the only permit of `limit` here, 6.30 s ago
        says 1: task 1 has been waiting here for a permit of `limit` for 6.20 s
        says the wait is in a `block_on` within a task: until it ends, its thread runs no other task
        says help: `.await` it instead of blocking
        "
    ));
    // Another thread has it, so it may come back.
    let elsewhere = text.replace("hold limit:", "hold limit on 2:");
    check(&format!("{elsewhere} after 60s\n find blocked-thread: task 1; limit"));
    // The runtime has been idle since; or it is a thread for blocking work.
    for (old, new) in [
        ("current_thread busy", "current_thread"),
        ("run@20 >", "spawn_blocking > run@20 >"),
        (" > block_on", ""),
    ] {
        check(&format!("{} after 60s\n find {}", text.replace(old, new), "leak: task 2; limit"));
    }
}

#[test]
fn a_task_that_blocks_on_what_it_holds_itself() {
    check(
        "
        runtime multi_thread workers 4 busy
        mutex table
        task 1
          hold table: run@10
          wait table: run@20 > block_on
        after 6s
        find deadlock: task 1; table
        says `app::run` blocks its own thread, and must go on there to release the lock for itself [suspected]
        ",
    );
}

#[test]
fn a_writer_beside_a_reader_that_reads_again() {
    // The second read queues behind the writer, which waits for the first; a sibling cannot help.
    let text = "
        rwlock state
        task 1
          hold state: run@5 > join!0 > reader@10
          wait state x536870911: run@5 > join!1 > writer@20
          wait state: run@5 > join!0 > reader@12
        ";
    check(&format!("{text} find deadlock: task 1; state"));
}
