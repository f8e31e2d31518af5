//! Who is asking now: a task, a root future, or a thread.

use dashmap::DashMap;
use holdup_core::snapshot::ActorId;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Context;

/// Names of threads, and of the threads that root futures were seen on. Beyond this many, actors have no names.
const MAX_NAMES: usize = 4096;

static NAMES: LazyLock<DashMap<ActorId, Arc<str>>> = LazyLock::new(DashMap::new);

/// The current actor. `cx` is the context of the poll that asks, if there is one.
pub(crate) fn current(cx: Option<&Context<'_>>) -> ActorId {
    if let Some(id) = tokio::task::try_id() {
        return ActorId::Task(number(id));
    }
    let actor = match cx {
        Some(cx) => ActorId::Root(poller(cx)),
        None => ActorId::Thread(thread()),
    };
    remember(actor);
    actor
}

/// What an actor is called, if it is a thread or was seen on one that has a name.
pub(crate) fn name(actor: ActorId) -> Option<Arc<str>> {
    Some(NAMES.get(&actor)?.value().clone())
}

/// Notes this thread's name for `actor`, once for as long as it stays the one that asks on this thread.
fn remember(actor: ActorId) {
    thread_local!(static LAST: Cell<Option<ActorId>> = const { Cell::new(None) });
    // A thread that is being torn down has no name any more.
    let new = LAST.try_with(|last| last.replace(Some(actor)) != Some(actor)).unwrap_or(false);
    if new
        && NAMES.len() < MAX_NAMES
        && let Some(name) = std::thread::current().name()
    {
        NAMES.insert(actor, Arc::from(name));
    }
}

/// The data pointer of the waker: the same for all polls of one task, and for each child of a set that
/// wakes its children one by one.
pub(crate) fn poller(cx: &Context<'_>) -> u64 {
    cx.waker().data().addr() as u64
}

/// The number that the id of a task or runtime displays, without formatting it.
pub(crate) fn number(id: impl Hash) -> u64 {
    struct Take(u64);
    impl Hasher for Take {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, _: &[u8]) {}
        fn write_u64(&mut self, value: u64) {
            self.0 = value;
        }
    }
    let mut take = Take(0);
    id.hash(&mut take);
    take.0
}

/// A number for this thread that no other thread of the process has, ever; 0 while it is torn down.
pub(crate) fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[tokio::test]
    async fn a_task_is_known_by_the_number_it_displays() {
        let seen = tokio::spawn(async { (current(None), tokio::task::id().to_string()) })
            .await
            .expect("runs");
        assert_eq!(seen.0, ActorId::Task(seen.1.parse().expect("a number")));
    }

    #[test]
    fn outside_a_task_a_poll_shows_the_root_future_and_a_call_the_thread() {
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(current(Some(&cx)), ActorId::Root(poller(&cx)));
        let here = current(None);
        assert_eq!(here, ActorId::Thread(thread()));
        let there = std::thread::spawn(|| current(None)).join().expect("runs");
        assert_ne!(here, there);
    }
}
