//! Small real programs under holdup; see `src/bin`.
