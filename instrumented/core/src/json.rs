//! Snapshots and findings as JSON documents, both ways.
//!
//! The document is a product with a version of its own: its types are not the domain's, so the domain can
//! change without breaking a recording of last year. Addresses and finding ids are text (`0x…`), because JSON
//! numbers lose bits beyond 2⁵³ in many readers. Readers must skip fields they do not know; words they do not
//! know (a new kind, a new code) stay unknown.

mod document;
mod evidence;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use document::*;
pub use read::{ReadError, read};
pub use write::snapshot;

/// The `format` of a snapshot document.
pub const FORMAT: &str = "holdup-snapshot";
/// The `version` that is written; the same or lower can be read.
pub const VERSION: u32 = 1;
