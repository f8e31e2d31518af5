//! Findings and resources.

use super::paint::{Cells, Theme, first_row, marker, put, rule};
use super::{notice, sign};
use crate::app::state::{Row, State};
use crate::format;
use crate::message::Overview;
use holdup_core::Finding;
use holdup_core::snapshot::{Moment, Resource};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Duration;

/// From this width on a finding is one line.
const WIDE: usize = 110;

pub(super) fn draw(state: &State, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(picture) = &state.picture else {
        rule(buffer, area, 0, theme, &[]);
        notice(buffer, area, 2, theme, "Waiting for the first picture …");
        return;
    };
    let rows = picture.findings.len() + state.visible.len();
    let all = picture.findings.iter().map(|f| Row::Finding(f.id));
    let all: Vec<Row> = all.chain(state.visible.iter().map(|id| Row::Resource(*id))).collect();
    let selected = if rows == 0 { None } else { state.choice.index(all.iter().copied()) };

    let mut row = 0;
    if !picture.findings.is_empty() {
        rule(buffer, area, row, theme, &[]);
        row += 1;
        let lines = if usize::from(area.width) < WIDE { 2 } else { 1 };
        let count = picture.findings.len();
        let room = count.min(usize::from(area.height / 3 / lines).max(1));
        let first = first_row(selected.map(|at| at.min(count - 1)), count, room);
        for (at, finding) in picture.findings.iter().enumerate().skip(first).take(room) {
            let chosen = selected == Some(at);
            for (offset, line) in
                (0..).zip(finding_rows(state, picture, finding, chosen, area.width.into(), theme))
            {
                put(buffer, area, row + offset, line);
            }
            row += lines;
        }
        if count > room {
            let words = format!(
                "{}–{} of {} findings",
                first + 1,
                first + room,
                format::thousands(count as u64)
            );
            put(buffer, area, row, Cells::new().space(3).raw(words, theme.dim()));
            row += 1;
        }
    }
    rule(buffer, area, row, theme, &words(state, picture, theme));
    row += 1;

    let columns = Columns::new(usize::from(area.width), widest_name(state, picture));
    put(buffer, area, row, columns.head(theme));
    row += 1;
    let room = usize::from(area.height.saturating_sub(row));
    let place = selected.and_then(|at| at.checked_sub(picture.findings.len()));
    let first = first_row(place, state.visible.len(), room);
    for (at, id) in state.visible.iter().enumerate().skip(first).take(room) {
        if let Some(resource) = state.resource(*id) {
            put(buffer, area, row, columns.row(picture, resource, place == Some(at), theme));
        }
        row += 1;
    }
    if state.visible.is_empty() {
        let text = if picture.resources.is_empty() {
            "The program has made no semaphore with holdup yet (`use holdup::sync::Semaphore`)."
                .into()
        } else {
            format!("No resource contains `{}`. Esc clears the filter.", state.filter)
        };
        notice(buffer, area, row + 1, theme, &text);
    }
}

/// What the table shows, in words.
fn words(state: &State, picture: &Overview, theme: Theme) -> Vec<(String, ratatui::style::Style)> {
    let all = picture.resources.len() as u64 + picture.resources_left_out;
    let shown = state.visible.len() as u64;
    let mut out = Vec::new();
    if shown == all {
        out.push((format::plural(all, "resource"), theme.dim()));
    } else {
        out.push((
            format!("{} of {}", format::thousands(shown), format::plural(all, "resource")),
            theme.dim(),
        ));
    }
    out.push((format!(" · by {}", state.sort.as_str()), theme.dim()));
    if !state.filter.is_empty() {
        out.push((" · with ".into(), theme.dim()));
        out.push((format!("`{}`", format::clean(&state.filter)), theme.accent()));
    }
    if picture.findings_left_out > 0 {
        out.push((
            format!(" · {} more findings not shown", format::thousands(picture.findings_left_out)),
            theme.warn(),
        ));
    }
    let dropped = &picture.dropped;
    for (n, what) in [
        (dropped.holds, "hold"),
        (dropped.waits, "wait"),
        (dropped.resources, "resource"),
        (dropped.stacks, "stack"),
    ] {
        if n > 0 {
            out.push((
                format!(" · {} not recorded (limit)", format::plural(n, what)),
                theme.warn(),
            ));
        }
    }
    out
}

/// On a wide terminal a finding is one line; on a narrow one its sentence comes first and the rest below it.
fn finding_rows(
    state: &State,
    picture: &Overview,
    finding: &Finding,
    selected: bool,
    width: usize,
    theme: Theme,
) -> Vec<Cells> {
    let (sign, style) = sign(finding, theme);
    let code = finding.code.as_str();
    let age = format::age(picture.taken.since(finding.since));
    let primary = finding.marks.iter().find(|m| m.primary).or(finding.marks.first());
    let resource = finding.resources.first().and_then(|id| state.resource(*id));
    let resource = resource.map_or(String::new(), |r| format::resource(r, &picture.sites));
    let begin = || Cells::new().raw(marker(selected), theme.accent());
    if width < WIDE {
        let title =
            begin().raw(sign, style).space(1).left(&finding.title, width - 4, theme.plain());
        let mut rest = begin().space(2).raw(format!("{code} · {age}"), style);
        for part in [resource, primary.map_or(String::new(), |m| format::site(&m.site, 30))] {
            if !part.is_empty() && rest.width() + format::width(&part) + 3 <= width {
                rest = rest.raw(format!(" · {part}"), theme.dim());
            }
        }
        return vec![title.emphasise(selected), rest];
    }
    let site = primary.map_or(String::new(), |m| format::site(&m.site, width / 5));
    let cells = begin()
        .raw(sign, style)
        .space(1)
        .left(code, 15, style)
        .space(1)
        .left(&resource, 18, theme.plain())
        .space(1);
    let title = width.saturating_sub(cells.width() + 9 + 2 + width / 5);
    let cells = cells.left(&finding.title, title, theme.plain()).right(&age, 9, theme.plain());
    vec![cells.space(2).left(&site, width / 5, theme.dim()).emphasise(selected)]
}

