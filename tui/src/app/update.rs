//! How the state changes.

use super::command::{self, Command};
use super::key::{Code, Key};
use super::state::{
    Choice, Detail, Frozen, LOG_LINES, Link, Overlay, Pane, Program, Record, Row, Screen, Side,
    Sort, State, Told,
};
use super::{Action, Event, tell};
use crate::format;
use crate::message::{Candidate, Cursor, Message, Overview, PAGE, Page, Records, Request, STACKS};
use holdup_core::snapshot::{Process, Resource, ResourceId, Site, StackId};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often to look for processes while their list is on screen.
const DISCOVER: Duration = Duration::from_secs(1);
/// Stacks and files that are kept; beyond, all are fetched anew.
const STACKS_KEPT: usize = 4_096;
const FILES_KEPT: usize = 64;
/// Screens one can go back through.
const DEPTH: usize = 16;
/// Characters of a line of output that are kept.
const LINE: usize = 1_000;

/// Takes an event into the state, at this time of the app's clock, and says what shall be done outside.
pub fn update(state: &mut State, at: Duration, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    state.clock = state.clock.max(at);
    match event {
        Event::Key(key) => press(state, key, &mut actions),
        Event::Resize(columns, rows) => {
            state.size = (columns, rows);
            retell(state);
        }
        Event::Tick => {}
        Event::Hangup => actions.push(Action::Quit),
        Event::Source(message) => hear(state, message),
    }
    actions.extend(wants(state).into_iter().map(Action::Ask));
    actions
}

fn press(state: &mut State, key: Key, actions: &mut Vec<Action>) {
    match state.overlay {
        Overlay::Filter => return edit_filter(state, key, actions),
        Overlay::Help => {
            state.overlay = Overlay::None;
            if command::lookup(state, key) == Some(Command::Quit) {
                actions.push(Action::Quit);
            }
            return;
        }
        Overlay::None => {}
    }
    // Esc on the overview clears the filter before it means anything else.
    if key == Key::plain(Code::Esc)
        && state.screen() == Screen::Overview
        && !state.filter.is_empty()
    {
        state.filter.clear();
        return arrange(state);
    }
    let Some(command) = command::lookup(state, key) else { return };
    match command {
        Command::Quit => actions.push(Action::Quit),
        Command::Help => state.overlay = Overlay::Help,
        Command::Filter => state.overlay = Overlay::Filter,
        Command::Back => {
            state.screens.pop();
            entered(state);
        }
        Command::Processes => go(state, Screen::Processes),
        Command::Log => go(state, Screen::Log),
        Command::Open => open(state, actions),
        Command::Findings => {
            if let Some(id) = state.findings().first().map(|f| f.id) {
                go(state, Screen::Finding(id));
            }
        }
        Command::NextFinding => turn(state, 1),
        Command::PreviousFinding => turn(state, -1),
        Command::Sort => {
            let at = Sort::ALL.iter().position(|s| *s == state.sort).unwrap_or(0);
            state.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
            arrange(state);
        }
        Command::Pause => match state.frozen.take() {
            None => state.frozen = Some(Frozen { since: state.clock, latest: None }),
            Some(Frozen { latest, .. }) => {
                if let Some(picture) = latest {
                    show(state, picture);
                }
            }
        },
        Command::OtherSide => {
            if let Some(detail) = &mut state.detail {
                detail.side = Some(match detail.side() {
                    Side::Holders => Side::Waiters,
                    Side::Waiters => Side::Holders,
                });
            }
        }
        Command::Unfold => {
            if let Some(detail) = &mut state.detail {
                detail.unfolded = !detail.unfolded;
            }
        }
        Command::Down => step(state, 1),
        Command::Up => step(state, -1),
        Command::PageDown => step(state, page(state)),
        Command::PageUp => step(state, -page(state)),
        Command::Home => step(state, isize::MIN),
        Command::End => step(state, isize::MAX),
    }
}

