//! Graph reduction after Holt (1972): what no sequence of services and releases can ever serve.
//!
//! The reduction is generous: whoever is served goes on and gives back everything, at once. So what it leaves is
//! stuck whatever the programs do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A wait: it wants units of one queue's resource.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) queue: usize,
    pub(crate) units: u64,
    /// It entered the queue not before this moment.
    pub(crate) since: u64,
    /// And not after this one.
    pub(crate) entered: u64,
    /// It stays in the queue until it is served. Another may leave, and so is not in anybody's way.
    pub(crate) patient: bool,
}

/// Units that come free once all of these demands are served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    pub(crate) until: Vec<usize>,
    /// And not even then.
    pub(crate) forever: bool,
    /// Queue and units.
    pub(crate) gives: Vec<(usize, u64)>,
}

/// What is left when nothing moves any more.
pub(crate) struct Rest {
    /// For each demand, whether it can be served.
    pub(crate) served: Vec<bool>,
    /// For each queue, the units that are free or can become so.
    pub(crate) free: Vec<u64>,
}

struct Queue {
    /// Demands in the order of their coming, at the latest.
    front: Vec<usize>,
    /// Demands in the order of their coming, at the earliest.
    order: Vec<usize>,
    /// Before this place of `front`, nobody is in the way.
    head: usize,
    /// Before this place of `order`, all have been considered: nobody that came before them for certain is left.
    seen: usize,
    /// Considered and not served, the smallest first.
    open: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Serves demands and opens gates until nothing changes. A demand lets those go first that came before it for
/// certain.
pub(crate) fn reduce(mut free: Vec<u64>, demands: &[Demand], gates: &[Gate]) -> Rest {
    let mut queues: Vec<Queue> = free
        .iter()
        .map(|_| Queue {
            front: Vec::new(),
            order: Vec::new(),
            head: 0,
            seen: 0,
            open: BinaryHeap::new(),
        })
        .collect();
    for (at, demand) in demands.iter().enumerate() {
        queues[demand.queue].order.push(at);
        queues[demand.queue].front.push(at);
    }
    for queue in &mut queues {
        queue.order.sort_by_key(|at| demands[*at].since);
        queue.front.sort_by_key(|at| demands[*at].entered);
    }
    let mut shut_by: Vec<usize> =
        gates.iter().map(|gate| gate.until.len() + usize::from(gate.forever)).collect();
    let mut opens: Vec<Vec<usize>> = vec![Vec::new(); demands.len()];
    for (at, gate) in gates.iter().enumerate() {
        for demand in &gate.until {
            opens[*demand].push(at);
        }
    }

    let mut served = vec![false; demands.len()];
    let mut ready: Vec<usize> = (0..gates.len()).filter(|at| shut_by[*at] == 0).collect();
    let mut stirred: Vec<usize> = (0..queues.len()).collect();
    loop {
        if let Some(gate) = ready.pop() {
            for (queue, units) in &gates[gate].gives {
                free[*queue] = free[*queue].saturating_add(*units);
                stirred.push(*queue);
            }
        } else if let Some(queue) = stirred.pop() {
            queues[queue].serve(free[queue], demands, &mut served, |demand| {
                for gate in &opens[demand] {
                    shut_by[*gate] -= 1;
                    if shut_by[*gate] == 0 {
                        ready.push(*gate);
                    }
                }
            });
        } else {
            return Rest { served, free };
        }
    }
}

impl Queue {
    fn serve(
        &mut self,
        free: u64,
        demands: &[Demand],
        served: &mut [bool],
        mut done: impl FnMut(usize),
    ) {
        loop {
            while self.front.get(self.head).is_some_and(|at| served[*at] || !demands[*at].patient) {
                self.head += 1;
            }
            let bound = self.front.get(self.head).map_or(u64::MAX, |at| demands[*at].entered);
            while let Some(at) = self.order.get(self.seen)
                && demands[*at].since <= bound
            {
                self.open.push(Reverse((demands[*at].units, *at)));
                self.seen += 1;
            }
            match self.open.peek() {
                Some(Reverse((units, at))) if *units <= free => {
                    let at = *at;
                    self.open.pop();
                    served[at] = true;
                    done(at);
                }
                _ => return,
            }
        }
    }
}
