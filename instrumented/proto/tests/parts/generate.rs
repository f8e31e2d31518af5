//! Values of every type that travels, with all that they can say.

use holdup_core::finding::{Code, Finding, FindingId, Mark, Verdict};
use holdup_core::snapshot::{
    Actor, ActorId, Call, Counters, Direction, Dropped, Flavor, Flow, Frame, Gate, History, Hold,
    HoldId, Kind, Largest, Learned, Moment, Order, Process, Resource, ResourceId, Runtime,
    RuntimeId, ScopeId, Seen, Settings, Side, Site, SiteId, Snapshot, Stack, StackId, Streak,
    Usage, Wait, WaitId,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn text() -> impl Strategy<Value = String> {
    "[a-zäß…: /]{0,12}"
}

pub(crate) fn name() -> impl Strategy<Value = Option<Arc<str>>> {
    option::of(text().prop_map(Arc::from))
}

pub(crate) fn moment() -> impl Strategy<Value = Moment> {
    any::<u64>().prop_map(Moment)
}

pub(crate) fn actor_id() -> impl Strategy<Value = ActorId> {
    prop_oneof![
        any::<u64>().prop_map(ActorId::Task),
        any::<u64>().prop_map(ActorId::Root),
        any::<u64>().prop_map(ActorId::Thread),
    ]
}

pub(crate) fn call() -> impl Strategy<Value = Call> {
    prop::sample::select(vec![Call::Acquire, Call::Try, Call::Blocking, Call::Receive])
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Semaphore, Kind::Mutex, Kind::RwLock, Kind::Channel])
}

pub(crate) fn site() -> impl Strategy<Value = Site> {
    (text(), any::<u32>(), any::<u32>()).prop_map(|(file, line, column)| Site {
        file: file.into(),
        line,
        column,
    })
}

prop_compose! {
    pub(crate) fn resource(id: u64)(
        kind in kind(),
        name in name(),
        (created, scope) in any::<(u32, u64)>(),
        (is_static, closed, settled) in any::<(bool, bool, bool)>(),
        created_at in moment(),
        [initial, added, forgotten, available] in any::<[u32; 4]>(),
        usage in (any::<[u32; 3]>(), option::of(moment()), option::of(moment())),
        counters in any::<[u64; 8]>(),
        max_hold in option::of(any::<u64>()),
        (long_held, grows) in any::<(bool, bool)>(),
        history in history(),
    ) -> Resource {
        let ([held, holders, waiting], oldest_hold, oldest_wait) = usage;
        let [acquired, waited, released, rejected, cancelled, wait_nanos, cancelled_nanos, held_nanos] = counters;
        Resource {
            id: ResourceId(id),
            kind,
            name,
            created: SiteId(created),
            created_at,
            scope: ScopeId(scope),
            is_static,
            initial: initial.into(),
            added: added.into(),
            forgotten: forgotten.into(),
            available: available.into(),
            closed,
            settled,
            usage: Usage {
                held: held.into(),
                holders: holders.into(),
                waiting: waiting.into(),
                oldest_hold,
                oldest_wait,
            },
            counters: Counters {
                acquired, waited, released, rejected, cancelled, wait_nanos, cancelled_nanos, held_nanos,
            },
            settings: Settings { max_hold: max_hold.map(Duration::from_nanos), long_held, grows },
            history,
        }
    }
}

prop_compose! {
    fn flow()(
        direction in prop::sample::select(vec![Direction::Added, Direction::Forgotten, Direction::Withdrawn]),
        (site, stack, several) in any::<(u32, u32, bool)>(),
        [calls, units, most, first, last, holding, then_released] in any::<[u64; 7]>(),
        actor in actor_id(),
    ) -> Flow {
        Flow {
            direction,
            site: SiteId(site),
            stack: StackId(stack),
            calls,
            units,
            most,
            first: Moment(first),
            last: Moment(last),
            actor,
            several,
            holding,
            then_released,
        }
    }
}

prop_compose! {
    fn streak()(
        (site, stack) in any::<(u32, u32)>(),
        [count, since, last, others] in any::<[u64; 4]>(),
        actor in actor_id(),
    ) -> Streak {
        let (site, stack) = (SiteId(site), StackId(stack));
        Streak { actor, site, stack, count, since: Moment(since), last: Moment(last), others }
    }
}

