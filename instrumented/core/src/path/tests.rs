//! Pairs of paths as text, and their relation. The first path is the hold's.

use super::{Acquired, Relation, blocks_executor, is_outside, is_scheduled, relation};
use crate::scenario::frames;
use crate::snapshot::Frame;
use Relation::{Blocked, Concurrent, Repeated, Unknown};

/// Two acquires with futures far apart and one poller.
const APART: (u64, u64, u64, u64) = (0x1000, 0x1, 0x2000, 0x1);
/// Their futures overlap.
const NEAR: (u64, u64, u64, u64) = (0x1000, 0x1, 0x1020, 0x1);
/// The very same future.
const SAME: (u64, u64, u64, u64) = (0x1000, 0x1, 0x1000, 0x1);
/// Polled by two children of a queue.
const POLLERS: (u64, u64, u64, u64) = (0x1000, 0x1, 0x2000, 0x2);
/// Nothing was recorded: a `try_` call.
const NONE: (u64, u64, u64, u64) = (0, 0, 0x2000, 0x1);

/// Functions with long names.
const SHORT: &[(&str, &str)] = &[
    ("%mine", "\"<app::Mine as core::future::future::Future>::poll\""),
    ("%poll_fn", "\"<core::future::poll_fn::PollFn<F> as core::future::future::Future>::poll\""),
    ("%call", "\"core::ops::function::FnOnce::call_once\""),
    (
        "%then",
        "\"<futures_util::future::future::Then<Fut1,Fut2,F> as core::future::future::Future>::poll\"",
    ),
    ("%v0_body", "\"app::f::{closure#0}\""),
    ("%v0_child", "\"app::g::<u32>::{closure#0}\""),
    (
        "%v0_poll_fn",
        "\"<core::future::poll_fn::PollFn<app::f::{closure#0}::{closure#1}> as core::future::future::Future>::poll\"",
    ),
    (
        "%v0_timeout",
        "\"<tokio::time::timeout::Timeout<app::g::{closure#0}> as core::future::future::Future>::poll\"",
    ),
];

#[track_caller]
fn related(hold: &str, wait: &str, at: (u64, u64, u64, u64), optimised: bool) -> Relation {
    let long = |path: &str| {
        SHORT.iter().rev().fold(path.to_owned(), |path, (short, long)| path.replace(short, long))
    };
    let (hold, wait) = (&long(hold), &long(wait));
    let (h, w) = (frames(hold).expect("well-formed"), frames(wait).expect("well-formed"));
    let hold = Acquired { frames: &h, future: at.0, poller: at.1 };
    let wait = Acquired { frames: &w, future: at.2, poller: at.3 };
    relation(&hold, &wait, optimised)
}

type Case = (&'static str, &'static str, (u64, u64, u64, u64), Relation);

#[track_caller]
fn check(optimised: bool, cases: &[Case]) {
    for (hold, wait, at, expected) in cases {
        let found = related(hold, wait, *at, optimised);
        assert_eq!(
            found, *expected,
            "\nhold {hold}\nwait {wait}\nat {at:x?}, optimised: {optimised}"
        );
    }
}

#[test]
fn one_body_awaits_one_thing_at_a_time() {
    let cases: &[Case] = &[
        ("f@10", "f@12", APART, Blocked),
        ("f@10:5", "f@10:30", APART, Blocked),
        ("f@10", "f@12 > g@3", APART, Blocked),
        ("f@10 > get@3", "f@12 > g@3", APART, Blocked),
        ("run@5 > f@10", "run@5 > f@12", APART, Blocked),
        ("run@5 > f@10", "run@5 > f@12", NONE, Blocked),
        // Boxed recursion, boxed trait futures.
        ("walk@3", "walk@5 > box > walk@3", APART, Blocked),
        ("run@5 > box > f@10", "run@5 > box > f@12", APART, Blocked),
        // A handler of `select!`, and what lies below a timeout.
        ("f@10 > select!1", "f@12 > select!1", APART, Blocked),
        ("f@10", "f@12 > timeout > g@1", APART, Blocked),
    ];
    check(false, cases);
    check(true, cases);
}

