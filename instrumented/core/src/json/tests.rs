use super::{read, snapshot};
use crate::finding::{Code, Finding, Verdict};
use crate::scenario::Scenario;
use crate::snapshot::{
    Actor, ActorId, Call, Direction, Flavor, Flow, Gate, History, Kind, Largest, Learned, Moment,
    Order, ResourceId, Runtime, RuntimeId, Seen, Side, SiteId, Snapshot, Streak,
};
use std::collections::HashSet;
use std::time::Duration;

fn sample() -> (Snapshot, Vec<Finding>) {
    let scenario = Scenario::read(
        "
        semaphore db_writes 1
        semaphore idle 3 static grows
        task 17
          hold db_writes: run@5 > store::save@src/store.rs:42:22
          wait db_writes: run@5 > store::save@src/store.rs:47:22
        root 140
          hold idle owned moved 3: ?
        thread 2
          hold idle try: ?",
    )
    .expect("well-formed");
    let findings = scenario.diagnose();
    assert_eq!(findings.len(), 1);
    let mut snapshot = scenario.current;
    snapshot.process.pid = 4711;
    snapshot.process.name = "checkout-service".to_owned();
    snapshot.resources[1].settings.max_hold = Some(Duration::from_secs(2));
    snapshot.resources[1].name = None;
    snapshot.resources[1].kind = Kind::Unknown;
    snapshot.actors.push(Actor { id: ActorId::Task(17), name: Some("simulate".into()) });
    snapshot.dropped.stacks = 7;
    snapshot.dropped.orders = 8;
    let (here, actor) = (SiteId(0), ActorId::Task(17));
    let stack = snapshot.holds[0].stack;
    snapshot.holds[2].call = Call::Receive;
    snapshot.waits[0].runtime = RuntimeId(1);
    snapshot.waits[0].granted_since = Some(Moment(5));
    snapshot.resources[0].history = History {
        moved: Moment(3),
        flows: vec![Flow {
            direction: Direction::Forgotten,
            site: here,
            stack,
            calls: 2,
            units: 3,
            most: 2,
            first: Moment(1),
            last: Moment(3),
            actor,
            several: true,
            holding: 1,
            then_released: 1,
        }],
        streaks: vec![Streak {
            actor,
            site: here,
            stack,
            count: 9,
            since: Moment(1),
            last: Moment(2),
            others: 4,
        }],
    };
    snapshot.learned = vec![Learned {
        stack,
        site: here,
        acquired: 9,
        released: 7,
        elsewhere: 6,
        forgotten: 1,
        brief: 5,
        usual: Duration::from_nanos(1024),
        longest: Duration::from_nanos(3000),
        resource: ResourceId(1),
        discarded: true,
    }];
    let outer = Side {
        resource: ResourceId(1),
        kind: Kind::Semaphore,
        name: Some("db_writes".into()),
        created: here,
        capacity: 4,
        units: 2,
        site: here,
        stack,
        owned: true,
        is_static: false,
        future: 0x10,
        poller: 0x20,
    };
    let seen = Seen { actor, at: Moment(1), last: Moment(2), alive_tasks: 6, newest: 9 };
    snapshot.orders.push(Order {
        inner: Side {
            kind: Kind::Mutex,
            name: None,
            owned: false,
            is_static: true,
            ..outer.clone()
        },
        outer,
        held: 2,
        count: 3,
        released: 1,
        elsewhere: 2,
        first: Moment(1),
        last: Moment(2),
        seen: vec![seen],
        gates: vec![Gate { resource: ResourceId(2), capacity: 3, units: 1 }],
        largest: Some(Largest { units: 4, site: SiteId(0), stack, seen: vec![seen] }),
    });
    snapshot.runtimes.push(Runtime {
        id: RuntimeId(1),
        flavor: Flavor::MultiThread,
        workers: 2,
        alive_tasks: 5,
        rested: Moment(4),
    });
    (snapshot, findings)
}

/// Every place that a snapshot refers to.
fn site_ids(snapshot: &mut Snapshot) -> Vec<&mut SiteId> {
    let mut ids: Vec<&mut SiteId> = Vec::new();
    for r in &mut snapshot.resources {
        ids.push(&mut r.created);
        ids.extend(r.history.flows.iter_mut().map(|f| &mut f.site));
        ids.extend(r.history.streaks.iter_mut().map(|s| &mut s.site));
    }
    ids.extend(snapshot.holds.iter_mut().map(|h| &mut h.site));
    ids.extend(snapshot.waits.iter_mut().map(|w| &mut w.site));
    ids.extend(snapshot.learned.iter_mut().map(|l| &mut l.site));
    for order in &mut snapshot.orders {
        for side in [&mut order.outer, &mut order.inner] {
            ids.extend([&mut side.created, &mut side.site]);
        }
        ids.extend(order.largest.as_mut().map(|largest| &mut largest.site));
    }
    ids
}

