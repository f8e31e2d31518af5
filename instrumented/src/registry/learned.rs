//! What is learned of the holds that come from one call stack: how long they are held, and who ends them.

use super::sites::Sites;
use holdup_core::discard::{BRIEF, are_brief};
use holdup_core::snapshot::{Learned, ResourceId, StackId};
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Stacks for which memory is taken at a time.
const CHUNK: usize = 512;
/// Enough for every stack that is kept.
const CHUNKS: usize = 128;
/// Powers of two of nanoseconds; the last is about two months.
const BUCKETS: usize = 53;
/// Such stacks that a snapshot lists.
const MAX_BRIEF: usize = 256;

#[derive(Debug)]
struct Stats {
    site: OnceLock<&'static Location<'static>>,
    acquired: AtomicU64,
    released: AtomicU64,
    elsewhere: AtomicU64,
    forgotten: AtomicU64,
    brief: AtomicU64,
    longest: AtomicU64,
    /// Of which resource the last brief one was.
    resource: AtomicU64,
    times: [AtomicU32; BUCKETS],
}

impl Stats {
    fn new() -> Self {
        Stats {
            site: OnceLock::new(),
            acquired: AtomicU64::new(0),
            released: AtomicU64::new(0),
            elsewhere: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            brief: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            resource: AtomicU64::new(0),
            times: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }
}

static STATS: [OnceLock<Box<[Stats]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

fn known(stack: StackId) -> Option<&'static Stats> {
    let at = usize::try_from(stack.0).ok()?.checked_sub(1)?;
    STATS.get(at / CHUNK)?.get()?.get(at % CHUNK)
}

fn stats(stack: StackId) -> Option<&'static Stats> {
    let at = usize::try_from(stack.0).ok()?.checked_sub(1)?;
    let chunk = STATS.get(at / CHUNK)?;
    chunk.get_or_init(|| (0..CHUNK).map(|_| Stats::new()).collect()).get(at % CHUNK)
}

/// A hold came from this stack.
pub(super) fn acquired(stack: StackId, site: &'static Location<'static>) {
    if let Some(stats) = stats(stack) {
        stats.site.get_or_init(|| site);
        stats.acquired.fetch_add(1, Relaxed);
    }
}

/// A hold of `resource` from this stack was released after `nanos`, perhaps by another than who acquired it.
///
/// True if that makes so many, almost all brief, that the source is worth a look.
pub(super) fn released(stack: StackId, resource: ResourceId, nanos: u64, elsewhere: bool) -> bool {
    let Some(stats) = known(stack) else { return false };
    let brief = u128::from(nanos) < BRIEF.as_nanos();
    if brief {
        stats.resource.store(resource.0, Relaxed);
        stats.brief.fetch_add(1, Relaxed);
    }
    stats.longest.fetch_max(nanos, Relaxed);
    let bucket = (u64::BITS - nanos.leading_zeros()) as usize;
    // A full bucket stays full.
    let bucket = &stats.times[bucket.min(BUCKETS - 1)];
    if bucket.load(Relaxed) < u32::MAX / 2 {
        bucket.fetch_add(1, Relaxed);
    }
    if elsewhere {
        stats.elsewhere.fetch_add(1, Relaxed);
    }
    let released = stats.released.fetch_add(1, Relaxed) + 1;
    // Ever more rarely: those who hold for longer may not have been there at the look before.
    released.is_power_of_two() && are_brief(stats.brief.load(Relaxed), released)
}

/// A hold from this stack was seen with another actor than who acquired it.
pub(super) fn moved(stack: StackId) {
    if let Some(stats) = known(stack) {
        stats.elsewhere.fetch_add(1, Relaxed);
    }
}

/// A hold from this stack was forgotten.
pub(super) fn forgotten(stack: StackId) {
    if let Some(stats) = known(stack) {
        stats.forgotten.fetch_add(1, Relaxed);
    }
}

fn read(stack: StackId, sites: &mut Sites) -> Option<Learned> {
    let stats = known(stack)?;
    let site = sites.id(stats.site.get()?);
    // Releases first: each is of a hold that is counted already.
    let released = stats.released.load(Relaxed);
    let times: Vec<u64> = stats.times.iter().map(|n| u64::from(n.load(Relaxed))).collect();
    let all: u64 = times.iter().sum();
    let mut left = all - all / 100;
    let usual = times.iter().position(|n| {
        left = left.saturating_sub(*n);
        left == 0
    });
    let nanos = |bucket: usize| if all == 0 { 0 } else { 1u64 << bucket };
    Some(Learned {
        stack,
        site,
        acquired: stats.acquired.load(Relaxed),
        released,
        elsewhere: stats.elsewhere.load(Relaxed),
        forgotten: stats.forgotten.load(Relaxed),
        brief: stats.brief.load(Relaxed).min(released),
        usual: Duration::from_nanos(nanos(usual.unwrap_or(0))),
        longest: Duration::from_nanos(stats.longest.load(Relaxed)),
        resource: ResourceId(stats.resource.load(Relaxed)),
        // That is not known here.
        discarded: false,
    })
}

/// What was learned of these stacks, and of some whose holds never outlived a poll, by stack.
pub(super) fn of(stacks: impl IntoIterator<Item = StackId>, sites: &mut Sites) -> Vec<Learned> {
    let mut stacks: Vec<StackId> = stacks.into_iter().collect();
    let chunks = STATS.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.get()?)));
    let all = chunks.flat_map(|(at, chunk)| {
        chunk.iter().enumerate().map(move |(inner, stats)| (at * CHUNK + inner, stats))
    });
    let brief = all
        .filter(|(_, stats)| {
            let released = stats.released.load(Relaxed);
            are_brief(stats.brief.load(Relaxed), released)
        })
        .filter_map(|(at, _)| Some(StackId(u32::try_from(at).ok()? + 1)));
    stacks.extend(brief.take(MAX_BRIEF));
    stacks.sort_unstable();
    stacks.dedup();
    stacks.into_iter().filter_map(|stack| read(stack, sites)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_of_a_stack_add_up() {
        // Beyond what this process captures.
        let stack = StackId(u32::try_from(CHUNK * CHUNKS).expect("small"));
        let site = Location::caller();
        for nanos in (0..200).map(|n| if n == 0 { 5_000_000 } else { 1_000 }) {
            acquired(stack, site);
            released(stack, ResourceId(nanos), nanos, nanos > 1_000);
        }
        acquired(stack, site);
        moved(stack);
        acquired(stack, site);
        forgotten(stack);
        let mut sites = Sites::new();
        let learned = of([stack, stack], &mut sites);
        let expected = Learned {
            stack,
            site: sites.id(site),
            acquired: 202,
            released: 200,
            elsewhere: 2,
            forgotten: 1,
            brief: 199,
            usual: Duration::from_nanos(1 << 10),
            longest: Duration::from_millis(5),
            resource: ResourceId(1_000),
            discarded: false,
        };
        assert_eq!(learned.iter().find(|it| it.stack == stack), Some(&expected));
        assert_eq!(learned.iter().filter(|it| it.stack == stack).count(), 1);
    }

    #[test]
    fn no_stack_teaches_nothing() {
        acquired(StackId::NONE, Location::caller());
        released(StackId::NONE, ResourceId(1), 1, false);
        assert!(read(StackId::NONE, &mut Sites::new()).is_none());
        assert!(stats(StackId(u32::MAX)).is_none());
    }
}
