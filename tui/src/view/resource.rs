//! One resource: who holds, who waits, and the call stack of the selected one.

use super::excerpt::excerpt;
use super::overview::unusual;
use super::paint::{Cells, Theme, first_row, marker, put, rule};
use super::{notice, sign};
use crate::app::state::{Detail, Pane, Record, Side, State};
use crate::format::{self, Fold};
use crate::history;
use holdup_core::snapshot::{Call, Frame, Hold, Kind, Resource, ResourceId, Site, Wait};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::time::Duration;

pub(super) fn draw(state: &State, id: ResourceId, buffer: &mut Buffer, area: Rect, theme: Theme) {
    rule(buffer, area, 0, theme, &[]);
    let (Some(detail), Some(resource)) =
        (state.detail.as_ref().filter(|d| d.id == id), state.resource(id))
    else {
        notice(buffer, area, 2, theme, "This resource is gone: the program has dropped it.");
        return;
    };
    put(buffer, area, 1, title(state, resource, usize::from(area.width), theme));
    if detail.gone {
        notice(buffer, area, 3, theme, "This resource is gone: the program has dropped it.");
        return;
    }
    if detail.holds.loaded.is_none() {
        let words = match &state.link {
            crate::app::state::Link::Live(_) => "Reading holders and waiters …",
            _ => "Holders and waiters were not read before the process was lost.",
        };
        notice(buffer, area, 3, theme, words);
        return;
    }

    let told = history(state, resource, buffer, area, theme);
    let area = Rect { y: area.y + told, height: area.height.saturating_sub(told), ..area };
    let rows = detail.holds.rows.len().max(detail.waits.rows.len()).max(2) as u16;
    let lists = rows.min((area.height.saturating_sub(4) / 2).max(2));
    let left = Rect { y: area.y + 2, width: area.width / 2, height: lists + 1, ..area };
    let right = Rect { x: left.x + left.width + 1, width: area.width - left.width - 1, ..left };
    let side = detail.side();
    holders(state, detail, resource, buffer, left, side == Side::Holders, theme);
    waiters(state, detail, resource, buffer, right, side == Side::Waiters, theme);
    for row in 0..=lists {
        buffer.set_string(left.x + left.width, left.y + row, "│", theme.dim());
    }
    let line = 3 + lists;
    rule(buffer, area, line, theme, &[]);
    if area.y + line < area.bottom() {
        buffer.set_string(left.x + left.width, area.y + line, "┴", theme.dim());
    }
    let below = Rect { y: area.y + line + 1, height: area.height.saturating_sub(line + 1), ..area };
    selected(state, detail, buffer, below, theme);
}

fn title(state: &State, resource: &Resource, width: usize, theme: Theme) -> Cells {
    let finding = state.findings().iter().find(|f| f.resources.contains(&resource.id));
    let tail = finding.map(|f| (sign(f, theme), f.code.as_str()));
    let tail_width = tail.map_or(0, |(_, code)| format::width(code) + 4);
    let room = width.saturating_sub(tail_width + 1);
    let sites = state.picture.as_ref().map_or(&[][..], |p| &p.sites);
    let mut cells = Cells::new()
        .space(1)
        .raw(format::shorten(&format::resource(resource, sites), room / 3), theme.bold());
    let granted = if resource.settled { resource.granted() } else { 0 };
    let mut parts = vec![
        (format!("  {}", resource.kind.as_str()), theme.dim()),
        (format!(" · {}", state_of(resource)), theme.plain()),
    ];
    if granted > 0 {
        parts.push((
            format!(", {} granted but not picked up", format::thousands(granted)),
            theme.warn(),
        ));
    }
    if resource.closed {
        parts.push((" · closed".into(), theme.warn()));
    }
    if let Some(created) = state.site(resource.created) {
        parts.push((
            format!(" · created {}", format::site(created, (width / 4).max(16))),
            theme.dim(),
        ));
    }
    if resource.counters.released > 0 {
        let c = &resource.counters;
        let mean = format::age(Duration::from_nanos(c.held_nanos / c.released));
        parts.push((
            format!(" · {} so far, {mean} each", format::plural(c.released, "release")),
            theme.dim(),
        ));
    }
    for (text, style) in parts {
        if cells.width() + format::width(&text) <= room {
            cells = cells.raw(text, style);
        }
    }
    if let Some(((sign, style), code)) = tail {
        cells = cells
            .to(width.saturating_sub(tail_width))
            .raw(sign, style)
            .raw(format!(" {code}"), style);
    }
    cells
}