/// With places instead of indexes: a reader numbers the places anew.
fn resolved(snapshot: &Snapshot) -> (Snapshot, Vec<Option<String>>) {
    let mut plain = snapshot.clone();
    let site = |id: &mut SiteId| snapshot.site(std::mem::take(id)).map(ToString::to_string);
    let places = site_ids(&mut plain).into_iter().map(site).collect();
    plain.sites.clear();
    (plain, places)
}

#[test]
fn what_is_written_is_read() {
    let (written, findings) = sample();
    let (found, read_findings) =
        read(&snapshot(&written, &findings).to_json()).expect("own document");
    assert_eq!(resolved(&found), resolved(&written));
    assert_eq!(read_findings, findings);
    assert_eq!(found.sites.len(), found.sites.iter().collect::<HashSet<_>>().len());
}

/// A change here is a change for everybody who reads these documents.
#[test]
fn the_document() {
    let (written, findings) = sample();
    insta::assert_snapshot!(snapshot(&written, &findings).to_json());
}

/// Recordings of the first version have to be readable for ever: this file is never to be changed.
#[test]
fn the_first_version_is_read() {
    let (old, findings) = read(include_str!("version-1.json")).expect("still readable");
    assert_eq!(old.process.name, "checkout-service");
    assert_eq!(
        (old.resources.len(), old.holds.len(), old.waits.len(), old.stacks.len()),
        (2, 3, 1, 2)
    );
    assert_eq!((findings[0].code, findings[0].verdict), (Code::Deadlock, Verdict::Proven));
    assert_eq!(old.resources[0].history, History::default());
    assert_eq!((old.waits[0].granted_since, old.waits[0].runtime), (None, RuntimeId::NONE));
    assert!(old.learned.is_empty() && old.orders.is_empty() && old.runtimes.is_empty());
    assert_eq!(old.stacks[0].frames.as_ref().map(|frames| frames.len()), Some(3));
}

#[test]
fn what_a_later_version_adds_is_left_out_or_unknown() {
    let (written, findings) = sample();
    let mut json = serde_json::to_value(snapshot(&written, &findings)).expect("a document");
    json["new"] = 1.into();
    json["resources"][0]["kind"] = "barrier".into();
    json["resources"][0]["new"] = 1.into();
    json["findings"][0]["code"] = "livelock".into();
    json["findings"][0]["verdict"] = "rumoured".into();
    json["holds"][2]["actor"]["kind"] = "interrupt".into();
    json["resources"][0]["history"]["flows"][0]["direction"] = "sideways".into();
    json["resources"][0]["history"]["streaks"][0]["actor"]["kind"] = "interrupt".into();
    json["orders"][0]["inner"]["kind"] = "barrier".into();
    json["orders"][0]["seen"][0]["actor"]["kind"] = "interrupt".into();
    json["runtimes"][0]["flavor"] = "io-uring".into();
    let (found, findings) = read(&json.to_string()).expect("readable");
    assert_eq!(found.resources[0].kind, Kind::Unknown);
    assert_eq!((findings[0].code, findings[0].verdict), (Code::Unknown, Verdict::Unknown));
    assert_eq!(found.holds.len(), written.holds.len() - 1);
    let history = &found.resources[0].history;
    assert_eq!((history.flows.len(), history.streaks.len()), (0, 0));
    assert_eq!(found.orders[0].inner.kind, Kind::Unknown);
    assert!(found.orders[0].seen.is_empty());
    assert_eq!(found.runtimes[0].flavor, Flavor::Unknown);
}

#[test]
fn what_is_no_snapshot_is_refused_with_the_reason() {
    let error = |json: &str| read(json).expect_err("refused").to_string();
    assert_eq!(error(""), "not a holdup snapshot");
    assert_eq!(error("{}"), "not a holdup snapshot");
    let (written, findings) = sample();
    let document = snapshot(&written, &findings);
    let mut other = document.clone();
    other.format = "coredump".to_owned();
    assert_eq!(error(&other.to_json()), "the format is \"coredump\", not \"holdup-snapshot\"");
    let mut later = document.clone();
    later.version = 2;
    assert_eq!(error(&later.to_json()), "the document has version 2, this holdup reads up to 1");
    let mut odd = document.clone();
    odd.holds[0].future = "12".to_owned();
    assert_eq!(error(&odd.to_json()), "\"12\" is no address");
    let mut odd = document;
    odd.waits[0].call = "beg".to_owned();
    assert_eq!(error(&odd.to_json()), "\"beg\" is no way to acquire");
}
