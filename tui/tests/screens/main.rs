//! The screens, through the real loop: messages and keys go in, what is on the terminal is compared.

mod fixture;

use fixture::{attached, finding, overview, process, records};
use holdup_core::snapshot::{Moment, ResourceId, Stack, StackId};
use holdup_tui::app::{Event, Key, State};
use holdup_tui::message::{Candidate, Message, Request};
use holdup_tui::runtime::{Stamped, run};
use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (160, 48);

/// An app on a terminal that is not there.
struct App {
    size: (u16, u16),
    colour: bool,
    state: Option<State>,
    events: Vec<Stamped>,
    clock: Duration,
}

impl App {
    fn new(size: (u16, u16)) -> App {
        App { size, colour: true, state: None, events: Vec::new(), clock: Duration::ZERO }
    }

    /// The same with a program that we started.
    fn started(size: (u16, u16)) -> App {
        let state = State::with_program(size, true, "cargo run --bin checkout".into());
        App { state: Some(state), ..App::new(size) }
    }

    fn event(mut self, event: Event) -> App {
        self.events.push((self.clock, event));
        self
    }

    fn hears(self, message: Message) -> App {
        self.event(Event::Source(message))
    }

    fn hears_all(self, messages: impl IntoIterator<Item = Message>) -> App {
        messages.into_iter().fold(self, App::hears)
    }

    /// Keys as text: `j j enter ?`.
    fn keys(self, keys: &str) -> App {
        let keys: Vec<Key> = keys.split(' ').map(|key| key.parse().expect("a key")).collect();
        keys.into_iter().fold(self, |app, key| app.event(Event::Key(key)))
    }

    fn types(self, text: &str) -> App {
        text.chars().fold(self, |app, c| app.event(Event::Key(Key::char(c))))
    }

    fn passes(mut self, seconds: u64) -> App {
        self.clock += Duration::from_secs(seconds);
        self.event(Event::Tick)
    }

    /// Runs it until there is nothing left to take; the terminal, and what was asked of the outside.
    fn run(self) -> (Terminal<TestBackend>, Vec<Request>) {
        let (width, height) = self.size;
        let mut terminal =
            Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
        let mut state = self.state.unwrap_or_else(|| State::new(self.size, self.colour));
        let mut asked = Vec::new();
        let (send, events) = channel();
        self.events.into_iter().for_each(|event| send.send(event).expect("the receiver is here"));
        drop(send);
        let clock = self.clock;
        run(&mut terminal, &mut state, &events, || clock, |request| asked.push(request))
            .expect("it draws");
        (terminal, asked)
    }

    fn screen(self) -> String {
        self.run().0.backend().to_string()
    }

    fn asked(self) -> Vec<Request> {
        self.run().1
    }
}

/// Compares a screen at both sizes.
macro_rules! screens {
    ($name:literal, $app:expr) => {
        let app = $app;
        for size in [SMALL, LARGE] {
            let (width, height) = size;
            assert_snapshot!(format!("{}_{width}x{height}", $name), app(App::new(size)).screen());
        }
    };
}

fn candidate(pid: u32, name: &str, minutes: u64) -> Candidate {
    Candidate {
        pid,
        name: name.into(),
        up: Some(Duration::from_secs(minutes * 60)),
        address: format!("/run/user/1000/holdup/{pid}.sock"),
    }
}

fn looked(list: Vec<Candidate>) -> Message {
    Message::Processes(list, "/run/user/1000/holdup and /tmp/holdup-1000".into())
}

#[test]
fn nothing_attached() {
    screens!("nothing_attached", |app: App| app.hears(looked(Vec::new())));
}

#[test]
fn processes() {
    let list = vec![candidate(4711, "checkout-servic", 14), candidate(4802, "worker", 2)];
    screens!("processes", |app: App| app.hears(looked(list.clone())).keys("j"));
    let asked = App::new(SMALL).hears(looked(list)).keys("j enter").asked();
    assert!(
        asked.contains(&Request::Attach("/run/user/1000/holdup/4802.sock".into())),
        "{asked:?}"
    );
}

