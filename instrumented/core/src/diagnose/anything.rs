//! Snapshots come over wires and out of files: whatever they say, nothing here panics.

use super::{Limits, diagnose, needs_names};
use crate::scenario::{Scenario, frames};
use crate::snapshot::{
    ActorId, Call, Hold, HoldId, Moment, ResourceId, RuntimeId, ScopeId, SiteId, Snapshot, Stack,
    StackId, Wait, WaitId,
};
use crate::text::{NoSources, Style, render};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..4, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 1 => any::<u64>()]
}

fn actor() -> impl Strategy<Value = ActorId> {
    prop_oneof![6 => (0u64..3).prop_map(ActorId::Task), 1 => (0u64..2).prop_map(ActorId::Root), 1 => Just(ActorId::Thread(1))]
}

fn hold() -> impl Strategy<Value = Hold> {
    (0u64..4, 0u64..4, number(), actor(), 0u32..5, 0u32..4, number(), number()).prop_map(
        |(id, resource, units, actor, stack, site, since, future)| Hold {
            id: HoldId(id),
            resource: ResourceId(resource),
            units,
            actor,
            moved_to: None,
            scope: ScopeId(0),
            stack: StackId(stack),
            site: SiteId(site),
            since: Moment(since),
            call: Call::Acquire,
            owned: false,
            future,
            poller: 1,
            thread: 1,
        },
    )
}

fn wait() -> impl Strategy<Value = Wait> {
    (0u64..4, 0u64..4, number(), actor(), 0u32..5, 0u32..4, number(), number()).prop_map(
        |(id, resource, units, actor, stack, site, since, last_poll)| Wait {
            id: WaitId(id),
            resource: ResourceId(resource),
            units,
            actor,
            scope: ScopeId(0),
            stack: StackId(stack),
            site: SiteId(site),
            since: Moment(since),
            last_poll: Moment(last_poll),
            call: Call::Acquire,
            owned: false,
            future: 0x1000,
            poller: 1,
            thread: 1,
            runtime: RuntimeId::NONE,
            granted_since: None,
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let records = (prop::collection::vec(hold(), 0..6), prop::collection::vec(wait(), 0..6));
    let totals = prop::collection::vec((number(), number(), any::<bool>()), 3);
    (records, totals, number()).prop_map(|((mut holds, waits), totals, taken)| {
        let text = "semaphore a 1\nsemaphore b 2\nsemaphore c 3\ntask 1\nhold a: f@1\nwait b: g@2\nwait c: h@3";
        let mut snapshot = Scenario::read(text).expect("well-formed").current;
        holds.sort_by_key(|h| h.resource);
        for (r, (initial, available, balanced)) in snapshot.resources.iter_mut().zip(totals) {
            let own = holds.iter().filter(|h| h.resource == r.id);
            let held = own.fold(0u64, |sum, h| sum.saturating_add(h.units));
            (r.initial, r.available, r.usage.held) = if balanced { (held, 0, held) } else { (initial, available, held) };
        }
        let path = frames("f@1 > join!1 > g@5").expect("well-formed");
        snapshot.stacks.push(Stack { id: StackId(4), addresses: [1].into(), frames: Some(path.into()) });
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
