//! Words and numbers as people read them: ages, counts, names, all free of control characters.
//!
//! Everything that came from the observed process passes through [`clean`] or [`fit`] before it reaches a
//! terminal: a name must not be able to move the cursor.

use holdup_core::snapshot::{Actor, ActorId, Frame, Kind, Resource, Site};
use std::borrow::Cow;
use std::time::Duration;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What to say of a program that was started and does not serve.
pub const NOT_SERVING: &str = "no holdup service came up within 5 s; is the program built with holdup in debug, or with always-on?";

/// A capacity from which on there is no limit to speak of: the most readers that tokio's `RwLock` takes.
pub const UNLIMITED: u64 = (u32::MAX >> 3) as u64;

/// A time span in at most eight cells: `80 µs`, `31 ms`, `2.03 s`, `71 s`, `14 min`, `3 h`, `5 d`.
///
/// Cut, not rounded: nothing is called older than it is.
#[must_use]
pub fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    match span.as_micros() {
        0 => "<1 µs".into(),
        us @ 1..1_000 => format!("{us} µs"),
        us @ 1_000..1_000_000 => format!("{} ms", us / 1_000),
        us @ 1_000_000..10_000_000 => format!("{}.{:02} s", seconds, us % 1_000_000 / 10_000),
        _ if seconds < 120 => format!("{seconds} s"),
        _ if seconds < 2 * 3_600 => format!("{} min", seconds / 60),
        _ if seconds < 48 * 3_600 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A count in at most six cells: `912`, `1.2k`, `41k`, `3.4M`.
#[must_use]
pub fn count(n: u64) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if n < 1_000 {
        return n.to_string();
    }
    let mut scale = 1_000_u64;
    let mut unit = 0;
    while n / scale >= 1_000 {
        scale *= 1_000;
        unit += 1;
    }
    if n / scale < 10 {
        format!("{}.{}{}", n / scale, n % scale / (scale / 10), UNITS[unit])
    } else {
        format!("{}{}", n / scale, UNITS[unit])
    }
}

