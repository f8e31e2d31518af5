//! What would untie a knot.

use super::ring::Party;
use super::{Case, SHOWN, total, unique};
use crate::diagnose::{Grip, Why};
use crate::snapshot::{Kind, Resource, Wait};
use crate::words;

impl Case<'_, '_> {
    pub(super) fn help(&self, parties: &[Party<'_>]) -> Option<String> {
        if self.why.contains(&Why::Blocking) {
            return Some(
                "`.await` it instead of blocking, or block on a thread of its own with `spawn_blocking`"
                    .to_owned(),
            );
        }
        if self.is_futurelock() {
            let line = self.line_of(self.waits.last()?)?;
            return Some(format!(
                "go on polling the future meanwhile (`join!`, or spawn it as a task), or drop it before {line}"
            ));
        }
        match self.own() {
            Some(resource) => self.own_help(resource),
            None => self.ring_help(parties),
        }
    }

    /// `line 47`, or the whole place where the rest is in another file.
    fn line_of(&self, wait: &Wait) -> Option<String> {
        let site = self.snapshot().site(wait.site)?;
        Some(match self.grips.first().and_then(|g| self.snapshot().site(g.site())) {
            Some(outer) if outer.file == site.file && site.line > 0 => {
                format!("line {}", site.line)
            }
            _ => site.to_string(),
        })
    }

    fn own_help(&self, resource: &Resource) -> Option<String> {
        let wait = self.waits.last()?;
        let line = self.line_of(wait)?;
        match resource.kind {
            Kind::Mutex | Kind::RwLock => {
                return Some(format!("drop the guard before {line}, or pass it to the inner step"));
            }
            Kind::Channel if self.grips.iter().any(|g| self.is_unbegun(*g)) => {
                return Some(
                    "begin to receive, in another task, before sending more than the channel has room for"
                        .to_owned(),
                );
            }
            Kind::Channel => {
                return Some(
                    "receive in a task that does not send here, or use `try_send` and keep what does not fit"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let units = total(&self.grips).saturating_add(wait.units);
        let at_once = if units <= resource.capacity() {
            format!("take all at once with `acquire_many({units})`, ")
        } else {
            String::new()
        };
        Some(format!(
            "release before {line}, {at_once}or give the inner step a semaphore of its own"
        ))
    }

    fn ring_help(&self, parties: &[Party<'_>]) -> Option<String> {
        if self.resources().any(|r| r.kind == Kind::Channel) {
            return Some(
                "release before sending, or receive in a task that needs nothing the senders hold"
                    .to_owned(),
            );
        }
        if let [one] = self.resources[..] {
            let resource = self.snapshot().resource(one)?;
            let need = self
                .waits
                .iter()
                .map(|w| w.units)
                .max()?
                .saturating_add(self.grips.iter().map(|g| g.units()).max()?);
            let at_once = if need <= resource.capacity() && resource.kind == Kind::Semaphore {
                "take all that a task needs at once with `acquire_many`, or "
            } else {
                ""
            };
            return Some(format!("{at_once}release before asking for more"));
        }
        // Whoever took the first resource first is in the order that the others should follow.
        let order = unique(parties.iter().filter_map(|p| p.grip).map(Grip::resource));
        let names: Vec<String> = order
            .iter()
            .filter_map(|id| self.snapshot().resource(*id))
            .take(SHOWN)
            .map(words::resource)
            .collect();
        (names.len() > 1).then(|| {
            format!(
                "take them in the same order everywhere, for example {}",
                names.join(" before ")
            )
        })
    }
}
