//! Pictures to draw.

use holdup_core::snapshot::{
    Actor, ActorId, Call, Counters, Direction, Dropped, Flow, Frame, History, Hold, HoldId, Kind,
    Moment, Process, Resource, ResourceId, ScopeId, Settings, Site, SiteId, Stack, StackId, Streak,
    Usage, Wait, WaitId,
};
use holdup_core::{Code, Finding, FindingId, Mark, Verdict};
use holdup_tui::message::{Cursor, Message, Overview, PAGE, Page, Records};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
/// Now, in all pictures.
const NOW: Moment = Moment(14 * 60 * SECOND);

fn ago(millis: u64) -> Moment {
    Moment(NOW.0 - millis * 1_000_000)
}

pub(crate) fn process() -> Process {
    Process {
        pid: 4711,
        name: "checkout-service".into(),
        executable: "/srv/checkout/target/debug/checkout-service".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        debug: true,
        stacks: "full".into(),
        working_directory: "/srv/checkout".into(),
    }
}

/// The process is attached and has sent this.
pub(crate) fn attached(picture: Overview) -> [Message; 2] {
    [Message::Attached(process()), Message::Overview(picture)]
}

fn site(file: &str, line: u32, column: u32) -> Site {
    Site { file: file.into(), line, column }
}

fn sites() -> Arc<[Site]> {
    Arc::from([
        site("src/limits.rs", 14, 22),
        site("src/session.rs", 20, 9),
        site("src/rpc.rs", 12, 9),
        site("crates/configuration/src/live/config.rs", 9, 5),
        site("src/store.rs", 4, 23),
        site("src/store.rs", 9, 23),
        site("src/store.rs", 90, 30),
    ])
}

struct Shape {
    id: u64,
    name: Option<&'static str>,
    kind: Kind,
    initial: u64,
    held: u64,
    waiting: u64,
    oldest: Option<u64>,
    acquired: u64,
}

fn resource(shape: &Shape) -> Resource {
    Resource {
        id: ResourceId(shape.id),
        kind: shape.kind,
        name: shape.name.map(Arc::from),
        created: SiteId((shape.id as u32 - 1) % 4),
        created_at: ago(13 * 60_000),
        scope: ScopeId(0),
        is_static: false,
        initial: shape.initial,
        added: 0,
        forgotten: 0,
        available: shape.initial - shape.held,
        closed: false,
        settled: true,
        usage: Usage {
            held: shape.held,
            holders: shape.held,
            waiting: shape.waiting,
            oldest_hold: shape.oldest.map(ago),
            oldest_wait: (shape.waiting > 0).then(|| ago(2_030)),
        },
        counters: Counters {
            acquired: shape.acquired,
            waited: shape.acquired / 7,
            released: shape.acquired.saturating_sub(shape.held),
            rejected: shape.acquired / 100,
            cancelled: 0,
            wait_nanos: shape.acquired * 80_000,
            cancelled_nanos: 0,
            held_nanos: shape.acquired.saturating_sub(shape.held) * 31_000_000,
        },
        settings: Settings::default(),
        history: History::default(),
    }
}

fn resources() -> Vec<Resource> {
    let shapes = [
        Shape {
            id: 1,
            name: Some("db_writes"),
            kind: Kind::Semaphore,
            initial: 1,
            held: 1,
            waiting: 4,
            oldest: Some(2_030),
            acquired: 912,
        },
        Shape {
            id: 2,
            name: Some("sessions"),
            kind: Kind::Semaphore,
            initial: 9,
            held: 6,
            waiting: 0,
            oldest: Some(71_000),
            acquired: 41_932,
        },
        Shape {
            id: 3,
            name: Some("rpc"),
            kind: Kind::Semaphore,
            initial: 8,
            held: 4,
            waiting: 0,
            oldest: Some(200),
            acquired: 1_234,
        },
        Shape {
            id: 4,
            name: Some("設定ファイルの読み書きロック"),
            kind: Kind::RwLock,
            initial: 536_870_911,
            held: 0,
            waiting: 0,
            oldest: None,
            acquired: 3_400_000,
        },
        Shape {
            id: 5,
            name: None,
            kind: Kind::Channel,
            initial: 1_024,
            held: 17,
            waiting: 0,
            oldest: Some(80),
            acquired: 70_000,
        },
        Shape {
            id: 6,
            name: Some("a_very_long_name_of_a_semaphore_that_limits_uploads"),
            kind: Kind::Mutex,
            initial: 1,
            held: 0,
            waiting: 0,
            oldest: None,
            acquired: 0,
        },
    ];
    shapes.iter().map(resource).collect()
}

