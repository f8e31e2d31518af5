//! What the program printed, and how it is.

use super::notice;
use super::paint::{Cells, Theme, put, rule};
use crate::app::state::State;
use crate::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(program) = &state.program else { return };
    let mut words =
        vec![("output of ".into(), theme.dim()), (program.command.clone(), theme.bold())];
    if program.dropped > 0 {
        words.push((
            format!(" · {} before not kept", format::plural(program.dropped, "line")),
            theme.dim(),
        ));
    }
    rule(buffer, area, 0, theme, &words);
    let mut foot = Vec::new();
    if let Some(ended) = &program.ended {
        foot.push(format!("The program has ended: {ended}. q quits."));
    } else if program.mute {
        foot.push(format!("{} It runs on.", capital(format::NOT_SERVING)));
    } else if state.process.is_none() {
        foot.push("Waiting for the program to serve …".into());
    }
    let wrapped: Vec<String> = foot
        .iter()
        .flat_map(|f| super::wrap(f, usize::from(area.width.saturating_sub(4))))
        .collect();
    let foot_rows = if wrapped.is_empty() { 0 } else { wrapped.len() as u16 + 1 };
    let room = usize::from(area.height.saturating_sub(1 + foot_rows));
    let end = program.lines.len().saturating_sub(program.up).max(room.min(program.lines.len()));
    let first = end.saturating_sub(room);
    for (row, line) in (1..).zip(program.lines.iter().take(end).skip(first)) {
        let cells = Cells::new()
            .space(1)
            .raw(format::shorten(line, usize::from(area.width) - 2), theme.plain());
        put(buffer, area, row, cells);
    }
    if program.lines.is_empty() && foot.is_empty() {
        notice(buffer, area, 2, theme, "The program has printed nothing.");
    }
    let style = if program.mute && program.ended.is_none() { theme.warn() } else { theme.bold() };
    for (row, line) in (area.height + 1 - foot_rows.max(1)..).zip(wrapped) {
        put(buffer, area, row, Cells::new().space(1).raw(line, style));
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