fn edit_filter(state: &mut State, key: Key, actions: &mut Vec<Action>) {
    match key {
        Key { code: Code::Char('c'), ctrl: true } => return actions.push(Action::Quit),
        Key { code: Code::Enter, .. } => state.overlay = Overlay::None,
        Key { code: Code::Esc, .. } => {
            state.overlay = Overlay::None;
            state.filter.clear();
        }
        Key { code: Code::Backspace, .. } => {
            if state.filter.pop().is_none() {
                state.overlay = Overlay::None;
            }
        }
        Key { code: Code::Char('u'), ctrl: true } => state.filter.clear(),
        Key { code: Code::Char(c), ctrl: false } if !c.is_control() && state.filter.len() < 256 => {
            state.filter.push(c);
        }
        // The list can be walked through while the filter is typed.
        Key { code: Code::Down, .. } => return step(state, 1),
        Key { code: Code::Up, .. } => return step(state, -1),
        _ => return,
    }
    arrange(state);
}

fn go(state: &mut State, screen: Screen) {
    if state.screen() == screen {
        return;
    }
    state.screens.push(screen);
    if state.screens.len() > DEPTH {
        state.screens.remove(1);
    }
    entered(state);
}

/// Prepares what the screen on top needs.
fn entered(state: &mut State) {
    match state.screen() {
        Screen::Resource(id) if state.detail.as_ref().is_none_or(|d| d.id != id) => {
            state.detail = Some(Detail::new(id));
        }
        Screen::Finding(id) => {
            let known = state.findings().iter().find(|f| f.id == id).cloned();
            match (known, &state.told) {
                (Some(finding), _) => {
                    state.told = Some(Told { finding, lines: Vec::new(), scroll: 0, ended: false });
                }
                (None, Some(told)) if told.finding.id == id => {}
                (None, _) => state.told = None,
            }
            retell(state);
        }
        Screen::Processes => state.discovered = None,
        _ => {}
    }
}

fn open(state: &mut State, actions: &mut Vec<Action>) {
    match state.screen() {
        Screen::Processes => {
            let list = state.processes.as_deref().unwrap_or_default();
            let chosen = state.process_choice.index(list.iter().map(|p| p.pid));
            if let Some(Candidate { address, .. }) = chosen.map(|at| &list[at]) {
                let address = address.clone();
                state.link = Link::Connecting(address.clone());
                actions.push(Action::Ask(Request::Attach(address)));
            }
        }
        Screen::Overview => {
            let rows = state.rows();
            match state.choice.index(rows.iter().copied()).map(|at| rows[at]) {
                Some(Row::Finding(id)) => go(state, Screen::Finding(id)),
                Some(Row::Resource(id)) => go(state, Screen::Resource(id)),
                None => {}
            }
        }
        Screen::Finding(_) => {
            let first = state.told.as_ref().and_then(|t| t.finding.resources.first().copied());
            if let Some(id) = first {
                go(state, Screen::Resource(id));
            }
        }
        Screen::Resource(_) => {
            if let Some(id) = state.finding_here().map(|f| f.id) {
                go(state, Screen::Finding(id));
            }
        }
        Screen::Log => {}
    }
}

/// To the finding that lies so many after the one on screen.
fn turn(state: &mut State, by: isize) {
    let findings = state.findings();
    let Screen::Finding(now) = state.screen() else { return };
    let Ok(len) = isize::try_from(findings.len()) else { return };
    if len == 0 {
        return;
    }
    let next = match findings.iter().position(|f| f.id == now) {
        Some(at) => (at as isize + by).rem_euclid(len) as usize,
        None => 0,
    };
    let id = findings[next].id;
    if let Some(top) = state.screens.last_mut() {
        *top = Screen::Finding(id);
    }
    entered(state);
}

/// Rows on a page of the list on screen, about.
fn page(state: &State) -> isize {
    let rows = isize::try_from(state.size.1).unwrap_or(isize::MAX);
    let rows = match state.screen() {
        Screen::Resource(_) => rows / 2 - 5,
        Screen::Overview => rows - 6 - isize::try_from(state.findings().len().min(8)).unwrap_or(8),
        _ => rows - 5,
    };
    rows.max(1)
}

