//! The command line.
//!
//! Exit codes, the same for every command:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | it was done |
//! | 1 | there were findings, where a command was told to end so (`holdup run --exit-on-finding`) |
//! | 2 | it could not look: nothing to attach to, no permission, another version; or the command line is wrong |
//!
//! `holdup run` ends with the program's own exit code (128 + n if signal n ended it), and with 0 if it was we
//! who stopped the program: the app was quit, or `--for` was over.

use crate::headless;
use crate::runtime::{self, Start};
use clap::{Parser, Subcommand};
use holdup_proto::client::Target;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

const EXIT_CODES: &str = "\
TARGET: a process id, the path of a socket, or host:port. Without one, the only process that runs with holdup.

Exit codes:
  0  it was done
  1  there were findings, where a command was told to end so (run --exit-on-finding)
  2  it could not look (nothing to attach to, no permission, another version), or wrong usage
  `holdup run` ends with the program's own exit code; with 0 if it was told to stop the program";

/// Who holds which permit of a tokio program, since when, taken where; who waits; and whether it is a deadlock.
#[derive(Debug, Parser)]
#[command(name = "holdup", version, after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
struct Cli {
    /// The process to look at.
    target: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the processes that can be looked at.
    Ls,
    /// Print what is true now, and end.
    Snapshot {
        /// As a JSON document.
        #[arg(long)]
        json: bool,
        /// Holders and waiters to print of each resource.
        #[arg(long, default_value_t = 10, value_name = "N", conflicts_with = "json")]
        limit: usize,
        /// The process to look at.
        target: Option<String>,
    },
    /// Start a program and look at it.
    #[command(
        after_help = "The program must be built with holdup: in a debug build, or with its feature `always-on`."
    )]
    Run {
        /// No app: the program's output stays where it is, findings are told on stderr.
        #[arg(long)]
        text: bool,
        /// Stop the program after a time, for example `10s` or `500ms`.
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        limit: Option<Duration>,
        /// Stop the program at the first finding, and end with exit code 1. Implies --text.
        #[arg(long)]
        exit_on_finding: bool,
        /// The program and its arguments.
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "CMD"
        )]
        command: Vec<OsString>,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 =
        number.parse().map_err(|_| "a number with `ms`, `s`, `m` or `h`".to_string())?;
    let span = match unit {
        "ms" => Duration::from_millis(number),
        "s" | "" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        "h" => Duration::from_secs(number.saturating_mul(3_600)),
        _ => return Err(format!("unknown unit `{unit}`: use `ms`, `s`, `m` or `h`")),
    };
    Ok(span)
}

/// Reads the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli { command: Some(Command::Ls), .. } => headless::ls(),
        Cli { command: Some(Command::Snapshot { json, limit, target }), .. } => headless::snapshot(
            target.as_deref(),
            if json { headless::Form::Json } else { headless::Form::Text(limit) },
        ),
        Cli { command: Some(Command::Run { text, limit, exit_on_finding, command }), .. } => {
            if text || exit_on_finding || !has_terminal() {
                headless::run(&headless::Run {
                    command,
                    limit,
                    exit_on_finding,
                    colour: colour(io::stderr().is_terminal()),
                })
            } else {
                app(Start { command, limit, ..Start::default() })
            }
        }
        Cli { command: None, target } => match target.map(|t| t.parse::<Target>()).transpose() {
            Ok(target) => app(Start { target, ..Start::default() }),
            Err(error) => Err(error.to_string()),
        },
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("holdup: {why}");
            ExitCode::from(2)
        }
    }
}

fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Colours are wanted: <https://no-color.org>.
fn colour(terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

fn app(start: Start) -> Result<u8, String> {
    if !has_terminal() {
        return Err(
            "the app needs a terminal; without one, use `holdup snapshot` or `holdup run --text`"
                .into(),
        );
    }
    let words =
        start.command.first().map(|name| format!("cannot start `{}`: ", name.to_string_lossy()));
    runtime::app(Start { colour: colour(true), ..start })
        .map_err(|error| format!("{}{error}", words.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("soon").is_err());
        assert!(duration("3 days").is_err());
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        let cli = Cli::try_parse_from([
            "holdup", "run", "--text", "--for", "2s", "--", "prog", "--text", "-x",
        ]);
        let Ok(Cli { command: Some(Command::Run { text: true, command, .. }), .. }) = cli else {
            panic!("{cli:?}");
        };
        assert_eq!(command, ["prog", "--text", "-x"]);
    }
}
