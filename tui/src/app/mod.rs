//! What the app knows and how that changes: pure, without terminal and network.
//!
//! [`update`] takes one [`Event`] and returns what shall be done outside; the view reads the [`State`].

pub mod command;
pub mod key;
pub mod state;
mod tell;
mod update;

use crate::message::{Message, Request};
pub use key::Key;
pub use state::State;
pub use update::update;

/// Everything that can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal now has so many columns and rows.
    Resize(u16, u16),
    /// Time has passed.
    Tick,
    /// The terminal is gone, or the system wants us to end.
    Hangup,
    /// Something came from the outside.
    Source(Message),
}

/// What shall be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// End the app.
    Quit,
    /// Ask the source.
    Ask(Request),
}
