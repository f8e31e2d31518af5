//! The wire format between a program under holdup and its clients.
//!
//! [`v1`] is what `proto/holdup.proto` generates, [`convert`] leads to and from the types of `holdup-core`,
//! [`parts`] keeps every message small, [`discovery`] finds the running programs, and `client` (with the
//! feature of that name) talks to one of them.

#[cfg(feature = "client")]
pub mod client;
pub mod convert;
pub mod discovery;
pub mod limits;
pub mod parts;

/// The generated messages and services.
#[allow(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::doc_lazy_continuation,
    missing_docs,
    unused_qualifications,
    reason = "the generator has its own style, and which of these occur depends on the features"
)]
pub mod v1 {
    include!("generated/holdup.v1.rs");
}

/// The protocol that this version speaks.
///
/// It changes whenever an older counterpart would misread a message; additions that are safe to ignore do
/// not change it.
pub const PROTOCOL: u32 = 1;

/// The version of holdup that this is part of.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
