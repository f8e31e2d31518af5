//! Orders that contradict each other.

use crate::scenario::check;

const BOTH: &str = "
    semaphore registry 1
    semaphore workers 1
    task 4
      outer registry: status@21
      inner workers: status@23
    task 5
      outer workers: reload@31
      inner registry: reload@33\n";

#[test]
fn opposite_orders() {
    check(&format!(
        "{BOTH}
         find order-inversion: task 4, task 5; registry, workers
         says these opposite orders of `registry` and `workers` deadlock once `app::status` and `app::reload` overlap
         says 1: task 4 took the only permit of `registry` here
         says 1: and asked for a permit of `workers` here
         says 2: task 5 took the only permit of `workers` here
         says `registry` before `workers`: once so far
         says take them in the same order everywhere, for example `workers` before `registry`",
    ));
    // The same order everywhere.
    check(
        "mutex a
         mutex b
         mutex c
         task 4
           outer a: f@21
           inner b: f@23
         task 5
           outer b: f@21
           inner c: f@23
         task 6
           outer a: f@21
           inner c: f@23
         find nothing",
    );
}

#[test]
fn read_guards_conflict_with_writers_only() {
    let other = |units: &str, find: &str| {
        check(&format!(
            "rwlock table
             semaphore queries 1
             task 4
               outer table: status@21
               inner queries: status@23
             task 5
               outer queries: reload@31
               inner table {units}: reload@33
             {find}"
        ));
    };
    other("x536870911", "find order-inversion: task 4, task 5; queries, table");
    other("x1", "find nothing");
}

#[test]
fn as_many_as_it_takes() {
    let pool = |holders: u32, find: &str| {
        let holders: String = (4..4 + holders)
            .map(|n| format!("task {n}\nouter pool: query@21\ninner cache: query@23\n"))
            .collect();
        check(&format!(
            "semaphore pool 2
             mutex cache
             {holders}
             task 9
               outer cache: refresh@31
               inner pool: refresh@33
             {find}"
        ));
    };
    pool(1, "find nothing");
    pool(2, "find order-inversion: task 4, task 5, task 9; cache, pool\nsays once 3 tasks overlap");
}

#[test]
fn rings_of_three() {
    let ring = "mutex a
                mutex b
                mutex c
                task 4
                  outer a: f@21
                  inner b: f@23
                task 5
                  outer b: f@21
                  inner c: f@23\n";
    check(&format!(
        "{ring}
         task 6
           outer c: g@31
           inner a: g@33
         find order-inversion: task 4, task 5, task 6; a, b, c
         says these orders of `a`, `b` and `c` deadlock in a ring once 3 tasks overlap"
    ));
    // Only two tasks.
    check(&format!(
        "{ring}
         task 5
           outer c: g@31
           inner a: g@33
         find nothing"
    ));
    // Two of them hold the same lock around theirs.
    check(
        "mutex gate
         mutex a
         mutex b
         mutex c
         task 4
           around gate
           outer a: f@21
           inner b: f@23
         task 5
           outer b: f@21
           inner c: f@23
         task 6
           around gate
           outer c: g@31
           inner a: g@33
         find nothing",
    );
}

#[test]
fn a_gate_keeps_them_apart() {
    let gated = |gate: &str, around: &str, find: &str| {
        check(&format!(
            "{gate}
             mutex a
             mutex b
             task 4
               around gate
               outer a: f@21
               inner b: f@23
             task 5
               {around}
               outer b: g@31
               inner a: g@33
             {find}"
        ));
    };
    let found = "find order-inversion: task 4, task 5; a, b";
    gated("mutex gate", "around gate", "find nothing");
    gated("semaphore gate 1", "around gate", "find nothing");
    gated("semaphore gate 2", "around gate", found);
    gated("rwlock gate", "around gate", found);
    gated("rwlock gate", "around gate x536870911", "find nothing");
    gated("mutex gate", "", found);
}

#[test]
fn one_task_meets_itself_in_its_branches_only() {
    let alone = |a: &str, ab: &str, b: &str, ba: &str, find: &str| {
        check(&format!(
            "mutex a
             mutex b
             task 4
               outer a: {a}
               inner b: {ab}
               outer b: {b}
               inner a: {ba}
             {find}"
        ));
    };
    alone("f@21", "f@23", "f@31", "f@33", "find nothing");
    let branch = |n: u32, line: u32| format!("f@10 > join!{n} > part_{n}@{line}");
    alone(
        &branch(1, 21),
        &branch(1, 23),
        &branch(2, 31),
        &branch(2, 33),
        "find order-inversion: task 4; a, b\nsays once the branches of one task meet",
    );
    alone(&branch(1, 21), &branch(1, 23), &branch(1, 31), &branch(1, 33), "find nothing");
}

#[test]
fn those_who_were_never_there_together() {
    let apart = |first: &str, second: &str, find: &str| {
        check(&format!(
            "mutex a
             mutex b
             {first}
               outer a: f@21
               inner b alive 3 newest 5: f@23
             {second}
               outer b: g@31
               inner a alive 3 newest 6: g@33
             {find}"
        ));
    };
    apart("task 4", "task 5", "find nothing");
    apart("task 4", "task 3", "find order-inversion: task 3, task 4; a, b");
    apart("root 1", "task 5", "find nothing");
    apart("root 1", "task 4", "find order-inversion: task 4, root 1; a, b");
    apart("task 4", "root 1", "find nothing");
}

#[test]
fn who_gives_up_or_gives_away_waits_for_nobody() {
    let second = |words: &str, path: &str, find: &str| {
        check(&format!(
            "semaphore a 1
             semaphore b 1
             task 4
               outer a {words}: f@21
               inner b {words}: {path}
             task 5
               outer b: g@31
               inner a: g@33
             {find}"
        ));
    };
    let found = "find order-inversion: task 4, task 5; a, b";
    second("", "f@23", found);
    second("", "f@23 > timeout > h@3", "find nothing");
    second("owned", "f@23", "find nothing");
    second("owned released 3", "f@23", found);
    second("owned released 3 elsewhere 1", "f@23", "find nothing");
}

#[test]
fn what_has_become_a_deadlock_is_told_as_that() {
    check(&format!(
        "{BOTH}
         task 4
           hold registry: status@21
           wait workers: status@23
         task 5
           hold workers: reload@31
           wait registry: reload@33
         find deadlock: task 4, task 5; registry, workers"
    ));
}
