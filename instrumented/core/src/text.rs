//! A finding as text, in the manner of rustc: the cause, the source, the facts, the fix.

#[cfg(test)]
mod tests;

use crate::finding::{Finding, Mark, Verdict};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Padding, Renderer, Snippet};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// The width that is assumed where none is given.
const DEFAULT_WIDTH: usize = 100;
/// Below this, wrapping would leave one word a line: better to let the terminal wrap.
const MIN_WIDTH: usize = 24;
/// A source line longer than this was generated; showing it helps nobody.
const MAX_LINE: usize = 400;

/// Where source files come from.
///
/// A finding is rendered in the observed process, in the terminal app on the same machine, and far from any
/// source, so the caller says what can be read. `file` is a path as the compiler recorded it.
pub trait Sources {
    /// The text of a file, if it can be had.
    fn source(&self, file: &str) -> Option<Arc<str>>;
}

impl<F: Fn(&str) -> Option<Arc<str>>> Sources for F {
    fn source(&self, file: &str) -> Option<Arc<str>> {
        self(file)
    }
}

/// No source can be read: sites and labels only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn source(&self, _file: &str) -> Option<Arc<str>> {
        None
    }
}

/// How text is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width in columns to wrap at; `None` for no terminal.
    pub width: Option<u16>,
    /// With ANSI colours.
    pub color: bool,
}

/// The finding as text of several lines, without a newline at the end.
///
/// Control characters in names and sources come out as visible symbols, so that no name can drive the terminal.
#[must_use]
pub fn render(finding: &Finding, sources: &dyn Sources, style: &Style) -> String {
    let width = style.width.map_or(DEFAULT_WIDTH, usize::from).max(MIN_WIDTH);
    let level = match finding.verdict {
        Verdict::Proven => Level::ERROR,
        Verdict::Suspected | Verdict::Hazard => Level::WARNING,
        Verdict::Resolved | Verdict::Unknown => Level::NOTE,
    };
    let code = finding.code.as_str();
    let title = format!("{} [{}]", clean(&finding.title), finding.verdict);
    let title = wrap(&title, width.saturating_sub(code.len() + 2));

    let excerpts: Vec<Excerpt<'_>> =
        by_file(&finding.marks).map(|marks| Excerpt::new(marks, sources)).collect();
    let gutter = excerpts.iter().map(Excerpt::gutter).max().unwrap_or(0) + 3;
    let mut group = Group::with_title(level.with_name(code).primary_title(title));
    for excerpt in &excerpts {
        group = excerpt.add_to(group, width, gutter);
    }
    let facts = !finding.notes.is_empty() || finding.help.is_some();
    if facts && !finding.marks.is_empty() {
        group = group.element(Padding);
    }
    for note in &finding.notes {
        group = group.element(plain(note, width, gutter));
    }
    if let Some(help) = &finding.help {
        let help = wrap(&clean(help), width.saturating_sub(gutter + "help: ".len()));
        group = group.element(Level::HELP.message(help));
    }

    let renderer =
        if style.color { Renderer::styled().hyperlink(false) } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Unicode).term_width(width).render(&[group])
}

/// A duration as people say it: `2.03 s`, `71 s`, `1.2 ms`, `14 min`.
#[must_use]
pub fn age(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let seconds = duration.as_secs_f64();
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", nanos / 1_000),
        1_000_000..10_000_000 => format!("{:.1} ms", seconds * 1e3),
        10_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
        1_000_000_000..10_000_000_000 => format!("{seconds:.2} s"),
        _ if seconds < 600.0 => format!("{} s", duration.as_secs()),
        _ if seconds < 7_200.0 => format!("{} min", duration.as_secs() / 60),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

/// Text that was given by users or read from files, safe to print on one line: control characters become
/// visible symbols, and characters that reorder or hide text are replaced.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| harmless(c) == Some(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| harmless(c).unwrap_or('\u{fffd}')).collect())
}

/// The visible stand-in of a character; `None` where there is none.
fn harmless(c: char) -> Option<char> {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        '\u{80}'..='\u{9f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => None,
        _ => Some(c),
    }
}

