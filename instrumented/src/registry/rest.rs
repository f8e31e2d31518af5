//! Whether the workers of a runtime have been idle, from what tokio counts: a pure state machine.
//!
//! tokio counts each time a worker falls asleep and each time it wakes, so an odd count is a sleeping worker. A
//! worker falls asleep only when its own queue and the shared one are empty. Two things stand between that and
//! "whoever was woken before has been polled":
//!
//! - A sleeping worker may have been woken already, and the system has not let it run yet. So it must be seen
//!   asleep, with the same count, at several looks in a row.
//! - On a busy runtime they are never all asleep at one moment, and a task can be taken over by a worker that has
//!   just been idle. So each worker must have been idle anew in each of several rounds: a task that is still
//!   waiting would have to be taken over unpolled in every one of them.

use holdup_core::snapshot::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// Looks closer to each other than this count as one.
const APART: Duration = Duration::from_millis(50);
/// Looks after the first that must see the same.
const LOOKS: usize = 4;
/// Rounds in which each worker must have been idle.
const ROUNDS: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Worker {
    /// The count at the last look.
    count: u64,
    /// The count at the beginning of the round.
    from: u64,
    /// Looks in this round at which it slept, not having been awake between them.
    asleep: usize,
    /// It has been idle in this round.
    idle: bool,
}

/// What is known of the idle times of one runtime's workers.
#[derive(Debug, Default)]
pub(super) struct Rest {
    workers: Vec<Worker>,
    last: Option<Moment>,
    /// The last looks in a row at which all slept, none of them having been awake between.
    asleep: VecDeque<Moment>,
    /// When the last rounds began, the current one included.
    begun: VecDeque<Moment>,
    rested: Moment,
}

impl Rest {
    /// Looks at the counts of all workers, read after `now`. Returns a moment such that whoever was woken before it
    /// has been polled since.
    pub(super) fn look(&mut self, now: Moment, counts: impl IntoIterator<Item = u64>) -> Moment {
        if self.last.is_some_and(|last| now.since(last) < APART) {
            return self.rested;
        }
        let first = self.last.replace(now).is_none();
        let mut counts = counts.into_iter();
        if first {
            self.workers = counts.by_ref().map(Worker::new).collect();
            self.begun.push_back(now);
        }
        let mut steady = !self.workers.is_empty();
        for (worker, count) in self.workers.iter_mut().zip(counts) {
            steady &= worker.look(count);
        }
        if !steady {
            self.asleep.clear();
        }
        if !self.workers.is_empty() && self.workers.iter().all(|worker| worker.count % 2 == 1) {
            self.asleep.push_back(now);
            if self.asleep.len() > LOOKS {
                self.rested = self.rested.max(self.asleep.pop_front().unwrap_or_default());
            }
        }
        if !self.workers.is_empty() && self.workers.iter().all(|worker| worker.idle) {
            if self.begun.len() == ROUNDS {
                self.rested = self.rested.max(self.begun.pop_front().unwrap_or_default());
            }
            self.begun.push_back(now);
            self.workers.iter_mut().for_each(|worker| *worker = Worker::new(worker.count));
        }
        self.rested
    }
}

impl Worker {
    fn new(count: u64) -> Self {
        Worker { count, from: count, asleep: usize::from(count % 2 == 1), idle: false }
    }

    /// Whether it has not been awake since the last look.
    fn look(&mut self, count: u64) -> bool {
        let steady = count == self.count;
        self.count = count;
        self.asleep = match count % 2 {
            1 if steady => self.asleep + 1,
            asleep => usize::from(asleep == 1),
        };
        // From asleep: it must have woken and fallen asleep again. From awake: it may have been about to fall asleep,
        // having looked at the queues before the round began, so it must do so twice.
        let cycle = if self.from % 2 == 1 { 2 } else { 3 };
        self.idle |= count.saturating_sub(self.from) >= cycle || self.asleep > LOOKS;
        steady
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at the counts of each line, 100 ms apart; what was answered, in looks.
    #[track_caller]
    fn check<const WORKERS: usize>(looks: &[[u64; WORKERS]], expected: &[u64]) {
        let mut rest = Rest::default();
        let at = |n: usize| Moment((n as u64 + 1) * 100_000_000);
        let rested = looks.iter().enumerate().map(|(n, counts)| {
            let rested = rest.look(at(n), *counts);
            let too_soon = rest.look(Moment(at(n).0 + 1000), counts.map(|count| count + 8));
            assert_eq!(too_soon, rested);
            rested.0 / 100_000_000
        });
        assert_eq!(rested.collect::<Vec<_>>(), expected, "{looks:?}");
    }

    #[test]
    fn all_must_be_seen_asleep_for_a_while() {
        check(&[[1]; 7], &[0, 0, 0, 0, 1, 2, 3]);
        check(&[[1, 3]; 6], &[0, 0, 0, 0, 1, 2]);
        // One wakes and falls asleep again between two looks: the later one is the first of a new row.
        let woken = [[1, 3], [1, 3], [1, 5], [1, 5], [1, 5], [1, 5], [1, 5]];
        check(&woken, &[0, 0, 0, 0, 0, 0, 3]);
    }

    #[test]
    fn who_never_sleeps_never_rests() {
        check(&[[2]; 8], &[0; 8]);
        check(&[[1, 2]; 8], &[0; 8]);
        check(&[[]; 8], &[0; 8]);
        // The other one is idle now and then.
        check(&std::array::from_fn::<_, 20, _>(|n| [4, 10 * n as u64]), &[0; 20]);
    }

    #[test]
    fn on_a_busy_runtime_each_must_sleep_in_several_rounds() {
        // Awake at each look, and idle twice between.
        check(&[[0, 0], [4, 4], [8, 8], [12, 12], [16, 16]], &[0, 0, 0, 1, 2]);
        // Once between is not enough: it may have been on its way to sleep at the look before.
        check(&[[0], [2], [4], [6], [8], [10], [12], [14]], &[0, 0, 0, 0, 0, 0, 1, 1]);
        // One sleeps all the time, the other is busy and idle in turns.
        let mut expected = [0; 14];
        (expected[12], expected[13]) = (1, 1);
        check(&std::array::from_fn::<_, 14, _>(|n| [1, 10 * n as u64]), &expected);
    }
}
