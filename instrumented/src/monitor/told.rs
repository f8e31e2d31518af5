//! What has been told, and when it is told anew or taken back: a pure state machine.
//!
//! What is proven is told at once, for it was seen twice already. The rest is told when two looks in a row have
//! found it. Hazards stay: what could happen, can. Everything else is taken back when it has gone away, with how it
//! ended, as far as the books tell.

use holdup_core::snapshot::{Counters, Hold, Moment, ResourceId, Wait};
use holdup_core::{Code, Finding, FindingId, Snapshot, Verdict, text};
use std::collections::{HashMap, HashSet};

/// Findings that are told at a time; a program with more has one cause for most of them.
const MAX_FINDINGS: usize = 256;
/// Of these, hazards, which stay.
const MAX_HAZARDS: usize = 128;
/// Looks that must miss a finding before it is withdrawn: books in motion hide one for a moment.
const MISSES: u32 = 2;
/// The same, while all that it rests on is still there.
const MISSES_AT_REST: u32 = 8;

#[derive(Default)]
pub(super) struct Told {
    entries: HashMap<FindingId, Entry>,
    /// Seen by the last look, and not told yet.
    pending: HashSet<FindingId>,
    /// Hazards that an earlier look has seen, and the one after it has not: what they rest on does not go away.
    once: HashSet<FindingId>,
}

struct Entry {
    finding: Finding,
    misses: u32,
    /// Since when the oldest of its holds is held, and its oldest wait waits.
    held: Option<Moment>,
    waits: Option<Moment>,
    /// What had happened on the resource that is waited for when the finding was seen last.
    counters: Option<(ResourceId, Counters)>,
}

impl Told {
    /// Takes in what a look has found; returns what is to be told.
    pub(super) fn update(&mut self, findings: Vec<Finding>, snapshot: &Snapshot) -> Vec<Finding> {
        let mut tell = Vec::new();
        let mut pending = HashSet::new();
        for entry in self.entries.values_mut() {
            entry.misses += 1;
        }
        for finding in findings {
            let id = finding.id;
            let known = self.entries.get_mut(&id);
            let worse = |before: Verdict| is_hazard(before) && !is_hazard(finding.verdict);
            if let Some(entry) = known.filter(|entry| !worse(entry.finding.verdict)) {
                entry.seen(finding, snapshot);
                continue;
            }
            // One that is never told is not waited for, either.
            if !self.has_room(&finding) {
                continue;
            }
            let seen_before = self.pending.contains(&id) || self.once.contains(&id);
            if finding.verdict != Verdict::Proven && !seen_before {
                pending.insert(id);
                if is_hazard(finding.verdict) && self.once.len() < MAX_HAZARDS {
                    self.once.insert(id);
                }
            } else {
                self.once.remove(&id);
                tell.push(finding.clone());
                self.entries.insert(id, Entry::new(finding, snapshot));
            }
        }
        self.pending = pending;
        self.entries.retain(|_, entry| {
            let stays = is_hazard(entry.finding.verdict)
                || entry.misses < MISSES
                || entry.misses < MISSES_AT_REST && entry.is_at_rest(snapshot);
            if !stays {
                tell.push(entry.withdrawn(snapshot));
            }
            stays
        });
        tell
    }

    fn has_room(&self, finding: &Finding) -> bool {
        let hazards = || self.entries.values().filter(|e| is_hazard(e.finding.verdict)).count();
        let room = if is_hazard(finding.verdict) {
            hazards() < MAX_HAZARDS
        } else {
            self.entries.len() < MAX_FINDINGS
        };
        room || self.entries.contains_key(&finding.id)
    }

    /// Nothing can go away, and nothing waits to be told.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.entries.values().all(|e| is_hazard(e.finding.verdict))
    }

    /// Something is told if the next look finds it, too.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What is true now, the oldest first.
    pub(super) fn current(&self) -> Vec<Finding> {
        let mut current: Vec<Finding> = self.entries.values().map(|e| e.finding.clone()).collect();
        current.sort_unstable_by_key(|finding| (finding.since, finding.id));
        current
    }
}

fn is_hazard(verdict: Verdict) -> bool {
    verdict == Verdict::Hazard
}

/// The holds that a finding rests on and that are still there.
fn holds<'a>(finding: &'a Finding, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Hold> {
    let of = |id| of_resource(&snapshot.holds, id, |hold| hold.resource);
    let all = finding.resources.iter().flat_map(move |id| of(*id));
    all.filter(|hold| finding.holds.contains(&hold.id))
}

/// The waits that a finding rests on and that are still there.
fn waits<'a>(finding: &'a Finding, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Wait> {
    let of = |id| of_resource(&snapshot.waits, id, |wait| wait.resource);
    let all = finding.resources.iter().flat_map(move |id| of(*id));
    all.filter(|wait| finding.waits.contains(&wait.id))
}

