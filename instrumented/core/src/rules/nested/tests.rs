//! Nested acquires that went well.

use crate::scenario::check;

/// Three tasks that take two permits each, one after the other.
fn three(limit: &str, find: &str) -> String {
    let task = |n: u32| {
        format!(
            "task {n}
               outer limit: request@21 > store::get@31
               inner limit: request@23 > store::sub_query@15\n"
        )
    };
    format!("semaphore limit {limit}\n{}{}{}{find}", task(4), task(5), task(6))
}

#[test]
fn enough_tasks_at_once() {
    check(&three(
        "3",
        "find nested-acquire: task 4, task 5, task 6; limit
         says this nested acquire in `store::sub_query` deadlocks once 3 tasks overlap (3 permits, 2 for each)
         says tasks 4, 5 and 6 took a permit of `limit` here
         says it went well 3 times so far
         says take all at once with `acquire_many(2)`",
    ));
    check(&three(
        "2",
        "find nested-acquire: task 4, task 5, task 6; limit\nsays once 2 tasks overlap",
    ));
    // More permits than tasks to hold them.
    check(&three("4", "find nothing"));
    // Somebody gives permits.
    check(&three("3 added 1", "find nothing"));
    check(&three("3 grows", "find nothing"));
    check(&three("3 closed", "find nothing"));
    // Where a permit of a static semaphore is, its borrow does not tell.
    check(&three("3 static", "find nothing"));
}

#[test]
fn who_could_not_have_been_there_does_not_count() {
    let one_after_the_other = |alive: u32| {
        format!(
            "semaphore limit 2
             task 4
               outer limit: f@21
               inner limit alive {alive} newest 5: f@23 > g@15
             task 5
               outer limit: f@21
               inner limit alive {alive} newest 6: f@23 > g@15
             find nothing"
        )
    };
    check(&one_after_the_other(1));
    check(&one_after_the_other(9));
    // The one who began the other, when all is over.
    check(
        "semaphore limit 2
         task 5
           outer limit: f@21
           inner limit alive 2 newest 6: f@23 > g@15
         task 4
           outer limit: f@21
           inner limit alive 1 newest 6: f@23 > g@15
         find nothing",
    );
    // By number alone, whoever acts later could have waited; with others around, nothing says so.
    check(
        "semaphore limit 2
         task 5
           outer limit: f@21
           inner limit alive 3 newest 6: f@23 > g@15
         task 4
           outer limit: f@21
           inner limit alive 2 newest 6: f@23 > g@15
         find nested-acquire: task 4, task 5; limit",
    );
    // One task alone, however often.
    check(
        "semaphore limit 2
         task 4
           outer limit: f@21
           inner limit times 100: f@23 > g@15
         find nothing",
    );
    // Those who take turns have both been there.
    check(
        "semaphore limit 2
         task 4
           outer limit: f@21
           inner limit newest 5: f@23 > g@15
         task 5
           outer limit: f@21
           inner limit newest 6: f@23 > g@15
         task 4
           outer limit: f@21
           inner limit newest 6: f@23 > g@15
         task 5
           outer limit: f@21
           inner limit newest 6: f@23 > g@15
         find nested-acquire: task 4, task 5; limit",
    );
}

#[test]
fn a_gate_lets_in_few_enough() {
    let gated = |gate: u32, pool: u32, find: &str| {
        let tasks: String = (4..10)
            .map(|n| {
                format!(
                    "task {n}
                       around gate
                       outer pool: request@21
                       inner pool: request@23\n"
                )
            })
            .collect();
        format!("semaphore gate {gate}\nsemaphore pool {pool}\n{tasks}{find}")
    };
    check(&gated(2, 4, "find nothing"));
    check(&gated(3, 4, "find nothing"));
    let all = "task 4, task 5, task 6, task 7, task 8, task 9; pool";
    check(&gated(4, 4, &format!("find nested-acquire: {all}")));
    check(&gated(2, 2, &format!("find nested-acquire: {all}")));
}

