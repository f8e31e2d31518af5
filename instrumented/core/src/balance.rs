//! The equation that the books of a resource must satisfy at every quiet moment.
//!
//! `capacity = available + held + granted`, where granted units were handed to waits that nobody has polled
//! since. They belong to the front of the queue, each wait taking at most what it asked for.

use crate::snapshot::Resource;
use std::fmt;

/// How the books of a resource fail to balance: records were on their way when they were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Imbalance {
    /// The units held according to the records are not those of the total.
    Records {
        /// Units in the hold records.
        records: u64,
        /// Units in [`Usage::held`](crate::snapshot::Usage::held).
        total: u64,
    },
    /// More units are free or held than there are.
    Excess {
        /// Units too many.
        units: u64,
    },
    /// Units are neither free, nor held, nor asked for by any wait.
    Missing {
        /// Units too few.
        units: u64,
    },
    /// Units are free, and the first wait that lacks some, no more than these, does not have them.
    Passed {
        /// Units free.
        available: u64,
    },
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Imbalance::Records { records, total } => {
                write!(f, "the hold records have {records} units, the total is {total}")
            }
            Imbalance::Excess { units } => {
                write!(f, "{units} units more are free or held than there are")
            }
            Imbalance::Missing { units } => write!(f, "{units} units are with nobody"),
            Imbalance::Passed { available } => {
                write!(f, "{available} units are free, and the first wait does not have them")
            }
        }
    }
}

impl std::error::Error for Imbalance {}

/// Checks the books of one resource: `held` are the units of its hold records, `wanted` those of its waits in
/// queue order. Returns the units that were granted and not picked up.
///
/// # Errors
///
/// If the books do not balance. Then nothing can be said of this resource at this moment.
pub fn balance(
    resource: &Resource,
    held: u64,
    wanted: impl IntoIterator<Item = u64>,
) -> Result<u64, Imbalance> {
    if held != resource.usage.held {
        return Err(Imbalance::Records { records: held, total: resource.usage.held });
    }
    let used = resource.available.saturating_add(held);
    let Some(granted) = resource.capacity().checked_sub(used) else {
        return Err(Imbalance::Excess { units: used - resource.capacity() });
    };
    // Only as much of the queue as it takes: it can be long.
    let mut wanted = wanted.into_iter();
    let mut left = granted;
    let missing = loop {
        match wanted.next() {
            Some(wants) if wants <= left => left -= wants,
            Some(wants) => break wants - left,
            None if left > 0 => return Err(Imbalance::Missing { units: left }),
            None => return Ok(granted),
        }
    };
    // A closed semaphore grants nothing: its waits end with an error when they are next polled.
    if missing <= resource.available && !resource.closed {
        return Err(Imbalance::Passed { available: resource.available });
    }
    Ok(granted)
}

#[cfg(test)]
mod tests {
    use super::{Imbalance, balance};
    use crate::scenario::Scenario;

    /// The books of a semaphore of `capacity` with so many units free and held, and waits that want these.
    fn books(
        capacity: u64,
        available: u64,
        held: u64,
        wanted: &[u64],
        closed: bool,
    ) -> Result<u64, Imbalance> {
        let scenario = Scenario::read(&format!("semaphore a {capacity}")).expect("well-formed");
        let mut resource = scenario.current.resources[0].clone();
        (resource.available, resource.usage.held, resource.closed) = (available, held, closed);
        balance(&resource, held, wanted.iter().copied())
    }

    type Case = (u64, u64, u64, &'static [u64], Result<u64, Imbalance>);

    #[test]
    fn granted_units_belong_to_the_front_of_the_queue() {
        let cases: &[Case] = &[
            (0, 0, 0, &[], Ok(0)),
            (3, 3, 0, &[], Ok(0)),
            (3, 1, 2, &[], Ok(0)),
            (3, 0, 3, &[1, 1], Ok(0)),
            // Picked up by nobody yet: all of what the first wants, a part of it, all of one and a part of the next.
            (3, 0, 2, &[1, 1], Ok(1)),
            (3, 0, 1, &[3], Ok(2)),
            (4, 0, 1, &[1, 3], Ok(3)),
            // All who wait have what they want, and more is free.
            (4, 2, 1, &[1], Ok(1)),
            (3, 0, 2, &[], Err(Imbalance::Missing { units: 1 })),
            (5, 0, 1, &[1, 1], Err(Imbalance::Missing { units: 2 })),
            (3, 2, 2, &[], Err(Imbalance::Excess { units: 1 })),
            (3, 1, 2, &[1], Err(Imbalance::Passed { available: 1 })),
            (3, 2, 0, &[1, 2], Err(Imbalance::Passed { available: 2 })),
            // Free units that are not enough for the first are its, in a moment; it is no reason to judge nothing.
            (3, 1, 2, &[2], Ok(0)),
        ];
        for (capacity, available, held, wanted, expected) in cases {
            let found = books(*capacity, *available, *held, wanted, false);
            assert_eq!(
                found, *expected,
                "{capacity} = {available} + {held} + granted, wanted {wanted:?}"
            );
        }
    }

    #[test]
    fn a_closed_semaphore_passes_its_queue_over() {
        assert_eq!(books(3, 1, 2, &[1], true), Ok(0));
    }

    #[test]
    fn records_and_total_must_agree() {
        let scenario = Scenario::read("semaphore a 3\n task 1\n hold a x2").expect("well-formed");
        let resource = &scenario.current.resources[0];
        assert_eq!(balance(resource, 2, []), Ok(0));
        assert_eq!(balance(resource, 1, []), Err(Imbalance::Records { records: 1, total: 2 }));
    }
}
