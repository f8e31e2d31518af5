//! How long it takes from the moment a task waits for itself until that is on stderr, and in a client's picture.
//!
//! Each run is a new process, so each reads its debug information anew.
//!
//! `cargo bench --profile dev -p holdup-tests --bench told`, and with names in a release build
//! `CARGO_PROFILE_BENCH_DEBUG=line-tables-only cargo bench -p holdup-tests --features always-on --bench told`

use holdup::sync::Semaphore;
use holdup_proto::client::{Client, Target};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// As the terminal app asks for pictures.
const INTERVAL: Duration = Duration::from_millis(250);
const ROLE: &str = "HOLDUP_BENCH_ROLE";

fn main() {
    if !holdup::INSTRUMENTED {
        println!("nothing is recorded in this build: add --features always-on");
    } else if std::env::var_os(ROLE).is_some() {
        program();
    } else {
        let size =
            std::env::current_exe().and_then(|exe| exe.metadata()).map_or(0, |exe| exe.len());
        println!("a program of {} MB, {RUNS} runs", size / 1_000_000);
        report("on stderr", (0..RUNS).map(|_| on_stderr()).collect());
        report("in a client's picture", (0..RUNS).map(|_| in_a_picture()).collect());
    }
}

/// Waits for itself.
fn program() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let semaphore = Semaphore::new(1);
    let _ = std::io::stdin().read_line(&mut String::new());
    runtime.block_on(async {
        let _permit = semaphore.acquire().await;
        eprintln!("@waits");
        inner(&semaphore).await;
    });
}

async fn inner(semaphore: &Semaphore) {
    let _permit = semaphore.acquire().await;
}

/// Ends with the run.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> (Program, impl Iterator<Item = String> + use<>) {
    command.env(ROLE, "1").env_remove("HOLDUP").env_remove("HOLDUP_BIND");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    (Program(child), lines.map_while(Result::ok))
}

fn this() -> Command {
    Command::new(std::env::current_exe().expect("known"))
}

fn on_stderr() -> Duration {
    let (mut program, mut lines) = start(&mut this());
    // Nothing more to read: it begins.
    drop(program.0.stdin.take());
    lines.find(|line| line == "@waits").expect("it waits");
    let start = Instant::now();
    let told = lines.find(|line| line.starts_with("deadlock: ")).expect("it is told");
    let took = start.elapsed();
    assert!(told.contains("waits for a permit that only it can release"), "{told}");
    took
}

fn in_a_picture() -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let sockets = folder.path().join("holdup");
    let mut command = this();
    let (mut program, mut lines) =
        start(command.env("HOLDUP_SERVE", "1").env("HOLDUP_SOCKET_DIR", &sockets));
    let socket = sockets.join(holdup_proto::discovery::file_name(program.0.id()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let deadline = Instant::now() + PATIENCE;
        let client = loop {
            match Client::connect(&Target::Socket(socket.clone())).await {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let mut watch = client.watch(INTERVAL).await.expect("a watch");
        drop(program.0.stdin.take());
        lines.find(|line| line == "@waits").expect("it waits");
        let start = Instant::now();
        while watch.next().await.expect("a picture").findings.is_empty() {
            assert!(start.elapsed() < PATIENCE, "it is not told");
        }
        start.elapsed()
    })
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{what}: median {:?}, longest {:?}", times[times.len() / 2], times[times.len() - 1]);
}