#[test]
fn one_place_in_a_body_is_another_round() {
    for optimised in [false, true] {
        check(
            optimised,
            &[
                ("f@10", "f@10", SAME, Repeated),
                ("f@10", "f@10", APART, Concurrent),
                ("f@10", "f@10", NONE, Unknown),
                ("f@10 > g@3", "f@10 > h@3", APART, Unknown),
            ],
        );
    }
    // A macro of the user's own has its awaits on one line. Optimisation may give one await two addresses.
    check(false, &[("f@10+1", "f@10+2", APART, Blocked)]);
    check(true, &[("f@10+1", "f@10+2", APART, Unknown)]);
}

#[test]
fn siblings_go_on() {
    for optimised in [false, true] {
        for combinator in ["join!", "try_join!", "select!"] {
            let branch = |n: u32| format!("f@10 > {combinator}{n} > work@3");
            assert_eq!(
                related(&branch(1), &branch(2), APART, optimised),
                Concurrent,
                "{combinator}"
            );
        }
        check(
            optimised,
            &[
                ("f@1 > unordered > work@3", "f@1 > unordered > work@5", POLLERS, Concurrent),
                (
                    "f@1 > buffer_unordered > unordered > work@3",
                    "f@1 > buffer_unordered > unordered > work@5",
                    POLLERS,
                    Concurrent,
                ),
                (
                    "f@1 > for_each_concurrent > unordered > work@3",
                    "f@1 > for_each_concurrent > unordered > work@5",
                    POLLERS,
                    Concurrent,
                ),
                ("f@1 > unordered > work@3", "f@1 > unordered > other@5", APART, Concurrent),
                ("f@1 > join_all > work@3", "f@1 > join_all > work@3", APART, Concurrent),
                (
                    "f@1 > join_all > box > work@3",
                    "f@1 > join_all > box > work@3",
                    APART,
                    Concurrent,
                ),
                ("f@1 > join_all > work@3", "f@1 > join_all > other@3", APART, Concurrent),
            ],
        );
    }
}

#[test]
fn one_child_of_a_combinator() {
    check(
        false,
        &[
            // A branch of a macro is one future, told by its return address.
            ("f@1 > join!1 > work@3", "f@1 > join!1 > work@5", APART, Blocked),
            ("f@1 > select!1 > work@3", "f@1 > select!1 > work@5", APART, Blocked),
            // A queue gives each child a poller.
            ("f@1 > unordered > work@3", "f@1 > unordered > work@5", APART, Blocked),
            ("f@1 > unordered > work@3", "f@1 > unordered > work@5", NONE, Unknown),
            // The poller is that of the inner queue, so it does not tell the outer's children apart.
            (
                "f@1 > unordered > work@3 > unordered > x@1",
                "f@1 > unordered > work@5",
                POLLERS,
                Unknown,
            ),
            // One waker for many children: only the addresses tell.
            ("f@1 > join_all > work@3", "f@1 > join_all > work@5", APART, Unknown),
            ("f@1 > join_all > work@3", "f@1 > join_all > work@5", NEAR, Blocked),
            ("f@1 > select_all > work@3", "f@1 > select_all > work@5", APART, Unknown),
            // Equal pollers below a queue settle what lies outside of it as well.
            (
                "f@1 > join_all > g@1 > unordered > work@3",
                "f@1 > join_all > g@1 > unordered > work@5",
                APART,
                Blocked,
            ),
            (
                "f@1 > unordered > g@1 > join_all > work@3",
                "f@1 > unordered > g@1 > join_all > work@5",
                APART,
                Unknown,
            ),
            // Whoever polls there may have many.
            (
                "f@1 > \"<app::Mine as core::future::future::Future>::poll\"@9 > box > work@3",
                "f@1 > \"<app::Mine as core::future::future::Future>::poll\"@9 > box > work@5",
                APART,
                Unknown,
            ),
            (
                "f@1 > \"<app::Mine as core::future::future::Future>::poll\"@9 > box > work@3",
                "f@1 > \"<app::Mine as core::future::future::Future>::poll\"@9 > box > work@5",
                NEAR,
                Blocked,
            ),
        ],
    );
    check(
        true,
        &[
            ("f@1 > join!1 > work@3", "f@1 > join!1 > work@5", APART, Unknown),
            ("f@1 > join!1 > work@3", "f@1 > join!1 > work@5", NEAR, Blocked),
        ],
    );
}

