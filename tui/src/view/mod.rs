//! The screens. Drawing reads the state and cannot change it.

mod excerpt;
mod finding;
mod help;
mod log;
mod overview;
mod paint;
mod processes;
mod resource;

use crate::app::command::{BINDINGS, Command};
use crate::app::state::{Link, Overlay, Screen, State};
use crate::format;
use holdup_core::{Code, Finding, Verdict};
use paint::{Cells, Theme, put};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::time::Duration;

/// The smallest terminal in which anything can be read.
const SMALLEST: (u16, u16) = (40, 10);
/// Silence of a live process that is worth a word.
const SILENCE: Duration = Duration::from_secs(3);

/// Draws the state.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    let theme = Theme { colour: state.colour };
    let buffer = frame.buffer_mut();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(buffer, area, theme);
    }
    header(state, buffer, area, theme);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    if state.overlay == Overlay::Help {
        help::draw(state, buffer, body, theme);
    } else {
        match state.screen() {
            Screen::Processes => processes::draw(state, buffer, body, theme),
            Screen::Overview => overview::draw(state, buffer, body, theme),
            Screen::Resource(id) => resource::draw(state, id, buffer, body, theme),
            Screen::Finding(id) => finding::draw(state, id, buffer, body, theme),
            Screen::Log => log::draw(state, buffer, body, theme),
        }
    }
    footer(state, buffer, area, theme);
}

fn too_small(buffer: &mut Buffer, area: Rect, theme: Theme) {
    let (columns, rows) = SMALLEST;
    put(buffer, area, 0, Cells::new().raw("too small", theme.bold()));
    let words = format!("needs {columns}×{rows}, has {}×{}", area.width, area.height);
    put(buffer, area, 1, Cells::new().raw(words, theme.plain()));
    put(buffer, area, 2, Cells::new().raw("q quit", theme.dim()));
}

/// Whom we look at, what is wrong there, and how fresh this is.
fn header(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let width = usize::from(area.width);
    let (status, status_style) = status(state, theme);
    let trouble = trouble(state, theme);
    let right = format::width(&status) + 1;
    let middle: usize = trouble.iter().map(|(text, _)| format::width(text) + 2).sum();
    let room = width.saturating_sub(right + middle + 2);

    let mut left = Cells::new().raw(" holdup  ", theme.bold());
    if let Some(process) = &state.process {
        let up = state.picture.as_ref().map_or(Duration::ZERO, |p| Duration::from_nanos(p.taken.0));
        let mut parts = vec![format!("pid {}", process.pid), format!("up {}", format::age(up))];
        parts.push(if process.debug { "debug".into() } else { "release".into() });
        parts.push(format!("stacks: {}", process.stacks));
        if process.version != env!("CARGO_PKG_VERSION") {
            parts.push(format!("holdup {}", process.version));
        }
        let name_room = room.saturating_sub(left.width() + 10).min(40);
        left = left.raw(format::shorten(&process.name, name_room), theme.bold());
        for part in parts {
            let part = format!(" · {}", format::clean(&part));
            if left.width() + format::width(&part) <= room {
                left = left.raw(part, theme.dim());
            }
        }
    }
    let mut cells = left.to(width.saturating_sub(right + middle));
    for (text, style) in trouble {
        cells = cells.raw(text, style).space(2);
    }
    put(buffer, area, 0, cells.raw(status, status_style));
}

/// How fresh the picture is.
fn status(state: &State, theme: Theme) -> (String, Style) {
    let since = |at: Duration| format::age(state.clock.saturating_sub(at));
    match (&state.link, &state.frozen) {
        (Link::Idle, _) => (String::new(), theme.plain()),
        (Link::Connecting(_), _) => ("attaching …".into(), theme.dim()),
        (Link::Gone(at, _), _) if state.process.is_some() => {
            let how = state.program.as_ref().and_then(|p| p.ended.as_deref());
            let how = how.map_or(String::new(), |how| {
                format!(": {}", format::shorten(how, usize::from(state.size.0 / 4)))
            });
            let ago = seconds(state, *at);
            let word = if how.is_empty() { "gone" } else { "ended" };
            (format!("✖ {word} {ago} ago{how}"), theme.bad())
        }
        (Link::Gone(..), _) => (String::new(), theme.plain()),
        (Link::Retrying(at, _), _) => {
            (format!("lost {} ago, trying", seconds(state, *at)), theme.warn())
        }
        (Link::Live(_), Some(frozen)) => {
            (format!("⏸ frozen {}", since(frozen.since)), theme.warn())
        }
        (Link::Live(at), None) if state.clock.saturating_sub(*at) >= SILENCE => {
            (format!("no answer for {}", since(*at)), theme.warn())
        }
        (Link::Live(_), None) => ("⏵ live".into(), theme.good()),
    }
}

