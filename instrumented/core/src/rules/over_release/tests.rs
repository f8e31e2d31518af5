//! Limits that grew by mistake, and limits that are adjusted.

use crate::scenario::{Scenario, check};

const CREDITS: &str = "
    semaphore credits 3
    task 1
      forget credits calls 2: run@10
      add credits: run@20
      add credits calls 2: run@30
";

const DROPPED: &str = "
    semaphore queue 2 released 2
    task 1
      add queue calls 2 several holding 2 released 2: finish@10
";

#[test]
fn credits_that_come_back_twice() {
    check(&format!(
        "{CREDITS} after 6s
        find over-release: task 1; credits
        says `app::run` adds back more permits of `credits` than were taken: 3 for 2 [hazard]
        says 1 permit was added back here by task 1
        says 2 permits were forgotten here by task 1
        says the limit was 3 and is 4 now
        says help: add each back in one place, for example in the `Drop` of a guard
        ",
    ));
}

#[test]
fn what_is_added_by_hand_and_dropped_as_well() {
    check(&format!(
        "{DROPPED} after 6s
        find over-release: task 1; queue
        says `app::finish` adds permits to `queue` that come back once more when they are dropped [hazard]
        says 2 permits were added here by several tasks, and as many dropped
        says the limit was 2 and is 4 now
        says help: let dropping the permit give it back, and add none
        ",
    ));
}

#[test]
fn several_ways_to_one_line_are_one_mark() {
    check(
        "
        semaphore queue 2 released 2
        task 1
          add queue holding 1 released 1: f@1 > finish@10
        task 2
          add queue holding 1 released 1: g@1 > finish@10
        after 6s
        find over-release: task 1, task 2; queue
        says 2 permits were added here by several tasks, and as many dropped
        ",
    );
}

#[test]
fn it_may_be_under_way_until_it_rests() {
    for scenario in [CREDITS, DROPPED] {
        check(&format!("{scenario} after 4s\n find nothing"));
    }
    // Gone far, but a moment ago it had not.
    let mut scenario = Scenario::read(&busy(1024, 300)).expect("well-formed");
    for r in &mut scenario.previous.as_mut().expect("seen twice").resources {
        r.added = 0;
    }
    assert_eq!(scenario.diagnose(), []);
}

fn busy(calls: u64, initial: u64) -> String {
    format!(
        "
        semaphore queue {initial} released {calls}
        task 1
          add queue calls {calls} several holding {calls} released {calls}: finish@10
        "
    )
}

#[test]
fn what_never_rests_is_told_when_it_has_gone_far() {
    check(&format!("{} find over-release: task 1; queue", busy(1024, 300)));
    check(&format!("{} find nothing", busy(1000, 300)));
    check(&format!("{} find nothing", busy(1024, 600)));
}

#[test]
fn a_limit_that_is_adjusted() {
    for (settings, rest) in [
        // A bucket that somebody else refills, more than was taken so far.
        ("", "task 1\n forget a calls 2: take@1\n task 9\n add a calls 3: refill@2"),
        // Made larger, beside releases that add nothing; by several who hold none; by many at once.
        ("released 10", "task 1\n add a x4: resize@1"),
        ("released 3", "task 1\n add a calls 2 holding 2 released 2: grow@1"),
        ("released 2", "task 1\n add a calls 2 several holding 1 released 1: grow@1"),
        ("", "task 1\n forget a calls 2: take@1\n add a calls 2: back@2\n add a x4: resize@3"),
        // Made smaller as well.
        (
            "released 2",
            "task 1\n add a x4 calls 2 holding 2 released 2: grow@1\n withdraw a: shrink@2",
        ),
        ("", "task 1\n forget a calls 2: take@1\n withdraw a: shrink@3\n add a calls 4: back@2"),
        // Permits come back by themselves, and one is forgotten to make room for less.
        ("released 5", "task 1\n forget a: shrink@1\n add a calls 2: grow@2"),
        ("", "task 2\n hold a: f@1\n task 1\n forget a: shrink@1\n add a calls 2: grow@2"),
        // Once is nothing.
        ("released 1", "task 1\n add a holding 1 released 1: grow@1"),
        // By declaration.
        ("grows released 2", "task 1\n add a calls 2 several holding 2 released 2: finish@10"),
        // Not all is on record.
        ("added 7 released 2", "task 1\n add a calls 2 several holding 2 released 2: finish@10"),
    ] {
        check(&format!("semaphore a 4 {settings}\n {rest}\n after 60s\n find nothing"));
    }
    check(
        "semaphore s 0 released 2\n task 1\n add s calls 2 holding 2 released 2: f@1\n after 60s\n find nothing",
    );
}