/// Lines under the title for what the lists do not tell; gives how many it took.
fn history(
    state: &State,
    resource: &Resource,
    buffer: &mut Buffer,
    area: Rect,
    theme: Theme,
) -> u16 {
    const MOST: usize = 3;
    let Some(picture) = &state.picture else { return 0 };
    let mut lines = history::sentences(resource, picture.taken, &picture.sites);
    if lines.len() > MOST {
        let more = lines.len() + 1 - MOST;
        lines.truncate(MOST - 1);
        lines.push(format!("… {} more", format::thousands(more as u64)));
    }
    for (row, line) in (2..).zip(&lines) {
        let words = format::shorten(line, usize::from(area.width).saturating_sub(2));
        put(buffer, area, row, Cells::new().space(1).raw(words, theme.dim()));
    }
    lines.len() as u16
}

fn holders(
    state: &State,
    detail: &Detail,
    resource: &Resource,
    buffer: &mut Buffer,
    area: Rect,
    focus: bool,
    theme: Theme,
) {
    let total = resource.usage.holders;
    let head = format!(" HOLDERS {}{}", format::thousands(total), part(&detail.holds, total));
    put(
        buffer,
        area,
        0,
        Cells::new().raw(format::shorten(&head, area.width.into()), head_style(focus, theme)),
    );
    if detail.holds.rows.is_empty() {
        put(buffer, area, 1, Cells::new().raw(" nobody", theme.dim()));
    }
    let age_style = |hold: &Hold, age| {
        if unusual(resource, age) && hold.units > 0 { theme.warn() } else { theme.plain() }
    };
    list(
        state,
        detail,
        &detail.holds,
        buffer,
        area,
        focus,
        theme,
        &|hold, _| match hold.call {
            Call::Receive => format!("{} unread", format::count(hold.units)),
            _ => format::units(resource, hold.units),
        },
        &age_style,
    );
}

fn waiters(
    state: &State,
    detail: &Detail,
    resource: &Resource,
    buffer: &mut Buffer,
    area: Rect,
    focus: bool,
    theme: Theme,
) {
    let total = resource.usage.waiting;
    let order = if total > 1 { ", in queue order" } else { "" };
    let head =
        format!(" WAITERS {}{}{order}", format::thousands(total), part(&detail.waits, total));
    put(
        buffer,
        area,
        0,
        Cells::new().raw(format::shorten(&head, area.width.into()), head_style(focus, theme)),
    );
    if detail.waits.rows.is_empty() {
        put(buffer, area, 1, Cells::new().raw(" nobody", theme.dim()));
    }
    let granted = granted(resource, &detail.waits);
    let note = |wait: &Wait, at: usize| match wait.granted_since {
        _ if at >= granted => format::units(resource, wait.units),
        Some(since) if area.width >= 72 => {
            format!("granted, not polled for {}", format::age(detail.waits.taken.since(since)))
        }
        _ => "granted".into(),
    };
    list(state, detail, &detail.waits, buffer, area, focus, theme, &note, &|_, _| theme.plain());
}

/// `4 permits, 1 free`, `locked`, `2 readers`.
fn state_of(resource: &Resource) -> String {
    let usage = &resource.usage;
    match resource.kind {
        Kind::Mutex | Kind::RwLock if usage.held == 0 => "free".into(),
        Kind::RwLock if usage.held < resource.capacity() => format::plural(usage.holders, "reader"),
        Kind::Mutex | Kind::RwLock => "locked".into(),
        Kind::Channel => format!(
            "room for {}, {} free",
            format::plural(resource.capacity(), "message"),
            format::thousands(resource.available)
        ),
        _ => format!(
            "{}, {} free",
            format::plural(resource.capacity(), "permit"),
            format::thousands(resource.available)
        ),
    }
}

/// How many waits at the front of the queue have all that they asked for.
fn granted(resource: &Resource, waits: &Pane<Wait>) -> usize {
    if !resource.settled || waits.cursor.skipped > 0 {
        return 0;
    }
    let mut left = resource.granted();
    let served = waits.rows.iter().take_while(|wait| {
        let enough = wait.units > 0 && wait.units <= left;
        left = left.saturating_sub(wait.units);
        enough
    });
    served.count()
}

/// Which part of a long list is shown.
fn part<T>(pane: &Pane<T>, total: u64) -> String {
    let skipped = pane.loaded.map_or(0, |c| c.skipped);
    let shown = pane.rows.len() as u64;
    if skipped == 0 && shown >= total {
        return String::new();
    }
    format!(" · {}–{}", format::thousands(skipped + 1), format::thousands(skipped + shown))
}

fn head_style(focus: bool, theme: Theme) -> Style {
    if focus { theme.bold() } else { theme.dim() }
}

