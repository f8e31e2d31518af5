//! What holdup must report of each example, and must not.
//!
//! The examples run as they would for a newcomer, each in a process of its own, and are looked at through the service.

use holdup::core::snapshot::{ActorId, Counters, Site, SiteId};
use holdup::core::{Code, Finding, Verdict};
use holdup_proto::client::{Client, Target};
use holdup_proto::discovery;
use holdup_proto::parts::Picture;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long an example may take to show what it is there to show.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an example is there to show.
struct Example {
    /// The name of its source and of its program.
    name: &'static str,
    binary: &'static str,
    /// The name of its semaphore.
    semaphore: &'static str,
    /// The marked lines that permits are seen to come from.
    holds: &'static [&'static str],
    /// The marked lines that are seen to wait.
    waits: &'static [&'static str],
    findings: &'static [(Code, Verdict, &'static [&'static str])],
}

#[tokio::test]
async fn nested_acquire() {
    let example = Example {
        name: "nested_acquire",
        binary: env!("CARGO_BIN_EXE_nested_acquire"),
        semaphore: "ledger_writes",
        holds: &["admitted", "outer"],
        waits: &["admitted", "outer", "inner"],
        findings: &[(Code::Deadlock, Verdict::Proven, &["outer", "inner"])],
    };
    let last = check(&example, |seen, _| !seen.findings.is_empty()).await;
    // It rests on one hold and one wait, and the task that waits is the one that holds.
    let [finding] = &last.findings[..] else { panic!("{:?}", last.findings) };
    let ([hold], [wait]) = (&finding.holds[..], &finding.waits[..]) else { panic!("{finding:?}") };
    let holder = last.snapshot.holds.iter().find(|it| it.id == *hold).map(|it| it.actor);
    let waiter = last.snapshot.waits.iter().find(|it| it.id == *wait).map(|it| it.actor);
    assert!(matches!(holder, Some(ActorId::Task(_))), "{holder:?}");
    assert_eq!(holder, waiter);
}

#[tokio::test]
async fn fire_and_forget() {
    let example = Example {
        name: "fire_and_forget",
        binary: env!("CARGO_BIN_EXE_fire_and_forget"),
        semaphore: "background_writes",
        holds: &["write"],
        waits: &["write"],
        findings: &[],
    };
    check(&example, |_, counters| counters.released >= 100).await;
}

/// A leak, for which this version has no rule: what can be seen is eight old holds, and waits that give up.
#[tokio::test]
async fn parked_permit() {
    let example = Example {
        name: "parked_permit",
        binary: env!("CARGO_BIN_EXE_parked_permit"),
        semaphore: "sessions",
        holds: &["login"],
        waits: &["login"],
        findings: &[],
    };
    let last = check(&example, |_, counters| counters.cancelled >= 5).await;
    assert_eq!(last.snapshot.holds.len(), 8);
    let oldest = last.snapshot.resources.iter().find_map(|resource| resource.usage.oldest_hold);
    assert_eq!(oldest, last.snapshot.holds.first().map(|hold| hold.since));
}

#[tokio::test]
async fn spawn_loop() {
    let example = Example {
        name: "spawn_loop",
        binary: env!("CARGO_BIN_EXE_spawn_loop"),
        semaphore: "fetches",
        holds: &["slot"],
        waits: &["slot"],
        findings: &[],
    };
    check(&example, |_, counters| counters.released >= 100).await;
}

/// Looks at an example until it has shown what it is there to show, and returns the last look.
async fn check(example: &Example, done: impl Fn(&Picture, &Counters) -> bool) -> Picture {
    let running = Running::start(example.binary);
    let client = running.connect().await;
    let marks = Marks::of(example.name);
    let expected: Vec<Told> =
        example.findings.iter().map(|(code, verdict, at)| (*code, *verdict, set(at))).collect();
    let (mut holds, mut waits) = (BTreeSet::new(), BTreeSet::new());
    let begin = Instant::now();
    loop {
        let picture = client.snapshot(false).await.expect("an answer");
        let snapshot = &picture.snapshot;
        let at = |site: SiteId| marks.name(snapshot.site(site).expect("a site of the snapshot"));
        holds.extend(snapshot.holds.iter().map(|hold| at(hold.site)));
        waits.extend(snapshot.waits.iter().map(|wait| at(wait.site)));
        let told: Vec<Told> = picture.findings.iter().map(|finding| marks.told(finding)).collect();
        assert!(told.is_empty() || told == expected, "told {told:?}, expected {expected:?}");

        let mut resources = snapshot.resources.iter();
        let resource =
            resources.find(|resource| resource.name.as_deref() == Some(example.semaphore));
        let counters = resource.map(|resource| resource.counters).unwrap_or_default();
        let complete =
            holds == set(example.holds) && waits == set(example.waits) && told == expected;
        if complete && done(&picture, &counters) {
            return picture;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "held at {holds:?}, waited at {waits:?}, told {told:?}, {counters:?}"
        );
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
}

/// Code, verdict, and the marked lines that a finding points to.
type Told = (Code, Verdict, BTreeSet<String>);

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The lines below a comment `// MARK: name`.
struct Marks {
    file: String,
    names: BTreeMap<u32, String>,
}

impl Marks {
    fn of(example: &str) -> Marks {
        let file = format!("src/bin/{example}.rs");
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file))
            .expect("the example");
        let mut names = BTreeMap::new();
        for (above, line) in (1..).zip(source.lines()) {
            if let Some((_, name)) = line.split_once("// MARK: ") {
                names.insert(above + 1, name.to_owned());
            }
        }
        Marks { file, names }
    }

    /// The mark of a site, or the site itself where there is none.
    fn name(&self, site: &Site) -> String {
        let name = self.names.get(&site.line).filter(|_| site.file.ends_with(&self.file));
        name.cloned().unwrap_or_else(|| site.to_string())
    }

    fn told(&self, finding: &Finding) -> Told {
        let names = finding.marks.iter().map(|mark| self.name(&mark.site));
        (finding.code, finding.verdict, names.collect())
    }
}

/// In a running example's folder: what it says, and a folder that it makes itself, so that only its user can enter.
const STDERR: &str = "stderr";
const SOCKETS: &str = "sockets";

/// An example in a process of its own.
struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    fn start(binary: &str) -> Running {
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let stderr = File::create(folder.path().join(STDERR)).expect("a file in our folder");
        let child = Command::new(binary)
            .env("HOLDUP_SERVE", "1")
            .env(discovery::SOCKET_DIR, folder.path().join(SOCKETS))
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("cargo built the example");
        Running { child, folder }
    }

    async fn connect(&self) -> Client {
        let socket = self.folder.path().join(SOCKETS).join(discovery::file_name(self.child.id()));
        let socket = Target::Socket(socket);
        let begin = Instant::now();
        loop {
            match Client::connect(&socket).await {
                Ok(client) => return client,
                Err(error) if begin.elapsed() > PATIENCE => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(7)).await,
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, and the test has failed then.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let said = fs::read_to_string(self.folder.path().join(STDERR));
            eprintln!("the example said: {}", said.unwrap_or_default());
        }
    }
}
