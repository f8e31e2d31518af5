//! How long a diagnosis of a million holds takes: `cargo run --release -p holdup-core --example million`.

use holdup_core::diagnose::{Limits, diagnose, needs_names};
use holdup_core::snapshot::{
    ActorId, Call, Counters, Hold, HoldId, Kind, Moment, Resource, ResourceId, ScopeId, Settings,
    SiteId, Snapshot, StackId, Usage, Wait, WaitId,
};
use std::time::Instant;

const RESOURCES: u64 = 1_000;
const HOLDS_EACH: u64 = 1_000;

fn main() {
    for waits_each in [0, 1, 100] {
        let now = snapshot(waits_each);
        let mut before = now.clone();
        before.taken = Moment(0);
        let limits = Limits::default();
        let start = Instant::now();
        let findings = diagnose(&now, Some(&before), &limits);
        let took = start.elapsed();
        let start = Instant::now();
        let stacks = needs_names(&now, &limits);
        println!(
            "{} holds, {} waits: diagnosed in {took:.1?}, {} findings; {} stacks wanted, told in {:.1?}",
            now.holds.len(),
            now.waits.len(),
            findings.len(),
            stacks.len(),
            start.elapsed(),
        );
        assert!(findings.is_empty() && stacks.is_empty(), "nothing is stuck here");
    }
}

/// Every resource is exhausted. Whoever waits holds permits of the resource before, so nothing is a cycle, and the
/// last is released first.
fn snapshot(waits_each: u64) -> Snapshot {
    let mut snapshot = Snapshot { taken: Moment(1_000_000_000), ..Snapshot::default() };
    for resource in 1..=RESOURCES {
        let waiting = if resource == 1 { 0 } else { waits_each };
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
            usage: Usage { held: HOLDS_EACH, holders: HOLDS_EACH, waiting, ..Usage::default() },
            counters: Counters::default(),
            settings: Settings::default(),
            history: holdup_core::snapshot::History::default(),
        });
        for at in 0..HOLDS_EACH {
            let id = resource * HOLDS_EACH + at;
            snapshot.holds.push(Hold {
                id: HoldId(id),
                resource: ResourceId(resource),
                units: 1,
                actor: ActorId::Task(id),
                moved_to: None,
                scope: ScopeId(0),
                stack: StackId(1),
                site: SiteId(0),
                since: Moment(id),
                call: Call::Acquire,
                owned: false,
                future: 0x1000,
                poller: 0x2000,
                thread: 1,
            });
        }
        for at in 0..waiting {
            snapshot.waits.push(Wait {
                id: WaitId(resource * HOLDS_EACH + at),
                resource: ResourceId(resource),
                units: 1,
                actor: ActorId::Task((resource - 1) * HOLDS_EACH + at),
                scope: ScopeId(0),
                stack: StackId(1),
                site: SiteId(0),
                since: Moment(at),
                last_poll: Moment(at),
                call: Call::Acquire,
                owned: false,
                future: 0x1000,
                poller: 0x2000,
                thread: 1,
                runtime: holdup_core::snapshot::RuntimeId::NONE,
                granted_since: None,
            });
        }
    }
    snapshot
}
