//! How long a diagnosis of a million holds takes: `cargo run --release -p holdup-core --example million`.
//!
//! Everything is old, so that every rule has to look: a million holds and a hundred thousand waits over ten thousand
//! resources, of which one is in a ring, and a tenth of it, to see that the time grows with the size. With an
//! argument, that many resources.

use holdup_core::diagnose::{Limits, diagnose, needs_names};
use holdup_core::snapshot::{
    ActorId, Call, Counters, Flavor, Frame, Gate, History, Hold, HoldId, Kind, Learned, Moment,
    Order, Resource, ResourceId, Runtime, RuntimeId, ScopeId, Seen, Settings, Side, Site, SiteId,
    Snapshot, Stack, StackId, Usage, Wait, WaitId,
};
use std::time::{Duration, Instant};

const HOLDS_EACH: u64 = 100;
const WAITS_EACH: u64 = 10;
/// Distinct call stacks and lines.
const STACKS: u32 = 1_000;
const HOUR: u64 = 3_600_000_000_000;

fn main() {
    let most = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    for resources in [most / 10, most] {
        let now = snapshot(resources);
        let mut before = now.clone();
        before.taken = Moment(HOUR - 1_000_000_000);
        let limits = Limits::default();
        let start = Instant::now();
        let findings = diagnose(&now, Some(&before), &limits);
        let took = start.elapsed();
        let start = Instant::now();
        let stacks = needs_names(&now, &limits);
        println!(
            "{} holds, {} waits, {} resources: diagnosed in {took:.1?}, {} findings; {} stacks wanted, told in {:.1?}",
            now.holds.len(),
            now.waits.len(),
            now.resources.len(),
            findings.len(),
            stacks.len(),
            start.elapsed(),
        );
    }
}

/// Every resource is exhausted. Whoever waits holds permits of the resource before, and others hold, too, so most is
/// no deadlock. In every hundredth, all who hold wait for more of it.
fn snapshot(resources: u64) -> Snapshot {
    let mut snapshot = Snapshot { taken: Moment(HOUR), ..Snapshot::default() };
    snapshot.process.debug = true;
    for n in 0..STACKS {
        let site = Site { file: "src/app.rs".into(), line: n + 1, column: 9 };
        snapshot.stacks.push(stack(StackId(n + 1), &site));
        snapshot.sites.push(site);
        snapshot.learned.push(Learned {
            stack: StackId(n + 1),
            site: SiteId(n),
            acquired: 2_000,
            released: 1_000,
            usual: Duration::from_millis(40),
            ..Learned::default()
        });
        snapshot.orders.push(order(n));
    }
    snapshot.runtimes.push(Runtime {
        id: RuntimeId(1),
        flavor: Flavor::MultiThread,
        workers: 8,
        alive_tasks: resources * HOLDS_EACH,
        rested: Moment(HOUR),
    });
    for resource in 1..=resources {
        let knot = resource % 100 == 0;
        snapshot.resources.push(Resource {
            id: ResourceId(resource),
            kind: Kind::Semaphore,
            name: None,
            created: SiteId(0),
            created_at: Moment(0),
            scope: ScopeId(0),
            is_static: false,
            initial: HOLDS_EACH,
            added: 0,
            forgotten: 0,
            available: 0,
            closed: false,
            settled: true,
            usage: Usage {
                held: HOLDS_EACH,
                holders: HOLDS_EACH,
                waiting: WAITS_EACH,
                ..Usage::default()
            },
            counters: Counters::default(),
            settings: Settings::default(),
            // Elsewhere permits come and go.
            history: History {
                moved: Moment(if knot { 0 } else { HOUR - 1 }),
                ..History::default()
            },
        });
        let task = |at: u64| resource * HOLDS_EACH + if knot { at % WAITS_EACH } else { at };
        for at in 0..HOLDS_EACH {
            let id = resource * HOLDS_EACH + at;
            snapshot.holds.push(Hold {
                id: HoldId(id),
                resource: ResourceId(resource),
                units: 1,
                actor: ActorId::Task(task(at)),
                moved_to: None,
                scope: ScopeId(0),
                stack: StackId(u32::try_from(id % u64::from(STACKS)).unwrap_or(0) + 1),
                site: SiteId(u32::try_from(id % u64::from(STACKS)).unwrap_or(0)),
                since: Moment(id),
                call: Call::Acquire,
                owned: at % 2 == 0,
                future: 0x1000 * (at + 1),
                poller: 0x2000,
                thread: at % 8,
            });
        }
        for at in 0..WAITS_EACH {
            let id = resource * HOLDS_EACH + at;
            let before = (resource.max(2) - 1) * HOLDS_EACH + at;
            snapshot.waits.push(Wait {
                id: WaitId(id),
                resource: ResourceId(resource),
                units: 1,
                actor: ActorId::Task(if knot { task(at) } else { before }),
                scope: ScopeId(0),
                stack: StackId(1),
                site: SiteId(0),
                since: Moment(HOUR / 2 + at),
                last_poll: Moment(HOUR / 2 + at),
                call: Call::Acquire,
                owned: false,
                future: 0x500_0000,
                poller: 0x2000,
                thread: at % 8,
                runtime: RuntimeId(1),
                granted_since: None,
            });
        }
    }
    snapshot
}

/// A task's body that awaits at this place.
fn stack(id: StackId, site: &Site) -> Stack {
    let frame = |function: &str, site: Option<Site>, address: u64| Frame {
        function: function.into(),
        site,
        address,
        inlined: false,
    };
    let body = frame("app::handle::{{closure}}", Some(site.clone()), u64::from(id.0) * 16);
    let poll = frame("tokio::runtime::task::core::Core<T,S>::poll", None, 8);
    Stack { id, addresses: [body.address, poll.address].into(), frames: Some([body, poll].into()) }
}

fn seen(n: u32) -> Seen {
    let actor = ActorId::Task(u64::from(n));
    Seen { actor, at: Moment(0), last: Moment(HOUR), alive_tasks: 0, newest: 0 }
}

/// One resource before another, of many.
fn order(n: u32) -> Order {
    let side = |resource: u64, stack: u32| Side {
        resource: ResourceId(resource),
        kind: Kind::Semaphore,
        name: None,
        created: SiteId(0),
        capacity: HOLDS_EACH,
        units: 1,
        site: SiteId(stack),
        stack: StackId(stack + 1),
        owned: false,
        is_static: false,
        future: 0x1000,
        poller: 0x2000,
    };
    Order {
        outer: side(u64::from(n) + 1, n),
        inner: side(u64::from(n) + 2, (n + 1) % STACKS),
        held: 1,
        count: 1_000,
        released: 1_000,
        elsewhere: 0,
        first: Moment(0),
        last: Moment(HOUR),
        seen: vec![seen(n)],
        largest: None,
        gates: vec![Gate { resource: ResourceId(1), capacity: 100, units: 1 }],
    }
}
