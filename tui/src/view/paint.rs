//! Lines, columns and the few colours.

use crate::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// The terminal's own foreground and background, and four of its colours.
#[derive(Clone, Copy)]
pub(super) struct Theme {
    pub(super) colour: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Trouble that is.
    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Trouble that may be.
    pub(super) fn warn(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    /// What is selected, and names of places.
    pub(super) fn accent(self) -> Style {
        self.colour(Color::Cyan)
    }
}

/// A line that is put together from the left.
#[derive(Default)]
pub(super) struct Cells {
    spans: Vec<Span<'static>>,
    width: usize,
}

impl Cells {
    pub(super) fn new() -> Cells {
        Cells::default()
    }

    /// The text as it is; it must be clean.
    pub(super) fn raw(mut self, text: impl Into<String>, style: Style) -> Cells {
        let text = text.into();
        self.width += format::width(&text);
        self.spans.push(Span::styled(text, style));
        self
    }

    /// The text on the left of a column.
    pub(super) fn left(self, text: &str, cells: usize, style: Style) -> Cells {
        self.raw(format::fit(text, cells), style)
    }

    /// The text on the right of a column.
    pub(super) fn right(self, text: &str, cells: usize, style: Style) -> Cells {
        self.raw(format::fit_right(text, cells), style)
    }

    pub(super) fn space(self, cells: usize) -> Cells {
        self.raw(" ".repeat(cells), Style::new())
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Space up to a column.
    pub(super) fn to(self, column: usize) -> Cells {
        let gap = column.saturating_sub(self.width);
        self.space(gap)
    }

    /// Makes all of it bold.
    pub(super) fn emphasise(mut self, on: bool) -> Cells {
        if on {
            for span in &mut self.spans {
                span.style = span.style.remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD);
            }
        }
        self
    }

    pub(super) fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

/// Puts a line on a row of an area, if the row is in it.
pub(super) fn put(buffer: &mut Buffer, area: Rect, row: u16, cells: Cells) {
    put_line(buffer, area, row, &cells.line());
}

/// The same with a finished line.
pub(super) fn put_line(buffer: &mut Buffer, area: Rect, row: u16, line: &Line<'_>) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// A rule with words in it.
pub(super) fn rule(
    buffer: &mut Buffer,
    area: Rect,
    row: u16,
    theme: Theme,
    words: &[(String, Style)],
) {
    if row >= area.height {
        return;
    }
    let width = usize::from(area.width);
    let mut cells = Cells::new();
    if !words.is_empty() {
        cells = cells.raw("─ ", theme.dim());
        for (text, style) in words {
            let room = width.saturating_sub(cells.width() + 2);
            cells = cells.raw(format::shorten(text, room), *style);
        }
        cells = cells.space(1);
    }
    let rest = width.saturating_sub(cells.width());
    put(buffer, area, row, cells.raw("─".repeat(rest), theme.dim()));
}

/// The first row to show, so that the selected one stays in the middle where the list allows it.
pub(super) fn first_row(selected: Option<usize>, rows: usize, room: usize) -> usize {
    let most = rows.saturating_sub(room);
    selected.unwrap_or(0).saturating_sub(room / 2).min(most)
}

/// The mark before a row.
pub(super) fn marker(selected: bool) -> &'static str {
    if selected { "▌" } else { " " }
}
