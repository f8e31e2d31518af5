//! What happened before, what was learned and who is there, both ways.

pub(super) mod read {
    use crate::json::document as doc;
    use crate::json::read::{ReadError, Sites, actor, address, kind};
    use crate::snapshot::{
        Direction, Flavor, Flow, Gate, History, Largest, Learned, Moment, Order, ResourceId,
        Runtime, RuntimeId, Seen, Side, StackId, Streak,
    };
    use std::sync::Arc;
    use std::time::Duration;

    pub(in crate::json) fn history(h: doc::History, sites: &mut Sites) -> History {
        History {
            moved: Moment(h.moved_ns),
            flows: h.flows.into_iter().filter_map(|f| flow(f, sites)).collect(),
            streaks: h.streaks.into_iter().filter_map(|s| streak(s, sites)).collect(),
        }
    }

    fn flow(f: doc::Flow, sites: &mut Sites) -> Option<Flow> {
        Some(Flow {
            direction: match f.direction.as_str() {
                "added" => Direction::Added,
                "forgotten" => Direction::Forgotten,
                "withdrawn" => Direction::Withdrawn,
                _ => return None,
            },
            actor: actor(&f.actor)?,
            site: sites.id(f.site),
            stack: StackId(f.stack),
            calls: f.calls,
            units: f.units,
            most: f.most,
            first: Moment(f.first_ns),
            last: Moment(f.last_ns),
            several: f.several,
            holding: f.holding,
            then_released: f.then_released,
        })
    }

    fn streak(s: doc::Streak, sites: &mut Sites) -> Option<Streak> {
        Some(Streak {
            actor: actor(&s.actor)?,
            site: sites.id(s.site),
            stack: StackId(s.stack),
            count: s.count,
            since: Moment(s.since_ns),
            last: Moment(s.last_ns),
            others: s.others,
        })
    }

    pub(in crate::json) fn learned(l: doc::Learned, sites: &mut Sites) -> Learned {
        Learned {
            stack: StackId(l.stack),
            site: sites.id(l.site),
            acquired: l.acquired,
            released: l.released,
            elsewhere: l.elsewhere,
            forgotten: l.forgotten,
            brief: l.brief,
            usual: Duration::from_nanos(l.usual_ns),
            longest: Duration::from_nanos(l.longest_ns),
            resource: ResourceId(l.resource),
            discarded: l.discarded,
        }
    }

    pub(in crate::json) fn runtime(r: &doc::Runtime) -> Runtime {
        Runtime {
            id: RuntimeId(r.id),
            flavor: match r.flavor.as_str() {
                "current-thread" => Flavor::CurrentThread,
                "multi-thread" => Flavor::MultiThread,
                _ => Flavor::Unknown,
            },
            workers: r.workers,
            alive_tasks: r.alive_tasks,
            rested: Moment(r.rested_ns),
        }
    }

    pub(in crate::json) fn order(o: doc::Order, sites: &mut Sites) -> Result<Order, ReadError> {
        Ok(Order {
            outer: side(o.outer, sites)?,
            inner: side(o.inner, sites)?,
            held: o.held,
            count: o.count,
            released: o.released,
            elsewhere: o.elsewhere,
            first: Moment(o.first_ns),
            last: Moment(o.last_ns),
            seen: o.seen.iter().filter_map(seen).collect(),
            gates: o.gates.iter().map(gate).collect(),
            largest: o.largest.map(|l| Largest {
                units: l.units,
                site: sites.id(l.site),
                stack: StackId(l.stack),
                seen: l.seen.iter().filter_map(seen).collect(),
            }),
        })
    }

    fn side(s: doc::Side, sites: &mut Sites) -> Result<Side, ReadError> {
        Ok(Side {
            resource: ResourceId(s.resource),
            kind: kind(&s.kind),
            name: s.name.map(Arc::from),
            created: sites.id(s.created),
            capacity: s.capacity,
            units: s.units,
            site: sites.id(s.site),
            stack: StackId(s.stack),
            owned: s.owned,
            is_static: s.is_static,
            future: address(&s.future)?,
            poller: address(&s.poller)?,
        })
    }

    fn seen(s: &doc::Seen) -> Option<Seen> {
        Some(Seen {
            actor: actor(&s.actor)?,
            at: Moment(s.at_ns),
            last: Moment(s.last_ns),
            alive_tasks: s.alive_tasks,
            newest: s.newest,
        })
    }

