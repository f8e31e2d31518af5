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
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        holdup.args(["--text", "--exit-on-finding", "--for", "10s"]);
    }
    holdup.arg("--").arg(this.with_file_name(example));
    finish(holdup)
}

/// Becomes the command, so that keys and signals go to it alone.
#[cfg(unix)]
fn finish(mut command: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}

#[cfg(not(unix))]
fn finish(mut command: Command) -> io::Result<ExitCode> {
    let status = command.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
