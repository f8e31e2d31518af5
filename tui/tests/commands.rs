//! The commands as a shell sees them: exit codes, and what is said where.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The binary, in a world in which nothing runs with holdup.
fn holdup(sockets: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.env("HOLDUP_SOCKET_DIR", sockets).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    let output = holdup(sockets.path()).args(arguments).output().expect("the binary runs");
    let Output { status, stdout, stderr } = output;
    (
        status.code(),
        String::from_utf8(stdout).expect("text"),
        String::from_utf8(stderr).expect("text"),
    )
}

#[test]
fn nothing_runs() {
    let (code, out, err) = run(&["ls"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("Nothing runs with holdup here"), "{err}");
    let (code, _, err) = run(&["snapshot"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("nothing runs with holdup") && err.contains("holdup run -- CMD"), "{err}");
}

#[test]
fn wrong_targets_and_wrong_usage() {
    for (arguments, word) in [
        (&["snapshot", "no-such-thing"][..], "neither a process id"),
        (&["snapshot", "4000000"], "no such process"),
        (&["snapshot", "/no/such.sock"], "no such socket"),
        (&["snapshot", "127.0.0.1:1"], "nobody listens"),
        (&["snapshot", "--no-such-option"], "unexpected argument"),
        (&["run"], "required"),
        (&["run", "--text", "--", "/no/such/program"], "cannot start `/no/such/program`"),
        (&[], "needs a terminal"),
    ] {
        let (code, _, err) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(word), "{arguments:?}: {err}");
    }
}

#[test]
fn a_process_without_holdup_is_refused_with_a_hint() {
    let pid = std::process::id().to_string();
    let (code, _, err) = run(&["snapshot", &pid]);
    assert_eq!(code, Some(2));
    assert!(err.contains("without a holdup service"), "{err}");
}

#[test]
fn exit_codes_are_documented() {
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for word in ["Exit codes:", "TARGET", "snapshot", "run"] {
        assert!(out.contains(word), "{out}");
    }
}

#[test]
fn a_program_keeps_its_output_and_its_exit_code() {
    let (code, out, err) =
        run(&["run", "--text", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((code, out.as_str()), (Some(7), "out\n"));
    assert!(err.contains("err\n") && err.contains("exit code 7"), "{err}");
    // Without a terminal, `--text` goes without saying.
    let (code, out, _) = run(&["run", "--", "sh", "-c", "echo $HOLDUP_SERVE; kill -TERM $$"]);
    assert_eq!((code, out.as_str()), (Some(143), "1\n"));
}

#[test]
fn a_program_is_stopped_when_its_time_is_over() {
    let begun = Instant::now();
    let (code, _, err) =
        run(&["run", "--text", "--for", "100ms", "--", "sh", "-c", "sleep 600 & wait"]);
    assert_eq!(code, Some(0));
    assert!(err.contains("its time was over"), "{err}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn an_interrupt_reaches_the_program_and_what_it_started() {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    let script = "trap 'echo interrupted; exit 5' INT; sleep 600 & echo ready; wait";
    let mut child = holdup(sockets.path())
        .args(["run", "--text", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::INT).expect("it runs");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(5));
    // The output ends only when nobody has it open any more: the sleeper is gone, too.
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, "interrupted\n");
}

#[test]
fn a_program_without_holdup_is_told_and_runs_on() {
    let (code, out, err) = run(&["run", "--text", "--", "sh", "-c", "sleep 6; echo done"]);
    assert_eq!((code, out.as_str()), (Some(0), "done\n"));
    assert!(err.contains("no holdup service came up within 5 s"), "{err}");
    assert!(err.contains("it was never looked at"), "{err}");
}
