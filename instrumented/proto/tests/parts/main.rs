//! What goes over the wire comes out as it went in, in small messages.

mod generate;

use generate::{dropped, finding, moment, process, resources, site, snapshot};
use holdup_core::finding::{Code, Finding, FindingId, Mark, Verdict};
use holdup_core::snapshot::{
    Actor, ActorId, Call, Counters, Direction, Dropped, Flavor, Flow, Frame, Gate, History, Hold,
    HoldId, Kind, Largest, Learned, Moment, Order, Process, Resource, ResourceId, Runtime, ScopeId,
    Seen, Settings, Side, Site, SiteId, Snapshot, Stack, StackId, Streak, Usage, WaitId,
};
use holdup_proto::parts::{Assembler, Current, Listed, Parts, Picture, Told, page};
use holdup_proto::{limits, v1};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;

const ROOMY: usize = 1 << 30;

/// Through the wire, where no message may be too large.
fn receive(assembler: &mut Assembler, parts: Parts) -> Picture {
    let mut complete = None;
    for part in parts {
        assert!(complete.is_none(), "there is more than was said");
        let message = part.encode_to_vec();
        assert!(message.len() <= limits::MESSAGE, "a message of {} bytes", message.len());
        let part = v1::Part::decode(message.as_slice()).expect("a part");
        complete = assembler.add(part).expect("it is well formed");
    }
    complete.expect("the last part is said to be the last")
}

proptest! {
    #[test]
    fn a_snapshot_comes_out_as_it_went_in(
        snapshot in snapshot(),
        findings in vec(finding(), 0..4),
        revision in any::<u64>(),
    ) {
        let parts = Parts::of_snapshot(snapshot.clone(), (revision, findings.clone()));
        let picture = receive(&mut Assembler::new(ROOMY), parts);
        prop_assert_eq!(picture.snapshot, snapshot);
        prop_assert_eq!(picture.findings_revision, revision);
        prop_assert_eq!(picture.findings, findings);
        prop_assert_eq!(picture.findings_left_out, 0);
    }

    #[test]
    fn a_watcher_knows_what_is_true_after_each_picture(
        steps in vec((moment(), process(), resources(6), vec(site(), 0..3), dropped()), 1..5),
        findings in vec((0..2_u64, vec(finding(), 0..3)), 5),
    ) {
        let mut told = Told::default();
        let mut assembler = Assembler::new(ROOMY);
        let mut all_sites = Vec::new();
        let mut last: Option<(u64, Vec<Finding>)> = None;
        for (number, (taken, process, resources, sites, dropped)) in steps.into_iter().enumerate() {
            all_sites.extend(sites);
            // The same revision means the same findings.
            let (revision, new) = findings[number].clone();
            let findings = match last {
                Some((old, findings)) if old == revision => (old, findings),
                _ => (revision, new),
            };
            last = Some(findings.clone());
            let picture = receive(&mut assembler, told.next(Current {
                taken,
                process: process.clone(),
                resources: resources.clone(),
                sites: &all_sites,
                findings: findings.clone(),
                dropped,
            }));
            prop_assert_eq!(picture.revision, number as u64 + 1);
            prop_assert_eq!((picture.findings_revision, picture.findings), findings);
            prop_assert_eq!(picture.snapshot, Snapshot {
                taken, process, resources, sites: all_sites.clone(), dropped, ..Snapshot::default()
            });
        }
    }

    #[test]
    fn whatever_is_received_is_read_or_refused(messages in vec(vec(any::<u8>(), 0..200), 0..4)) {
        let mut assembler = Assembler::new(ROOMY);
        for message in messages {
            if let Ok(part) = v1::Part::decode(message.as_slice()) {
                let _ = assembler.add(part);
            }
        }
    }

    #[test]
    fn whatever_becomes_of_a_message_is_read_or_refused(
        snapshot in snapshot(),
        findings in vec(finding(), 0..3),
        hits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut assembler = Assembler::new(ROOMY);
        for part in Parts::of_snapshot(snapshot, (1, findings)) {
            let mut message = part.encode_to_vec();
            for (place, byte) in &hits {
                let place = place.index(message.len());
                message[place] = *byte;
            }
            if let Ok(part) = v1::Part::decode(message.as_slice()) {
                let _ = assembler.add(part);
            }
        }
    }

    #[test]
    fn values_of_newer_versions_are_unknown(kind in 5.., call in 5.., verdict in 5.., code in "[a-z]+x-new") {
        let resource = v1::Resource { kind, ..v1::Resource::default() };
        prop_assert_eq!(Resource::try_from(resource).expect("it can be true").kind, Kind::Unknown);
        let finding = v1::Finding { verdict, code, ..v1::Finding::default() };
        let finding = Finding::try_from(finding).expect("it can be true");
        prop_assert_eq!((finding.verdict, finding.code), (Verdict::Unknown, Code::Unknown));
        let actor = Some(ActorId::Task(1).into());
        let hold = Hold::try_from(v1::Hold { call, actor, ..v1::Hold::default() });
        prop_assert_eq!(hold.expect("it can be true").call, Call::Acquire);
        let flow = v1::Flow { direction: kind, actor: Some(ActorId::Task(1).into()), ..v1::Flow::default() };
        let history = v1::History { flows: vec![flow], ..v1::History::default() };
        prop_assert_eq!(History::try_from(history).expect("it can be true"), History::default());
        let runtime = v1::Runtime { flavor: kind, ..v1::Runtime::default() };
        prop_assert_eq!(Runtime::from(runtime).flavor, Flavor::Unknown);
        let side = Some(v1::Side { kind, ..v1::Side::default() });
        let order = v1::Order { outer: side.clone(), inner: side, ..v1::Order::default() };
        prop_assert_eq!(Order::try_from(order).expect("it can be true").inner.kind, Kind::Unknown);
    }
}

