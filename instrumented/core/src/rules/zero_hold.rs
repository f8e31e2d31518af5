//! A permit that is dropped by the statement that acquires it, so that it limits nothing.
//!
//! Many holds from one line ended within microseconds, all of them. That may be a short critical section, so the
//! source has to say it, too (see [`discard`](crate::discard)). It may be meant: whoever passes a gate that others
//! close takes a permit and drops it. A gate has one permit, or all are taken to close it; a limit has several, and
//! others hold one at a time.

#[cfg(test)]
mod tests;

use super::{Rule, of_lines};
use crate::diagnose::Context;
use crate::discard::{BRIEF, is_brief};
use crate::finding::{Code, Finding, Mark, Verdict};
use crate::snapshot::{Hold, Kind, Learned, Resource, StackId};
use crate::text::age;
use crate::words::{self, count};
use std::time::Duration;

pub(super) const RULE: Rule = Rule { find, stacks };

/// Holds that last at least this long are work under the limit.
const WORK: Duration = Duration::from_millis(1);

fn find(context: &Context<'_>) -> Vec<Finding> {
    candidates(context).filter_map(|case| finding(context, &case)).collect()
}

fn stacks(context: &Context<'_>) -> Vec<StackId> {
    candidates(context).map(|case| case.learned.stack).collect()
}

struct Case<'a> {
    r: &'a Resource,
    learned: &'a Learned,
    /// One of those who use the limit as it is meant.
    other: &'a Hold,
}

fn candidates<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = Case<'a>> + 'c {
    let brief = context.now.learned.iter().filter(|l| l.discarded && is_brief(l));
    brief.filter_map(|learned| {
        let r = context.now.resource(learned.resource)?;
        let limit = r.kind == Kind::Semaphore && r.capacity() >= 2 && r.initial > 0;
        if !limit || r.closed || r.settings.grows {
            return None;
        }
        let (holds, waits) = (context.holds(r.id), context.queue(r.id));
        // Whoever takes all closes a gate.
        let mut units = holds.iter().map(|h| h.units).chain(waits.iter().map(|w| w.units));
        if units.any(|units| units >= r.capacity()) {
            return None;
        }
        let works = |h: &&Hold| h.site != learned.site && context.age(h.since) >= WORK;
        Some(Case { r, learned, other: holds.iter().find(works)? })
    })
}

fn finding(context: &Context<'_>, case: &Case<'_>) -> Option<Finding> {
    let (snapshot, Case { r, learned, other }) = (context.now, case);
    let site = snapshot.site(learned.site)?.clone();
    let who = context.function_of(learned.stack);
    let title = match who {
        Some(name) => format!("{name} drops its permit of {} at once", words::resource(r)),
        None => format!("permits of {} are dropped at once", words::resource(r)),
    };
    let id = of_lines(Code::ZeroHold, [&site]);
    let mut marks = vec![Mark {
        site,
        label: format!(
            "{} were taken here, and each was dropped by the same statement",
            count(learned.acquired, "permit")
        ),
        primary: true,
        stack: learned.stack,
    }];
    marks.extend(snapshot.site(other.site).map(|site| Mark {
        site: site.clone(),
        label: format!(
            "one that was taken here is held, for {} by now",
            age(snapshot.taken.since(other.since))
        ),
        primary: false,
        stack: other.stack,
    }));
    Some(Finding {
        id,
        code: Code::ZeroHold,
        verdict: Verdict::Hazard,
        title,
        marks,
        notes: vec![
            words::books(snapshot, r),
            format!(
                "{} of them were held for less than {}: what follows is not limited",
                learned.brief,
                age(BRIEF)
            ),
        ],
        help: Some(
            "give it a name, `let _permit = …`: it is then held to the end of the block".to_owned(),
        ),
        since: r.created_at,
        resources: vec![r.id],
        actors: Vec::new(),
        holds: Vec::new(),
        waits: Vec::new(),
    })
}