prop_compose! {
    fn history()(
        moved in moment(), flows in vec(flow(), 0..3), streaks in vec(streak(), 0..3),
    ) -> History {
        History { moved, flows, streaks }
    }
}

prop_compose! {
    fn learned()(
        (stack, site) in any::<(u32, u32)>(),
        [acquired, released, elsewhere, forgotten, brief, usual, longest, resource] in any::<[u64; 8]>(),
        discarded in any::<bool>(),
    ) -> Learned {
        Learned {
            stack: StackId(stack),
            site: SiteId(site),
            acquired,
            released,
            elsewhere,
            forgotten,
            brief,
            usual: Duration::from_nanos(usual),
            longest: Duration::from_nanos(longest),
            resource: ResourceId(resource),
            discarded,
        }
    }
}

prop_compose! {
    fn runtime()(
        flavor in prop::sample::select(vec![Flavor::Unknown, Flavor::CurrentThread, Flavor::MultiThread]),
        [id, workers, alive_tasks, rested] in any::<[u64; 4]>(),
    ) -> Runtime {
        Runtime { id: RuntimeId(id), flavor, workers, alive_tasks, rested: Moment(rested) }
    }
}

prop_compose! {
    fn side()(
        kind in kind(),
        name in name(),
        [resource, capacity, units, future, poller] in any::<[u64; 5]>(),
        [created, site, stack] in any::<[u32; 3]>(),
        (owned, is_static) in any::<(bool, bool)>(),
    ) -> Side {
        Side {
            resource: ResourceId(resource),
            kind,
            name,
            created: SiteId(created),
            capacity,
            units,
            site: SiteId(site),
            stack: StackId(stack),
            owned,
            is_static,
            future,
            poller,
        }
    }
}

prop_compose! {
    fn seen()(
        (actor, at, last) in (actor_id(), moment(), moment()),
        (alive_tasks, newest) in any::<(u64, u64)>(),
    ) -> Seen {
        Seen { actor, at, last, alive_tasks, newest }
    }
}

prop_compose! {
    fn order()(
        (outer, inner) in (side(), side()),
        [held, count, released, elsewhere, first, last] in any::<[u64; 6]>(),
        seen in vec(seen(), 0..3),
        largest in option::of((any::<u64>(), any::<u32>(), any::<u32>(), vec(seen(), 0..3))),
        gates in vec(any::<[u64; 3]>(), 0..3),
    ) -> Order {
        let gates = gates.into_iter().map(|[id, capacity, units]| Gate { resource: ResourceId(id), capacity, units });
        Order {
            outer,
            inner,
            held,
            count,
            released,
            elsewhere,
            first: Moment(first),
            last: Moment(last),
            seen,
            gates: gates.collect(),
            largest: largest.map(|(units, site, stack, seen)| Largest {
                units,
                site: SiteId(site),
                stack: StackId(stack),
                seen,
            }),
        }
    }
}

/// Resources with ascending ids.
pub(crate) fn resources(count: u64) -> impl Strategy<Value = Vec<Resource>> {
    let some: Vec<_> = (1..=count).map(|id| option::of(resource(id))).collect();
    some.prop_map(|some| some.into_iter().flatten().collect())
}

prop_compose! {
    pub(crate) fn hold()(
        [id, resource, units, scope, future, poller, thread] in any::<[u64; 7]>(),
        (stack, site) in any::<(u32, u32)>(),
        actor in actor_id(),
        moved_to in option::of(actor_id()),
        since in moment(),
        call in call(),
        owned in any::<bool>(),
    ) -> Hold {
        Hold {
            id: HoldId(id),
            resource: ResourceId(resource),
            units,
            actor,
            moved_to,
            scope: ScopeId(scope),
            stack: StackId(stack),
            site: SiteId(site),
            since,
            call,
            owned,
            future,
            poller,
            thread,
        }
    }
}