/// More than anybody should call a thing, of the widest characters.
fn long() -> String {
    "🦀".repeat(5000)
}

fn a_resource(id: u64, name: &str) -> Resource {
    Resource {
        id: ResourceId(id),
        kind: Kind::Semaphore,
        name: Some(name.into()),
        created: SiteId(u32::MAX),
        created_at: Moment(u64::MAX),
        scope: ScopeId(u64::MAX),
        is_static: true,
        initial: u64::MAX,
        added: 0,
        forgotten: u64::MAX,
        available: 0,
        closed: true,
        settled: true,
        usage: Usage {
            held: u64::MAX,
            holders: u64::MAX,
            waiting: u64::MAX,
            oldest_hold: Some(Moment(u64::MAX)),
            oldest_wait: Some(Moment(u64::MAX)),
        },
        counters: Counters::default(),
        settings: Settings { max_hold: Some(Duration::MAX), long_held: true, grows: true },
        history: History::default(),
    }
}

fn a_hold(id: u64) -> Hold {
    Hold {
        id: HoldId(id),
        resource: ResourceId(id % 1000),
        units: u64::MAX,
        actor: ActorId::Task(u64::MAX - id),
        moved_to: Some(ActorId::Root(u64::MAX - id)),
        scope: ScopeId(u64::MAX),
        stack: StackId(u32::MAX),
        site: SiteId(u32::try_from(id % 10_000).expect("below that")),
        since: Moment(u64::MAX),
        call: Call::Blocking,
        owned: true,
        future: u64::MAX,
        poller: u64::MAX,
        thread: 1,
    }
}

fn a_site() -> Site {
    Site { file: long().into(), line: u32::MAX, column: u32::MAX }
}