#[test]
fn a_branch_that_is_the_acquire_itself() {
    check(
        false,
        &[
            ("f@1 > join!1", "f@1 > join!2 > other@3", APART, Blocked),
            ("f@1 > join!1", "f@1 > join!2", APART, Blocked),
            ("f@1 > try_join!1 > box", "f@1 > try_join!2 > other@3", APART, Blocked),
            ("f@1 > join!1", "f@1 > join!1", SAME, Repeated),
            ("f@1 > join_all", "f@1 > join_all", APART, Blocked),
            ("f@1 > join_all", "f@1 > join_all", SAME, Repeated),
            // A branch of `select!` ends it.
            ("f@1 > select!1", "f@1 > select!2 > other@3", APART, Unknown),
            ("f@1 > select!1", "f@1 > select!1", SAME, Unknown),
            ("f@1 > unordered", "f@1 > unordered", POLLERS, Unknown),
            // Elsewhere it is as any other guard.
            ("f@1 > join!1", "f@2", APART, Blocked),
            ("f@1 > unordered", "f@2", APART, Blocked),
        ],
    );
}

#[test]
fn adapters_poll_one_child_after_the_other() {
    for optimised in [false, true] {
        check(
            optimised,
            &[
                ("f@1 > %then@3", "f@1 > %then@4 > g@1", APART, Blocked),
                ("f@1 > %then@3 > h@1", "f@1 > %then@3 > g@1", APART, Blocked),
                ("f@1 > timeout > h@1", "f@1 > timeout > g@1", APART, Blocked),
                ("f@1 > timeout > g@1", "f@1 > timeout > g@2", APART, Blocked),
            ],
        );
    }
}

#[test]
fn names_of_the_other_mangling() {
    for optimised in [false, true] {
        check(
            optimised,
            &[
                ("%v0_body@10", "%v0_body@12", APART, Blocked),
                ("%v0_body@10", "%v0_body@12 > %v0_child@3", APART, Blocked),
                ("%v0_body@10 > %v0_child@3", "%v0_body@10 > %v0_child@5", APART, Blocked),
                ("%v0_body@10 > %v0_timeout@1", "%v0_body@12 > %v0_timeout@1", APART, Blocked),
                (
                    "%v0_body@10 > %v0_poll_fn@1 > %v0_body@3+1 > %v0_child@1",
                    "%v0_body@10 > %v0_poll_fn@1 > %v0_body@3+2 > %v0_child@1",
                    APART,
                    Concurrent,
                ),
            ],
        );
    }
}

#[test]
fn what_is_not_known_is_unknown() {
    for optimised in [false, true] {
        check(
            optimised,
            &[
                ("f@1 > %mine@3", "f@1 > %mine@4", APART, Unknown),
                ("f@1 > %mine@3 > work@1", "f@1 > %mine@3 > work@2", APART, Unknown),
                // A closure that is called in a poll is not a body.
                ("f@1 > %call@1 > g@3", "f@1 > %call@1 > g@4", APART, Unknown),
                // The closure of a `poll_fn` may poll anything.
                (
                    "f@1 > %poll_fn@1 > f@3 > work@1",
                    "f@1 > %poll_fn@1 > f@4 > work@1",
                    APART,
                    Concurrent,
                ),
                (
                    "f@1 > %poll_fn@1 > f@3 > work@1",
                    "f@1 > %poll_fn@1 > f@3 > work@2",
                    APART,
                    Unknown,
                ),
                ("f@1", "f@1 > g@3", APART, Unknown),
                ("f@1", "g@1", APART, Unknown),
                ("\"\"@0", "f@1", APART, Unknown),
            ],
        );
    }
    let nothing = Acquired { frames: &[], future: 1, poller: 1 };
    assert_eq!(relation(&nothing, &nothing, false), Unknown);
}

