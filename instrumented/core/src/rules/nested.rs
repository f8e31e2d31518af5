//! A resource is acquired again by an actor that still holds some of it.
//!
//! It went well, because enough was left. It does not where enough tasks hold their first permit and ask for their
//! second, or where somebody who wants a lot comes between the two and has to be served before.

#[cfg(test)]
mod tests;

use super::edges::{
    self, Edges, Gates, books, how_often, is_bound, it_takes, may_meet, stand_in, unique,
};
use super::{Rule, of_lines};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::snapshot::{Kind, Largest, Order, Resource, ResourceId, Seen, StackId};
use crate::words::{self, count};
use std::collections::{BTreeMap, HashMap};

/// As many actors as an order remembers: if it has so many, there may be more.
const MANY: usize = 8;

pub(super) const RULE: Rule = Rule { find, stacks };

fn candidates<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Order> {
    let nested = |o: &&Order| o.outer.resource == o.inner.resource && is_bound(context, o);
    context.now.orders.iter().filter(nested)
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    let largest = |o: &Order| o.largest.as_ref().map_or(StackId::NONE, |largest| largest.stack);
    candidates(context).flat_map(|o| [o.outer.stack, o.inner.stack, largest(o)]).collect()
}

/// A nested acquire.
#[derive(Clone, Copy)]
struct Nest<'a> {
    order: &'a Order,
    /// Units that are held while the inner acquire waits.
    held: u64,
}

/// What would make it a deadlock.
enum Trap<'a> {
    /// So many at once.
    Overlap(u64),
    /// Somebody who wants a lot comes between.
    Between(&'a Largest, Seen),
}

fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut edges = Edges::new(context);
    let mut nests: BTreeMap<ResourceId, Vec<Nest<'_>>> = BTreeMap::new();
    for order in candidates(context) {
        if edges.binds(order) {
            let held = order.outer.units;
            nests.entry(order.outer.resource).or_default().push(Nest { order, held });
        }
    }
    // By the pair of lines: resources come and go.
    let mut lines: Vec<(Nest<'_>, Trap<'_>, Vec<&Order>)> = Vec::new();
    for nests in nests.values_mut() {
        add_up(nests);
        for nest in nests.iter() {
            if edges.is_going_on(nest.order) {
                continue;
            }
            let trap = overlap(nest, nests).map(Trap::Overlap);
            let Some(trap) = trap.or_else(|| between(context, &mut edges, nest)) else { continue };
            let same = |known: &Nest<'_>| {
                let sites = |order: &Order| (order.outer.site, order.inner.site);
                sites(known.order) == sites(nest.order)
            };
            match lines.iter_mut().find(|(known, ..)| same(known)) {
                Some((.., orders)) => orders.push(nest.order),
                None => lines.push((*nest, trap, vec![nest.order])),
            }
        }
    }
    lines.iter().filter_map(|(nest, trap, orders)| tell(context, nest, trap, orders)).collect()
}

/// Whoever is nested three deep holds two.
fn add_up(nests: &mut [Nest<'_>]) {
    let mut held: HashMap<StackId, u64> = HashMap::new();
    for nest in &*nests {
        let sum = held.entry(nest.order.inner.stack).or_default();
        *sum = sum.saturating_add(nest.order.outer.units);
    }
    for nest in nests {
        let sum = held.get(&nest.order.inner.stack).copied().unwrap_or_default();
        nest.held = sum.min(nest.order.held).max(nest.order.outer.units);
    }
}

/// How many of those that were seen it takes until all of them wait.
fn overlap(nest: &Nest<'_>, all: &[Nest<'_>]) -> Option<u64> {
    let order = nest.order;
    let (capacity, wanted) = (order.inner.capacity, order.inner.units);
    let least = it_takes(capacity, nest.held, wanted);
    if least < 2 {
        // It never goes well: no hazard.
        return None;
    }
    let mut met = false;
    for one in &order.seen {
        let others = all.iter().flat_map(|nest| nest.order.seen.iter().map(move |s| (nest, s)));
        let mut others: Vec<(&Nest<'_>, &Seen)> =
            others.filter(|(_, seen)| may_meet(one, seen)).collect();
        others.sort_by_key(|(other, _)| std::cmp::Reverse(other.held));
        let (mut held, mut wanted) = (nest.held, wanted);
        let mut inside = vec![one.actor];
        let mut gates = Gates::default();
        gates.enter(&order.gates);
        for (other, seen) in others {
            met = true;
            if inside.contains(&seen.actor) || !gates.enter(&other.order.gates) {
                continue;
            }
            inside.push(seen.actor);
            held = held.saturating_add(other.held);
            wanted = wanted.min(other.order.inner.units);
            if held > capacity.saturating_sub(wanted) {
                return Some(inside.len() as u64);
            }
        }
    }
    // More than are remembered.
    let alive = order.seen.iter().map(|seen| seen.alive_tasks).max().unwrap_or_default();
    let room = order.gates.iter().all(|gate| gate.capacity / gate.units.max(1) >= least);
    (met && order.seen.len() >= MANY && alive >= least && room).then_some(least)
}

/// Somebody else who wants so much that it has to wait for the outer hold.
fn between<'a>(
    context: &Context<'a>,
    edges: &mut Edges<'_, 'a>,
    nest: &Nest<'a>,
) -> Option<Trap<'a>> {
    let order = nest.order;
    let largest = order.largest.as_ref()?;
    let waits = largest.units > order.inner.capacity.saturating_sub(order.outer.units);
    let nested = [order.outer.stack, order.inner.stack].contains(&largest.stack);
    if !waits || nested || edges.may_give_up(largest.stack) || is_gated(context, order, largest) {
        return None;
    }
    // Whoever takes everything of a semaphore may well do so when all the others have gone.
    let amid =
        |seen: &Seen| [seen.at, seen.last].iter().any(|at| order.first < *at && *at < order.last);
    let lock = order.inner.kind == Kind::RwLock;
    let rival = largest.seen.iter().filter(|rival| lock || amid(rival));
    let rival = rival.copied().find(|rival| order.seen.iter().any(|one| may_meet(one, rival)))?;
    Some(Trap::Between(largest, rival))
}

