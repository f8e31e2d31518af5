//! Call stacks: captured as addresses, told apart by a number, named later and elsewhere.

mod symbols;

use crate::config::{self, Capture};
use dashmap::DashMap;
use holdup_core::snapshot::{Stack, StackId};
use rustc_hash::FxBuildHasher;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use symbols::Effort;

/// Distinct stacks that are kept. A program has a few thousand; this bounds what a runaway one costs.
const MAX_STACKS: u32 = 1 << 16;

/// A stack that is deeper than this is not kept: without its outer end its path means nothing.
const MAX_DEPTH: usize = 1024;

struct Table {
    /// Hashed cheaply: addresses of code are nobody's to choose, and each acquire looks one up.
    ids: DashMap<Arc<[u64]>, StackId, FxBuildHasher>,
    stacks: DashMap<StackId, Arc<[u64]>>,
    last: AtomicU32,
    dropped: AtomicU64,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    ids: DashMap::with_hasher(FxBuildHasher),
    stacks: DashMap::new(),
    last: AtomicU32::new(0),
    dropped: AtomicU64::new(0),
});

/// The calling thread's stack, as a number that is the same for the same return addresses.
///
/// Costs a walk of the stack and a look-up; allocates only for a stack that is new.
#[inline(never)]
pub(crate) fn capture() -> StackId {
    thread_local!(static WALK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });
    if config::get().capture != Capture::Unwind {
        return StackId::NONE;
    }
    WALK.try_with(|walk| {
        // Taken already only if the walk itself came back here, through a signal handler for example.
        let Ok(mut walk) = walk.try_borrow_mut() else { return StackId::NONE };
        walk.clear();
        let whole = each_frame(|address| {
            walk.push(address);
            walk.len() < MAX_DEPTH
        });
        if whole { TABLE.intern(&walk) } else { TABLE.refuse() }
    })
    .unwrap_or(StackId::NONE)
}

/// Calls `keep_going` with each return address, innermost first; false if it said no.
#[expect(
    unsafe_code,
    reason = "the synchronized walk takes a process-wide lock, which would make callers wait"
)]
fn each_frame(mut keep_going: impl FnMut(u64) -> bool) -> bool {
    let mut whole = true;
    let mut step = |frame: &backtrace::Frame| {
        whole = keep_going(frame.ip().addr() as u64);
        whole
    };
    if cfg!(windows) {
        backtrace::trace(&mut step);
    } else {
        // SAFETY: walking needs no synchronisation where the system's unwinder does it, which is
        // everywhere but on Windows (dbghelp is not thread-safe). Nothing is resolved here.
        unsafe { backtrace::trace_unsynchronized(&mut step) };
    }
    whole
}

impl Table {
    fn intern(&self, addresses: &[u64]) -> StackId {
        if let Some(id) = self.ids.get(addresses) {
            return *id;
        }
        if self.last.load(Ordering::Relaxed) >= MAX_STACKS {
            return self.refuse();
        }
        let addresses: Arc<[u64]> = Arc::from(addresses);
        *self.ids.entry(addresses.clone()).or_insert_with(|| {
            let id = StackId(self.last.fetch_add(1, Ordering::Relaxed) + 1);
            self.stacks.insert(id, addresses);
            id
        })
    }

    fn refuse(&self) -> StackId {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        StackId::NONE
    }
}

/// How many captures were not kept.
pub(crate) fn dropped() -> u64 {
    TABLE.dropped.load(Ordering::Relaxed)
}

/// These stacks, by id, with names where they are known already.
pub(crate) fn known(ids: impl IntoIterator<Item = StackId>) -> Vec<Stack> {
    collect(ids, symbols::known)
}

/// These stacks, by id, with names as far as a diagnosis needs them.
///
/// Reads debug information: the first call may take half a second and some 50 MB, so never call it on an
/// application's thread.
pub(crate) fn named(ids: impl IntoIterator<Item = StackId>) -> Vec<Stack> {
    collect(ids, |addresses| Some(symbols::resolve(addresses, Effort::Path)))
}

/// These stacks, by id, with all names that can be found. As slow as [`named`], and slower once more.
#[cfg_attr(not(any(test, feature = "server")), expect(dead_code, reason = "the service asks"))]
pub(crate) fn stacks(ids: impl IntoIterator<Item = StackId>) -> Vec<Stack> {
    collect(ids, |addresses| Some(symbols::resolve(addresses, Effort::Everything)))
}

fn collect(
    ids: impl IntoIterator<Item = StackId>,
    mut frames: impl FnMut(&[u64]) -> Option<symbols::Frames>,
) -> Vec<Stack> {
    let mut ids: Vec<StackId> = ids.into_iter().filter(|id| *id != StackId::NONE).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter()
        .filter_map(|id| {
            // Copied out: no name is looked up while a shard of the table is locked.
            let addresses = TABLE.stacks.get(&id).map(|entry| entry.value().clone())?;
            let frames = frames(&addresses);
            Some(Stack { id, addresses, frames })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn here() -> StackId {
        std::hint::black_box(capture())
    }

    #[test]
    fn the_same_stack_has_the_same_number_and_another_one_has_not() {
        let mut ids: Vec<StackId> = (0..3).map(|_| here()).collect();
        ids.push(here());
        assert_ne!(ids[0], StackId::NONE);
        assert_eq!(ids[0], ids[1]);
        assert_eq!(ids[0], ids[2]);
        assert_ne!(ids[0], ids[3]);
    }

    #[test]
    fn names_the_calling_function_with_its_line() {
        let stack = stacks([here()]).pop().expect("kept");
        let frames = stack.frames.expect("resolved");
        let me = frames
            .iter()
            .find(|f| f.function.ends_with("names_the_calling_function_with_its_line"));
        let site = me.and_then(|f| f.site.clone()).expect("in the stack, with its line");
        assert!(site.file.ends_with("stack/mod.rs"), "{site}");
        assert_eq!(known([stack.id])[0].frames.as_ref(), Some(&frames));
    }
}