#[test]
fn no_message_is_large_whatever_the_names_are() {
    let site = a_site();
    let function: Arc<str> = long().into();
    let frame = Frame { function, site: Some(site.clone()), address: u64::MAX, inlined: true };
    let stack = |id| Stack {
        id: StackId(id),
        addresses: vec![u64::MAX; 5000].into(),
        frames: Some(vec![frame.clone(); 5000].into()),
    };
    let mark = Mark { site: site.clone(), label: long(), primary: true, stack: StackId(u32::MAX) };
    let finding = Finding {
        id: FindingId(u64::MAX),
        code: Code::Deadlock,
        verdict: Verdict::Proven,
        title: long(),
        marks: vec![mark; 1000],
        notes: vec![long(); 1000],
        help: Some(long()),
        since: Moment(u64::MAX),
        resources: vec![ResourceId(u64::MAX); 5000],
        actors: vec![ActorId::Root(u64::MAX); 5000],
        holds: vec![HoldId(u64::MAX); 5000],
        waits: vec![WaitId(u64::MAX); 5000],
    };
    let actor = ActorId::Root(u64::MAX);
    let flow = Flow {
        direction: Direction::Withdrawn,
        site: SiteId(u32::MAX),
        stack: StackId(u32::MAX),
        calls: u64::MAX,
        units: u64::MAX,
        most: u64::MAX,
        first: Moment(u64::MAX),
        last: Moment(u64::MAX),
        actor,
        several: true,
        holding: u64::MAX,
        then_released: u64::MAX,
    };
    let streak = Streak {
        actor,
        site: SiteId(u32::MAX),
        stack: StackId(u32::MAX),
        count: u64::MAX,
        since: Moment(u64::MAX),
        last: Moment(u64::MAX),
        others: u64::MAX,
    };
    let mut resources: Vec<Resource> =
        (0..10_000).map(|id| a_resource(id, &"n".repeat(300))).collect();
    for resource in &mut resources[..100] {
        resource.history.flows = vec![flow.clone(); 500];
        resource.history.streaks = vec![streak.clone(); 500];
    }
    let side = Side {
        resource: ResourceId(u64::MAX),
        kind: Kind::Channel,
        name: Some(long().into()),
        created: SiteId(u32::MAX),
        capacity: u64::MAX,
        units: u64::MAX,
        site: SiteId(u32::MAX),
        stack: StackId(u32::MAX),
        owned: true,
        is_static: true,
        future: u64::MAX,
        poller: u64::MAX,
    };
    let most = u64::MAX;
    let seen =
        Seen { actor, at: Moment(most), last: Moment(most), alive_tasks: most, newest: most };
    let order = Order {
        outer: side.clone(),
        inner: side,
        held: most,
        count: most,
        released: most,
        elsewhere: most,
        first: Moment(most),
        last: Moment(most),
        seen: vec![seen; 500],
        gates: vec![Gate { resource: ResourceId(most), capacity: most, units: most }; 500],
        largest: Some(Largest {
            units: most,
            site: SiteId(u32::MAX),
            stack: StackId(u32::MAX),
            seen: vec![seen; 500],
        }),
    };
    let snapshot = Snapshot {
        orders: vec![order; 200],
        learned: vec![Learned { acquired: most, ..Learned::default() }; 50_000],
        runtimes: vec![Runtime { alive_tasks: most, ..Runtime::default() }; 50_000],
        process: Process {
            name: long(),
            executable: long(),
            version: long(),
            stacks: long(),
            working_directory: long(),
            ..Process::default()
        },
        resources,
        actors: vec![Actor { id: actor, name: Some(long().into()) }; 2000],
        sites: vec![site; 1000],
        stacks: (0..20).map(stack).collect(),
        ..Snapshot::default()
    };
    let parts = Parts::of_snapshot(snapshot, (1, vec![finding; limits::FINDINGS + 7]));
    let picture = receive(&mut Assembler::new(ROOMY), parts);
    assert_eq!(picture.snapshot.resources.len(), 10_000);
    assert_eq!(picture.snapshot.resources[0].name.as_deref(), Some(&*"n".repeat(300)));
    assert_eq!(picture.snapshot.stacks.len(), 20);
    let history = &picture.snapshot.resources[0].history;
    assert_eq!((history.flows.len(), history.streaks.len()), (limits::FLOWS, limits::FLOWS));
    let Snapshot { orders, learned, runtimes, .. } = &picture.snapshot;
    assert_eq!((orders.len(), learned.len(), runtimes.len()), (200, 50_000, 50_000));
    assert_eq!((orders[0].seen.len(), orders[0].gates.len()), (limits::SEEN, limits::SEEN));
    assert_eq!((picture.findings.len(), picture.findings_left_out), (limits::FINDINGS, 7));
    let title = &picture.findings[0].title;
    assert!(title.len() <= limits::SENTENCE && title.ends_with("🦀…"), "it is cut at a character");
}

