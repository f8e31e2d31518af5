//! What happened before, what was learned, and who is there.
//!
//! Lists within a record are cut to the limits when they are read, too: they take much more room in memory than on
//! the wire.

use super::{Error, actor_id, cut, nanos};
use crate::limits;
use crate::v1;
use holdup_core::snapshot::{
    Direction, Flavor, Flow, Gate, History, Largest, Learned, Moment, Order, ResourceId, Runtime,
    RuntimeId, Seen, Side, SiteId, StackId, Streak,
};
use std::sync::Arc;
use std::time::Duration;

impl From<&History> for v1::History {
    fn from(history: &History) -> Self {
        Self {
            moved: history.moved.0,
            flows: history.flows.iter().take(limits::FLOWS).map(Into::into).collect(),
            streaks: history.streaks.iter().take(limits::FLOWS).map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::History> for History {
    type Error = Error;

    fn try_from(history: v1::History) -> Result<Self, Error> {
        let flows = history.flows.into_iter().take(limits::FLOWS);
        let streaks = history.streaks.into_iter().take(limits::FLOWS);
        Ok(Self {
            moved: Moment(history.moved),
            flows: flows
                .filter_map(|flow| read_flow(flow).transpose())
                .collect::<Result<_, _>>()?,
            streaks: streaks.map(Streak::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl From<Direction> for v1::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Added => Self::Added,
            Direction::Forgotten => Self::Forgotten,
            Direction::Withdrawn => Self::Withdrawn,
        }
    }
}

impl From<&Flow> for v1::Flow {
    fn from(flow: &Flow) -> Self {
        Self {
            direction: v1::Direction::from(flow.direction).into(),
            site: flow.site.0,
            stack: flow.stack.0,
            calls: flow.calls,
            units: flow.units,
            most: flow.most,
            first: flow.first.0,
            last: flow.last.0,
            actor: Some(flow.actor.into()),
            several: flow.several,
            holding: flow.holding,
            then_released: flow.then_released,
        }
    }
}

/// Nothing, if it went a way that is newer than this version.
fn read_flow(flow: v1::Flow) -> Result<Option<Flow>, Error> {
    let direction = match flow.direction() {
        v1::Direction::Unspecified => return Ok(None),
        v1::Direction::Added => Direction::Added,
        v1::Direction::Forgotten => Direction::Forgotten,
        v1::Direction::Withdrawn => Direction::Withdrawn,
    };
    Ok(Some(Flow {
        direction,
        site: SiteId(flow.site),
        stack: StackId(flow.stack),
        calls: flow.calls,
        units: flow.units,
        most: flow.most,
        first: Moment(flow.first),
        last: Moment(flow.last),
        actor: actor_id(flow.actor)?,
        several: flow.several,
        holding: flow.holding,
        then_released: flow.then_released,
    }))
}

impl From<&Streak> for v1::Streak {
    fn from(streak: &Streak) -> Self {
        Self {
            actor: Some(streak.actor.into()),
            site: streak.site.0,
            stack: streak.stack.0,
            count: streak.count,
            since: streak.since.0,
            last: streak.last.0,
            others: streak.others,
        }
    }
}

impl TryFrom<v1::Streak> for Streak {
    type Error = Error;

    fn try_from(streak: v1::Streak) -> Result<Self, Error> {
        Ok(Self {
            actor: actor_id(streak.actor)?,
            site: SiteId(streak.site),
            stack: StackId(streak.stack),
            count: streak.count,
            since: Moment(streak.since),
            last: Moment(streak.last),
            others: streak.others,
        })
    }
}

impl From<&Learned> for v1::Learned {
    fn from(learned: &Learned) -> Self {
        Self {
            stack: learned.stack.0,
            site: learned.site.0,
            acquired: learned.acquired,
            released: learned.released,
            elsewhere: learned.elsewhere,
            forgotten: learned.forgotten,
            brief: learned.brief,
            usual: nanos(learned.usual),
            longest: nanos(learned.longest),
            resource: learned.resource.0,
            discarded: learned.discarded,
        }
    }
}

impl From<v1::Learned> for Learned {
    fn from(learned: v1::Learned) -> Self {
        Self {
            stack: StackId(learned.stack),
            site: SiteId(learned.site),
            acquired: learned.acquired,
            released: learned.released,
            elsewhere: learned.elsewhere,
            forgotten: learned.forgotten,
            brief: learned.brief,
            usual: Duration::from_nanos(learned.usual),
            longest: Duration::from_nanos(learned.longest),
            resource: ResourceId(learned.resource),
            discarded: learned.discarded,
        }
    }
}

impl From<Flavor> for v1::Flavor {
    fn from(flavor: Flavor) -> Self {
        match flavor {
            Flavor::Unknown => Self::Unspecified,
            Flavor::CurrentThread => Self::CurrentThread,
            Flavor::MultiThread => Self::MultiThread,
        }
    }
}

impl From<v1::Flavor> for Flavor {
    fn from(flavor: v1::Flavor) -> Self {
        match flavor {
            v1::Flavor::Unspecified => Self::Unknown,
            v1::Flavor::CurrentThread => Self::CurrentThread,
            v1::Flavor::MultiThread => Self::MultiThread,
        }
    }
}

impl From<&Runtime> for v1::Runtime {
    fn from(runtime: &Runtime) -> Self {
        Self {
            id: runtime.id.0,
            flavor: v1::Flavor::from(runtime.flavor).into(),
            workers: runtime.workers,
            alive_tasks: runtime.alive_tasks,
            rested: runtime.rested.0,
        }
    }
}

impl From<v1::Runtime> for Runtime {
    fn from(runtime: v1::Runtime) -> Self {
        Self {
            id: RuntimeId(runtime.id),
            flavor: runtime.flavor().into(),
            workers: runtime.workers,
            alive_tasks: runtime.alive_tasks,
            rested: Moment(runtime.rested),
        }
    }
}

impl From<&Order> for v1::Order {
    fn from(order: &Order) -> Self {
        Self {
            outer: Some((&order.outer).into()),
            inner: Some((&order.inner).into()),
            held: order.held,
            count: order.count,
            released: order.released,
            elsewhere: order.elsewhere,
            first: order.first.0,
            last: order.last.0,
            seen: order.seen.iter().take(limits::SEEN).map(Into::into).collect(),
            gates: order.gates.iter().take(limits::SEEN).map(Into::into).collect(),
            largest: order.largest.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<v1::Order> for Order {
    type Error = Error;

    fn try_from(order: v1::Order) -> Result<Self, Error> {
        let side = |side: Option<v1::Side>| Some(Side::from(side?));
        let seen = order.seen.into_iter().take(limits::SEEN);
        let missing = Error::new("an order without its sides");
        Ok(Self {
            outer: side(order.outer).ok_or(missing)?,
            inner: side(order.inner).ok_or(missing)?,
            held: order.held,
            count: order.count,
            released: order.released,
            elsewhere: order.elsewhere,
            first: Moment(order.first),
            last: Moment(order.last),
            seen: seen.map(Seen::try_from).collect::<Result<_, _>>()?,
            gates: order.gates.into_iter().take(limits::SEEN).map(Into::into).collect(),
            largest: order.largest.map(Largest::try_from).transpose()?,
        })
    }
}

impl From<&Largest> for v1::Largest {
    fn from(largest: &Largest) -> Self {
        Self {
            units: largest.units,
            site: largest.site.0,
            stack: largest.stack.0,
            seen: largest.seen.iter().take(limits::SEEN).map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Largest> for Largest {
    type Error = Error;

    fn try_from(largest: v1::Largest) -> Result<Self, Error> {
        let seen = largest.seen.into_iter().take(limits::SEEN);
        Ok(Self {
            units: largest.units,
            site: SiteId(largest.site),
            stack: StackId(largest.stack),
            seen: seen.map(Seen::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&Side> for v1::Side {
    fn from(side: &Side) -> Self {
        Self {
            resource: side.resource.0,
            kind: v1::Kind::from(side.kind).into(),
            name: side.name.as_deref().map(|name| cut(name, limits::NAME)),
            created: side.created.0,
            capacity: side.capacity,
            units: side.units,
            site: side.site.0,
            stack: side.stack.0,
            owned: side.owned,
            is_static: side.is_static,
            future: side.future,
            poller: side.poller,
        }
    }
}

impl From<v1::Side> for Side {
    fn from(side: v1::Side) -> Self {
        Self {
            resource: ResourceId(side.resource),
            kind: side.kind().into(),
            name: side.name.map(Arc::from),
            created: SiteId(side.created),
            capacity: side.capacity,
            units: side.units,
            site: SiteId(side.site),
            stack: StackId(side.stack),
            owned: side.owned,
            is_static: side.is_static,
            future: side.future,
            poller: side.poller,
        }
    }
}

impl From<&Seen> for v1::Seen {
    fn from(seen: &Seen) -> Self {
        Self {
            actor: Some(seen.actor.into()),
            at: seen.at.0,
            last: seen.last.0,
            alive_tasks: seen.alive_tasks,
            newest: seen.newest,
        }
    }
}

impl TryFrom<v1::Seen> for Seen {
    type Error = Error;

    fn try_from(seen: v1::Seen) -> Result<Self, Error> {
        Ok(Self {
            actor: actor_id(seen.actor)?,
            at: Moment(seen.at),
            last: Moment(seen.last),
            alive_tasks: seen.alive_tasks,
            newest: seen.newest,
        })
    }
}

impl From<&Gate> for v1::Gate {
    fn from(gate: &Gate) -> Self {
        Self { resource: gate.resource.0, capacity: gate.capacity, units: gate.units }
    }
}

impl From<v1::Gate> for Gate {
    fn from(gate: v1::Gate) -> Self {
        Self { resource: ResourceId(gate.resource), capacity: gate.capacity, units: gate.units }
    }
}
