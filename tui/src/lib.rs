//! The terminal app of holdup, as a library so that its tests can reach every part.
//!
//! | module | what it is | may use |
//! |---|---|---|
//! | [`mod@format`] | ages, counts and names as people read them | the core's types |
//! | [`message`] | what the app asks of the outside and hears from it | the core's types |
//! | [`app`] | state and update: pure, without terminal and network | `format`, `message` |
//! | [`view`] | draws the state and cannot change it | `app` (reading), `format`, a terminal library |
//! | [`source`] | processes, connections, files | `message`, the client |
//! | [`program`] | the program that `holdup run` starts | discovery |
//! | [`terminal`] | takes the terminal and gives it back | `app`'s events, a terminal library |
//! | [`runtime`] | the loop | `source`, `program`, `app`, `view`, `terminal` |
//! | [`headless`] | the commands without a screen | `source`, `program`, `format`, the client; never `view` |
//! | [`cli`] | the command line and the exit codes | `runtime`, `headless` |

pub mod app;
pub mod cli;
pub mod format;
pub mod headless;
pub mod history;
pub mod message;
pub mod program;
pub mod runtime;
pub mod source;
pub mod terminal;
pub mod view;