#[test]
fn inlined_frames_are_compared_by_place() {
    // The outer frames of one physical frame have its address, which differs because of what is innermost in it.
    check(
        false,
        &[
            ("run@5 > ~f@10", "run@5 > ~f@12", APART, Blocked),
            ("run@5 > ~f@10", "run@5 > ~f@12 > g@1", APART, Blocked),
            ("run@5 > join!1 > ~work@3", "run@5 > join!2 > ~work@3", APART, Concurrent),
        ],
    );
}

#[test]
fn optimised_code_without_places_hides_combinators() {
    check(true, &[("f@0+1", "f@0+2", APART, Unknown)]);
    check(false, &[("f@0+1", "f@0+2", APART, Blocked)]);
}

/// The frames of these functions, innermost first.
fn functions(names: &[&str]) -> Vec<Frame> {
    let frame =
        |name: &&str| Frame { function: (*name).into(), site: None, address: 0, inlined: false };
    names.iter().map(frame).collect()
}

const BLOCK_ON: &str = "futures_executor::local_pool::block_on";
const POLL: &str = "tokio::runtime::task::core::Core<T,S>::poll";
const CURRENT: &str = "tokio::runtime::scheduler::current_thread::CoreGuard::block_on";
const WORKER: &str = "tokio::runtime::scheduler::multi_thread::worker::Context::run_task";
const JOB: &str =
    "<tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll";
const IN_PLACE: &str = "tokio::runtime::scheduler::multi_thread::worker::block_in_place";
const PARKED: &str = "tokio::runtime::park::CachedParkThread::block_on";
const LOCAL: &str = "tokio::task::local::LocalSet::tick";

#[test]
fn a_wait_that_blocks_an_executor() {
    let blocking: &[&[&str]] = &[
        &["app::callback", BLOCK_ON, "app::run", POLL, WORKER],
        &["app::callback", "pollster::block_on", "app::run", POLL, CURRENT],
        &["app::callback", BLOCK_ON, "app::run", CURRENT],
        &["app::callback", BLOCK_ON, "app::run", POLL, LOCAL, CURRENT],
    ];
    for names in blocking {
        assert!(blocks_executor(&functions(names)), "{names:?}");
    }
    let others: &[&[&str]] = &[
        &[],
        &["app::run"],
        &["app::run", POLL, WORKER],
        // A thread of its own, one for blocking work, one that hands its tasks over, and a root future's.
        &["app::callback", BLOCK_ON, "app::main", "std::rt::lang_start"],
        &["app::callback", BLOCK_ON, "app::job", JOB, POLL],
        &["app::callback", BLOCK_ON, "app::run", IN_PLACE, POLL, WORKER],
        &["app::callback", BLOCK_ON, "app::run", PARKED],
        &["app::run", PARKED, "app::callback", POLL],
        &["app::callback", BLOCK_ON, "", ""],
    ];
    for names in others {
        assert!(!blocks_executor(&functions(names)), "{names:?}");
    }
}

#[test]
fn what_a_scheduler_polls() {
    // By a current-thread runtime, by a multi-threaded one.
    let cases: &[(&[&str], bool, bool)] = &[
        (&["app::run", POLL, WORKER], true, true),
        (&["app::run", CURRENT], true, false),
        (&["app::run", POLL, LOCAL, CURRENT], true, false),
        (&["app::run", POLL, LOCAL, PARKED], true, false),
        (&["app::run", PARKED], false, false),
        (&["app::run", BLOCK_ON, POLL], false, false),
        (&["app::run"], false, false),
        (&[""], false, false),
    ];
    for (names, current, multi) in cases {
        let frames = functions(names);
        let found = (is_scheduled(&frames, true), is_scheduled(&frames, false));
        assert_eq!(found, (*current, *multi), "{names:?}");
    }
}

#[test]
fn names_are_needed_up_to_the_scheduler() {
    for (name, outside) in [
        (CURRENT, true),
        (WORKER, true),
        (PARKED, true),
        ("async_executor::Executor::run", true),
        (POLL, false),
        (LOCAL, false),
        (BLOCK_ON, false),
        ("app::run", false),
    ] {
        assert_eq!(is_outside(&functions(&[name])[0]), outside, "{name}");
    }
}