#[test]
fn version_mismatch() {
    let why = "version mismatch: process 4711 has holdup 0.9.0 (protocol 9), this is holdup 0.1.0 \
               (protocol 1): use the same version on both sides";
    screens!("version_mismatch", |app: App| app
        .hears(Message::Connecting("process 4711".into()))
        .hears(Message::Lost { why: why.into(), again: false })
        .hears(looked(vec![candidate(4711, "checkout-servic", 14)])));
}

#[test]
fn empty() {
    screens!("empty", |app: App| app
        .hears_all([Message::Attached(process()), Message::Overview(fixture::empty()),]));
}

#[test]
fn typical() {
    screens!("typical", |app: App| app.hears_all(attached(overview(0))));
}

#[test]
fn with_finding() {
    screens!("with_finding", |app: App| app.hears_all(attached(overview(1))));
}

#[test]
fn many_findings() {
    screens!("many_findings", |app: App| app.hears_all(attached(overview(30))).keys("j j pgdn"));
}

#[test]
fn resource() {
    screens!("resource", |app: App| app
        .hears_all(attached(overview(1)))
        .keys("j enter")
        .hears_all(records()));
}

#[test]
fn resource_waiter_unfolded() {
    screens!("resource_waiter_unfolded", |app: App| app
        .hears_all(attached(overview(1)))
        .keys("j enter")
        .hears_all(records())
        .keys("tab j x"));
}

#[test]
fn resource_granted() {
    screens!("resource_granted", |app: App| app
        .hears_all(attached(fixture::granted()))
        .keys("enter")
        .hears_all(fixture::granted_records()));
}

#[test]
fn a_channel() {
    screens!("channel", |app: App| app
        .hears_all(attached(fixture::channel()))
        .keys("enter")
        .hears_all(fixture::channel_records()));
}

#[test]
fn every_code() {
    screens!("every_code", |app: App| app.hears_all(attached(fixture::every_code())));
}

#[test]
fn resource_without_names() {
    screens!("resource_without_names", |app: App| {
        let stack = Stack {
            id: StackId(1),
            addresses: Arc::from([0x5581_0000_1234, 0x5581_0000_9876]),
            frames: None,
        };
        let mut records = records();
        records.retain(|m| !matches!(m, Message::Stacks(_) | Message::File(..)));
        records.push(Message::Stacks(vec![stack]));
        app.hears_all(attached(overview(1))).keys("j enter").hears_all(records)
    });
}

#[test]
fn finding_screen() {
    screens!("finding", |app: App| app
        .hears_all(attached(overview(2)))
        .keys("enter")
        .hears(fixture::source_file()));
}

#[test]
fn finding_without_source() {
    screens!("finding_without_source", |app: App| app.hears_all(attached(overview(2))).keys("f n"));
}

#[test]
fn finding_that_ended() {
    screens!("finding_that_ended", |app: App| app
        .hears_all(attached(overview(1)))
        .keys("f")
        .hears(Message::Overview(overview(0))));
}

#[test]
fn help() {
    screens!("help", |app: App| app.hears_all(attached(overview(0))).keys("?"));
}

#[test]
fn filter() {
    screens!("filter_typed", |app: App| app.hears_all(attached(overview(0))).keys("/").types("se"));
    screens!("filter_kept", |app: App| app
        .hears_all(attached(overview(0)))
        .keys("/")
        .types("se")
        .keys("enter s"));
    screens!("filter_matches_nothing", |app: App| app
        .hears_all(attached(overview(0)))
        .keys("/")
        .types("no such thing")
        .keys("enter"));
}

#[test]
fn frozen() {
    screens!("frozen", |app: App| app
        .hears_all(attached(overview(0)))
        .keys("space")
        .passes(12)
        .hears(Message::Overview(overview(1))));
    let thawed = App::new(SMALL)
        .hears_all(attached(overview(0)))
        .keys("space")
        .hears(Message::Overview(overview(1)))
        .keys("space");
    assert!(thawed.screen().contains("1 deadlock"));
}