/// Something that both hold keeps them apart.
fn is_gated(context: &Context<'_>, order: &Order, largest: &Largest) -> bool {
    let same =
        |o: &&Order| o.inner.resource == order.inner.resource && o.inner.stack == largest.stack;
    context.now.orders.iter().filter(same).any(|other| {
        let mut gates = Gates::default();
        gates.enter(&order.gates);
        !gates.enter(&edges::kept(other))
    })
}

fn tell(
    context: &Context<'_>,
    nest: &Nest<'_>,
    trap: &Trap<'_>,
    orders: &[&Order],
) -> Option<Finding> {
    let order = nest.order;
    let (outer, inner) = (&order.outer, &order.inner);
    let r = stand_in(inner);
    let (took, asks) = (context.now.site(outer.site)?, context.now.site(inner.site)?);
    if context.is_told(took, asks) {
        return None;
    }
    let within = context.function_of(inner.stack).map_or(String::new(), |f| format!(" in {f}"));
    let what = match (inner.kind, inner.units) {
        (Kind::RwLock, 1) => "read",
        _ => "acquire",
    };
    let when = match trap {
        Trap::Overlap(tasks) => format!(
            "once {tasks} tasks overlap ({}, {} for each)",
            count(inner.capacity, "permit"),
            nest.held.saturating_add(inner.units)
        ),
        Trap::Between(..) if inner.kind == Kind::RwLock => {
            "once a writer comes between the two".to_owned()
        }
        Trap::Between(largest, _) => {
            format!("once a request for {} comes between the two", words::wanted(&r, largest.units))
        }
    };
    let actors = unique(orders.iter().flat_map(|o| &o.seen).map(|seen| seen.actor));
    let who = super::marks::actors(context, actors.iter().copied());
    let mut marks = Vec::new();
    if took != asks {
        marks.push(Mark {
            site: took.clone(),
            label: format!(
                "{who} took {} of {} here",
                words::wanted(&r, outer.units),
                words::resource(&r)
            ),
            primary: false,
            stack: outer.stack,
        });
    }
    marks.push(Mark {
        site: asks.clone(),
        label: format!("and asked for {} here before giving it back", more(&r, inner.units)),
        primary: true,
        stack: inner.stack,
    });
    if let Trap::Between(largest, rival) = trap
        && let Some(site) = context.now.site(largest.site)
    {
        marks.push(Mark {
            site: site.clone(),
            label: format!(
                "{} asks for {} here, and would stand between them",
                words::actor(context.now, rival.actor),
                words::wanted(&r, largest.units)
            ),
            primary: false,
            stack: largest.stack,
        });
    }
    let resources = unique(orders.iter().map(|order| order.inner.resource));
    let times = orders.iter().fold(0, |sum: u64, order| sum.saturating_add(order.count));
    let mut notes = books(context, &resources);
    notes.push(format!("it went well {} so far", how_often(times)));
    Some(Finding {
        id: of_lines(Code::NestedAcquire, [took, asks]),
        code: Code::NestedAcquire,
        verdict: Verdict::Hazard,
        title: format!("this nested {what}{within} deadlocks {when}"),
        marks,
        notes,
        help: Some(help(nest, &r, asks.line)),
        since: order.first,
        resources,
        actors,
        holds: Vec::new(),
        waits: Vec::new(),
    })
}

/// `another one`, `2 more`.
fn more(r: &Resource, units: u64) -> String {
    match (r.kind, units) {
        (Kind::RwLock, 1) => "another one".to_owned(),
        (Kind::RwLock, _) => words::wanted(r, units),
        (_, 1) => "another one".to_owned(),
        (_, units) => format!("{units} more"),
    }
}

fn help(nest: &Nest<'_>, r: &Resource, line: u32) -> String {
    if r.kind == Kind::RwLock {
        return format!(
            "hand the first guard down instead of locking again, or drop it before line {line}"
        );
    }
    let need = nest.held.saturating_add(nest.order.inner.units);
    let at_once = if need <= r.capacity() {
        format!("take all at once with `acquire_many({need})`, ")
    } else {
        String::new()
    };
    format!(
        "release the outer permit before line {line}, {at_once}or give the inner step a semaphore of its own"
    )
}