/// The widest name of a table that is short enough to look: the columns of a long one do not move.
fn widest_name(state: &State, picture: &Overview) -> usize {
    const SHORT: usize = 100;
    if state.visible.len() > SHORT {
        return usize::MAX;
    }
    let names = state.visible.iter().filter_map(|id| state.resource(*id));
    names.map(|r| format::width(&format::resource(r, &picture.sites))).max().unwrap_or(0)
}

/// The widths of the table's columns; 0 leaves one out.
struct Columns {
    name: usize,
    bar: usize,
    used: usize,
    wait: usize,
    acquired: usize,
    created: usize,
}

impl Columns {
    fn new(width: usize, widest: usize) -> Columns {
        let mut c = if width >= 120 {
            Columns { name: 24, bar: 16, used: 13, wait: 10, acquired: 9, created: 0 }
        } else {
            Columns { name: 18, bar: 8, used: 9, wait: 0, acquired: 0, created: 0 }
        };
        let fixed = |c: &Columns| {
            let extra = if c.wait > 0 { c.wait + 1 + 3 * (c.acquired + 1) } else { 0 };
            1 + c.name + 2 + 7 + c.bar + 1 + c.used + 8 + 9 + extra + 2
        };
        if fixed(&c) + 14 > width {
            // A narrow terminal keeps the numbers and gives up the bar, then some of the name.
            c.bar = 0;
            c.name = c.name.min(width.saturating_sub(fixed(&c) - c.name)).max(8);
        }
        c.name = c.name.min(widest.max(8));
        let rest = width.saturating_sub(fixed(&c));
        // Room beyond what a path needs goes to the names.
        let created = rest.min(60);
        c.name += rest - created;
        c.created = created;
        c
    }

    fn head(&self, theme: Theme) -> Cells {
        let dim = theme.dim();
        let mut cells = Cells::new()
            .space(1)
            .left("RESOURCE", self.name, dim)
            .space(2)
            .left("KIND", 7, dim)
            .left("USED", self.bar + 1 + self.used, dim)
            .right("WAITING", 8, dim);
        if self.wait > 0 {
            cells = cells.space(1).right("LONGEST", self.wait, dim);
        }
        cells = cells.right("OLDEST", 9, dim);
        if self.acquired > 0 {
            for word in ["ACQUIRED", "WAITED", "REJECTED"] {
                cells = cells.space(1).right(word, self.acquired, dim);
            }
        }
        cells.space(2).left("CREATED", self.created, dim)
    }

    fn row(&self, picture: &Overview, resource: &Resource, selected: bool, theme: Theme) -> Cells {
        let usage = &resource.usage;
        let capacity = resource.capacity();
        let full = resource.available == 0 && capacity > 0;
        let busy = usage.waiting > 0;
        let span = |since: Option<Moment>| since.map(|at| picture.taken.since(at));
        let words = |age: Option<Duration>| age.map_or("–".into(), format::age);
        let oldest = span(usage.oldest_hold);
        let used = match resource.closed {
            true => format!("{} closed", format::count(usage.held)),
            false => format::used(resource, format::count),
        };
        let name = if resource.name.is_some() { theme.plain() } else { theme.dim() };
        let created = picture.sites.get(resource.created.0 as usize);
        let bar = if full && busy { theme.warn() } else { theme.accent() };
        let mut cells = Cells::new()
            .raw(marker(selected), theme.accent())
            .left(&format::resource(resource, &picture.sites), self.name, name)
            .space(2)
            .left(format::kind(resource.kind), 7, theme.dim())
            .raw(format::bar(usage.held, capacity, self.bar), bar)
            .space(1)
            .left(&used, self.used, theme.plain())
            .right(
                &if busy { format::count(usage.waiting) } else { "–".into() },
                8,
                if busy { theme.bold() } else { theme.dim() },
            );
        if self.wait > 0 {
            let style = if busy { theme.plain() } else { theme.dim() };
            cells = cells.space(1).right(&words(span(usage.oldest_wait)), self.wait, style);
        }
        let style = match oldest {
            None => theme.dim(),
            Some(age) if unusual(resource, age) => theme.warn(),
            Some(_) => theme.plain(),
        };
        cells = cells.right(&words(oldest), 9, style);
        if self.acquired > 0 {
            let c = &resource.counters;
            for n in [c.acquired, c.waited, c.rejected] {
                let style = if n == 0 { theme.dim() } else { theme.plain() };
                cells = cells.space(1).right(&format::count(n), self.acquired, style);
            }
        }
        let place = created.map_or(String::new(), |s| format::site(s, self.created));
        cells.space(2).left(&place, self.created, theme.dim()).emphasise(selected)
    }
}

/// A hold that is far older than the finished ones of its resource were on average.
pub(super) fn unusual(resource: &Resource, age: Duration) -> bool {
    let c = &resource.counters;
    if resource.settings.long_held || c.released < 16 || age < Duration::from_secs(1) {
        return false;
    }
    age.as_nanos() > u128::from(c.held_nanos / c.released) * 20
}
