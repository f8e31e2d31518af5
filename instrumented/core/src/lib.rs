//! The pure middle of holdup.
//!
//! A [`Snapshot`] says who holds and who waits; `diagnose` thinks about it; `text` tells. Nothing here
//! knows of tokio, clocks, locks, files or sockets: the same code serves the monitor thread inside a
//! program, a failing test, the terminal app, and a unit test written as a few lines of text.

pub mod balance;
pub mod diagnose;
pub mod discard;
pub mod finding;
#[cfg(feature = "json")]
pub mod json;
pub mod path;
mod rules;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod scenario;
pub mod snapshot;
pub mod text;
mod words;

pub use diagnose::{Limits, diagnose};
pub use finding::{Code, Finding, FindingId, Mark, Verdict};
pub use snapshot::Snapshot;