/// Breaks at spaces so that no line is wider than `width`, unless a single word is.
fn wrap(text: &str, width: usize) -> String {
    let width = width.max(MIN_WIDTH / 2);
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for word in text.split(' ') {
        let long = word.width();
        if column > 0 {
            if column + 1 + long > width {
                out.push('\n');
                column = 0;
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column += long;
    }
    out
}

/// A line among the facts.
fn plain(text: &str, width: usize, gutter: usize) -> annotate_snippets::Message<'static> {
    Level::NOTE.no_name().message(wrap(&clean(text), width.saturating_sub(gutter + 2)))
}

/// Runs of marks in the same file, in reading order: a finding that goes back to a file shows it again.
fn by_file(marks: &[Mark]) -> impl Iterator<Item = &[Mark]> {
    marks.chunk_by(|a, b| a.site.file == b.site.file)
}

/// The marks of one file with the part of its text that they point into.
struct Excerpt<'a> {
    marks: &'a [Mark],
    path: Cow<'a, str>,
    /// The number of the first line of `text`.
    first: usize,
    text: String,
    /// For each mark, its place in `text`; empty if the source cannot be shown.
    spans: Vec<std::ops::Range<usize>>,
}

impl<'a> Excerpt<'a> {
    fn new(marks: &'a [Mark], sources: &dyn Sources) -> Self {
        let file = &*marks[0].site.file;
        let mut excerpt =
            Excerpt { marks, path: clean(file), first: 0, text: String::new(), spans: Vec::new() };
        if let Some(source) = sources.source(file) {
            excerpt.cut(&source);
        }
        excerpt
    }

    /// Takes over the lines from the first to the last mark, provided that every mark has its place there: a
    /// source that does not fit the binary misleads.
    fn cut(&mut self, source: &str) {
        let lines = self.marks.iter().map(|m| m.site.line as usize);
        let (Some(first), Some(last)) = (lines.clone().min(), lines.max()) else { return };
        if first == 0 {
            return;
        }
        let mut starts = Vec::with_capacity(last - first + 1);
        let mut text = String::new();
        for line in source.lines().skip(first - 1).take(last - first + 1) {
            starts.push(text.len());
            // A tab stays one character until the renderer widens it, which keeps columns right.
            text.extend(
                line.chars()
                    .take(MAX_LINE)
                    .map(|c| if c == '\t' { c } else { harmless(c).unwrap_or('\u{fffd}') }),
            );
            text.push('\n');
        }
        let spans: Option<Vec<_>> =
            self.marks.iter().map(|mark| span(&text, &starts, first, mark)).collect();
        if let Some(spans) = spans {
            (self.first, self.text, self.spans) = (first, text, spans);
        }
    }

    /// How many columns the line numbers take.
    fn gutter(&self) -> usize {
        let last = self.marks.iter().map(|m| m.site.line).max().unwrap_or(0);
        if self.spans.is_empty() { 0 } else { last.max(1).ilog10() as usize + 1 }
    }

    fn add_to<'b>(&'b self, mut group: Group<'b>, width: usize, gutter: usize) -> Group<'b> {
        if self.spans.is_empty() {
            for mark in self.marks {
                let mut origin = Origin::path(&*self.path);
                if mark.site.line > 0 {
                    origin = origin.line(mark.site.line as usize);
                    if mark.site.column > 0 {
                        origin = origin.char_column(mark.site.column as usize);
                    }
                }
                group = group.element(origin).element(plain(&mark.label, width, gutter));
            }
            return group;
        }
        let mut below = Vec::new();
        let mut snippet = Snippet::source(&*self.text).line_start(self.first).path(&*self.path);
        for (mark, span) in self.marks.iter().zip(&self.spans) {
            let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let label = clean(&mark.label);
            let start = self.text[..span.end].rfind('\n').map_or(0, |at| at + 1);
            let fits = gutter + self.text[start..span.end].width() + 1 + label.width() <= width;
            let annotation = kind.span(span.clone());
            snippet = snippet.annotation(if fits { annotation.label(label) } else { annotation });
            if !fits {
                below.push(plain(
                    &format!("{} (line {})", mark.label, mark.site.line),
                    width,
                    gutter,
                ));
            }
        }
        group.element(snippet).elements(below)
    }
}

/// The word at a mark's line and column.
fn span(text: &str, starts: &[usize], first: usize, mark: &Mark) -> Option<std::ops::Range<usize>> {
    let start = *starts.get(mark.site.line as usize - first)?;
    let line = text[start..].lines().next()?;
    let skip = (mark.site.column as usize).saturating_sub(1);
    let (from, _) = line.char_indices().nth(skip)?;
    let rest = &line[from..];
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = if word == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { word };
    Some(start + from..start + from + word)
}