#[expect(clippy::too_many_arguments, reason = "one place draws both lists")]
fn list<T: Record>(
    state: &State,
    detail: &Detail,
    pane: &Pane<T>,
    buffer: &mut Buffer,
    area: Rect,
    focus: bool,
    theme: Theme,
    note: &dyn Fn(&T, usize) -> String,
    age_style: &dyn Fn(&T, Duration) -> Style,
) {
    let width = usize::from(area.width);
    let room = usize::from(area.height.saturating_sub(1));
    let selected = pane.index();
    let first = first_row(selected, pane.rows.len(), room);
    let shown: Vec<(usize, &T)> = pane.rows.iter().enumerate().skip(first).take(room).collect();
    let widest = |f: &dyn Fn(usize, &T) -> String| {
        shown.iter().map(|(at, r)| format::width(&f(*at, r))).max()
    };
    let actors = widest(&|_, row| format::actor(row.actor())).unwrap_or(0).min(14);
    let notes = widest(&|at, row| note(row, at)).unwrap_or(0);
    let notes = if notes > 0 { notes + 1 } else { 0 };
    let sites = (width / 3).clamp(12, 24);
    let function = width.saturating_sub(1 + actors + notes + 9 + 2 + sites + 1);
    for (row, (at, record)) in (1..).zip(shown) {
        let chosen = selected == Some(at) && focus;
        let age = pane.taken.since(record.since());
        let mut cells = Cells::new().raw(marker(chosen), theme.accent()).left(
            &format::actor(record.actor()),
            actors,
            theme.plain(),
        );
        if function >= 8 {
            let name = own_function(state, record).or_else(|| {
                detail
                    .actor(record.actor())
                    .and_then(|a| a.name.as_deref())
                    .map(|n| format!("`{}`", format::clean(n)))
            });
            cells = cells.space(1).left(&name.unwrap_or_default(), function - 1, theme.dim());
        }
        cells = cells.right(&note(record, at), notes, theme.warn()).right(
            &format::age(age),
            9,
            age_style(record, age),
        );
        let rest = width.saturating_sub(cells.width() + 2);
        let site = state.site(record.site()).map_or(String::new(), |s| format::site(s, rest));
        put(buffer, area, row, cells.space(2).left(&site, rest, theme.dim()).emphasise(chosen));
    }
}

/// The name of the program's own function that asked, once its stack is named.
fn own_function(state: &State, record: &dyn Record) -> Option<String> {
    let frames = state.stacks.get(&record.stack())?.frames.as_deref()?;
    format::own_frame(frames).map(|f| format::function_short(&f.function))
}

/// Cells for the place of a frame, at least.
const PLACE: usize = 24;

/// The selected hold or wait: a sentence, its stack, its source.
fn selected(state: &State, detail: &Detail, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some(record) = detail.selected() else { return };
    put(buffer, area, 0, sentence(state, detail, record, usize::from(area.width), theme));
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let site = state.site(record.site());
    let text = site.and_then(|s| state.files.get(&s.file)).and_then(Option::as_ref);
    let rows = stack_rows(state, detail, record);
    let beside = area.width >= 110;
    let (stack, source) = if beside {
        let left = Rect { width: area.width / 2, ..area };
        (left, Rect { x: left.x + left.width + 1, width: area.width - left.width - 1, ..area })
    } else {
        // The source gets what the stack leaves, and at least five lines where there is room for both.
        let wanted = if text.is_some() { 5.min(area.height / 2) } else { 0 };
        let stack = (rows.len() as u16).min(area.height - wanted);
        let stack = Rect { height: stack, ..area };
        (stack, Rect { y: area.y + stack.height, height: area.height - stack.height, ..area })
    };
    let fit = usize::from(stack.height);
    let hidden = rows.len().saturating_sub(fit);
    let names = rows.iter().map(|r| format::width(&r.0)).max().unwrap_or(0);
    let places = if rows.iter().any(|r| r.1.is_some()) { PLACE } else { 0 };
    let names = names.min(usize::from(stack.width).saturating_sub(places + 6));
    for (row, (name, place, style)) in (0..).zip(rows.iter().take(fit)) {
        if hidden > 0 && usize::from(row) + 1 == fit {
            let words = format!("   … {} further out", format::plural(hidden as u64 + 1, "line"));
            put(buffer, stack, row, Cells::new().raw(words, theme.dim()));
            break;
        }
        let room = usize::from(stack.width).saturating_sub(names + 6);
        let place = place.as_ref().map_or(String::new(), |s| format::site(s, room));
        let style = if *style { theme.plain() } else { theme.dim() };
        let cells = Cells::new().space(3).left(name, names, style).space(2).raw(place, theme.dim());
        put(buffer, stack, row, cells);
    }
    if let (Some(site), Some(text)) = (site, text) {
        let rows = usize::from(source.height.min(11));
        for (row, cells) in (0..).zip(excerpt(text, site, rows, usize::from(source.width), theme)) {
            put(buffer, source, row, cells);
        }
    }
}