/// The records of one resource, of all records by resource.
fn of_resource<T>(records: &[T], id: ResourceId, resource: impl Fn(&T) -> ResourceId) -> &[T] {
    let from = records.partition_point(|record| resource(record) < id);
    let to = records.partition_point(|record| resource(record) <= id);
    &records[from..to]
}

impl Entry {
    fn new(finding: Finding, snapshot: &Snapshot) -> Self {
        let held = holds(&finding, snapshot).map(|hold| hold.since).min();
        let first = waits(&finding, snapshot).min_by_key(|wait| wait.since);
        let resource = first.map(|wait| wait.resource).or(finding.resources.first().copied());
        let counters = resource.and_then(|id| Some((id, snapshot.resource(id)?.counters)));
        let waits = first.map(|wait| wait.since);
        Entry { finding, misses: 0, held, waits, counters }
    }

    fn seen(&mut self, finding: Finding, snapshot: &Snapshot) {
        self.finding = finding;
        self.misses = 0;
        if let Some((id, counters)) = &mut self.counters
            && let Some(resource) = snapshot.resource(*id)
        {
            *counters = resource.counters;
        }
    }

    /// All holds and waits that it rests on are still there.
    fn is_at_rest(&self, snapshot: &Snapshot) -> bool {
        let finding = &self.finding;
        let left = (holds(finding, snapshot).count(), waits(finding, snapshot).count());
        left != (0, 0) && left == (finding.holds.len(), finding.waits.len())
    }

    /// The finding as it is told when it has gone away.
    fn withdrawn(&self, snapshot: &Snapshot) -> Finding {
        Finding {
            verdict: Verdict::Resolved,
            notes: vec![self.end(snapshot)],
            help: None,
            ..self.finding.clone()
        }
    }

