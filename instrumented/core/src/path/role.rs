//! What the functions on a path do with the futures below them.

use super::name;
use crate::snapshot::Frame;

/// What a frame does with what it polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An `async` body: one thing after the other.
    Body,
    /// Polls one child at a time: an adapter, or a `Box` or `Pin` that hands the poll on.
    Sequence,
    /// Polls one child, and gives it up when it takes too long or on a signal.
    Timeout,
    /// Runs a function that it was given, within the poll.
    Call,
    /// `PollFn`, which is what `join!` and `select!` are made of; the closure below it decides.
    PollFn,
    /// Several children with one waker, each polled from a place of its own.
    Static,
    /// Several children with a waker each.
    Queue,
    /// Several children with one waker, polled from one place.
    Many,
    /// Anything else, which could do all of it.
    Unknown,
}

impl Role {
    pub(super) fn is_combinator(self) -> bool {
        matches!(self, Role::PollFn | Role::Static | Role::Queue | Role::Many)
    }
}

/// Further properties of a combinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trait {
    /// Keeps what each child returned until all are done.
    pub(super) join: bool,
}

const JOIN: Trait = Trait { join: true };
const NONE: Trait = Trait { join: false };

/// By module, so that names without types (by the file) are found as well. The first that matches counts.
#[rustfmt::skip]
const MODULES: &[(&str, Role, Trait)] = &[
    ("core::future::poll_fn",                                Role::PollFn,   NONE),
    ("futures_util::future::poll_fn",                        Role::PollFn,   NONE),
    ("futures_util::stream::poll_fn",                        Role::PollFn,   NONE),
    ("futures_lite::future::PollFn",                         Role::PollFn,   NONE),

    ("core::future::join",                                   Role::Static,   JOIN),
    ("tokio::future::maybe_done",                            Role::Static,   JOIN),
    ("tokio::future",                                        Role::Static,   NONE),
    ("tokio::macros::join",                                  Role::Static,   JOIN),
    ("tokio::macros::try_join",                              Role::Static,   JOIN),
    ("tokio::macros::select",                                Role::Static,   NONE),
    ("futures_util::async_await::join_mod",                  Role::Static,   JOIN),
    ("futures_util::async_await::select_mod",                Role::Static,   NONE),
    ("futures_util::future::join",                           Role::Static,   JOIN),
    ("futures_util::future::try_join",                       Role::Static,   JOIN),
    ("futures_util::future::maybe_done",                     Role::Static,   JOIN),
    ("futures_util::future::try_maybe_done",                 Role::Static,   JOIN),
    ("futures_util::future::select",                         Role::Static,   NONE),
    ("futures_util::future::try_select",                     Role::Static,   NONE),
    ("futures_util::stream::select",                         Role::Static,   NONE),
    ("futures_util::stream::select_with_strategy",           Role::Static,   NONE),
    ("futures_util::stream::stream::zip",                    Role::Static,   NONE),
    ("tokio_stream::stream_ext::merge",                      Role::Static,   NONE),
    ("futures_lite::future::Zip",                            Role::Static,   JOIN),
    ("futures_lite::future::TryZip",                         Role::Static,   JOIN),
    ("futures_lite::future::Or",                             Role::Static,   NONE),
    ("futures_lite::future::Race",                           Role::Static,   NONE),

    ("futures_util::stream::futures_unordered",              Role::Queue,    NONE),
    ("futures_util::stream::futures_ordered",                Role::Queue,    NONE),
    ("futures_util::stream::stream::buffer_unordered",       Role::Queue,    NONE),
    ("futures_util::stream::stream::buffered",               Role::Queue,    NONE),
    ("futures_util::stream::stream::for_each_concurrent",    Role::Queue,    NONE),
    ("futures_util::stream::stream::flatten_unordered",      Role::Queue,    NONE),
    ("futures_util::stream::try_stream::try_buffer_unordered",    Role::Queue, NONE),
    ("futures_util::stream::try_stream::try_buffered",            Role::Queue, NONE),
    ("futures_util::stream::try_stream::try_for_each_concurrent", Role::Queue, NONE),
    ("futures_util::stream::try_stream::try_flatten_unordered",   Role::Queue, NONE),
    ("futures_buffered",                                     Role::Queue,    NONE),

    ("futures_util::future::join_all",                       Role::Many,     JOIN),
    ("futures_util::future::try_join_all",                   Role::Many,     JOIN),
    ("futures_util::future::select_all",                     Role::Many,     NONE),
    ("futures_util::future::select_ok",                      Role::Many,     NONE),
    ("futures_util::stream::select_all",                     Role::Many,     NONE),
    ("futures_concurrency",                                  Role::Many,     NONE),
    ("tokio_stream::stream_map",                             Role::Many,     NONE),

    ("tokio::time::timeout",                                 Role::Timeout,  NONE),
    ("tokio_stream::stream_ext::timeout",                    Role::Timeout,  NONE),
    ("tokio_stream::stream_ext::timeout_repeating",          Role::Timeout,  NONE),
    ("tokio_util::sync::cancellation_token",                 Role::Timeout,  NONE),
    ("tokio_util::future",                                   Role::Timeout,  NONE),
    ("futures_util::abortable",                              Role::Timeout,  NONE),
    ("futures_util::future::abortable",                      Role::Timeout,  NONE),
    ("futures_util::stream::stream::take_until",             Role::Timeout,  NONE),
    ("tower::timeout",                                       Role::Timeout,  NONE),
    ("tower_http::timeout",                                  Role::Timeout,  NONE),

    ("core::ops::function",                                  Role::Call,     NONE),
    ("core::ops::async_function",                            Role::Call,     NONE),
    ("core::panic::unwind_safe::AssertUnwindSafe::call_once", Role::Call,    NONE),
    ("core::panic::unwind_safe::call_once",                  Role::Call,     NONE),
    ("futures_util::fns",                                    Role::Call,     NONE),
    ("std::thread::local",                                   Role::Call,     NONE),
    ("std::panicking",                                       Role::Call,     NONE),
    ("std::panic",                                           Role::Call,     NONE),
    ("__rust_try",                                           Role::Call,     NONE),

    ("core::pin",                                            Role::Sequence, NONE),
    ("core::future",                                         Role::Sequence, NONE),
    ("core::panic::unwind_safe",                             Role::Sequence, NONE),
    ("alloc::boxed",                                         Role::Sequence, NONE),
    ("&::poll",                                              Role::Sequence, NONE),
    ("&::poll_next",                                         Role::Sequence, NONE),
    ("&::try_poll",                                          Role::Sequence, NONE),
    ("&::try_poll_next",                                     Role::Sequence, NONE),
    ("tokio::task::coop",                                    Role::Sequence, NONE),
    ("tokio::task::local",                                   Role::Sequence, NONE),
    ("tokio::task::task_local",                              Role::Sequence, NONE),
    ("tokio::task::unconstrained",                           Role::Sequence, NONE),
    ("tokio::util::trace",                                   Role::Sequence, NONE),
    ("tokio::trace",                                         Role::Sequence, NONE),
    ("tokio_util::either",                                   Role::Sequence, NONE),
    ("tokio_stream::stream_ext",                             Role::Sequence, NONE),
    ("futures_core::future",                                 Role::Sequence, NONE),
    ("futures_core::stream",                                 Role::Sequence, NONE),
    // Polls once and gives up; what was begun there may be anywhere now.
    ("futures_util::future::future::FutureExt::now_or_never", Role::Unknown, NONE),
    ("futures_util::future::future::now_or_never",           Role::Unknown,  NONE),
    ("futures_util::future::future::shared",                 Role::Unknown,  NONE),
    ("futures_util::future::future::remote_handle",          Role::Unknown,  NONE),
    ("futures_util::future::future",                         Role::Sequence, NONE),
    ("futures_util::future::try_future",                     Role::Sequence, NONE),
    ("futures_util::future::either",                         Role::Sequence, NONE),
    ("futures_util::future::lazy",                           Role::Sequence, NONE),
    ("futures_util::future::option",                         Role::Sequence, NONE),
    ("futures_util::stream::once",                           Role::Sequence, NONE),
    ("futures_util::stream::unfold",                         Role::Sequence, NONE),
    ("futures_util::stream::try_stream",                     Role::Sequence, NONE),
    ("futures_util::stream::stream",                         Role::Sequence, NONE),
    ("futures_util::unfold_state",                           Role::Sequence, NONE),
    ("tracing::instrument",                                  Role::Sequence, NONE),
    ("tracing::span",                                        Role::Sequence, NONE),
    ("tracing_futures",                                      Role::Sequence, NONE),
    ("tower::util::call_all",                                Role::Unknown,  NONE),
    ("tower::util",                                          Role::Sequence, NONE),
    ("tower::limit",                                         Role::Sequence, NONE),
    ("tower::load_shed",                                     Role::Sequence, NONE),
    ("tower_http",                                           Role::Sequence, NONE),
    ("axum",                                                 Role::Sequence, NONE),
    ("axum_core",                                            Role::Sequence, NONE),
    ("hyper::proto::h1",                                     Role::Sequence, NONE),
    ("hyper::server::conn::http1",                           Role::Sequence, NONE),
    ("hyper::service",                                       Role::Sequence, NONE),
    ("hyper_util::server",                                   Role::Sequence, NONE),
    ("hyper_util::service",                                  Role::Sequence, NONE),
];

