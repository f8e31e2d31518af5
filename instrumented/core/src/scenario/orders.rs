//! What was acquired while something was held.

use super::{Reader, Record};
use crate::snapshot::{ActorId, Gate, Largest, Order, Seen, Side, Snapshot};

/// What is not said is filled in when all is known.
const UNSAID: u64 = u64::MAX;

impl Reader {
    pub(super) fn around(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let resource = self.snapshot.resource(record.resource).ok_or("of what?")?;
        let (resource, capacity) = (resource.id, resource.capacity());
        self.around.push(Gate { resource, capacity, units: record.units });
        Ok(())
    }

    pub(super) fn outer(&mut self, rest: &str) -> Result<(), String> {
        self.outer = Some(self.record(rest)?);
        Ok(())
    }

    pub(super) fn inner(&mut self, rest: &str) -> Result<(), String> {
        let outer = self.outer.take().ok_or("in what?")?;
        let inner = self.record(rest)?;
        let gates = std::mem::take(&mut self.around);
        let seen = self.seen(&inner)?;
        let (outer_side, side) = (self.side(&outer)?, self.side(&inner)?);
        let same = |order: &&mut Order| {
            let key = |side: &Side| (side.resource, side.stack);
            (key(&order.outer), key(&order.inner)) == (key(&outer_side), key(&side))
        };
        if let Some(known) = self.snapshot.orders.iter_mut().find(same) {
            known.count += inner.calls;
            known.last = inner.since;
            known.gates.retain(|gate| gates.contains(gate));
            match known.seen.iter_mut().find(|known| known.actor == seen.actor) {
                Some(known) => known.last = inner.since,
                None => known.seen.push(seen),
            }
            return Ok(());
        }
        let held = outer.held.max(outer.units);
        self.snapshot.orders.push(Order {
            outer: outer_side,
            inner: side,
            held,
            count: inner.calls,
            released: inner.released,
            elsewhere: inner.elsewhere,
            first: inner.since,
            last: inner.since,
            seen: vec![seen],
            gates,
            largest: None,
        });
        Ok(())
    }

    /// Of a resource that was nested before.
    pub(super) fn asked(&mut self, rest: &str) -> Result<(), String> {
        let record = self.record(rest)?;
        let seen = self.seen(&record)?;
        for order in &mut self.snapshot.orders {
            if (order.outer.resource, order.inner.resource) == (record.resource, record.resource) {
                let (units, site, stack) = (record.units, record.site, record.stack);
                let largest = Largest { units, site, stack, seen: Vec::new() };
                order.largest.get_or_insert(largest).seen.push(seen);
            }
        }
        Ok(())
    }

    fn seen(&self, record: &Record) -> Result<Seen, String> {
        Ok(Seen {
            actor: self.actor.ok_or("by whom?")?,
            at: record.since,
            last: record.since,
            alive_tasks: record.alive.unwrap_or(UNSAID),
            newest: record.newest.unwrap_or(UNSAID),
        })
    }

    fn side(&self, record: &Record) -> Result<Side, String> {
        let resource = self.snapshot.resource(record.resource).ok_or("of what?")?;
        Ok(Side {
            resource: resource.id,
            kind: resource.kind,
            name: resource.name.clone(),
            created: resource.created,
            capacity: resource.capacity(),
            units: record.units,
            site: record.site,
            stack: record.stack,
            owned: record.owned,
            is_static: resource.is_static,
            future: record.future,
            poller: record.poller,
        })
    }
}

/// Who is not said to have come later was there from the beginning, and has stayed.
pub(super) fn fill_in(snapshot: &mut Snapshot) {
    let seen = snapshot.orders.iter_mut().flat_map(|order| {
        order.largest.iter_mut().flat_map(|largest| &mut largest.seen).chain(&mut order.seen)
    });
    let mut seen: Vec<&mut Seen> = seen.collect();
    let task = |seen: &&mut Seen| match seen.actor {
        ActorId::Task(n) => Some(n),
        _ => None,
    };
    let mut tasks: Vec<u64> = seen.iter().filter_map(task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    for seen in &mut seen {
        if seen.alive_tasks == UNSAID {
            seen.alive_tasks = tasks.len() as u64;
        }
        if seen.newest == UNSAID {
            seen.newest = tasks.last().map_or(0, |last| last + 1);
        }
    }
}