pub(crate) fn empty() -> Overview {
    Overview { taken: NOW, ..Overview::default() }
}

/// A picture with so many findings.
pub(crate) fn overview(findings: u64) -> Overview {
    Overview {
        taken: NOW,
        resources: resources().into(),
        sites: sites(),
        findings: (1..=findings).map(finding).collect(),
        dropped: Dropped::default(),
        resources_left_out: 0,
        findings_left_out: 0,
    }
}

pub(crate) fn finding(n: u64) -> Finding {
    let mark = |line, label: &str, primary| Mark {
        site: site("src/store.rs", line, 22),
        label: label.into(),
        primary,
        stack: StackId(1),
    };
    if n.is_multiple_of(2) {
        return Finding {
            id: FindingId(n),
            code: Code::Unsatisfiable,
            verdict: Verdict::Proven,
            title: "`bulk_load` waits for 20 permits of `sessions`, which has 9".into(),
            marks: vec![Mark {
                site: site("src/bulk.rs", 31, 40),
                label: "asks for 20 permits".into(),
                primary: true,
                stack: StackId(2),
            }],
            notes: vec!["semaphore `sessions`: 9 permits, 3 available, 6 held, 1 waiting".into()],
            help: Some("ask for at most 9 permits, or create the semaphore with more".into()),
            since: ago(9_000),
            resources: vec![ResourceId(2)],
            actors: vec![ActorId::Task(30)],
            holds: Vec::new(),
            waits: vec![WaitId(900)],
        };
    }
    Finding {
        id: FindingId(n),
        code: Code::Deadlock,
        verdict: Verdict::Proven,
        title: "`simulate_and_persist` waits for a permit that only it can release".into(),
        marks: vec![
            mark(4, "task 17 took the only permit of `db_writes` here, 2.03 s ago", false),
            mark(9, "and waits here for another one since 2.03 s", true),
        ],
        notes: vec![
            "semaphore `db_writes`: 1 permit, 0 available, 1 held, 4 waiting (created at src/limits.rs:14:22)".into(),
            "behind it: tasks 18, 21 and 22 wait, the oldest since 2.01 s".into(),
        ],
        help: Some("drop the outer permit before line 9, take both at once with `acquire_many(2)`, or give the inner step a semaphore of its own".into()),
        since: ago(2_030),
        resources: vec![ResourceId(1)],
        actors: vec![ActorId::Task(17)],
        holds: vec![HoldId(100)],
        waits: vec![WaitId(200)],
    }
}

fn hold(id: u64, resource: u64, task: u64, millis: u64, site: u32, stack: u32) -> Hold {
    Hold {
        id: HoldId(id),
        resource: ResourceId(resource),
        units: 1,
        actor: ActorId::Task(task),
        moved_to: None,
        scope: ScopeId(0),
        stack: StackId(stack),
        site: SiteId(site),
        since: ago(millis),
        call: Call::Acquire,
        owned: false,
        future: 0x7000,
        poller: 0x9000,
        thread: 1,
    }
}