/// The role of a frame with this path, called by a frame of role `parent`.
pub(super) fn role_of(path: &str, frame: &Frame, parent: Role) -> (Role, Trait) {
    if let Some((_, role, traits)) = MODULES.iter().find(|(module, ..)| within(path, module)) {
        // A function that is called on behalf of `PollFn` stands for it.
        return if (*role, parent) == (Role::Call, Role::PollFn) {
            (Role::PollFn, NONE)
        } else {
            (*role, *traits)
        };
    }
    // The trait's own method, whichever type it is for.
    if frame.function.contains(" as futures_core::future::TryFuture>::")
        || frame.function.contains(" as futures_core::stream::TryStream>::")
    {
        return (Role::Sequence, NONE);
    }
    let last = path.rsplit("::").next().unwrap_or(path);
    if parent == Role::PollFn {
        return closure_of_poll_fn(last, frame);
    }
    // Only `async` has these names; a closure and an `async` block can both have the others.
    if ["{async_fn#", "{async_block#", "{async_closure#"].iter().any(|name| last.starts_with(name))
    {
        return (Role::Body, NONE);
    }
    let closure = last == "{{closure}}"
        || (last.starts_with("{closure#") && !frame.function.starts_with('{'));
    let polls_bodies = !matches!(parent, Role::Call | Role::PollFn | Role::Unknown);
    (if closure && polls_bodies { Role::Body } else { Role::Unknown }, NONE)
}

