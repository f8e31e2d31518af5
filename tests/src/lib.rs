//! What the tests that cross packages share; see the `tests` folder, and `src/bin` for what runs on demand.

pub mod source;
pub mod workspace;