fn wait(id: u64, resource: u64, actor: ActorId, millis: u64, site: u32, stack: u32) -> Wait {
    Wait {
        id: WaitId(id),
        resource: ResourceId(resource),
        units: 1,
        actor,
        scope: ScopeId(0),
        stack: StackId(stack),
        site: SiteId(site),
        since: ago(millis),
        last_poll: ago(millis),
        call: Call::Acquire,
        owned: false,
        future: 0x7100,
        poller: 0x9000,
        thread: 1,
        runtime: holdup_core::snapshot::RuntimeId::NONE,
        granted_since: None,
    }
}

/// Holders and waiters of `db_writes`, their stacks, and the source.
pub(crate) fn records() -> Vec<Message> {
    let mut many = wait(203, 1, ActorId::Root(0x1234), 1_200, 6, 3);
    many.units = 3;
    let records = Records {
        resource: ResourceId(1),
        holds: Page {
            cursor: Cursor::default(),
            taken: NOW,
            rows: vec![hold(100, 1, 17, 2_030, 4, 1)],
        },
        waits: Page {
            cursor: Cursor::default(),
            taken: NOW,
            rows: vec![
                wait(200, 1, ActorId::Task(17), 2_030, 5, 2),
                wait(201, 1, ActorId::Task(18), 2_010, 6, 3),
                wait(202, 1, ActorId::Task(21), 1_800, 6, 3),
                many,
            ],
        },
        actors: vec![
            Actor { id: ActorId::Task(17), name: Some("simulate".into()) },
            Actor { id: ActorId::Root(0x1234), name: Some("main".into()) },
        ],
        sites: Vec::new(),
    };
    vec![
        Message::Records(records),
        Message::Stacks(vec![frames(1), frames(2), frames(3)]),
        source_file(),
    ]
}

/// The stack of an acquire in a task.
fn frames(id: u32) -> Stack {
    let frame = |function: &str, site: Option<Site>| Frame {
        function: function.into(),
        site,
        address: 0x5581_0000_1000,
        inlined: false,
    };
    let runtime = |function: &str| {
        frame(function, Some(site("/home/u/.cargo/registry/src/tokio-1.54.1/src/x.rs", 331, 9)))
    };
    let (function, line) = match id {
        1 => ("checkout::store::simulate_and_persist::{{closure}}", 4),
        2 => ("checkout::store::simulate_and_persist::{{closure}}", 9),
        _ => ("checkout::store::save_profits::{{closure}}", 90),
    };
    let frames = [
        runtime("<holdup::sync::semaphore::Acquire as core::future::future::Future>::poll"),
        frame(function, Some(site("src/store.rs", line, 31))),
        frame(
            "checkout::pipeline::run_block::{{closure}}",
            Some(site("/srv/checkout/src/pipeline.rs", 118, 17)),
        ),
        runtime("tokio::runtime::task::core::Core<T,S>::poll::{{closure}}"),
        runtime("tokio::runtime::task::core::Core<T,S>::poll"),
        runtime(
            "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
        ),
        runtime("std::panicking::catch_unwind"),
        runtime("tokio::runtime::task::harness::Harness<T,S>::poll"),
        runtime("tokio::runtime::scheduler::multi_thread::worker::Context::run_task"),
        runtime("std::sys::backtrace::__rust_begin_short_backtrace"),
    ];
    Stack {
        id: StackId(id),
        addresses: Arc::from([0x5581_0000_1000]),
        frames: Some(Arc::from(frames)),
    }
}

pub(crate) fn source_file() -> Message {
    let text = "\
use holdup::sync::Semaphore;

pub async fn simulate_and_persist(sem: &Semaphore, block: &Block) -> Result<Profit> {
    let _outer = sem.acquire().await?;
    let profit = simulate(block).await?;
    if profit.is_negative() {
        return Ok(profit);
    }
    let _inner = sem.acquire().await?;
    // この行は日本語で、幅が二倍の文字を含む。
    persist(&profit).await?;
    Ok(profit)
}
";
    Message::File("src/store.rs".into(), Some(text.into()))
}

