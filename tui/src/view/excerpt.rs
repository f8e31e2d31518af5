//! A few lines of a source file around one of them.

use super::paint::{Cells, Theme};
use crate::format;
use holdup_core::snapshot::Site;

/// At most `rows` lines around the site's, each at most `width` cells wide.
pub(super) fn excerpt(
    text: &str,
    site: &Site,
    rows: usize,
    width: usize,
    theme: Theme,
) -> Vec<Cells> {
    let Some(line) = (site.line as usize).checked_sub(1) else { return Vec::new() };
    let lines = text.lines().count();
    if line >= lines {
        return Vec::new();
    }
    let first = line.saturating_sub(rows / 2).min(lines.saturating_sub(rows));
    let digits = (first + rows).to_string().len();
    let shown = text.lines().enumerate().skip(first).take(rows);
    // Code that is indented deeply keeps its shape and loses what all lines have in common.
    let indent = shown
        .clone()
        .filter(|(_, l)| !l.trim().is_empty())
        .map(|(_, l)| l.len() - l.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let room = width.saturating_sub(digits + 5);
    shown
        .map(|(at, code)| {
            let here = at == line;
            let mark = if here { "▶" } else { " " };
            let style = if here { theme.bold() } else { theme.dim() };
            Cells::new()
                .space(1)
                .raw(mark, theme.accent())
                .right(&(at + 1).to_string(), digits, style)
                .raw(" │ ", theme.dim())
                .raw(format::shorten(code.get(indent..).unwrap_or(""), room), style)
        })
        .collect()
}