    fn gate(g: &doc::Gate) -> Gate {
        Gate { resource: ResourceId(g.resource), capacity: g.capacity, units: g.units }
    }
}

pub(super) mod write {
    use crate::json::document as doc;
    use crate::json::write::{actor, address, nanos, site};
    use crate::snapshot::{
        Direction, Flavor, Flow, Gate, History, Learned, Order, Runtime, Seen, Side, Snapshot,
        Streak,
    };

    pub(in crate::json) fn history(snapshot: &Snapshot, h: &History) -> doc::History {
        doc::History {
            moved_ns: h.moved.0,
            flows: h.flows.iter().map(|f| flow(snapshot, f)).collect(),
            streaks: h.streaks.iter().map(|s| streak(snapshot, s)).collect(),
        }
    }

    fn flow(snapshot: &Snapshot, f: &Flow) -> doc::Flow {
        let direction = match f.direction {
            Direction::Added => "added",
            Direction::Forgotten => "forgotten",
            Direction::Withdrawn => "withdrawn",
        };
        doc::Flow {
            direction: direction.to_owned(),
            site: site(snapshot, f.site),
            stack: f.stack.0,
            calls: f.calls,
            units: f.units,
            most: f.most,
            first_ns: f.first.0,
            last_ns: f.last.0,
            actor: actor(f.actor),
            several: f.several,
            holding: f.holding,
            then_released: f.then_released,
        }
    }

    fn streak(snapshot: &Snapshot, s: &Streak) -> doc::Streak {
        doc::Streak {
            actor: actor(s.actor),
            site: site(snapshot, s.site),
            stack: s.stack.0,
            count: s.count,
            since_ns: s.since.0,
            last_ns: s.last.0,
            others: s.others,
        }
    }

    pub(in crate::json) fn learned(snapshot: &Snapshot, l: &Learned) -> doc::Learned {
        doc::Learned {
            stack: l.stack.0,
            site: site(snapshot, l.site),
            acquired: l.acquired,
            released: l.released,
            elsewhere: l.elsewhere,
            forgotten: l.forgotten,
            brief: l.brief,
            usual_ns: nanos(l.usual),
            longest_ns: nanos(l.longest),
            resource: l.resource.0,
            discarded: l.discarded,
        }
    }

    pub(in crate::json) fn runtime(r: &Runtime) -> doc::Runtime {
        let flavor = match r.flavor {
            Flavor::Unknown => "unknown",
            Flavor::CurrentThread => "current-thread",
            Flavor::MultiThread => "multi-thread",
        };
        doc::Runtime {
            id: r.id.0,
            flavor: flavor.to_owned(),
            workers: r.workers,
            alive_tasks: r.alive_tasks,
            rested_ns: r.rested.0,
        }
    }

    pub(in crate::json) fn order(snapshot: &Snapshot, o: &Order) -> doc::Order {
        doc::Order {
            outer: side(snapshot, &o.outer),
            inner: side(snapshot, &o.inner),
            held: o.held,
            count: o.count,
            released: o.released,
            elsewhere: o.elsewhere,
            first_ns: o.first.0,
            last_ns: o.last.0,
            seen: o.seen.iter().map(seen).collect(),
            gates: o.gates.iter().map(gate).collect(),
            largest: o.largest.as_ref().map(|l| doc::Largest {
                units: l.units,
                site: site(snapshot, l.site),
                stack: l.stack.0,
                seen: l.seen.iter().map(seen).collect(),
            }),
        }
    }

    fn side(snapshot: &Snapshot, s: &Side) -> doc::Side {
        doc::Side {
            resource: s.resource.0,
            kind: s.kind.as_str().to_owned(),
            name: s.name.as_deref().map(str::to_owned),
            created: site(snapshot, s.created),
            capacity: s.capacity,
            units: s.units,
            site: site(snapshot, s.site),
            stack: s.stack.0,
            owned: s.owned,
            is_static: s.is_static,
            future: address(s.future),
            poller: address(s.poller),
        }
    }

    fn seen(s: &Seen) -> doc::Seen {
        doc::Seen {
            actor: actor(s.actor),
            at_ns: s.at.0,
            last_ns: s.last.0,
            alive_tasks: s.alive_tasks,
            newest: s.newest,
        }
    }

    fn gate(g: &Gate) -> doc::Gate {
        doc::Gate { resource: g.resource.0, capacity: g.capacity, units: g.units }
    }
}
