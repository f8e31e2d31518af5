//! Which process to look at.

use super::paint::{Cells, Theme, first_row, marker, put, rule};
use super::{notice, wrap};
use crate::app::state::{Link, State};
use crate::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub(super) fn draw(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    rule(buffer, area, 0, theme, &[]);
    let mut row = 1;
    row = match &state.link {
        Link::Connecting(to) => notice(buffer, area, row, theme, &format!("Attaching to {to} …")),
        Link::Gone(_, why) if state.process.is_none() => {
            let room = usize::from(area.width.saturating_sub(6));
            let mut row = row;
            for (at, line) in wrap(why, room).into_iter().enumerate() {
                let sign = if at == 0 { " ✖ " } else { "   " };
                put(buffer, area, row, Cells::new().raw(sign, theme.bad()).raw(line, theme.bold()));
                row += 1;
            }
            row
        }
        Link::Retrying(_, why) if state.process.is_none() => {
            notice(buffer, area, row, theme, &format!("{why}; trying again"))
        }
        _ if state.process.is_none() => {
            put(buffer, area, row, Cells::new().raw(" No process to show.", theme.bold()));
            row + 1
        }
        _ => row,
    };
    row += 1;
    row = match state.processes.as_deref() {
        None => notice(buffer, area, row, theme, "Looking for processes …"),
        Some([]) => notice(
            buffer,
            area,
            row,
            theme,
            &format!("Nothing runs with holdup here (looked in {}).", state.looked),
        ),
        Some(list) => {
            put(
                buffer,
                area,
                row,
                Cells::new().space(3).raw("Running with holdup here:", theme.plain()),
            );
            let selected = state.process_choice.index(list.iter().map(|p| p.pid));
            let room = usize::from(area.height.saturating_sub(row + 5)).max(1);
            let first = first_row(selected, list.len(), room);
            let address = usize::from(area.width).saturating_sub(47);
            for (at, process) in list.iter().enumerate().skip(first).take(room) {
                row += 1;
                let chosen = selected == Some(at);
                let up = process.up.map_or(String::new(), |up| format!("up {}", format::age(up)));
                let attached = state.process.as_ref().is_some_and(|p| p.pid == process.pid)
                    && matches!(state.link, Link::Live(_));
                let cells = Cells::new()
                    .space(3)
                    .raw(marker(chosen), theme.accent())
                    .right(&process.pid.to_string(), 8, theme.plain())
                    .space(2)
                    .left(&process.name, 18, theme.plain())
                    .space(2)
                    .left(&up, 11, theme.plain())
                    .emphasise(chosen)
                    .raw(format::shorten_start(&process.address, address), theme.dim())
                    .raw(if attached { "  (attached)" } else { "" }, theme.good());
                put(buffer, area, row, cells);
            }
            row + 1
        }
    };
    row += 1;
    let hints =
        [("To start a program under holdup:", "holdup run -- CMD"), ("In code:", "holdup::init()")];
    for (words, code) in hints {
        let cells = Cells::new().space(3).left(words, 34, theme.dim()).raw(code, theme.plain());
        put(buffer, area, row, cells);
        row += 1;
    }
}
