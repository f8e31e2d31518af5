//! What keeps units from others: a permit, or an acquire that was given some and is not polled.

use crate::snapshot::{ActorId, Hold, Moment, ResourceId, SiteId, StackId, Wait};

/// Units that are with somebody.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grip<'a> {
    /// A permit.
    Held(&'a Hold),
    /// All that an acquire asked for is set aside for it, and its future is not polled any more.
    Granted(&'a Wait),
}

impl<'a> Grip<'a> {
    pub(crate) fn hold(self) -> Option<&'a Hold> {
        match self {
            Grip::Held(hold) => Some(hold),
            Grip::Granted(_) => None,
        }
    }

    pub(crate) fn resource(self) -> ResourceId {
        match self {
            Grip::Held(hold) => hold.resource,
            Grip::Granted(wait) => wait.resource,
        }
    }

    pub(crate) fn units(self) -> u64 {
        match self {
            Grip::Held(hold) => hold.units,
            Grip::Granted(wait) => wait.units,
        }
    }

    pub(crate) fn actor(self) -> ActorId {
        match self {
            Grip::Held(hold) => hold.actor,
            Grip::Granted(wait) => wait.actor,
        }
    }

    pub(crate) fn site(self) -> SiteId {
        match self {
            Grip::Held(hold) => hold.site,
            Grip::Granted(wait) => wait.site,
        }
    }

    pub(crate) fn stack(self) -> StackId {
        match self {
            Grip::Held(hold) => hold.stack,
            Grip::Granted(wait) => wait.stack,
        }
    }

    /// Since when the units are with it.
    pub(crate) fn since(self) -> Moment {
        match self {
            Grip::Held(hold) => hold.since,
            Grip::Granted(wait) => wait.granted_since.unwrap_or(wait.since),
        }
    }

    /// Orders grips of one moment.
    pub(crate) fn id(self) -> u64 {
        match self {
            Grip::Held(hold) => hold.id.0,
            Grip::Granted(wait) => wait.id.0,
        }
    }
}

/// Why a grip does not end before the waits that keep it, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Why {
    /// The permit borrows, and is in the `async` body that waits or in what this body has called.
    Pinned,
    /// Its future was given the units, and whoever had it in hand has gone on without polling it.
    Granted,
    /// What holds is a future that the waiting body kept and polls no more.
    Inside,
    /// Whoever received last from the channel waits, and so does not receive.
    Receiver,
    /// The wait keeps the thread that the holder needs.
    Blocking,
    /// Nothing else is known to have happened to permits from this line.
    Learned,
    /// Nobody else is left who could have it.
    Alone,
}
