//! Snapshots come over wires and out of files: whatever they say, nothing here panics.

use super::{Limits, diagnose, needs_names};
use crate::scenario::{Scenario, frames};
use crate::snapshot::{
    ActorId, Call, Flavor, Hold, HoldId, Kind, Learned, Moment, ResourceId, Runtime, RuntimeId,
    ScopeId, SiteId, Snapshot, Stack, StackId, Wait, WaitId,
};
use crate::text::{NoSources, Style, render};
use proptest::prelude::*;
use std::time::Duration;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..4, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 1 => any::<u64>()]
}

fn actor() -> impl Strategy<Value = ActorId> {
    prop_oneof![6 => (0u64..3).prop_map(ActorId::Task), 1 => (0u64..2).prop_map(ActorId::Root), 1 => Just(ActorId::Thread(1))]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![6 => Just(Call::Acquire), 1 => Just(Call::Try), 1 => Just(Call::Blocking), 1 => Just(Call::Receive)]
}

fn runtime() -> impl Strategy<Value = Runtime> {
    let flavor =
        prop_oneof![Just(Flavor::CurrentThread), Just(Flavor::MultiThread), Just(Flavor::Unknown)];
    (1u64..3, flavor, number(), number(), number()).prop_map(
        |(id, flavor, workers, alive_tasks, rested)| Runtime {
            id: RuntimeId(id),
            flavor,
            workers,
            alive_tasks,
            rested: Moment(rested),
        },
    )
}

fn learned() -> impl Strategy<Value = Learned> {
    (0u32..6, 0u32..4, number(), number(), number(), number()).prop_map(
        |(stack, site, acquired, released, elsewhere, usual)| Learned {
            stack: StackId(stack),
            site: SiteId(site),
            acquired,
            released,
            elsewhere,
            usual: Duration::from_nanos(usual),
            longest: Duration::from_nanos(usual),
            ..Learned::default()
        },
    )
}

fn hold() -> impl Strategy<Value = Hold> {
    let record = (0u64..4, 0u64..4, number(), actor(), 0u32..6, 0u32..4, number(), number());
    let more = (prop::option::weighted(0.1, actor()), call(), any::<bool>(), 0u64..3);
    (record, more).prop_map(
        |(
            (id, resource, units, actor, stack, site, since, future),
            (moved_to, call, owned, thread),
        )| Hold {
            id: HoldId(id),
            resource: ResourceId(resource),
            units,
            actor,
            moved_to,
            scope: ScopeId(0),
            stack: StackId(stack),
            site: SiteId(site),
            since: Moment(since),
            call,
            owned,
            future,
            poller: 1,
            thread,
        },
    )
}

fn wait() -> impl Strategy<Value = Wait> {
    let record = (0u64..4, 0u64..4, number(), actor(), 0u32..6, 0u32..4, number(), number());
    let more = (prop::option::weighted(0.3, number()), call(), 0u64..3, 0u64..3);
    (record, more).prop_map(
        |(
            (id, resource, units, actor, stack, site, since, last_poll),
            (granted, call, thread, runtime),
        )| Wait {
            id: WaitId(id),
            resource: ResourceId(resource),
            units,
            actor,
            scope: ScopeId(0),
            stack: StackId(stack),
            site: SiteId(site),
            since: Moment(since),
            last_poll: Moment(last_poll),
            call,
            owned: false,
            future: 0x1000,
            poller: 1,
            thread,
            runtime: RuntimeId(runtime),
            granted_since: granted.map(Moment),
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let records = (prop::collection::vec(hold(), 0..6), prop::collection::vec(wait(), 0..6));
    let kind = prop_oneof![3 => Just(Kind::Semaphore), 1 => Just(Kind::Mutex), 1 => Just(Kind::RwLock), 2 => Just(Kind::Channel)];
    let totals = prop::collection::vec((number(), number(), any::<bool>(), kind, number()), 3);
    let evidence = (prop::collection::vec(runtime(), 0..3), prop::collection::vec(learned(), 0..6));
    (records, totals, evidence, number()).prop_map(|((mut holds, waits), totals, (runtimes, mut learned), taken)| {
        let text = "semaphore a 1\nsemaphore b 2\nsemaphore c 3\ntask 1\nhold a: f@1\nwait b: g@2\nwait c: h@3";
        let mut snapshot = Scenario::read(text).expect("well-formed").current;
        holds.sort_by_key(|h| h.resource);
        for (r, (initial, available, balanced, kind, moved)) in snapshot.resources.iter_mut().zip(totals) {
            (r.kind, r.history.moved) = (kind, Moment(moved));
            let own = holds.iter().filter(|h| h.resource == r.id);
            let held = own.fold(0u64, |sum, h| sum.saturating_add(h.units));
            (r.initial, r.available, r.usage.held) = if balanced { (held, 0, held) } else { (initial, available, held) };
        }
        let path = frames("f@1 > join!1 > g@5").expect("well-formed");
        snapshot.stacks.push(Stack { id: StackId(4), addresses: [1].into(), frames: Some(path.into()) });
        let path = frames("f@1 > block_on").expect("well-formed");
        snapshot.stacks.push(Stack { id: StackId(5), addresses: [2].into(), frames: Some(path.into()) });
        learned.sort_by_key(|l| l.stack);
        (snapshot.runtimes, snapshot.learned) = (runtimes, learned);
        (snapshot.holds, snapshot.waits, snapshot.taken) = (holds, waits, Moment(taken));
        snapshot
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(now in snapshot(), before in snapshot(), same in any::<bool>()) {
        let mut before = if same { now.clone() } else { before };
        before.taken = Moment(0);
        let limits = Limits::default();
        let _ = needs_names(&now, &limits);
        for finding in diagnose(&now, Some(&before), &limits) {
            let text = render(&finding, &NoSources, &Style::default());
            prop_assert!(text.starts_with(finding.code.as_str()));
        }
    }
}
