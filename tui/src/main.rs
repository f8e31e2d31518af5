//! The terminal app of holdup.
fn main() {}
