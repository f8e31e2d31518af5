//! One finding in full.

use super::paint::{Cells, Theme, put, rule};
use super::{notice, sign};
use crate::app::state::{State, Tone};
use crate::format;
use holdup_core::FindingId;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(state: &State, id: FindingId, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(told) = &state.told else {
        rule(buffer, area, 0, theme, &[]);
        notice(buffer, area, 2, theme, "This finding is no longer true.");
        return;
    };
    let findings = state.findings();
    let (sign, style) = sign(&told.finding, theme);
    let mut words = vec![(format!("{sign} "), style)];
    match findings.iter().position(|f| f.id == id) {
        Some(at) => words.push((format!("finding {} of {}", at + 1, findings.len()), theme.bold())),
        None => words.push(("this finding is no longer true".into(), theme.warn())),
    }
    if let Some(picture) = &state.picture {
        let since = format::age(picture.taken.since(told.finding.since));
        words.push((format!(" · since {since}"), theme.dim()));
    }
    rule(buffer, area, 0, theme, &words);
    let room = area.height.saturating_sub(2);
    for (row, line) in (1..=room).zip(told.lines.iter().skip(told.scroll)) {
        let cells = line.iter().fold(Cells::new().space(1), |cells, piece| {
            let style = match piece.tone {
                Tone::Plain => theme.plain(),
                Tone::Bad => theme.bad(),
                Tone::Warn => theme.warn(),
                Tone::Good => theme.good(),
                Tone::Accent => theme.accent(),
            };
            cells
                .raw(piece.text.clone(), if piece.bold { style.patch(theme.bold()) } else { style })
        });
        put(buffer, area, row, cells);
    }
    let rest = told.lines.len().saturating_sub(told.scroll + usize::from(room));
    if rest > 0 {
        let cells = Cells::new()
            .raw(format!(" ↓ {} more", format::plural(rest as u64, "line")), theme.dim());
        put(buffer, area, area.height - 1, cells);
    }
}