/// A count in full: `1,000,000`.
#[must_use]
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 permit`, `2 permits`.
#[must_use]
pub fn plural(n: u64, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {one}{s}", thousands(n))
}

/// What somebody has or wants of a resource: `1 permit`, `the lock`, `a read lock`, `the write lock`,
/// `room for 3 messages`.
#[must_use]
pub fn wanted(resource: &Resource, units: u64) -> String {
    match resource.kind {
        Kind::Mutex => "the lock".into(),
        Kind::RwLock if units == 1 => "a read lock".into(),
        Kind::RwLock if units >= resource.capacity() => "the write lock".into(),
        Kind::RwLock => plural(units, "read lock"),
        Kind::Channel => format!("room for {}", plural(units, "message")),
        _ => plural(units, "permit"),
    }
}

/// The same in one word for a table; a single permit is worth none.
#[must_use]
pub fn units(resource: &Resource, units: u64) -> String {
    match resource.kind {
        Kind::RwLock if units == 1 => "read".into(),
        Kind::RwLock if units >= resource.capacity() => "write".into(),
        _ if units == 1 => String::new(),
        _ => format!("×{}", count(units)),
    }
}

/// How much of a resource is taken, and of how much.
#[must_use]
pub fn used(resource: &Resource, number: fn(u64) -> String) -> String {
    let (held, capacity) = (resource.usage.held, resource.capacity());
    if resource.kind == Kind::RwLock && held > 1 && held >= capacity {
        return "write".into();
    }
    let all = if capacity >= UNLIMITED { "∞".into() } else { number(capacity) };
    format!("{}/{all}", number(held))
}

/// The text on one line without anything that a terminal would act on.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if acts(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters, and the formatting characters that reorder or hide text.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The cells that a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cleans the text and shortens it to `cells`, ending in `…` if something was cut.
#[must_use]
pub fn shorten(text: &str, cells: usize) -> String {
    let text = clean(text);
    if text.width() <= cells {
        return text.into_owned();
    }
    if cells == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > cells {
            break;
        }
        used += w;
        out.push(c);
    }
    out.push('…');
    out
}

/// Like [`shorten`], but keeps the end: `…/store.rs:47`.
#[must_use]
pub fn shorten_start(text: &str, cells: usize) -> String {
    let text = clean(text);
    if text.width() <= cells {
        return text.into_owned();
    }
    if cells == 0 {
        return String::new();
    }
    let mut kept = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > cells {
            break;
        }
        used += w;
        kept.push(c);
    }
    kept.push('…');
    kept.into_iter().rev().collect()
}

/// Exactly `cells` wide, text on the left.
#[must_use]
pub fn fit(text: &str, cells: usize) -> String {
    let mut out = shorten(text, cells);
    pad(&mut out, cells);
    out
}

/// Exactly `cells` wide, text on the right: for numbers.
#[must_use]
pub fn fit_right(text: &str, cells: usize) -> String {
    let text = shorten(text, cells);
    let mut out = " ".repeat(cells.saturating_sub(text.width()));
    out.push_str(&text);
    out
}

fn pad(text: &mut String, cells: usize) {
    for _ in text.width()..cells {
        text.push(' ');
    }
}

/// A bar of `cells` cells that is full at `part == whole`, in eighths of a cell.
#[must_use]
pub fn bar(part: u64, whole: u64, cells: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let steps = cells as u128 * 8;
    let filled = match (part, whole) {
        (0, _) => 0,
        (_, 0) => steps,
        _ if cells == 0 => 0,
        // Something that is used is visible, however little it is.
        _ => (u128::from(part) * steps / u128::from(whole)).clamp(1, steps),
    };
    let (full, rest) = ((filled / 8) as usize, (filled % 8) as usize);
    let mut out = "█".repeat(full);
    if full < cells && rest > 0 {
        out.push(EIGHTHS[rest]);
    }
    pad(&mut out, cells);
    out
}

/// The place as `file:line`, with as many of its folders as fit.
#[must_use]
pub fn site(site: &Site, cells: usize) -> String {
    let suffix = if site.line > 0 { format!(":{}", site.line) } else { String::new() };
    let file = clean(&site.file);
    let room = cells.saturating_sub(suffix.len());
    let mut rest: &str = &file;
    while rest.width() > room {
        match rest.find(['/', '\\']) {
            Some(at) => rest = &rest[at + 1..],
            None => break,
        }
    }
    shorten_start(&format!("{rest}{suffix}"), cells)
}

/// What to call a resource: its name, else where it was created.
#[must_use]
pub fn resource(resource: &Resource, sites: &[Site]) -> String {
    match (&resource.name, sites.get(resource.created.0 as usize)) {
        (Some(name), _) => clean(name).into_owned(),
        (None, Some(created)) => site(created, 24),
        (None, None) => format!("{} {}", resource.kind.as_str(), resource.id),
    }
}

/// The kind in at most six cells.
#[must_use]
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Semaphore => "sem",
        Kind::Mutex => "mutex",
        Kind::RwLock => "rwlock",
        Kind::Channel => "chan",
        _ => "?",
    }
}

/// Who it is, shortly: `task 17`, `main future`, `thread 3`.
#[must_use]
pub fn actor(id: ActorId) -> String {
    match id {
        ActorId::Task(n) => format!("task {n}"),
        ActorId::Root(_) => "root future".into(),
        ActorId::Thread(n) => format!("thread {n}"),
    }
}

/// Who it is, with its name where that says more: ``task 17 `simulate` ``.
#[must_use]
pub fn actor_named(id: ActorId, known: Option<&Actor>) -> String {
    let short = actor(id);
    match known.and_then(|a| a.name.as_deref()) {
        Some(name) if matches!(id, ActorId::Task(_)) => format!("{short} `{}`", clean(name)),
        Some(name) => format!("{short} on `{}`", clean(name)),
        None => short,
    }
}

/// The crate that a frame's code is from: by its file where that tells, else by the function's name.
///
/// The names of inlined functions often come without their path, so the file is asked first.
#[must_use]
pub fn crate_of(frame: &Frame) -> &str {
    frame
        .site
        .as_ref()
        .and_then(|site| crate_of_file(&site.file))
        .unwrap_or_else(|| crate_of_function(&frame.function))
}

/// `tokio` for `…/registry/src/index.crates.io-1949cf8c/tokio-1.54.1/src/task.rs`, `std` for the standard library.
fn crate_of_file(file: &str) -> Option<&str> {
    if file.contains("/rustc/") || file.contains("/rustlib/src/") {
        return Some("std");
    }
    let (_, below) = file.split_once("/registry/src/")?;
    let folder = below.split('/').nth(1)?;
    let version = folder
        .match_indices('-')
        .find(|(at, _)| folder[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    Some(version.map_or(folder, |(at, _)| &folder[..at]))
}

/// `tokio` for `<tokio::task::Core<T> as Future>::poll`.
fn crate_of_function(function: &str) -> &str {
    let mut rest = function;
    loop {
        let before = rest;
        for prefix in ["<", "&", "*const ", "*mut ", "mut ", "dyn ", "(", "["] {
            rest = rest.strip_prefix(prefix).unwrap_or(rest);
        }
        if rest == before {
            break;
        }
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    &rest[..end]
}

/// Whether a frame belongs to the runtime or the standard library rather than to the program.
#[must_use]
pub fn is_runtime(frame: &Frame) -> bool {
    const RUNTIME: [&str; 13] = [
        "tokio",
        "std",
        "core",
        "alloc",
        "holdup",
        "backtrace",
        "tokio_util",
        "tokio-util",
        "futures_util",
        "futures-util",
        "futures_core",
        "futures-core",
        "tracing",
    ];
    const ENTRY: [&str; 9] = [
        "main",
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "__clone3",
        "clone3",
        "__rust_try",
    ];
    frame.function.is_empty()
        || RUNTIME.contains(&crate_of(frame))
        || ENTRY.contains(&&*frame.function)
}

/// The function's name without the compiler's additions: `store::save` for `store::save::{{closure}}`.
#[must_use]
pub fn function(name: &str) -> String {
    let mut name = clean(name).into_owned();
    loop {
        let cut = match name.rsplit_once("::") {
            Some((rest, last)) if last.starts_with('{') && last.ends_with('}') => rest.len(),
            _ => break,
        };
        name.truncate(cut);
    }
    name
}

/// The last two parts of a function's name, for narrow columns.
#[must_use]
pub fn function_short(name: &str) -> String {
    let name = function(name);
    if name.contains('<') {
        return name;
    }
    let mut parts = name.rsplitn(3, "::");
    match (parts.next(), parts.next()) {
        (Some(last), Some(before)) => format!("{before}::{last}"),
        _ => name,
    }
}

/// The innermost frame that belongs to the program.
#[must_use]
pub fn own_frame(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|f| !is_runtime(f))
}

/// A run of a call stack, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fold<'a> {
    /// A frame of the program, or of anything when unfolded.
    Frame(&'a Frame),
    /// That many frames of the runtime; the crates by how many frames they have.
    Runtime(usize, String),
}

/// Folds the runs of runtime frames of a stack.
#[must_use]
pub fn fold(frames: &[Frame], unfolded: bool) -> Vec<Fold<'_>> {
    if unfolded {
        return frames.iter().map(Fold::Frame).collect();
    }
    // Entry points belong to no crate that says something.
    const KNOWN: [&str; 7] =
        ["tokio", "std", "holdup", "tokio_util", "tokio-util", "futures_util", "futures-util"];
    let mut out = Vec::new();
    for run in frames.chunk_by(|a, b| is_runtime(a) && is_runtime(b)) {
        if !is_runtime(&run[0]) {
            out.extend(run.iter().map(Fold::Frame));
            continue;
        }
        let mut crates: Vec<(&str, usize)> = Vec::new();
        for frame in run {
            let name = match crate_of(frame) {
                "core" | "alloc" => "std",
                name if KNOWN.contains(&name) => name,
                _ => continue,
            };
            match crates.iter_mut().find(|(n, _)| *n == name) {
                Some((_, n)) => *n += 1,
                None => crates.push((name, 1)),
            }
        }
        crates.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let names: Vec<&str> = crates.iter().take(2).map(|(n, _)| *n).collect();
        let names = if names.is_empty() { "the runtime".into() } else { names.join(" and ") };
        out.push(Fold::Runtime(run.len(), names));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn ages_read_well() {
        let cases = [
            (0, "<1 µs"),
            (80_000, "80 µs"),
            (999_999, "999 µs"),
            (31_000_000, "31 ms"),
            (2_039_000_000, "2.03 s"),
            (9_999_999_999, "9.99 s"),
            (10_000_000_000, "10 s"),
            (71_000_000_000, "71 s"),
            (14 * 60_000_000_000, "14 min"),
            (3 * 3_600_000_000_000, "3 h"),
            (5 * 86_400_000_000_000, "5 d"),
        ];
        for (nanos, text) in cases {
            assert_eq!(age(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn counts_stay_short_or_full() {
        for (n, text) in
            [(0, "0"), (999, "999"), (1_234, "1.2k"), (41_900, "41k"), (3_400_000, "3.4M")]
        {
            assert_eq!(count(n), text);
        }
        assert!(count(u64::MAX).len() <= 6);
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(thousands(100), "100");
        assert_eq!(plural(1, "permit"), "1 permit");
        assert_eq!(plural(2, "permit"), "2 permits");
    }

    #[test]
    fn text_fits_by_cells() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("数据库写入", 5), "数据…");
        assert_eq!(fit("数据库写入", 6), "数据… ");
        assert_eq!(fit_right("2.03 s", 8), "  2.03 s");
        assert_eq!(shorten_start("src/store.rs", 9), "…store.rs");
        assert_eq!(fit("x", 0), "");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_it_would_act_on() {
        assert_eq!(clean("a\x1b[2Jb\r\n\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}c");
        assert_eq!(clean("\ta"), "    a");
    }

    #[test]
    fn bars_are_full_when_all_is_used_and_visible_when_little_is() {
        assert_eq!(bar(1, 1, 4), "████");
        assert_eq!(bar(1, 2, 4), "██  ");
        assert_eq!(bar(1, 1_000_000, 4), "▏   ");
        assert_eq!(bar(0, 0, 4), "    ");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
        assert_eq!(bar(3, 2, 2), "██");
    }

    #[test]
    fn sites_keep_what_matters() {
        let place = Site { file: "crates/db/src/store.rs".into(), line: 47, column: 9 };
        assert_eq!(site(&place, 40), "crates/db/src/store.rs:47");
        assert_eq!(site(&place, 16), "src/store.rs:47");
        assert_eq!(site(&place, 12), "store.rs:47");
        assert_eq!(site(&place, 8), "…e.rs:47");
    }

    fn frame(function: &str) -> Frame {
        Frame { function: Arc::from(function), site: None, address: 0, inlined: false }
    }

    #[test]
    fn runtime_frames_are_folded() {
        let frames = [
            frame("holdup::sync::semaphore::Acquire::poll"),
            frame("store::save::{{closure}}"),
            frame("<core::pin::Pin<P> as core::future::future::Future>::poll"),
            frame("tokio::runtime::task::core::Core<T,S>::poll"),
            frame("tokio::runtime::task::raw::poll"),
            frame("main"),
        ];
        assert_eq!(
            fold(&frames, false),
            [
                Fold::Runtime(1, "holdup".into()),
                Fold::Frame(&frames[1]),
                Fold::Runtime(4, "tokio and std".into()),
            ]
        );
        assert_eq!(fold(&frames, true).len(), frames.len());
        assert_eq!(own_frame(&frames), Some(&frames[1]));
    }

    #[test]
    fn function_names_lose_what_the_compiler_added() {
        assert_eq!(function("app::store::save::{{closure}}::{{closure}}"), "app::store::save");
        assert_eq!(function("save::{async_fn#0}"), "save");
        assert_eq!(function_short("app::store::save::{{closure}}"), "store::save");
        assert_eq!(function_short("main"), "main");
        assert_eq!(crate_of_function("<&mut app::S as T>::f"), "app");
    }

    #[test]
    fn an_inlined_frame_belongs_to_the_crate_of_its_file() {
        let at = |file: &str| {
            let site = Some(Site { file: file.into(), line: 1, column: 1 });
            Frame { site, ..frame("with_budget<core::ops::ControlFlow<()>>") }
        };
        assert_eq!(
            crate_of(&at("/h/.cargo/registry/src/index-1949/tokio-util-0.7.1/src/a.rs")),
            "tokio-util"
        );
        assert!(is_runtime(&at("/h/.cargo/registry/src/index-1949/tokio-1.54.1/src/a.rs")));
        assert!(is_runtime(&at("/rustc/5980/library/core/src/a.rs")));
        assert!(!is_runtime(&at("/h/.cargo/registry/src/index-1949/sqlx-core-0.8.0/src/a.rs")));
        assert!(!is_runtime(&at("src/main.rs")));
    }
}