#[test]
fn gone() {
    screens!("gone", |app: App| app
        .hears_all(attached(overview(1)))
        .hears(Message::Lost { why: "the process has ended".into(), again: false })
        .passes(12));
}

#[test]
fn lost_and_found() {
    let app = || {
        App::new(SMALL)
            .hears_all(attached(overview(1)))
            .hears(Message::Lost { why: "connection lost".into(), again: true })
            .passes(4)
    };
    assert!(app().screen().contains("lost 4 s ago, trying"));
    let found = app().hears_all(attached(overview(0))).screen();
    assert!(found.contains("⏵ live") && found.contains("nothing to report"), "{found}");
}

#[test]
fn silence() {
    let screen = App::new(SMALL).hears_all(attached(overview(0))).passes(7).screen();
    assert!(screen.contains("no answer for 7.00 s"), "{screen}");
}

#[test]
fn started_program() {
    let lines =
        |n: u32| (1..=n).map(|n| Message::Line(format!("checkout {n} \x1b[2J\u{202e}done")));
    for (width, height) in [SMALL, LARGE] {
        let app = || App::started((width, height)).hears_all(lines(60));
        assert_snapshot!(format!("program_waiting_{width}x{height}"), app().keys("k k").screen());
        assert_snapshot!(
            format!("program_mute_{width}x{height}"),
            app().hears(Message::NotServing).screen()
        );
        let ended = app()
            .hears_all(attached(overview(0)))
            .hears(Message::Ended("exit code 101".into()))
            .hears(Message::Lost { why: "the process has ended".into(), again: false })
            .keys("l");
        assert_snapshot!(format!("program_ended_{width}x{height}"), ended.screen());
    }
}

#[test]
fn too_small_is_said() {
    let screen = App::new((30, 8)).hears_all(attached(overview(1))).screen();
    assert!(screen.contains("too small") && screen.contains("needs 40×10, has 30×8"), "{screen}");
}

#[test]
fn every_screen_is_drawn_at_every_size() {
    let keys = ["", "?", "/", "j enter", "f", "p", "space", "j enter tab x"];
    for size in [(1, 1), (40, 10), (41, 11), (57, 13), (79, 23), (110, 12), (119, 30), (250, 70)] {
        for keys in keys {
            let app = App::new(size).hears_all(attached(overview(3)));
            let app = if keys.is_empty() { app } else { app.keys(keys) };
            app.hears_all(records()).hears(fixture::source_file()).screen();
        }
    }
}

#[test]
fn without_colour_nothing_is_coloured() {
    let mut app = App::new(SMALL).hears_all(attached(overview(1))).keys("j");
    app.colour = false;
    let (terminal, _) = app.run();
    let cells = terminal.backend().buffer().content();
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    // The selection is still seen.
    assert!(
        cells.iter().any(|cell| cell.modifier.contains(Modifier::BOLD) && cell.symbol() == "s")
    );
}

#[test]
fn backgrounds_are_the_terminals_own() {
    let (terminal, _) = App::new(LARGE).hears_all(attached(overview(3))).keys("j").run();
    assert!(terminal.backend().buffer().content().iter().all(|cell| cell.bg == Color::Reset));
}

#[test]
fn the_selection_follows_its_row() {
    // `sessions` is selected; then the order changes under it.
    let app = App::new(SMALL).hears_all(attached(overview(0))).keys("j s s s s");
    let screen = app.screen();
    let selected = screen.lines().find(|line| line.contains('▌')).expect("a selected row");
    assert!(selected.contains("sessions"), "{screen}");
}

#[test]
fn keys_quit() {
    for keys in ["q", "ctrl-c", "? q", "/ ctrl-c"] {
        let asked = App::new(SMALL).hears_all(attached(overview(0))).keys(keys).keys("p").asked();
        let discovered = asked.iter().filter(|r| **r == Request::Discover).count();
        assert_eq!(discovered, 0, "`{keys}`: the key after it was still taken");
    }
}

