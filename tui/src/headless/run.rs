//! `holdup run --text`: the program runs as it would, and findings are told on stderr when they come.

use super::{finding, gather, headline, table, terminal_width};
use crate::format;
use crate::program::{self, LOOK, Output, Program, SERVES_WITHIN};
use holdup_core::text::Style;
use holdup_core::{Finding, FindingId};
use holdup_proto::client::{Client, Error, Target, Watch};
use holdup_proto::parts::Picture;
use rustix::process::Signal;
use std::collections::HashMap;
use std::ffi::OsString;
use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{interval, sleep};

/// Pictures come this often.
const INTERVAL: Duration = Duration::from_millis(100);
/// Holders and waiters in a summary.
const ROWS: usize = 10;
/// Findings that are remembered, so that each is told once.
const REMEMBERED: usize = 10_000;

/// What to run.
#[derive(Debug)]
pub struct Run {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Stop it after that time.
    pub limit: Option<Duration>,
    /// Stop it at the first finding.
    pub exit_on_finding: bool,
    /// Use colours.
    pub colour: bool,
}

/// Runs a program to its end and tells its findings.
///
/// # Errors
///
/// If it cannot be started.
pub fn run(options: &Run) -> Result<u8, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(watch(options))
}

/// Why the program ended.
enum Ending {
    Itself(io::Result<ExitStatus>),
    Limit,
    Finding,
}

async fn watch(options: &Run) -> Result<u8, String> {
    let name = program::words(&options.command);
    // Before there is anything that an interrupt would leave behind.
    let mut signals =
        Signals::listen().map_err(|error| format!("cannot listen to signals: {error}"))?;
    let mut program = Program::start(&options.command, Output::Inherit)
        .map_err(|error| format!("cannot start `{name}`: {error}"))?;
    let mut report = Report::new(options.colour);
    let ending = attend(&mut program, &mut signals, options, &mut report).await;
    let code = match ending {
        Ending::Itself(status) => {
            let status = status.map_err(|error| format!("`{name}`: {error}"))?;
            report.end(&format!("the program has ended: {}", program::ending(status)));
            program::exit_code(status)
        }
        Ending::Limit => {
            let _ = program.stop().await;
            report.end("the program was stopped: its time was over");
            0
        }
        Ending::Finding => {
            let _ = program.stop().await;
            report.end("the program was stopped at its first finding");
            1
        }
    };
    Ok(code)
}

/// The signals that are passed on.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }
}

/// Watches until the program ends or shall end. Interrupts are passed on; the second one is a kill.
async fn attend(
    program: &mut Program,
    signals: &mut Signals,
    options: &Run,
    report: &mut Report,
) -> Ending {
    let mut interrupted = false;

    let begun = Instant::now();
    let over = end(options.limit);
    tokio::pin!(over);
    let mut look = interval(LOOK);
    let mut session: Option<(Client, Watch)> = None;
    let mut was_attached = false;
    let mut told = false;
    loop {
        tokio::select! {
            status = program.wait() => {
                if interrupted {
                    program.sweep();
                }
                return Ending::Itself(status);
            }
            () = &mut over => return Ending::Limit,
            _ = signals.interrupt.recv() => {
                if interrupted {
                    program.signal(Signal::KILL);
                } else if !program.shares_terminal() {
                    program.signal(Signal::INT);
                }
                interrupted = true;
            }
            _ = signals.terminate.recv() => {
                program.signal(if interrupted { Signal::KILL } else { Signal::TERM });
                interrupted = true;
            }
            picture = next(&mut session) => match picture {
                Ok(picture) => {
                    let new = report.look(&picture);
                    if !new.is_empty() && let Some((client, _)) = &session {
                        report.tell(client, &picture, &new).await;
                        if options.exit_on_finding {
                            return Ending::Finding;
                        }
                    }
                }
                // It has ended, most often: that is told above.
                Err(_) => session = None,
            },
            _ = look.tick(), if session.is_none() => {
                if let Some(found) = program.service() {
                    match attach(&Target::Socket(found.socket)).await {
                        Ok(new) => {
                            was_attached = true;
                            session = Some(new);
                        }
                        // The socket is there a moment before somebody listens.
                        Err(error) if begun.elapsed() > SERVES_WITHIN && !told && !was_attached => {
                            told = true;
                            report.say(&format!("cannot look at the program, which runs on: {error}"));
                        }
                        Err(_) => {}
                    }
                } else if begun.elapsed() > SERVES_WITHIN && !told && !was_attached {
                    told = true;
                    report.say(&format!("{} (it runs on)", format::NOT_SERVING));
                    look = interval(Duration::from_millis(500));
                }
            }
        }
    }
}