prop_compose! {
    pub(crate) fn wait()(
        [id, resource, units, scope, future, poller, thread] in any::<[u64; 7]>(),
        (stack, site) in any::<(u32, u32)>(),
        actor in actor_id(),
        (since, last_poll) in (moment(), moment()),
        (runtime, granted_since) in (any::<u64>(), option::of(moment())),
        call in call(),
        owned in any::<bool>(),
    ) -> Wait {
        Wait {
            id: WaitId(id),
            resource: ResourceId(resource),
            units,
            actor,
            scope: ScopeId(scope),
            stack: StackId(stack),
            site: SiteId(site),
            since,
            last_poll,
            call,
            owned,
            future,
            poller,
            thread,
            runtime: RuntimeId(runtime),
            granted_since,
        }
    }
}

pub(crate) fn frame() -> impl Strategy<Value = Frame> {
    (text(), option::of(site()), any::<u64>(), any::<bool>()).prop_map(
        |(function, site, address, inlined)| Frame {
            function: function.into(),
            site,
            address,
            inlined,
        },
    )
}

pub(crate) fn stack() -> impl Strategy<Value = Stack> {
    let frames = option::of(vec(frame(), 0..4));
    (any::<u32>(), vec(any::<u64>(), 0..4), frames).prop_map(|(id, addresses, frames)| Stack {
        id: StackId(id),
        addresses: addresses.into(),
        frames: frames.map(Into::into),
    })
}

pub(crate) fn stacks() -> impl Strategy<Value = Vec<Stack>> {
    vec(stack(), 0..4).prop_map(|mut stacks| {
        stacks.sort_by_key(|stack| stack.id);
        stacks
    })
}

pub(crate) fn process() -> impl Strategy<Value = Process> {
    (any::<u32>(), any::<bool>(), [text(), text(), text(), text(), text()]).prop_map(
        |(pid, debug, [name, executable, version, stacks, working_directory])| Process {
            pid,
            name,
            executable,
            version,
            debug,
            stacks,
            working_directory,
        },
    )
}

pub(crate) fn dropped() -> impl Strategy<Value = Dropped> {
    any::<[u64; 5]>().prop_map(|[stacks, holds, waits, resources, orders]| Dropped {
        stacks,
        holds,
        waits,
        resources,
        orders,
    })
}

prop_compose! {
    pub(crate) fn finding()(
        (id, since) in any::<(u64, u64)>(),
        code in prop::sample::select(Code::ALL),
        verdict in prop_oneof![
            Just(Verdict::Proven), Just(Verdict::Suspected), Just(Verdict::Hazard), Just(Verdict::Resolved)
        ],
        title in text(),
        marks in vec((site(), text(), any::<bool>(), any::<u32>()), 0..3),
        notes in vec(text(), 0..3),
        help in option::of(text()),
        [resources, holds, waits] in [vec(any::<u64>(), 0..3), vec(any::<u64>(), 0..3), vec(any::<u64>(), 0..3)],
        actors in vec(actor_id(), 0..3),
    ) -> Finding {
        let marks = marks.into_iter().map(|(site, label, primary, stack)| {
            Mark { site, label, primary, stack: StackId(stack) }
        });
        Finding {
            id: FindingId(id),
            code,
            verdict,
            title,
            marks: marks.collect(),
            notes,
            help,
            since: Moment(since),
            resources: resources.into_iter().map(ResourceId).collect(),
            actors,
            holds: holds.into_iter().map(HoldId).collect(),
            waits: waits.into_iter().map(WaitId).collect(),
        }
    }
}

prop_compose! {
    pub(crate) fn snapshot()(
        taken in moment(),
        process in process(),
        resources in resources(4),
        holds in vec(hold(), 0..6),
        waits in vec(wait(), 0..6),
        actors in vec((actor_id(), name()), 0..4),
        sites in vec(site(), 0..4),
        stacks in stacks(),
        dropped in dropped(),
        mut learned in vec(learned(), 0..4),
        orders in vec(order(), 0..3),
        runtimes in vec(runtime(), 0..3),
    ) -> Snapshot {
        let actors = actors.into_iter().map(|(id, name)| Actor { id, name }).collect();
        learned.sort_by_key(|it| it.stack);
        Snapshot {
            taken, process, resources, holds, waits, actors, sites, stacks, learned, orders, runtimes, dropped,
        }
    }
}
