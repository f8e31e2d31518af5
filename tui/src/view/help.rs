//! The keys.

use super::paint::{Cells, Theme, put, rule};
use crate::app::command::BINDINGS;
use crate::app::state::State;
use crate::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    rule(buffer, area, 0, theme, &[("keys".into(), theme.bold())]);
    let room = usize::from(area.width).saturating_sub(18);
    for (row, binding) in (1..).zip(BINDINGS) {
        let works = (binding.works)(state);
        let style = if works { theme.plain() } else { theme.dim() };
        let key = if works { theme.accent() } else { theme.dim() };
        let cells = Cells::new()
            .space(1)
            .left(&binding.keys_text(), 15, key)
            .space(1)
            .raw(format::shorten(binding.help, room), style);
        put(buffer, area, row, cells);
    }
}