async fn end(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
}

async fn attach(target: &Target) -> Result<(Client, Watch), Error> {
    let client = Client::connect(target).await?;
    let watch = client.watch(INTERVAL).await?;
    Ok((client, watch))
}

async fn next(session: &mut Option<(Client, Watch)>) -> Result<Picture, Error> {
    match session {
        Some((_, watch)) => watch.next().await,
        None => pending().await,
    }
}

/// What is told on stderr.
struct Report {
    colour: bool,
    /// The findings that are true, by id; those that went away are told as well.
    known: HashMap<FindingId, Finding>,
    told: u64,
    last: Option<Picture>,
}

impl Report {
    fn new(colour: bool) -> Report {
        Report { colour, known: HashMap::new(), told: 0, last: None }
    }

    /// Takes a picture; the findings that are new.
    fn look(&mut self, picture: &Picture) -> Vec<Finding> {
        let new: Vec<Finding> =
            picture.findings.iter().filter(|f| !self.known.contains_key(&f.id)).cloned().collect();
        let gone: Vec<FindingId> = self
            .known
            .keys()
            .copied()
            .filter(|id| picture.findings.iter().all(|f| f.id != *id))
            .collect();
        for id in gone {
            if let Some(finding) = self.known.remove(&id) {
                self.say(&format!(
                    "no longer: {}: {}",
                    finding.code,
                    format::clean(&finding.title)
                ));
            }
        }
        for finding in &new {
            if self.known.len() < REMEMBERED {
                self.known.insert(finding.id, finding.clone());
            }
        }
        self.last = Some(picture.clone());
        new
    }

    /// Tells findings in full, with who holds and who waits.
    async fn tell(&mut self, client: &Client, picture: &Picture, new: &[Finding]) {
        self.told += new.len() as u64;
        let ids = new.iter().flat_map(|f| f.resources.clone()).collect();
        // The finding is complete in itself; without the rest it is told without the rest.
        let snapshot =
            gather(client, picture, ids, ROWS).await.unwrap_or_else(|_| picture.snapshot.clone());
        let width = terminal_width(io::stderr().is_terminal());
        let mut out = String::from("\n");
        for it in new {
            out.push_str(&finding(it, &snapshot, &Style { width, color: self.colour }));
            out.push_str("\n\n");
        }
        for resource in &snapshot.resources {
            if new.iter().any(|f| f.resources.contains(&resource.id)) {
                out.push_str(&table::records(&snapshot, resource, ROWS));
                out.push('\n');
            }
        }
        write(&out);
    }

    fn say(&self, text: &str) {
        write(&format!("holdup: {text}\n"));
    }

    /// The last words: how it ended and what was seen last.
    fn end(&self, how: &str) {
        let findings = match self.told {
            0 => "no findings".into(),
            n => format::plural(n, "finding"),
        };
        match &self.last {
            None => self.say(&format!("{how}; it was never looked at")),
            Some(last) => {
                let mut out = format!("holdup: {how}; {findings}; last seen:\n");
                out.push_str(&format!("  {}\n", headline(&last.snapshot)));
                for line in table::resources(&last.snapshot, last).lines() {
                    out.push_str(&format!("  {line}\n"));
                }
                write(&out);
            }
        }
    }
}

/// Whoever does not listen to stderr misses it; the program goes on.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
