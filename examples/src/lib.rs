//! Small real programs under holdup: `cargo demo NAME` runs one under the terminal app.
//!
//! Each is also a test subject: `tests/findings.rs` says what holdup must report of it, and must not. A comment
//! `// MARK: name` stands above a line that the test looks for.
