//! What a program can ask holdup, with the same signatures whether it is instrumented or not.

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
#[path = "instrumented.rs"]
mod door;
#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
#[path = "passthrough.rs"]
mod door;

pub use door::*;
