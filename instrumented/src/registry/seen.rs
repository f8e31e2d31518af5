//! Who was seen to do something, and whom there was to do it at the same time.

use super::ledger::Request;
use super::{now, runtimes};
use crate::actor;
use holdup_core::snapshot::{Largest, Moment, Seen, SiteId, StackId};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::task::LocalSet;

/// Actors that are remembered for one thing.
const MAX_SEEN: usize = 8;

/// Whether `request`'s actor has to be looked at and listed: it is new, and there is room. Otherwise it is noted here.
pub(super) fn is_new(seen: &mut [Seen], request: &Request, now: Moment) -> bool {
    match seen.iter_mut().find(|seen| seen.actor == request.actor) {
        Some(known) => {
            known.last = known.last.max(now);
            false
        }
        None => seen.len() < MAX_SEEN,
    }
}

/// What there is around `request`'s actor. Asks tokio: not to be called under a lock.
pub(super) fn look(request: &Request, now: Moment) -> Seen {
    let alive_tasks = runtimes::alive();
    Seen { actor: request.actor, at: now, last: now, alive_tasks, newest: newest() }
}

/// Lists what [`is_new`] asked for.
pub(super) fn add(seen: &mut Vec<Seen>, new: Seen) {
    if seen.len() < MAX_SEEN && seen.iter().all(|known| known.actor != new.actor) {
        seen.push(new);
    }
}

/// A number that no task has yet: tokio numbers tasks as they are spawned, so this tells later who was there
/// already. 0 outside of tokio.
fn newest() -> u64 {
    // Where this fails, the thread is on its way out, and a set of tasks could not be made.
    if Handle::try_current().is_err() {
        return 0;
    }
    // The one way to learn of a number: spawn something, on nobody's runtime, that is never run.
    let nowhere = LocalSet::new();
    let task = nowhere.spawn_local(async {});
    actor::number(task.id())
}

/// The largest requests for one resource, from when on they matter.
#[derive(Debug, Default)]
pub(super) struct Large(Mutex<Option<Record>>);

#[derive(Clone, Debug)]
struct Record {
    units: u64,
    site: &'static Location<'static>,
    stack: StackId,
    seen: Vec<Seen>,
}

impl Large {
    /// Somebody asks, and means to wait. True if that is somebody new.
    pub(super) fn note(&self, request: &Request) -> bool {
        let now = now();
        let new = {
            let mut largest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *largest {
                Some(known) if known.units > request.units => false,
                Some(known) if known.units == request.units => {
                    is_new(&mut known.seen, request, now)
                }
                smaller => {
                    let (units, site, stack) = (request.units, request.site, request.stack);
                    *smaller = Some(Record { units, site, stack, seen: Vec::new() });
                    true
                }
            }
        };
        if new {
            let one = look(request, now);
            let mut largest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = largest.as_mut().filter(|known| known.units == request.units) {
                add(&mut known.seen, one);
            }
        }
        new
    }

    pub(super) fn get(
        &self,
        site: impl FnOnce(&'static Location<'static>) -> SiteId,
    ) -> Option<Largest> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(Largest {
            units: known.units,
            site: site(known.site),
            stack: known.stack,
            seen: known.seen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::sync::RwLock;
    use holdup_core::snapshot::{ActorId, Order};
    use std::sync::Arc;
    use tokio::sync::Notify;

    fn task() -> u64 {
        actor::number(tokio::task::id())
    }

    #[tokio::test]
    async fn the_newest_number_lies_between_those_who_were_there_and_those_who_come() {
        let go = Arc::new(Notify::new());
        let waiting = go.clone();
        let before = tokio::spawn(async move { waiting.notified().await });
        let newest = newest();
        let after = tokio::spawn(async { task() });
        assert!(actor::number(before.id()) < newest && newest < after.await.expect("no panic"));
        go.notify_one();
        before.await.expect("no panic");
    }

    #[test]
    fn outside_of_tokio_nobody_knows() {
        assert_eq!(newest(), 0);
    }

    fn nested(id: holdup_core::snapshot::ResourceId) -> Order {
        let orders = registry::snapshot().orders;
        let order = orders.into_iter().find(|o| (o.outer.resource, o.inner.resource) == (id, id));
        order.expect("it is nested")
    }

    #[tokio::test]
    async fn who_asks_for_the_most_is_noted_once_it_is_nested() {
        let lock = Arc::new(RwLock::new(0));
        let id = lock.resource().id();
        let read_twice = |lock: Arc<RwLock<i32>>| async move {
            let _outer = lock.read().await;
            let _inner = lock.read().await;
            task()
        };
        let write = |lock: Arc<RwLock<i32>>| async move {
            *lock.write().await += 1;
            task()
        };
        tokio::spawn(write(lock.clone())).await.expect("no panic");
        let reader = tokio::spawn(read_twice(lock.clone())).await.expect("no panic");
        assert_eq!(nested(id).largest.map(|largest| largest.seen.len()), None);
        let writer = tokio::spawn(write(lock.clone())).await.expect("no panic");
        let again = tokio::spawn(read_twice(lock.clone())).await.expect("no panic");

        let order = nested(id);
        let largest = order.largest.expect("somebody wrote");
        let actors = |seen: &[Seen]| seen.iter().map(|seen| seen.actor).collect::<Vec<_>>();
        assert_eq!(largest.units, order.inner.capacity);
        assert_eq!(actors(&largest.seen), [ActorId::Task(writer)]);
        assert_eq!(actors(&order.seen), [ActorId::Task(reader), ActorId::Task(again)]);
        // One after the other: none was there before the one before it had ended.
        assert!(order.seen[0].newest < writer && largest.seen[0].newest < again);
    }
}
