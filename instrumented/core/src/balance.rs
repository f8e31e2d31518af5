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
