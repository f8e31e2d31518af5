//! What a program can ask holdup, with the same signatures whether it is instrumented or not.

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
#[path = "instrumented.rs"]
mod door;
#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
#[path = "passthrough.rs"]
mod door;

mod limits;

pub use door::{Entered, INSTRUMENTED, Scope, findings, on_finding, snapshot};
pub use limits::{Limits, limits};