#[test]
fn only_what_is_on_screen_is_asked_for() {
    let asked = App::new(SMALL).hears_all(attached(overview(1))).asked();
    assert_eq!(asked, []);
    let asked = App::new(SMALL)
        .hears_all(attached(overview(1)))
        .keys("j enter")
        .hears_all(records())
        .asked();
    let resources: Vec<_> = asked
        .iter()
        .filter_map(|r| match r {
            Request::Records { resource, .. } => Some(*resource),
            _ => None,
        })
        .collect();
    assert_eq!(resources, [ResourceId(1)]);
    let stacks = asked.iter().find_map(|r| match r {
        Request::Stacks(ids) => Some(ids.clone()),
        _ => None,
    });
    assert_eq!(stacks, Some(vec![StackId(1), StackId(2), StackId(3)]), "the selected one's first");
    assert!(
        asked.iter().any(|r| matches!(r, Request::File { file, .. } if &**file == "src/store.rs"))
    );
}

#[test]
fn a_long_list_is_walked_by_pages() {
    let open = || {
        App::new(SMALL)
            .hears_all(attached(fixture::crowded()))
            .keys("enter")
            .hears(fixture::crowd(0))
    };
    let pages = |asked: Vec<Request>| -> Vec<u64> {
        let skipped = asked.into_iter().filter_map(|r| match r {
            Request::Records { holds, .. } => Some(holds.skipped),
            _ => None,
        });
        skipped.collect()
    };
    assert_eq!(pages(open().keys("end").asked()), [0]);
    let second = || open().keys("end j").hears(fixture::crowd(1));
    assert_eq!(pages(second().asked()), [0, 200]);
    assert!(second().screen().contains("201–400"), "{}", second().screen());
    assert_eq!(pages(second().keys("k").asked()), [0, 200, 0]);
    assert_eq!(pages(second().keys("home").asked()), [0, 200, 0]);
    // An answer for a page that is no longer wanted is not shown.
    let late = second().keys("home").hears(fixture::crowd(0)).hears(fixture::crowd(1));
    assert!(!late.screen().contains("task 201 "), "an old page came late");
}

#[test]
fn names_cannot_drive_the_terminal() {
    let mut picture = overview(1);
    let mut resources = picture.resources.to_vec();
    resources[0].name = Some("evil\x1b[2J\u{202e}名前が長い名前が長い名前が長い名前が長い".into());
    picture.resources = resources.into();
    let mut finding = finding(1);
    finding.title = "a\x1b]0;title\x07b".into();
    picture.findings = Arc::from([finding]);
    for keys in ["j", "j enter", "f"] {
        let (terminal, _) = App::new(SMALL)
            .hears_all(attached(picture.clone()))
            .keys(keys)
            .hears_all(records())
            .run();
        for cell in terminal.backend().buffer().content() {
            assert!(
                !cell.symbol().chars().any(|c| c.is_control() || c == '\u{202e}'),
                "{:?}",
                cell.symbol()
            );
        }
    }
}

#[test]
fn unknown_things_are_shown_as_unknown() {
    let mut picture = overview(1);
    let mut finding = finding(1);
    finding.code = holdup_core::Code::Unknown;
    finding.verdict = holdup_core::Verdict::Unknown;
    finding.since = Moment(u64::MAX);
    finding.marks.clear();
    finding.resources.clear();
    picture.findings = Arc::from([finding]);
    let screen = App::new(SMALL).hears_all(attached(picture)).keys("enter").screen();
    assert!(screen.contains("unknown"), "{screen}");
}

#[test]
fn no_snapshot_is_left_over() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screens/snapshots");
    for file in std::fs::read_dir(folder).expect("the snapshots") {
        let name = file.expect("an entry").file_name().into_string().expect("a plain name");
        let stem = name
            .strip_prefix("screens__")
            .and_then(|name| name.rsplit_once('_'))
            .map(|(stem, _)| stem);
        let stem = stem.unwrap_or_else(|| panic!("{name} is no snapshot of a screen"));
        let used = [format!("\"{stem}\""), format!("\"{stem}_{{")];
        assert!(
            used.iter().any(|name| include_str!("main.rs").contains(name)),
            "{name} is of no test"
        );
    }
}