    /// How it ended.
    fn end(&self, snapshot: &Snapshot) -> String {
        let now = snapshot.taken;
        let after = |since: Moment| text::age(now.since(since));
        let finding = &self.finding;
        let returned = holds(finding, snapshot).next().is_none();
        if let (Some(since), true, Code::Leak) = (self.held, returned, finding.code) {
            return format!("returned after {}", after(since));
        }
        let ended = waits(finding, snapshot).next().is_none();
        let Some(since) = self.waits.filter(|_| ended) else {
            return format!("it ended after {}", after(finding.since));
        };
        let (served, cancelled) = self.counters.map_or((true, true), |(id, before)| {
            snapshot.resource(id).map_or((false, true), |resource| {
                let now = resource.counters;
                (now.waited > before.waited, now.cancelled > before.cancelled)
            })
        });
        let how = match (served, cancelled) {
            (true, false) => "was served",
            (false, true) => "gave up",
            _ => "was served or gave up",
        };
        let waited = after(since);
        match finding.waits.len() {
            1 => format!("who waited {how} after {waited}"),
            _ => format!("who waited {how}, the first after {waited}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use crate::sync::Semaphore;
    use std::task::Poll;
    use tokio_test::task::spawn;

    fn finding(id: u64, code: Code, verdict: Verdict) -> Finding {
        Finding {
            id: FindingId(id),
            code,
            verdict,
            title: String::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            help: Some("do it otherwise".to_owned()),
            since: Moment(0),
            resources: Vec::new(),
            actors: Vec::new(),
            holds: Vec::new(),
            waits: Vec::new(),
        }
    }

    /// Looks that find these, by id and verdict; what is told of each look.
    fn check(looks: &[&[(u64, Verdict)]], expected: &[&[(u64, Verdict)]]) {
        let mut told = Told::default();
        let snapshot = Snapshot::default();
        for (look, expected) in looks.iter().zip(expected) {
            let found = look.iter().map(|(id, verdict)| finding(*id, Code::Leak, *verdict));
            let mut tell: Vec<_> = told
                .update(found.collect(), &snapshot)
                .into_iter()
                .map(|told| (told.id.0, told.verdict))
                .collect();
            tell.sort_unstable_by_key(|(id, _)| *id);
            assert_eq!(tell, *expected, "{looks:?}");
        }
        assert_eq!(looks.len(), expected.len());
    }

    #[test]
    fn who_is_sure_speaks_at_once_and_who_suspects_looks_twice() {
        use Verdict::{Hazard, Proven, Resolved, Suspected};
        check(&[&[(1, Proven)], &[(1, Proven)]], &[&[(1, Proven)], &[]]);
        check(&[&[(1, Suspected)], &[], &[(1, Suspected)]], &[&[], &[], &[]]);
        check(
            &[&[(1, Suspected)], &[(1, Suspected)], &[(1, Proven)], &[], &[]],
            &[&[], &[(1, Suspected)], &[], &[], &[(1, Resolved)]],
        );
        // One look that misses it is not enough to take it back.
        check(
            &[&[(1, Proven)], &[], &[(1, Proven)], &[], &[], &[(1, Proven)]],
            &[&[(1, Proven)], &[], &[], &[], &[(1, Resolved)], &[(1, Proven)]],
        );
        // What a hazard rests on does not go away between two looks, though not each shows it.
        check(
            &[&[(1, Hazard)], &[], &[], &[(1, Hazard)], &[]],
            &[&[], &[], &[], &[(1, Hazard)], &[]],
        );
        // What could happen stays, and is told once; what comes of it is told.
        check(
            &[
                &[(1, Hazard)],
                &[(1, Hazard)],
                &[],
                &[],
                &[],
                &[(1, Hazard)],
                &[(1, Proven)],
                &[],
                &[],
            ],
            &[&[], &[(1, Hazard)], &[], &[], &[], &[], &[(1, Proven)], &[], &[(1, Resolved)]],
        );
    }

    #[test]
    fn what_is_told_is_bounded_and_hazards_leave_room() {
        let mut told = Told::default();
        let snapshot = Snapshot::default();
        let hazards = |n| (0..n).map(|id| finding(id, Code::OrderInversion, Verdict::Hazard));
        for _ in 0..2 {
            told.update(hazards(1000).collect(), &snapshot);
        }
        assert_eq!((told.current().len(), told.is_settled()), (MAX_HAZARDS, true));
        told.update(hazards(1000).collect(), &snapshot);
        assert!(told.is_settled());
        let proven = (0..1000).map(|id| finding(10_000 + id, Code::Deadlock, Verdict::Proven));
        assert_eq!(told.update(proven.collect(), &snapshot).len(), MAX_FINDINGS - MAX_HAZARDS);
        assert!(!told.is_settled());
        told.update(Vec::new(), &snapshot);
        assert_eq!(told.update(Vec::new(), &snapshot).len(), MAX_FINDINGS - MAX_HAZARDS);
        assert_eq!((told.current().len(), told.is_settled()), (MAX_HAZARDS, true));
    }

    #[test]
    fn it_is_said_how_it_ended() {
        let scope = Scope::new();
        let entered = scope.enter();
        let semaphore = Semaphore::new(1);
        let end_of = |code, looks, act: &mut dyn FnMut()| {
            let mut told = Told::default();
            let snapshot = scope.snapshot();
            let found = Finding {
                resources: vec![snapshot.resources[0].id],
                holds: snapshot.holds.iter().map(|hold| hold.id).collect(),
                waits: snapshot.waits.iter().map(|wait| wait.id).collect(),
                ..finding(1, code, Verdict::Proven)
            };
            told.update(vec![found], &snapshot);
            let mut notes = Vec::new();
            act();
            let mut snapshot = scope.snapshot();
            snapshot.taken = Moment(snapshot.taken.0 + 71_000_000_000);
            for _ in 0..looks {
                let gone = told.update(Vec::new(), &snapshot);
                notes.extend(gone.iter().flat_map(|finding| finding.notes.clone()));
                assert!(gone.iter().all(|finding| finding.help.is_none()));
            }
            notes.join("; ")
        };
        let mut held = semaphore.try_acquire().ok();
        assert_eq!(end_of(Code::Leak, MISSES, &mut || drop(held.take())), "returned after 71 s");

        held = semaphore.try_acquire().ok();
        let mut wait = spawn(semaphore.acquire());
        assert!(wait.poll().is_pending());
        let mut served = None;
        let end = end_of(Code::Deadlock, MISSES, &mut || {
            drop(held.take());
            if let Poll::Ready(permit) = wait.poll() {
                served = permit.ok();
            }
        });
        assert_eq!(end, "who waited was served after 71 s");
        drop(wait);

        let mut waits = [spawn(semaphore.acquire()), spawn(semaphore.acquire())].map(Some);
        for wait in waits.iter_mut().flatten() {
            assert!(wait.poll().is_pending());
        }
        let end = end_of(Code::Starvation, MISSES, &mut || {
            waits.iter_mut().for_each(|wait| *wait = None);
        });
        assert_eq!(end, "who waited gave up, the first after 71 s");

        // The hold is still there: so soon nothing is taken back.
        assert_eq!(end_of(Code::Leak, MISSES_AT_REST - 1, &mut || {}), "");
        assert_eq!(end_of(Code::Leak, MISSES_AT_REST, &mut || {}), "it ended after 71 s");
        drop((served, entered));
    }
}