#[test]
fn paths_that_differ_share_the_permits() {
    check(
        "semaphore limit 2
         task 4
           outer limit: f@21
           inner limit: f@23
         task 5
           outer limit: g@31
           inner limit: g@33
         find nested-acquire: task 4; limit
         find nested-acquire: task 5; limit
         says once 2 tasks overlap",
    );
    // Three deep.
    check(
        "semaphore limit 4
         task 4
           outer limit held 2: f@21
           inner limit: f@25
           outer limit held 2: f@23
           inner limit: f@25
           outer limit: f@21
           inner limit: f@23
         task 5
           outer limit held 2: f@21
           inner limit: f@25
           outer limit held 2: f@23
           inner limit: f@25
           outer limit: f@21
           inner limit: f@23
         find nested-acquire: task 4, task 5; limit
         find nested-acquire: task 4, task 5; limit
         says once 2 tasks overlap (4 permits, 3 for each)",
    );
}

#[test]
fn a_branch_beside_or_a_way_out_is_no_nest() {
    let pair = |outer: &str, inner: &str, words: &str, find: &str| {
        let tasks: String = (4..6)
            .map(|n| {
                format!("task {n}\nouter limit {words}: {outer}\ninner limit {words}: {inner}\n")
            })
            .collect();
        check(&format!("semaphore limit 2\n{tasks}{find}"));
    };
    let found = "find nested-acquire: task 4, task 5; limit";
    pair("f@21", "f@23 > g@1", "", found);
    pair("f@21 > join!1 > g@3", "f@21 > join!2 > h@3", "", "find nothing");
    pair("f@21", "f@23 > timeout > g@1", "", "find nothing");
    pair("f@20 > timeout > g@21", "f@20 > timeout > g@23", "", "find nothing");
    pair("f@21", "f@23 > select!1 > g@1", "", "find nothing");
    pair("f@21", "f@23", "owned", "find nothing");
    pair("f@21", "f@23", "owned released 2", found);
    pair("f@21", "f@23", "owned released 2 elsewhere 1", "find nothing");
    pair("?", "?", "", "find nothing");
}

#[test]
fn a_writer_between_two_reads() {
    let template = |n: u32| {
        format!(
            "task {n}
               outer chain: template@21
               inner chain: template@23 > chain::roots@15\n"
        )
    };
    let writer = "task 7\nasked chain x536870911: add_block@40\n";
    let (first, second) = (template(4), template(5));
    check(&format!(
        "rwlock chain\n{first}{writer}{second}
         find nested-acquire: task 4, task 5; chain
         says this nested read in `chain::roots` deadlocks once a writer comes between the two
         says task 7 asks for the write lock here
         says hand the first guard down",
    ));
    check(&format!("rwlock chain\n{first}{second}find nothing"));
    // The readers' own.
    check(&format!(
        "rwlock chain\n{first}task 4\nasked chain x536870911: template@25\nfind nothing"
    ));
    // A writer that gives up lets the reader pass.
    check(&format!(
        "rwlock chain\n{first}task 7\nasked chain x536870911: add@40 > timeout > block@3\nfind nothing"
    ));
    // Spawned later.
    check(
        "rwlock chain
         task 4
           outer chain: template@21
           inner chain newest 5: template@23
         task 7
           asked chain x536870911: add_block@40
         find nothing",
    );
    // What both hold keeps the writer out.
    check(
        "rwlock chain
         mutex turn
         task 4
           around turn
           outer chain: template@21
           inner chain: template@23
         task 7
           asked chain x536870911: add_block@40
           outer turn: add_block@38
           inner chain x536870911: add_block@40
         find nothing",
    );
}

#[test]
fn a_request_for_all_between_two() {
    let nest = "task 4
                  outer limit: f@21
                  inner limit: f@23\n";
    let drain = "task 7\nasked limit x8: drain@40\n";
    check(&format!(
        "semaphore limit 8\n{nest}{drain}{nest}
         find nested-acquire: task 4; limit
         says once a request for 8 permits comes between the two",
    ));
    // At the end, when the others may have gone.
    check(&format!("semaphore limit 8\n{nest}{nest}{drain}find nothing"));
}

#[test]
fn a_deadlock_is_told_once() {
    check(
        "semaphore limit 2
         task 4
           outer limit: f@21
           inner limit: f@23
         task 5
           outer limit: f@21
           inner limit: f@23
         task 4
           hold limit: f@21
           wait limit: f@23
         task 5
           hold limit: f@21
           wait limit: f@23
         find deadlock: task 4, task 5; limit",
    );
}
