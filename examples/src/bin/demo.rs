//! `cargo demo [EXAMPLE]`: builds the terminal app and an example, and runs the example under the app.
//!
//! Without a terminal the finding is printed as text, and the demo ends with it.

use std::env;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> io::Result<ExitCode> {
    let example = env::args().nth(1).unwrap_or_else(|| "nested_acquire".to_owned());

    // Built from the workspace's root without `-p`: the same features as this program, so nothing is built twice.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(workspace)
        .args(["build", "--bin", "holdup", "--bin", &example])
        .status()?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }

    let this = env::current_exe()?;
    let mut holdup = Command::new(this.with_file_name("holdup"));
    holdup.arg("run");
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !has_terminal {
        holdup.args(["--text", "--exit-on-finding", "--for", "10s"]);
    }
    let status = holdup.arg("--").arg(this.with_file_name(example)).status()?;
    // 1 says that there was a finding, and that is what the demo is for.
    let shown = status.success() || status.code() == Some(1) && !has_terminal;
    Ok(if shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
