//! How long one picture takes: `cargo bench -p holdup-tui --bench draw`.
//!
//! The process has a million holds over a thousand semaphores, among ten thousand resources. The app has the
//! resources and one page of holds, so neither number may matter. A picture is due 60 times a second: 16 ms.

use holdup_core::snapshot::{
    ActorId, Call, Counters, Frame, Hold, HoldId, Kind, Moment, Process, Resource, ResourceId,
    ScopeId, Settings, Site, SiteId, Stack, StackId, Usage,
};
use holdup_core::{Code, Finding, FindingId, Mark, Verdict};
use holdup_tui::app::{Event, Key, State, update};
use holdup_tui::message::{Cursor, Message, Overview, PAGE, Page, Records};
use holdup_tui::view;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RESOURCES: u64 = 10_000;
const BUSY: u64 = 1_000;
const HOLDS_EACH: u64 = 1_000;
const FINDINGS: u64 = 100;
const ROUNDS: usize = 500;
const DUE: Duration = Duration::from_millis(16);
const NOW: Moment = Moment(1_000_000_000_000);

fn resource(id: u64) -> Resource {
    let held = if id <= BUSY { HOLDS_EACH } else { 0 };
    Resource {
        id: ResourceId(id),
        kind: Kind::Semaphore,
        name: (!id.is_multiple_of(3)).then(|| format!("semaphore_number_{id}_名前").into()),
        created: SiteId((id % 50) as u32),
        created_at: Moment(id),
        scope: ScopeId(0),
        is_static: false,
        initial: HOLDS_EACH,
        added: 0,
        forgotten: 0,
        available: HOLDS_EACH - held,
        closed: false,
        settled: true,
        usage: Usage {
            held,
            holders: held,
            waiting: id % 7,
            oldest_hold: (held > 0).then_some(Moment(id)),
            oldest_wait: Some(Moment(id)),
        },
        counters: Counters {
            acquired: id * 1_000,
            released: id * 1_000 - held,
            held_nanos: id,
            ..Counters::default()
        },
        settings: Settings::default(),
        history: holdup_core::snapshot::History::default(),
    }
}

fn finding(id: u64) -> Finding {
    let mark = |line| Mark {
        site: Site { file: "src/store.rs".into(), line, column: 5 },
        label: format!("task {id} took the only permit here"),
        primary: true,
        stack: StackId(1),
    };
    Finding {
        id: FindingId(id),
        code: Code::Deadlock,
        verdict: Verdict::Proven,
        title: format!("`simulate_{id}` waits for a permit that only it can release"),
        marks: vec![mark(100), mark(900)],
        notes: vec!["a fact".into(); 4],
        help: Some("drop the outer permit".into()),
        since: Moment(id),
        resources: vec![ResourceId(id)],
        actors: vec![ActorId::Task(id)],
        holds: vec![HoldId(id)],
        waits: Vec::new(),
    }
}

fn overview(taken: u64) -> Overview {
    Overview {
        taken: Moment(NOW.0 + taken),
        resources: (1..=RESOURCES).map(resource).collect(),
        sites: (0..50)
            .map(|n| Site {
                file: format!("src/module_{n}/file.rs").into(),
                line: n + 1,
                column: 1,
            })
            .collect(),
        findings: (1..=FINDINGS).map(finding).collect(),
        ..Overview::default()
    }
}

fn records() -> Message {
    let hold = |n: u64| Hold {
        id: HoldId(n),
        resource: ResourceId(1),
        units: 1,
        actor: ActorId::Task(n),
        moved_to: None,
        scope: ScopeId(0),
        stack: StackId((n % 40) as u32 + 1),
        site: SiteId((n % 50) as u32),
        since: Moment(n),
        call: Call::Acquire,
        owned: false,
        future: 0,
        poller: 0,
        thread: 1,
    };
    Message::Records(Records {
        resource: ResourceId(1),
        holds: Page {
            cursor: Cursor::default(),
            taken: NOW,
            rows: (1..=PAGE as u64).map(hold).collect(),
        },
        waits: Page { cursor: Cursor::default(), taken: NOW, rows: Vec::new() },
        actors: Vec::new(),
        sites: Vec::new(),
    })
}

fn stacks() -> Message {
    let frame = |n: u64| Frame {
        function: format!("tokio::runtime::scheduler::multi_thread::worker::frame_{n}").into(),
        site: Some(Site {
            file: format!("/rustc/library/core/src/file_{n}.rs").into(),
            line: 1,
            column: 1,
        }),
        address: n,
        inlined: false,
    };
    let stack = |id: u32| Stack {
        id: StackId(id),
        addresses: Arc::from([1]),
        frames: Some((0..250).map(frame).collect()),
    };
    Message::Stacks((1..=40).map(stack).collect())
}

/// The median and the slowest of a hundred, for taking in a picture and for drawing it.
fn measure(name: &str, size: (u16, u16), keys: &str) {
    let mut state = State::new(size, true);
    let take = |state: &mut State, event| {
        black_box(update(state, Duration::ZERO, event));
    };
    take(&mut state, Event::Source(Message::Attached(Process::default())));
    take(&mut state, Event::Source(Message::Overview(overview(0))));
    for key in keys.split_whitespace() {
        take(&mut state, Event::Key(key.parse::<Key>().expect("a key")));
    }
    let source = "    let permit = semaphore.acquire().await?;\n".repeat(1_000);
    let more = [records(), stacks(), Message::File("src/store.rs".into(), Some(source.into()))];
    more.into_iter().for_each(|message| take(&mut state, Event::Source(message)));

    let mut terminal =
        Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal in memory");
    let mut drawn = Vec::with_capacity(ROUNDS);
    let mut taken = Vec::with_capacity(ROUNDS);
    let picture = overview(1);
    for _ in 0..ROUNDS {
        let picture = Event::Source(Message::Overview(picture.clone()));
        let begun = Instant::now();
        take(&mut state, picture);
        taken.push(begun.elapsed());
        // A resize makes the whole screen new, as after a change of screens.
        terminal.clear().expect("it clears");
        let begun = Instant::now();
        terminal.draw(|frame| view::draw(&state, frame)).expect("it draws");
        drawn.push(begun.elapsed());
    }
    let figures = |times: &mut Vec<Duration>| {
        times.sort();
        (times[times.len() / 2], times[times.len() * 99 / 100])
    };
    let (draw, draw_99) = figures(&mut drawn);
    let (update, update_99) = figures(&mut taken);
    println!(
        "{name:<10} {:>3}×{:<3} draw {draw:>9.1?} (p99 {draw_99:>9.1?})   update {update:>9.1?} (p99 {update_99:>9.1?})",
        size.0, size.1
    );
    if !cfg!(debug_assertions) {
        assert!(draw < DUE, "a picture takes longer than {DUE:?}");
    }
}

fn main() {
    for size in [(80, 24), (160, 48), (250, 70)] {
        measure("overview", size, "");
        measure("by name", size, "s s s s end");
        measure("filtered", size, "/ s e m enter");
        // Past the findings to the first resource.
        measure("resource", size, &format!("{} enter", "j ".repeat(FINDINGS as usize)));
        measure("finding", size, "enter");
    }
}