/// Moves the selection, or scrolls a text.
fn step(state: &mut State, by: isize) {
    match state.screen() {
        Screen::Processes => {
            let pids: Vec<u32> = state.processes.iter().flatten().map(|p| p.pid).collect();
            step_in(&mut state.process_choice, &pids, by);
        }
        Screen::Overview => {
            let rows = state.rows();
            step_in(&mut state.choice, &rows, by);
        }
        Screen::Resource(_) => {
            if let Some(detail) = &mut state.detail {
                match detail.side() {
                    Side::Holders => step_page(&mut detail.holds, by),
                    Side::Waiters => step_page(&mut detail.waits, by),
                }
            }
        }
        Screen::Finding(_) => {
            let room = tell::room(state.size);
            if let Some(told) = &mut state.told {
                told.scroll = told
                    .scroll
                    .saturating_add_signed(by)
                    .min(told.lines.len().saturating_sub(room));
            }
        }
        Screen::Log => {
            let room = usize::from(state.size.1.saturating_sub(4));
            if let Some(program) = &mut state.program {
                let most = program.lines.len().saturating_sub(room);
                program.up = program.up.saturating_add_signed(by.saturating_neg()).min(most);
            }
        }
    }
}

fn step_in<T: Copy + PartialEq>(choice: &mut Choice<T>, rows: &[T], by: isize) {
    if let Some(at) = choice.index(rows.iter().copied()) {
        let at = at.saturating_add_signed(by).min(rows.len() - 1);
        choice.set(at, rows[at]);
    }
}

/// Moves in a page; over its edge to the next one.
fn step_page<T: Record>(pane: &mut Pane<T>, by: isize) {
    if pane.loaded != Some(pane.cursor) {
        // The page is on its way: the keys come back to it.
        return;
    }
    if by == isize::MIN {
        pane.cursor = Cursor::default();
        pane.before.clear();
        return match pane.rows.first() {
            Some(row) if pane.loaded == Some(pane.cursor) => pane.choice.set(0, row.key()),
            _ => pane.choice.set_place(0),
        };
    }
    let Some(at) = pane.index() else { return };
    let last = pane.rows.len() - 1;
    let full = pane.rows.len() >= PAGE;
    if by > 0 && by != isize::MAX && at == last && full {
        pane.before.push(pane.cursor);
        pane.cursor = Cursor {
            skipped: pane.cursor.skipped + pane.rows.len() as u64,
            after: pane.rows[last].after(),
        };
        pane.choice.set_place(0);
    } else if by < 0 && at == 0 {
        if let Some(cursor) = pane.before.pop() {
            pane.cursor = cursor;
            pane.choice.set_place(PAGE - 1);
        }
    } else {
        let at = at.saturating_add_signed(by).min(last);
        pane.choice.set(at, pane.rows[at].key());
    }
}

fn hear(state: &mut State, message: Message) {
    match message {
        Message::Processes(list, looked) => {
            state.processes = Some(list);
            state.looked = looked;
        }
        Message::Connecting(address) => state.link = Link::Connecting(address),
        Message::Attached(process) => attached(state, process),
        Message::Overview(picture) => {
            state.link = Link::Live(state.clock);
            match &mut state.frozen {
                // A frozen view that has nothing to show yet still needs its first picture.
                Some(frozen) if state.picture.is_some() => frozen.latest = Some(picture),
                _ => show(state, picture),
            }
        }
        Message::Records(records) => take_records(state, records),
        Message::NoResource(id) => {
            if let Some(detail) = state.detail.as_mut().filter(|d| d.id == id) {
                detail.gone = true;
                detail.asked = false;
            }
        }
        Message::NoAnswer => forget_questions(state),
        Message::Stacks(stacks) => {
            if state.stacks.len() + stacks.len() > STACKS_KEPT {
                state.stacks.clear();
                state.asked_stacks.clear();
            }
            state.stacks.extend(stacks.into_iter().map(|s| (s.id, s)));
        }
        Message::File(file, text) => {
            if state.files.len() >= FILES_KEPT {
                state.files.clear();
                state.asked_files.clear();
            }
            state.files.insert(file, text);
            retell(state);
        }
        Message::Lost { why, again } => lost(state, why, again),
        Message::Line(line) => {
            let program = state.program.get_or_insert_with(Program::default);
            if program.lines.len() >= LOG_LINES {
                program.lines.pop_front();
                program.dropped += 1;
            }
            program.lines.push_back(
                format::clean(&line.chars().take(LINE).collect::<String>()).into_owned(),
            );
            if program.up > 0 {
                program.up = (program.up + 1).min(program.lines.len());
            }
        }
        Message::NotServing => {
            if let Some(program) = &mut state.program {
                program.mute = true;
            }
        }
        Message::Ended(how) => {
            if let Some(program) = &mut state.program {
                program.ended = Some(how);
            }
        }
    }
}

