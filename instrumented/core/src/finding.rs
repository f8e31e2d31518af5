//! What holdup concludes, as data.

use crate::snapshot::{ActorId, HoldId, Moment, ResourceId, Site, StackId, WaitId};
use std::fmt;

/// What kind of trouble; the stable name is [`Code::as_str`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Someone waits for ever because of a cycle that includes the wait itself.
    Deadlock,
    /// A future that holds, or is queued, is alive and no longer polled.
    Futurelock,
    /// A wait that no sequence of releases can satisfy.
    Unsatisfiable,
    /// Units that nothing will give back.
    Leak,
    /// A wait that is passed over although the resource works or has units left.
    Starvation,
    /// A thread that runs tasks is blocked by a wait.
    BlockedThread,
    /// A resource is acquired again by an actor that still holds some of it.
    NestedAcquire,
    /// Two resources are acquired in both orders.
    OrderInversion,
    /// More units were given back than were taken.
    OverRelease,
    /// A permit is dropped in the statement that acquired it.
    ZeroHold,
    /// A code that this version does not know.
    Unknown,
}

impl Code {
    /// Every code that this version can report.
    pub const ALL: &'static [Code] = &[
        Code::Deadlock,
        Code::Futurelock,
        Code::Unsatisfiable,
        Code::Leak,
        Code::Starvation,
        Code::BlockedThread,
        Code::NestedAcquire,
        Code::OrderInversion,
        Code::OverRelease,
        Code::ZeroHold,
    ];

    /// The stable name, for example `deadlock`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Deadlock => "deadlock",
            Code::Futurelock => "futurelock",
            Code::Unsatisfiable => "unsatisfiable",
            Code::Leak => "leak",
            Code::Starvation => "starvation",
            Code::BlockedThread => "blocked-thread",
            Code::NestedAcquire => "nested-acquire",
            Code::OrderInversion => "order-inversion",
            Code::OverRelease => "over-release",
            Code::ZeroHold => "zero-hold",
            Code::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How sure holdup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It is so, and cannot end by itself.
    Proven,
    /// It looks so; the evidence is in the notes.
    Suspected,
    /// It did not happen, and could.
    Hazard,
    /// It was reported before and has gone away.
    Resolved,
    /// A verdict that this version does not know.
    Unknown,
}

impl Verdict {
    /// The stable name, for example `proven`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Proven => "proven",
            Verdict::Suspected => "suspected",
            Verdict::Hazard => "hazard",
            Verdict::Resolved => "resolved",
            Verdict::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The identity of a finding: the same trouble has the same id in every snapshot it is seen in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FindingId(pub u64);

/// A place in the source that a finding points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where.
    pub site: Site,
    /// What happened there, for example ``task 17 took the only permit of `db` here, 2.0 s ago``.
    pub label: String,
    /// The place where it hurts; the others explain it.
    pub primary: bool,
    /// The call stack that led there, if recorded.
    pub stack: StackId,
}

/// One conclusion, complete in itself: it can be shown without the snapshot it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its identity.
    pub id: FindingId,
    /// What kind of trouble.
    pub code: Code,
    /// How sure.
    pub verdict: Verdict,
    /// The cause in one sentence, without code and verdict.
    pub title: String,
    /// The places, in the order in which they should be read.
    pub marks: Vec<Mark>,
    /// The facts, one sentence each.
    pub notes: Vec<String>,
    /// The one fix that fits.
    pub help: Option<String>,
    /// Since when it is so.
    pub since: Moment,
    /// The resources that take part, the most important first.
    pub resources: Vec<ResourceId>,
    /// The actors that take part, the most important first.
    pub actors: Vec<ActorId>,
    /// The holds it rests on.
    pub holds: Vec<HoldId>,
    /// The waits it rests on.
    pub waits: Vec<WaitId>,
}