/// A permit that was granted and not picked up.
pub(crate) fn granted() -> Overview {
    let mut picture = overview(0);
    let mut resources = picture.resources.to_vec();
    resources[0].usage.held = 0;
    resources[0].usage.holders = 0;
    resources[0].usage.oldest_hold = None;
    picture.resources = resources.into();
    picture
}

pub(crate) fn granted_records() -> Vec<Message> {
    let mut messages = records();
    if let Some(Message::Records(records)) = messages.first_mut() {
        records.holds.rows.clear();
        records.waits.rows[0].granted_since = Some(ago(1_900));
    }
    messages
}

/// A channel whose receiver has stopped, and what else happened on it.
pub(crate) fn channel() -> Overview {
    let mut picture = overview(0);
    let mut channel = picture.resources[4].clone();
    channel.name = Some("jobs".into());
    (channel.usage.waiting, channel.usage.oldest_wait) = (1, Some(ago(2_010)));
    let flow = |direction, calls, units| Flow {
        direction,
        site: SiteId(6),
        stack: StackId(3),
        calls,
        units,
        most: units,
        first: ago(60_000),
        last: ago(3_100),
        actor: ActorId::Task(17),
        several: false,
        holding: 0,
        then_released: 0,
    };
    let streak = |site, count| Streak {
        actor: ActorId::Task(21),
        site: SiteId(site),
        stack: StackId(3),
        count,
        since: ago(12_000),
        last: ago(500),
        others: 40,
    };
    channel.history = History {
        moved: ago(500),
        flows: vec![flow(Direction::Forgotten, 1, 1), flow(Direction::Added, 12, 5_000)],
        streaks: vec![streak(4, 9), streak(5, 8)],
    };
    picture.resources = Arc::from([channel]);
    picture
}

pub(crate) fn channel_records() -> Vec<Message> {
    let mut messages = records();
    if let Some(Message::Records(records)) = messages.first_mut() {
        records.resource = ResourceId(5);
        records.waits.rows.truncate(2);
        let hold = &mut records.holds.rows[0];
        (hold.resource, hold.call, hold.units) = (ResourceId(5), Call::Receive, 17);
    }
    messages
}

/// A finding of every code, with every verdict among them.
pub(crate) fn every_code() -> Overview {
    let verdicts = [Verdict::Proven, Verdict::Suspected, Verdict::Hazard, Verdict::Resolved];
    let findings = (1..).zip(Code::ALL).map(|(id, code)| Finding {
        code: *code,
        verdict: verdicts[id as usize % verdicts.len()],
        title: format!("something of the kind {code}"),
        id: FindingId(id),
        ..finding(1)
    });
    Overview { findings: findings.collect(), ..overview(0) }
}

/// One resource with very many holders.
pub(crate) fn crowded() -> Overview {
    let mut picture = overview(0);
    let mut resources = picture.resources.to_vec();
    resources.truncate(1);
    resources[0].initial = 1_000_000;
    resources[0].usage.held = 1_000_000;
    resources[0].usage.holders = 1_000_000;
    resources[0].usage.waiting = 0;
    picture.resources = resources.into();
    picture
}

/// A page of them.
pub(crate) fn crowd(page: u64) -> Message {
    let rows = |page: u64| {
        let first = page * PAGE as u64 + 1;
        let rows: Vec<Hold> =
            (first..first + PAGE as u64).map(|n| hold(n, 1, n, 100_000 - n, 4, 1)).collect();
        rows
    };
    let after = page.checked_sub(1).map(|before| {
        let last = rows(before).pop().expect("a page has rows");
        (last.since, last.id)
    });
    Message::Records(Records {
        resource: ResourceId(1),
        holds: Page {
            cursor: Cursor { skipped: page * PAGE as u64, after },
            taken: NOW,
            rows: rows(page),
        },
        waits: Page { cursor: Cursor::default(), taken: NOW, rows: Vec::new() },
        actors: Vec::new(),
        sites: Vec::new(),
    })
}