fn attached(state: &mut State, process: Process) {
    if state.process.as_ref() != Some(&process) {
        state.picture = None;
        state.detail = None;
        state.told = None;
        state.frozen = None;
        state.visible.clear();
        state.stacks.clear();
        state.files.clear();
        state.asked_files.clear();
        state.choice = Choice::default();
        let first = if state.program.is_some() { Screen::Log } else { Screen::Processes };
        state.screens = vec![first, Screen::Overview];
        state.process = Some(process);
    }
    if let Some(program) = &mut state.program {
        program.mute = false;
    }
    forget_questions(state);
    state.link = Link::Live(state.clock);
}

fn lost(state: &mut State, why: String, again: bool) {
    forget_questions(state);
    // The first loss counts: later attempts do not make the picture younger.
    let since = match &state.link {
        Link::Retrying(since, _) | Link::Gone(since, _) => *since,
        _ => state.clock,
    };
    state.link = if again { Link::Retrying(since, why) } else { Link::Gone(since, why) };
}

/// What was asked on a connection that is gone, or of a process that is too busy, is never answered.
fn forget_questions(state: &mut State) {
    state.asked_stacks.clear();
    if let Some(detail) = &mut state.detail {
        detail.asked = false;
    }
}

fn show(state: &mut State, picture: Overview) {
    state.picture = Some(picture);
    arrange(state);
    if let (Some(told), Screen::Finding(_)) = (&state.told, state.screen()) {
        let id = told.finding.id;
        let now = state.findings().iter().find(|f| f.id == id).cloned();
        if let Some(told) = &mut state.told {
            told.ended = now.is_none();
            if let Some(finding) = now {
                told.finding = finding;
            }
        }
        retell(state);
    }
}

/// Writes the text of the open finding anew.
fn retell(state: &mut State) {
    let Some(told) = &state.told else { return };
    let lines = tell::lines(&told.finding, &state.files, state.size);
    if let Some(told) = &mut state.told {
        told.scroll = told.scroll.min(lines.len().saturating_sub(tell::room(state.size)));
        told.lines = lines;
    }
}

fn take_records(state: &mut State, records: Records) {
    let Some(detail) = state.detail.as_mut().filter(|d| d.id == records.resource) else { return };
    detail.asked = false;
    take_page(&mut detail.holds, records.holds);
    take_page(&mut detail.waits, records.waits);
    detail.actors = records.actors;
    detail.sites = records.sites;
}

fn take_page<T: Record>(pane: &mut Pane<T>, page: Page<T>) {
    // Another page was turned to meanwhile.
    if page.cursor != pane.cursor {
        return;
    }
    pane.rows = page.rows;
    pane.taken = page.taken;
    pane.loaded = Some(page.cursor);
    if pane.rows.is_empty() && pane.cursor.skipped > 0 {
        // The list became shorter than the way to this page.
        pane.cursor = Cursor::default();
        pane.before.clear();
        pane.choice.set_place(0);
    }
}