/// Who did what, when and where.
fn sentence(
    state: &State,
    detail: &Detail,
    record: &dyn Record,
    width: usize,
    theme: Theme,
) -> Cells {
    let name = format::actor_named(record.actor(), detail.actor(record.actor()));
    let mut cells = Cells::new().space(1).raw(format::shorten(&name, width / 2), theme.bold());
    let wanted = |units| match state.resource(detail.id) {
        Some(resource) => format::wanted(resource, units),
        None => format::plural(units, "permit"),
    };
    let words = match detail.side() {
        Side::Holders => {
            let Some(hold) = detail.holds.selected() else { return cells };
            let age = format::age(detail.holds.taken.since(hold.since));
            let permits = wanted(hold.units);
            match hold.moved_to {
                _ if hold.call == Call::Receive => {
                    let unread = format::plural(hold.units, "message");
                    format!(" received last, {age} ago, and has left {unread} unread")
                }
                Some(_) => {
                    format!(" has {permits} that {} took {age} ago", format::actor(hold.actor))
                }
                None => format!(" took {permits} {age} ago"),
            }
        }
        Side::Waiters => {
            let Some(wait) = detail.waits.selected() else { return cells };
            let place = detail.waits.index().unwrap_or(0);
            let granted = state.resource(detail.id).map_or(0, |r| granted(r, &detail.waits));
            let taken = detail.waits.taken;
            let permits = wanted(wait.units);
            if place < granted {
                match wait.granted_since {
                    Some(since) => format!(
                        " was granted {permits} {} ago and has not been polled since",
                        format::age(taken.since(since))
                    ),
                    None => format!(" was granted {permits} and is about to be polled"),
                }
            } else {
                let place = detail.waits.loaded.map_or(0, |c| c.skipped) + place as u64 + 1;
                let age = format::age(taken.since(wait.since));
                format!(
                    " waits for {permits} since {age}, number {} in the queue",
                    format::thousands(place)
                )
            }
        }
    };
    cells = cells.raw(words, theme.plain());
    let room = width.saturating_sub(cells.width() + 5);
    let at = state.site(record.site()).map(|site| format::site(site, room));
    match at {
        Some(at) if !at.is_empty() && !at.starts_with('…') => {
            cells.raw(format!(" at {at}"), theme.dim())
        }
        _ => cells,
    }
}

/// A row of the stack: a name, a place, and whether it is the program's own.
type StackRow = (String, Option<Site>, bool);

fn stack_rows(state: &State, detail: &Detail, record: &dyn Record) -> Vec<StackRow> {
    let words = |text: &str| vec![(text.to_string(), None, false)];
    if record.stack() == holdup_core::snapshot::StackId::NONE {
        return words("no call stack was recorded");
    }
    let Some(stack) = state.stacks.get(&record.stack()) else {
        return words("naming the call stack …");
    };
    let folder = state.process.as_ref().map_or("", |p| &p.working_directory);
    match stack.frames.as_deref() {
        Some(frames) if !frames.is_empty() => format::fold(frames, detail.unfolded)
            .into_iter()
            .map(|f| stack_row(&f, folder))
            .collect(),
        _ if stack.addresses.is_empty() => words("the call stack is empty"),
        _ => {
            let mut rows = words("no names: build the program with debug = \"line-tables-only\"");
            rows.extend(stack.addresses.iter().map(|a| (format!("{a:#018x}"), None, false)));
            rows
        }
    }
}

/// The place as seen from the program's folder: debug info has full paths.
fn below(site: &Site, folder: &str) -> Site {
    let inside = site.file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    match inside {
        Some(file) if !folder.is_empty() => Site { file: file.into(), ..site.clone() },
        _ => site.clone(),
    }
}

fn stack_row(fold: &Fold<'_>, folder: &str) -> StackRow {
    match fold {
        Fold::Runtime(n, crates) => {
            (format!("{} of {crates}", format::plural(*n as u64, "frame")), None, false)
        }
        Fold::Frame(frame @ Frame { function, site, address, .. }) => {
            let name = if function.is_empty() {
                format!("{address:#018x}")
            } else {
                format::function(function)
            };
            (name, site.as_ref().map(|site| below(site, folder)), !format::is_runtime(frame))
        }
    }
}
