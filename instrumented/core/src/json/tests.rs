use super::{read, snapshot};
use crate::finding::{Code, Finding, Verdict};
use crate::scenario::Scenario;
use crate::snapshot::{Actor, ActorId, Kind, Snapshot};
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
    let mut snapshot = scenario.current;
    snapshot.process.pid = 4711;
    snapshot.process.name = "checkout-service".to_owned();
    snapshot.resources[1].settings.max_hold = Some(Duration::from_secs(2));
    snapshot.resources[1].name = None;
    snapshot.resources[1].kind = Kind::Unknown;
    snapshot.actors.push(Actor { id: ActorId::Task(17), name: Some("simulate".into()) });
    snapshot.dropped.stacks = 7;
    assert_eq!(findings.len(), 1);
    (snapshot, findings)
}

/// With places instead of indexes: a reader numbers the places anew.
fn resolved(snapshot: &Snapshot) -> (Snapshot, Vec<Option<String>>) {
    let mut plain = snapshot.clone();
    let site = |id| snapshot.site(id).map(ToString::to_string);
    let places = snapshot.resources.iter().map(|r| site(r.created));
    let places = places.chain(snapshot.holds.iter().map(|h| site(h.site)));
    let places = places.chain(snapshot.waits.iter().map(|w| site(w.site))).collect();
    plain.sites.clear();
    plain.resources.iter_mut().for_each(|r| r.created.0 = 0);
    plain.holds.iter_mut().for_each(|h| h.site.0 = 0);
    plain.waits.iter_mut().for_each(|w| w.site.0 = 0);
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
    let (found, findings) = read(&json.to_string()).expect("readable");
    assert_eq!(found.resources[0].kind, Kind::Unknown);
    assert_eq!((findings[0].code, findings[0].verdict), (Code::Unknown, Verdict::Unknown));
    assert_eq!(found.holds.len(), written.holds.len() - 1);
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