#[test]
fn a_million_holds_are_many_small_messages() {
    let holds = (0..1_000_000).map(a_hold).collect();
    let resources = (0..1000).map(|id| a_resource(id, "many")).collect();
    let snapshot = Snapshot { holds, resources, ..Snapshot::default() };
    let mut held = 0;
    for part in Parts::of_snapshot(snapshot, (0, Vec::new())) {
        let size = part.encoded_len();
        assert!(size <= limits::MESSAGE, "a message of {size} bytes");
        held += part.holds.len();
    }
    assert_eq!(held, 1_000_000);
}

#[test]
fn pages_are_small_and_together_everything() {
    let sites = vec![a_site(); 10_000];
    let name: Option<Arc<str>> = Some(long().into());
    let holds: Vec<Hold> = (0..2500).map(a_hold).collect();
    let mut actors: Vec<ActorId> = holds.iter().flat_map(Listed::actors).collect();
    actors.sort_unstable();
    let actors: Vec<Actor> =
        actors.into_iter().map(|id| Actor { id, name: name.clone() }).collect();

    let mut rest = holds.as_slice();
    let mut told = Vec::new();
    loop {
        // As the books give them: no more than were asked for.
        let page = page(&rest[..rest.len().min(limits::PAGE)], limits::PAGE, &sites, &actors);
        let message = v1::HoldsResponse {
            taken: u64::MAX,
            holds: page.records,
            more: page.more,
            sites: page.sites,
            actors: page.actors,
        };
        let size = message.encoded_len();
        assert!(size <= limits::MESSAGE, "a message of {size} bytes");
        for hold in &message.holds {
            assert!(message.sites.iter().any(|site| site.id == hold.site));
            assert!(message.actors.iter().any(|actor| actor.id == hold.actor));
        }
        rest = &rest[message.holds.len()..];
        told.extend(
            message.holds.into_iter().map(|hold| Hold::try_from(hold).expect("well formed")),
        );
        if !message.more {
            break;
        }
    }
    assert_eq!(told, holds);
}

#[test]
fn a_watch_shows_those_who_wait_before_those_who_do_not() {
    let quiet = limits::WATCHED as u64 + 5;
    let mut resources: Vec<Resource> = (0..quiet).map(|id| a_resource(id, "quiet")).collect();
    for resource in &mut resources {
        resource.usage = Usage::default();
    }
    let last = resources.len() - 1;
    resources[last].usage.waiting = 1;
    let current = Current {
        taken: Moment(1),
        process: Process::default(),
        resources,
        sites: &[],
        findings: (0, Vec::new()),
        dropped: Dropped::default(),
    };
    let picture = receive(&mut Assembler::new(ROOMY), Told::default().next(current));
    assert_eq!(picture.resources_left_out, 5);
    assert_eq!(picture.snapshot.resources.len(), limits::WATCHED);
    assert_eq!(picture.snapshot.resources.last().map(|it| it.id), Some(ResourceId(quiet - 1)));
}

#[test]
fn a_picture_that_does_not_fit_is_refused() {
    let part = |revision| v1::Part {
        head: Some(v1::Head { revision, ..v1::Head::default() }),
        holds: vec![(&a_hold(1)).into(); 100],
        ..v1::Part::default()
    };
    let mut assembler = Assembler::new(100 * 1024);
    for revision in 0..10 {
        // Records of earlier pictures take no room.
        assert!(assembler.add(part(revision)).expect("it fits").is_some());
    }
    let mut endless = v1::Part { more: true, ..part(11) };
    let mut parts = 0;
    while assembler.add(endless.clone()).is_ok() {
        endless.head = None;
        parts += 1;
    }
    assert!((1..10).contains(&parts), "{parts}");
}