/// The time since then, without fractions that would flicker.
fn seconds(state: &State, at: Duration) -> String {
    let span = state.clock.saturating_sub(at);
    if span < Duration::from_secs(10) { format!("{} s", span.as_secs()) } else { format::age(span) }
}

/// How many findings of which kind.
fn trouble(state: &State, theme: Theme) -> Vec<(String, Style)> {
    if state.picture.is_none() {
        return Vec::new();
    }
    // What has gone away is listed, and is no trouble any more.
    let findings = state.findings().iter().filter(|f| f.verdict != Verdict::Resolved);
    let mut kinds: Vec<(Code, u64, bool)> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|(code, ..)| *code == finding.code) {
            Some((_, n, proven)) => {
                *n += 1;
                *proven |= finding.verdict == Verdict::Proven;
            }
            None => kinds.push((finding.code, 1, finding.verdict == Verdict::Proven)),
        }
    }
    if kinds.is_empty() {
        return vec![("nothing to report".into(), theme.dim())];
    }
    let words = |(code, n, proven): (Code, u64, bool)| {
        (format!("{n} {code}"), if proven { theme.bad() } else { theme.warn() })
    };
    kinds.into_iter().take(3).map(words).collect()
}

/// The sign before a finding.
fn sign(finding: &Finding, theme: Theme) -> (&'static str, Style) {
    match finding.verdict {
        Verdict::Proven => ("✖", theme.bad()),
        Verdict::Suspected | Verdict::Hazard => ("▲", theme.warn()),
        Verdict::Resolved => ("✓", theme.dim()),
        _ => ("?", theme.warn()),
    }
}

/// The keys that work here, or the filter while it is typed.
fn footer(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let row = area.height - 1;
    let width = usize::from(area.width);
    if state.overlay == Overlay::Filter {
        let cells = Cells::new()
            .raw(" / ", theme.accent())
            .raw(format::shorten_start(&state.filter, width.saturating_sub(36)), theme.bold())
            .raw("▏", theme.accent())
            .raw("   ↵ keep   Esc clear", theme.dim());
        return put(buffer, area, row, cells);
    }
    if state.overlay == Overlay::Help {
        return put(buffer, area, row, Cells::new().raw(" any key closes this page", theme.dim()));
    }
    let shown = |command: Command| {
        let binding = BINDINGS.iter().find(|b| b.command == command && (b.works)(state));
        binding.and_then(|b| Some((b.keys.first()?.to_string(), label(state, command, b.label))))
    };
    let ends: Vec<_> = [Command::Help, Command::Quit].into_iter().filter_map(shown).collect();
    let right: usize =
        ends.iter().map(|(k, l)| format::width(k) + format::width(l) + 3).sum::<usize>();
    let mut cells = Cells::new();
    for binding in BINDINGS.iter().filter(|b| !b.label.is_empty()) {
        if matches!(binding.command, Command::Help | Command::Quit) {
            continue;
        }
        let Some((key, label)) = shown(binding.command) else { continue };
        if cells.width() + format::width(&key) + format::width(label) + 3 + right > width {
            break;
        }
        cells = cells.space(1).raw(key, theme.accent()).raw(format!(" {label} "), theme.dim());
    }
    cells = cells.to(width.saturating_sub(right));
    for (key, label) in ends {
        cells = cells.space(1).raw(key, theme.accent()).raw(format!(" {label} "), theme.dim());
    }
    put(buffer, area, row, cells);
}

/// A key's word here.
fn label(state: &State, command: Command, word: &'static str) -> &'static str {
    match (command, state.screen()) {
        (Command::Open, Screen::Processes) => "attach",
        (Command::Open, Screen::Resource(_)) => "finding",
        (Command::Open, Screen::Finding(_)) => "resource",
        (Command::Pause, _) if state.frozen.is_some() => "go on",
        (Command::Unfold, _) if state.detail.as_ref().is_some_and(|d| d.unfolded) => "fold",
        _ => word,
    }
}

/// Words in the middle of an area that has nothing else to show.
fn notice(buffer: &mut Buffer, area: Rect, row: u16, theme: Theme, text: &str) -> u16 {
    let room = usize::from(area.width.saturating_sub(4));
    let mut at = row;
    for line in wrap(text, room) {
        put(buffer, area, at, Cells::new().space(3).raw(line, theme.plain()));
        at += 1;
    }
    at
}

/// Breaks clean text at spaces.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in format::clean(text).split(' ') {
        let line = lines.last().map_or(0, |l| format::width(l));
        if line > 0 && line + 1 + format::width(word) > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