/// Filters and sorts the resources.
fn arrange(state: &mut State) {
    let Some(picture) = &state.picture else { return };
    let wanted = state.filter.to_lowercase();
    let mut rows: Vec<&Resource> = picture
        .resources
        .iter()
        .filter(|r| wanted.is_empty() || matches(r, &picture.sites, &wanted))
        .collect();
    match state.sort {
        Sort::Trouble => {
            let troubled: HashSet<ResourceId> =
                picture.findings.iter().flat_map(|f| f.resources.iter().copied()).collect();
            rows.sort_by_cached_key(|r| {
                let none = r.usage.oldest_hold.is_none();
                (
                    !troubled.contains(&r.id),
                    Reverse(r.usage.waiting),
                    none,
                    r.usage.oldest_hold,
                    r.id,
                )
            });
        }
        Sort::Waiting => rows.sort_by_key(|r| (Reverse(r.usage.waiting), r.id)),
        Sort::Used => rows.sort_by(|a, b| {
            let used = |r: &Resource| {
                u128::from(r.usage.held) * 1_000_000 / u128::from(r.capacity().max(1))
            };
            used(b).cmp(&used(a)).then(a.id.cmp(&b.id))
        }),
        Sort::Oldest => {
            rows.sort_by_key(|r| (r.usage.oldest_hold.is_none(), r.usage.oldest_hold, r.id));
        }
        Sort::Name => rows.sort_by_cached_key(|r| (format::resource(r, &picture.sites), r.id)),
        Sort::Created => rows.sort_by_key(|r| r.id),
    }
    state.visible = rows.iter().map(|r| r.id).collect();
}

fn matches(resource: &Resource, sites: &[Site], wanted: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(wanted);
    resource.name.as_deref().is_some_and(has)
        || has(resource.kind.as_str())
        || sites.get(resource.created.0 as usize).is_some_and(|s| has(&s.to_string()))
}

/// What the screen needs and nobody has been asked for.
fn wants(state: &mut State) -> Vec<Request> {
    let mut out = Vec::new();
    if state.screen() == Screen::Processes
        && state.discovered.is_none_or(|at| state.clock.saturating_sub(at) >= DISCOVER)
    {
        state.discovered = Some(state.clock);
        out.push(Request::Discover);
    }
    if matches!(state.link, Link::Live(_)) && matches!(state.screen(), Screen::Resource(_)) {
        want_records(state, &mut out);
        want_stacks(state, &mut out);
    }
    want_files(state, &mut out);
    out
}

fn want_records(state: &mut State, out: &mut Vec<Request>) {
    let frozen = state.frozen.is_some();
    let taken = state.picture.as_ref().map(|p| p.taken);
    let Some(detail) = state.detail.as_mut().filter(|d| !d.asked && !d.gone) else { return };
    let missing = detail.holds.loaded != Some(detail.holds.cursor)
        || detail.waits.loaded != Some(detail.waits.cursor);
    let old = taken.is_some_and(|taken| detail.holds.taken < taken);
    if missing || (old && !frozen) {
        detail.asked = true;
        out.push(Request::Records {
            resource: detail.id,
            holds: detail.holds.cursor,
            waits: detail.waits.cursor,
        });
    }
}

fn want_stacks(state: &mut State, out: &mut Vec<Request>) {
    let Some(detail) = &state.detail else { return };
    let selected = detail.selected().map(Record::stack);
    let holds = detail.holds.rows.iter().map(Record::stack);
    let waits = detail.waits.rows.iter().map(Record::stack);
    let mut ids: Vec<StackId> = Vec::new();
    for id in selected.into_iter().chain(holds).chain(waits) {
        if ids.len() == STACKS {
            break;
        }
        if id != StackId::NONE && !state.stacks.contains_key(&id) && state.asked_stacks.insert(id) {
            ids.push(id);
        }
    }
    if !ids.is_empty() {
        out.push(Request::Stacks(ids));
    }
}

fn want_files(state: &mut State, out: &mut Vec<Request>) {
    let files: Vec<Arc<str>> = match state.screen() {
        Screen::Finding(_) => {
            state.told.iter().flat_map(|t| &t.finding.marks).map(|m| m.site.file.clone()).collect()
        }
        Screen::Resource(_) => {
            let selected = state.detail.as_ref().and_then(Detail::selected);
            selected
                .and_then(|row| state.site(row.site()))
                .map(|s| s.file.clone())
                .into_iter()
                .collect()
        }
        _ => return,
    };
    let Some(process) = &state.process else { return };
    for file in files {
        if !state.files.contains_key(&file) && state.asked_files.insert(file.clone()) {
            let bases = vec![process.working_directory.clone(), process.executable.clone()];
            out.push(Request::File { file, bases });
        }
    }
}
