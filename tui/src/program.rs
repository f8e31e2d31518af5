//! The program that `holdup run` starts: its output, its service, its end.

use crate::format;
use holdup_proto::discovery::{self, Found};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a program may take to begin to serve before that is worth a word.
pub const SERVES_WITHIN: Duration = Duration::from_secs(5);
/// How often to look whether it serves.
pub const LOOK: Duration = Duration::from_millis(50);
/// How long a program may take to end by itself when it is told to.
const GRACE: Duration = Duration::from_secs(2);
/// The longest piece of a line that is kept together.
const LINE_BYTES: usize = 4_096;

/// Where the program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Where ours goes.
    Inherit,
    /// To whoever takes the lines; the program gets no input.
    Capture,
}

/// A program that runs.
#[derive(Debug)]
pub struct Program {
    child: Child,
    pid: u32,
    /// It leads a process group of its own, so that a signal to the group reaches what it started.
    group: bool,
}

impl Program {
    /// Starts a program so that it serves.
    ///
    /// With a terminal as its input it stays in our process group, and the terminal's Ctrl-C reaches it as it
    /// would without us. Otherwise it leads a group of its own, and signals are passed on by us.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(command: &[OsString], output: Output) -> io::Result<Program> {
        let (name, arguments) = command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
        let mut command = Command::new(name);
        command.args(arguments).env("HOLDUP_SERVE", "1");
        let group = output == Output::Capture || !io::stdin().is_terminal();
        if group {
            command.process_group(0);
        }
        match output {
            Output::Capture => {
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            // We tell the findings ourselves.
            Output::Inherit => {
                command.env("HOLDUP_STDERR", "off");
            }
        }
        let child = command.spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Program { child, pid, group })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Takes captured output line by line, in tasks that end with the output.
    pub fn lines(&mut self, take: impl Fn(String) + Clone + Send + 'static) {
        if let Some(stdout) = self.child.stdout.take() {
            tokio::spawn(read_lines(stdout, take.clone()));
        }
        if let Some(stderr) = self.child.stderr.take() {
            tokio::spawn(read_lines(stderr, take));
        }
    }

    /// Waits for its end. Nothing is lost if the call is dropped.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Whether the terminal's own Ctrl-C has reached the program, too.
    #[must_use]
    pub fn shares_terminal(&self) -> bool {
        !self.group
    }

    /// Sends a signal to it and what it started.
    pub fn signal(&self, signal: Signal) {
        // The id is the program's only as long as its end was not waited for.
        if self.child.id().is_none() {
            return;
        }
        let pid_of = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid_of(self.pid) else { return };
        if self.group {
            // Fails only if all of them have ended.
            let _ = kill_process_group(pid, signal);
        } else {
            for pid in descendants(self.pid).into_iter().filter_map(pid_of) {
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Ends it: kindly first, then without asking.
    ///
    /// # Errors
    ///
    /// If the system does not tell how it ended.
    pub async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        if let Ok(status) = timeout(GRACE, self.child.wait()).await {
            return status;
        }
        self.signal(Signal::KILL);
        self.child.wait().await
    }

    /// Ends what the program left behind, after its own end: a process in the background of a shell, for example,
    /// does not hear interrupts.
    pub fn sweep(&self) {
        // As long as there is anybody in the group, the system gives its id to nobody else.
        if self.group
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            // Most often there is nobody.
            let _ = kill_process_group(pid, Signal::TERM);
        }
    }

    /// The service of the program or of something that it started (a program under `cargo run`, or a shell).
    #[must_use]
    pub fn service(&self) -> Option<Found> {
        let found = discovery::running();
        if found.is_empty() {
            return None;
        }
        let family = descendants(self.pid);
        found.into_iter().find(|it| family.contains(&it.pid))
    }
}

/// A command line as one text.
#[must_use]
pub fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    format::clean(&words.join(" ")).into_owned()
}

/// The exit code to end with ourselves: the program's, or 128 + the signal that ended it, as shells do.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// How it ended, in words.
#[must_use]
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "in an unknown way".into(),
    }
}

/// The process and all that it started, as far as the system tells.
fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(parent) = parent(child) {
            children.entry(parent).or_default().push(child);
        }
    }
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(pid) = family.get(at) {
        if let Some(more) = children.remove(pid) {
            family.extend(more);
        }
        at += 1;
    }
    family
}

/// The parent of a process: the second field after the name, which may itself contain anything.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

async fn read_lines(mut from: impl AsyncRead + Unpin, take: impl Fn(String)) {
    let mut line = Vec::new();
    let mut buffer = [0; 8_192];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        for &byte in &buffer[..n] {
            if byte == b'\n' || line.len() == LINE_BYTES {
                take(text(&line));
                line.clear();
            }
            if byte != b'\n' {
                line.push(byte);
            }
        }
    }
    if !line.is_empty() {
        take(text(&line));
    }
}

/// A line without its colours.
fn text(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\r');
    let mut out = String::with_capacity(line.len());
    for (at, part) in line.split("\x1b[").enumerate() {
        // A sequence ends with its first letter.
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        out.push_str(if at == 0 { part } else { &part[end..] });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    fn command(script: &str) -> Vec<OsString> {
        ["sh", "-c", script].into_iter().map(OsString::from).collect()
    }

    #[test]
    fn output_is_taken_by_lines_and_the_end_is_told() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let status = runtime().block_on(async {
            let mut program =
                Program::start(&command("printf 'a\\033[31mb\\nc'; exit 7"), Output::Capture)
                    .expect("sh");
            let (end, ended) = tokio::sync::mpsc::channel::<()>(1);
            let taken = lines.clone();
            program.lines(move |line| {
                let _ = &end;
                taken.lock().expect("no panic under the lock").push(line);
            });
            let mut ended = ended;
            // Both readers have ended when the last sender is gone.
            assert_eq!(ended.recv().await, None);
            program.wait().await.expect("its end")
        });
        assert_eq!(*lines.lock().expect("no panic under the lock"), ["ab", "c"]);
        assert_eq!(exit_code(status), 7);
        assert_eq!(ending(status), "exit code 7");
    }

    #[test]
    fn what_the_program_started_is_stopped_with_it() {
        runtime().block_on(async {
            let (send, mut lines) = tokio::sync::mpsc::unbounded_channel();
            let mut program =
                Program::start(&command("sleep 600 & echo $!; wait"), Output::Capture).expect("sh");
            program.lines(move |line| drop(send.send(line)));
            let sleeper: u32 = lines.recv().await.expect("a line").parse().expect("a process id");
            assert!(descendants(program.pid()).contains(&sleeper));
            let status = program.stop().await.expect("its end");
            assert_eq!(exit_code(status), 143);
            // Its output ends only when nobody has it open any more.
            assert_eq!(lines.recv().await, None);
        });
    }

    #[test]
    fn an_endless_line_is_cut() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let taken = lines.clone();
        let input = vec![b'x'; LINE_BYTES * 2 + 1];
        runtime().block_on(read_lines(&input[..], move |line| {
            taken.lock().expect("no panic").push(line.len());
        }));
        assert_eq!(*lines.lock().expect("no panic"), [LINE_BYTES, LINE_BYTES, 1]);
    }
}
