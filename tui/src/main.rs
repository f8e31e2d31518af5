//! The binary `holdup`: see [`holdup_tui::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    holdup_tui::cli::main()
}