/// The macros' closures poll each branch from a place of its own, which lies in the macro's file. A closure that
/// somebody wrote may loop over children.
fn closure_of_poll_fn(last: &str, frame: &Frame) -> (Role, Trait) {
    if !(last == "{{closure}}" || last.starts_with("{closure#")) {
        return (Role::Unknown, NONE);
    }
    let module = frame.site.as_ref().and_then(name::module).unwrap_or_default();
    let found =
        MODULES.iter().find(|(known, role, _)| *role == Role::Static && within(&module, known));
    found.map_or((Role::Many, NONE), |(_, role, traits)| (*role, *traits))
}

fn within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// How many of the innermost frames belong to holdup, the primitives it wraps, and the unwinder, given the paths
/// innermost first.
pub(super) fn own_frames(paths: &[String]) -> usize {
    const OWN: &[&str] = &[
        "holdup",
        "backtrace",
        "std::backtrace",
        "tokio::sync::batch_semaphore",
        "tokio::sync::semaphore",
    ];
    // What these call on the way: thread-locals, closures.
    const BETWEEN: &[&str] = &["core", "std", "alloc", "tokio::task::coop", "__rust_try"];
    let own =
        |path: &str| OWN.iter().any(|module| within(path, module)) && !path.contains("::tests::");
    let mut count = 0;
    for (at, path) in paths.iter().enumerate() {
        if own(path) {
            count = at + 1;
        } else if !BETWEEN.iter().any(|module| within(path, module)) {
            break;
        }
    }
    count
}

/// A `block_on` that knows nothing of tokio, and so blocks the thread whatever runs there.
pub(super) fn is_foreign_block_on(path: &str) -> bool {
    !within(path, "tokio::runtime")
        && (within(path, "futures_executor") || path.split("::").any(|part| part == "block_on"))
}

/// A frame of the machinery that polls tasks and root futures.
pub(super) fn is_runtime(path: &str) -> bool {
    ["tokio::runtime", "async_executor", "async_task", "futures_executor", "tokio_test"]
        .iter()
        .any(|module| within(path, module))
        || path.split("::").any(|part| part == "block_on")
}
