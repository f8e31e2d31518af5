//! Real programs under holdup for the tests, made of the test binary itself.

pub(crate) mod role;

use holdup_proto::client::{Client, Error, Target};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

/// Tells the test binary to be the program that is tested.
pub(crate) const ROLE: &str = "HOLDUP_TEST_ROLE";
/// How long anything may take that does not hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A program in a process of its own, which works until it is asked to stop or this is dropped.
pub(crate) struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it wrote to stderr, besides its answers.
    pub(crate) said: Vec<String>,
}

impl Program {
    /// A command that becomes `role`, with nothing of holdup's in its environment.
    pub(crate) fn command(role: &str) -> Command {
        Program::command_after("", role)
    }

    /// The same, in a process in which a shell has executed `first`: what that leaves as `$1` and so on is what
    /// the process becomes.
    pub(crate) fn command_after(first: &str, role: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{first}\nexec \"$@\""), "sh"]);
        // The test of this name is what becomes the program.
        let binary = std::env::current_exe().expect("the test binary");
        command.arg(binary).args(["--exact", "program", "--nocapture"]).env(ROLE, role);
        for variable in [
            "HOLDUP",
            "HOLDUP_SERVE",
            "HOLDUP_BIND",
            "HOLDUP_CAPTURE",
            "HOLDUP_SOCKET_DIR",
            "XDG_RUNTIME_DIR",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// A program that works and serves in `folder`, without a line of code for it.
    pub(crate) fn serving(folder: &Path) -> Program {
        let mut command = Program::command("work");
        Program::start(command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", folder))
    }

    /// Starts the command, and waits until it works.
    pub(crate) fn start(command: &mut Command) -> Program {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a program starts");
        let stdin = child.stdin.take();
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stderr.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut program = Program { child, stdin, lines, said: Vec::new() };
        program.hear("ready");
        program
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program a thing, and returns the answer.
    pub(crate) fn ask(&mut self, what: &str) -> String {
        let stdin = self.stdin.as_mut().expect("it has not been told to stop");
        writeln!(stdin, "{what}").expect("it listens");
        self.hear(what)
    }

    fn hear(&mut self, what: &str) -> String {
        let mark = mark(what);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line
                .unwrap_or_else(|error| panic!("no answer to `{what}`: {error}: {:#?}", self.said));
            match line.split_once(&mark) {
                Some((_, answer)) => return answer.trim().to_owned(),
                None => self.said.push(line),
            }
        }
    }

    /// How often it has acquired a permit so far.
    pub(crate) fn count(&mut self) -> u64 {
        self.ask("count").parse().expect("a number")
    }

    /// Makes sure that it goes on working.
    pub(crate) fn goes_on(&mut self) {
        let before = self.count();
        let deadline = Instant::now() + PATIENCE;
        while self.count() < before + 100 {
            assert!(Instant::now() < deadline, "the program does not go on");
        }
    }

    /// Lets it end by itself.
    pub(crate) fn finish(mut self) -> ExitStatus {
        self.stdin = None;
        self.child.wait().expect("it ends")
    }

    /// Ends it without giving it time for anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// How many files and connections it has open.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("it runs").count()
    }

    /// The socket that it makes in `folder`.
    pub(crate) fn socket(&self, folder: &Path) -> PathBuf {
        folder.join(holdup_proto::discovery::file_name(self.pid()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives the answer to a question, in the program.
pub(crate) fn answer(what: &str, answer: impl Display) {
    eprintln!("{}{answer}", mark(what));
}

fn mark(what: &str) -> String {
    format!("@{what}: ")
}

/// Attaches to what listens on this socket.
pub(crate) async fn attach(socket: &Path) -> Client {
    let target = Target::Socket(socket.to_owned());
    Client::connect(&target).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The text of an error that there must be.
pub(crate) fn refusal<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("there is no error"),
        Err(error) => error.to_string(),
    }
}

/// Waits until `done`, however long other programs keep the machine busy.
pub(crate) async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "{what}");
        // What it waits for is in another process and wakes nobody here.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A place for a folder of sockets, which does not exist yet.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    /// The folder of sockets.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.0.path().join("holdup")
    }

    /// Where it will be.
    pub(crate) fn around(&self) -> &Path {
        self.0.path()
    }
}

/// Passes on what a client and a service say to each other, until it stops to read what the service says.
pub(crate) struct Relay {
    pub(crate) socket: PathBuf,
    stop: Arc<Notify>,
}

impl Relay {
    /// For one client.
    pub(crate) fn new(place: &Place, service: PathBuf) -> Relay {
        let socket = place.around().join("relay");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        tokio::spawn(async move {
            let (client, _) = listener.accept().await.expect("a client");
            let service = UnixStream::connect(service).await.expect("a service");
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_service, mut to_service) = service.into_split();
            tokio::spawn(async move { io::copy(&mut from_client, &mut to_service).await });
            tokio::select! {
                _ = io::copy(&mut from_service, &mut to_client) => {}
                // Neither reads nor hangs up.
                () = stopped.notified() => std::future::pending().await,
            }
        });
        Relay { socket, stop }
    }

    /// Reads no more.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }
}
