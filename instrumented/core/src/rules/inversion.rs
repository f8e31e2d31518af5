//! Two resources are acquired in both orders, or several in a ring.
//!
//! It went well, because those who do it have not met so far.

mod cycles;
mod ring;
#[cfg(test)]
mod tests;

use super::edges::{Edges, books, how_often, is_bound, stand_in, unique};
use super::marks::SHOWN;
use super::{Rule, of_lines};
use crate::diagnose::Context;
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::snapshot::{Order, Side, Site, StackId};
use crate::words;
use cycles::{Graph, cycles, graph, not_at_ends};
use ring::Ring;

pub(super) const RULE: Rule = Rule { find, stacks };

/// The orders on cycles, told without names.
fn candidates<'a>(context: &Context<'a>) -> Graph<'a> {
    let orders = context.now.orders.iter();
    let edge = |o: &&Order| o.outer.resource != o.inner.resource && is_bound(context, o);
    let all = graph(orders.filter(edge));
    let on = not_at_ends(&all);
    graph(flat(&all).filter(|o| on.contains(&o.outer.resource) && on.contains(&o.inner.resource)))
}

fn flat<'g, 'a>(graph: &'g Graph<'a>) -> impl Iterator<Item = &'a Order> + use<'g, 'a> {
    graph.values().flat_map(|targets| targets.values().flatten().copied())
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    let graph = candidates(context);
    flat(&graph).flat_map(|order| [order.outer.stack, order.inner.stack]).collect()
}

fn find(context: &Context<'_>) -> Vec<Finding> {
    let candidates = candidates(context);
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut edges = Edges::new(context);
    let graph = graph(flat(&candidates).filter(|order| edges.binds(order)));
    let mut findings: Vec<Finding> = Vec::new();
    for cycle in cycles(&graph) {
        let rings = Ring::of(&graph, &cycle, &mut edges);
        // If all of it goes on right now, it is a deadlock, or will be seen to be none.
        let Some(ring) = rings.filter(|ring| !ring.orders.iter().all(|o| edges.is_going_on(o)))
        else {
            continue;
        };
        findings.extend(
            tell(context, &ring).filter(|new| findings.iter().all(|known| known.id != new.id)),
        );
    }
    findings
}

fn tell(context: &Context<'_>, ring: &Ring<'_>) -> Option<Finding> {
    let snapshot = context.now;
    let orders = &ring.orders;
    let sides = || orders.iter().flat_map(|order| [&order.outer, &order.inner]);
    let sites: Vec<&Site> = sides().filter_map(|side| snapshot.site(side.site)).collect();
    let told = sites.iter().all(|a| sites.iter().all(|b| context.is_told(a, b)));
    if sites.len() != 2 * orders.len() || told {
        return None;
    }
    let mut marks = Vec::new();
    for (at, order) in orders.iter().take(SHOWN).enumerate() {
        let mark = |side: &Side, label: String, primary| {
            let site = snapshot.site(side.site)?.clone();
            Some(Mark { site, label, primary, stack: side.stack })
        };
        let who = super::marks::actors(context, order.seen.iter().map(|seen| seen.actor));
        let (number, outer, inner) = (at + 1, stand_in(&order.outer), stand_in(&order.inner));
        let took = format!(
            "{number}: {who} took {} of {} here",
            words::taken(&outer, order.outer.units),
            words::resource(&outer)
        );
        let asked = format!(
            "{number}: and asked for {} of {} here",
            words::wanted(&inner, order.inner.units),
            words::resource(&inner)
        );
        marks.extend(mark(&order.outer, took, false));
        marks.extend(mark(&order.inner, asked, true));
    }
    let resources = unique(orders.iter().map(|order| order.outer.resource));
    let mut notes = books(context, &resources);
    for order in orders.iter().take(SHOWN) {
        notes.push(format!("{}: {} so far", pair(order), how_often(order.count)));
    }
    let usual = orders.iter().max_by_key(|order| order.count)?;
    Some(Finding {
        id: of_lines(Code::OrderInversion, sites),
        code: Code::OrderInversion,
        verdict: Verdict::Hazard,
        title: title(context, ring),
        marks,
        notes,
        help: Some(format!(
            "take them in the same order everywhere, for example {}",
            if orders.len() == 2 { pair(usual) } else { in_line(ring) }
        )),
        since: orders.iter().map(|order| order.first).max().unwrap_or_default(),
        resources,
        actors: unique(ring.actors.iter().copied()),
        holds: Vec::new(),
        waits: Vec::new(),
    })
}

fn title(context: &Context<'_>, ring: &Ring<'_>) -> String {
    let orders = &ring.orders;
    let names: Vec<String> =
        orders.iter().map(|order| words::resource(&stand_in(&order.outer))).collect();
    let names = words::list(&names);
    let mut functions: Vec<String> =
        orders.iter().filter_map(|order| context.function_of(order.inner.stack)).collect();
    functions.dedup();
    let tasks = ring.actors.len();
    let who = match &functions[..] {
        [a, b] if a != b && tasks == 2 => format!("{a} and {b}"),
        _ => format!("{tasks} tasks"),
    };
    let one = unique(ring.actors.iter().copied()).len() == 1;
    match (one, orders.len()) {
        (true, _) => format!("these orders of {names} deadlock once the branches of one task meet"),
        (false, 2) => format!("these opposite orders of {names} deadlock once {who} overlap"),
        _ => format!("these orders of {names} deadlock in a ring once {who} overlap"),
    }
}

/// `` `a` before `b` ``.
fn pair(order: &Order) -> String {
    let name = |side| words::resource(&stand_in(side));
    format!("{} before {}", name(&order.outer), name(&order.inner))
}

fn in_line(ring: &Ring<'_>) -> String {
    let names = ring.orders.iter().map(|order| words::resource(&stand_in(&order.outer)));
    names.collect::<Vec<_>>().join(" before ")
}
