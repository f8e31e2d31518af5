//! One way of writing the names that compilers and debug formats give to a function.
//!
//! The same function is `<core::pin::Pin<P> as core::future::future::Future>::poll` with legacy mangling, carries
//! concrete type arguments with v0, and is no more than `poll<&mut …>` where debug information has line tables only.
//! There, the file tells the crate and the module.

use crate::snapshot::{Frame, Site};

/// The function's path without type arguments: `core::pin::Pin::poll`, or `core::future::future::poll` by the file.
pub(super) fn path_of(frame: &Frame) -> String {
    let path = plain(&frame.function);
    match &frame.site {
        Some(site) if !path.contains("::") => match module(site) {
            Some(module) => format!("{module}::{path}"),
            None => path,
        },
        _ => path,
    }
}

/// Leaves out type arguments, and of `<T as Trait>::f` keeps `T::f`.
fn plain(function: &str) -> String {
    let mut out = String::with_capacity(function.len());
    let mut rest = function;
    if let Some(inner) = function.strip_prefix('<')
        && let Some(end) = closing(inner)
    {
        let (subject, tail) = (&inner[..end], &inner[end + 1..]);
        let subject = before_as(subject);
        if subject.starts_with(['&', '*', '(', '[']) {
            out.push('&');
        } else {
            without_arguments(subject.strip_prefix("dyn ").unwrap_or(subject), &mut out);
        }
        rest = tail;
    }
    without_arguments(rest, &mut out);
    while let Some(at) = out.find("::::") {
        out.replace_range(at..at + 2, "");
    }
    if out.ends_with("::") {
        out.truncate(out.len() - 2);
    }
    out
}

fn without_arguments(text: &str, out: &mut String) {
    let mut depth = 0u32;
    let mut last = ' ';
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(c),
            _ => {}
        }
        last = c;
    }
}

/// Where the bracket that was open before `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1u32;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        last = c;
    }
    None
}

/// `T` of `T as Trait`, brackets respected.
fn before_as(text: &str) -> &str {
    let mut depth = 0u32;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && text[at..].starts_with(" as ") => return &text[..at],
            _ => {}
        }
        last = c;
    }
    text
}

/// The crate and module of a file, by the customs of cargo: `…/tokio-1.54.1/src/future/maybe_done.rs` is
/// `tokio::future::maybe_done`.
pub(super) fn module(site: &Site) -> Option<String> {
    let file = site.file.replace('\\', "/");
    let at = file.rfind("/src/")?;
    let folder = file[..at].rsplit('/').next()?;
    let module = file[at + "/src/".len()..].strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let mut path = crate_name(folder);
    if !matches!(module, "lib" | "main" | "mod") {
        path.push_str("::");
        path.push_str(&module.replace('/', "::"));
    }
    Some(path)
}

/// The folder's name without the version that the registry appends.
fn crate_name(folder: &str) -> String {
    let versioned = |at: usize| folder[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let end = folder
        .match_indices('-')
        .map(|(at, _)| at)
        .find(|at| versioned(*at))
        .unwrap_or(folder.len());
    match &folder[..end] {
        // holdup's folder in its own workspace.
        "instrumented" => "holdup".to_owned(),
        name => name.replace('-', "_"),
    }
}

/// The function as a person would say it, `store::save` or `Store::save`; `None` for what no user wrote.
pub(super) fn spoken(frame: &Frame) -> Option<String> {
    const LIBRARIES: &[&str] = &[
        "core",
        "std",
        "alloc",
        "tokio",
        "tokio_util",
        "tokio_stream",
        "futures",
        "futures_util",
        "futures_core",
        "futures_lite",
        "futures_executor",
        "async_stream",
        "tracing",
        "tracing_futures",
        "tower",
        "tower_http",
        "hyper",
        "hyper_util",
        "axum",
        "tonic",
        "holdup",
        "backtrace",
        "&",
    ];
    let path = plain(&frame.function);
    // A name without a path, `{async_fn#0}`, tells nobody anything.
    let mut parts: Vec<&str> = path.split("::").filter(|part| !part.starts_with('{')).collect();
    if !path.contains("::") || parts.first().is_none_or(|first| LIBRARIES.contains(first)) {
        return None;
    }
    if parts.len() > 2 {
        parts.drain(..parts.len() - 2);
    }
    Some(parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn frame(function: &str, file: &str) -> Frame {
        let site = (!file.is_empty()).then(|| Site { file: file.into(), line: 1, column: 1 });
        Frame { function: Arc::from(function), site, address: 1, inlined: false }
    }

    #[test]
    fn one_path_for_every_way_of_naming() {
        let cases = [
            ("app::f::{{closure}}", "", "app::f::{{closure}}"),
            (
                "<core::pin::Pin<P> as core::future::future::Future>::poll",
                "",
                "core::pin::Pin::poll",
            ),
            ("<&mut F as core::future::future::Future>::poll", "", "&::poll"),
            (
                "<core::future::poll_fn::PollFn<app::f::{closure#0}::{closure#1}> as core::future::future::Future>::poll",
                "",
                "core::future::poll_fn::PollFn::poll",
            ),
            (
                "<tokio::runtime::task::core::Core<_, _>>::poll::{closure#0}",
                "",
                "tokio::runtime::task::core::Core::poll::{closure#0}",
            ),
            (
                "tokio::runtime::task::core::Core<T,S>::poll",
                "",
                "tokio::runtime::task::core::Core::poll",
            ),
            ("app::g::<u32, fn(A) -> B>::{closure#0}", "", "app::g::{closure#0}"),
            (
                "<alloc::boxed::Box<dyn Fn(A) -> B + Send> as Future>::poll",
                "",
                "alloc::boxed::Box::poll",
            ),
            (
                "poll<tokio::sync::semaphore::{impl#0}::acquire::{async_fn_env#0}>",
                "/root/.cargo/registry/src/index.crates.io-1949/futures-util-0.3.34/src/future/join_all.rs",
                "futures_util::future::join_all::poll",
            ),
            (
                "{closure#0}<A, B>",
                "/x/tokio-1.54.1/src/runtime/task/core.rs",
                "tokio::runtime::task::core::{closure#0}",
            ),
            ("poll", "/rustc/59807616/library/core/src/future/mod.rs", "core::future::poll"),
            ("{async_fn#0}", "/home/me/my-app/src/main.rs", "my_app::{async_fn#0}"),
            ("{async_fn#0}", "C:\\work\\my-app\\src\\a\\b.rs", "my_app::a::b::{async_fn#0}"),
            ("{async_fn#0}", "src/main.rs", "{async_fn#0}"),
            ("", "", ""),
        ];
        for (function, file, expected) in cases {
            assert_eq!(path_of(&frame(function, file)), expected, "{function} in {file}");
        }
    }

    #[test]
    fn functions_are_named_as_people_say_them() {
        let cases = [
            ("app::store::simulate_and_persist::{{closure}}", Some("store::simulate_and_persist")),
            ("app::main::{closure#0}::{closure#1}", Some("app::main")),
            ("<app::pool::Pool as app::Checkout>::get::{{closure}}", Some("Pool::get")),
            ("<tokio::time::timeout::Timeout<T> as Future>::poll", None),
            ("{async_fn#0}", None),
            ("", None),
        ];
        for (function, expected) in cases {
            assert_eq!(spoken(&frame(function, "")).as_deref(), expected, "{function}");
        }
    }
}
