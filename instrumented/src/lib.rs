//! *What's the holdup?* Tells, for a tokio program that hangs, slows down or leaks permits: who holds which
//! permit of a semaphore, since when and taken where; who waits; whether it is a deadlock, and why.
//!
//! 1. **Swap the import**: [`holdup::sync`](sync) in place of `tokio::sync`. Debug builds are instrumented; in
//!    release builds the types are tokio's own.
//! 2. **Attach the terminal app**: call `init`, or start the program with `holdup run -- CMD`, and look at it
//!    with `holdup`.
//!
//! A deadlock is told without either: on stderr, or as a `tracing` event if somebody subscribes to those.
//!
//! ```
//! use holdup::ResourceExt;
//! use holdup::sync::Semaphore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let writes = Semaphore::new(2).named("db_writes");
//! let _permit = writes.acquire().await.expect("nobody closes it");
//! # }
//! ```
//!
//! # Environment
//!
//! | variable | effect |
//! |---|---|
//! | `HOLDUP=off` | nothing is recorded, nothing is started |
//! | `HOLDUP_CAPTURE=location` | no call stacks: cheaper, but a self-deadlock cannot be proven |
//! | `HOLDUP_LIMITS=stall=2s,overdue=5m` | how long things may take before they are reported, see [`Limits`] |
//! | `HOLDUP_SERVE=1` | serves the terminal app without a call to `init` |
//! | `HOLDUP_STDERR=off` | findings do not go to stderr: `holdup run --text` tells them itself |
//!
//! Where the service listens is told at `init`.
//!
//! # Features
//!
//! - `server` (default): the service that the terminal app attaches to. Libraries and test-only users turn the
//!   default features off.
//! - `always-on`: instruments release builds too. For the final binary only.
//! - `util`: the twins of types in `tokio-util` and `tokio-stream`.
//!
//! `--cfg holdup_off` wins over all of them: it leaves tokio's own types everywhere.

mod api;
mod ext;
#[cfg(feature = "server")]
mod server;
pub mod sync;
#[cfg(feature = "util")]
pub mod util;

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod actor;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod config;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod limits;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod monitor;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod registry;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod report;
#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
mod stack;

pub use api::*;
pub use ext::ResourceExt;
pub use holdup_core as core;
#[cfg(feature = "server")]
pub use server::{Address, InitError, Service, init};
