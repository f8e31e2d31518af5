//! The commands without a screen: `ls`, `snapshot`, `run --text`.

mod run;
mod table;

use crate::{format, source};
use holdup_core::json;
use holdup_core::snapshot::{ResourceId, Site, Snapshot, StackId};
use holdup_core::text::{self, Style};
use holdup_proto::client::{Client, Error, Target};
use holdup_proto::parts::Picture;
pub use run::{Run, run};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

/// Resources whose holders and waiters are printed.
const DETAILED: usize = 20;

/// How a snapshot is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people, with so many holders and waiters of each resource.
    Text(usize),
    /// The document of `holdup_core::json`, complete.
    Json,
}

/// Lists the processes that can be looked at.
///
/// # Errors
///
/// If the list cannot be written.
pub fn ls() -> Result<u8, String> {
    let found = source::candidates();
    if found.is_empty() {
        eprintln!("Nothing runs with holdup here (looked in {}).", source::looked());
        eprintln!("To start a program under holdup: holdup run -- CMD. In code: holdup::init().");
        return Ok(0);
    }
    print(&table::processes(&found))?;
    Ok(0)
}

/// Prints what is true now.
///
/// # Errors
///
/// If there is nothing to look at, or it cannot be looked at.
pub fn snapshot(target: Option<&str>, form: Form) -> Result<u8, String> {
    let target = resolve(target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let text = runtime.block_on(async {
        let client = Client::connect(&target).await?;
        match form {
            Form::Json => {
                let picture = client.snapshot(true).await?;
                let mut text = json::snapshot(&picture.snapshot, &picture.findings).to_json();
                text.push('\n');
                Ok(text)
            }
            Form::Text(limit) => {
                let picture = client.watch(Duration::from_secs(1)).await?.next().await?;
                let busy = picture
                    .snapshot
                    .resources
                    .iter()
                    .filter(|r| r.usage.holders + r.usage.waiting > 0);
                let mut ids: Vec<ResourceId> =
                    picture.findings.iter().flat_map(|f| f.resources.clone()).collect();
                ids.extend(busy.map(|r| r.id));
                let snapshot = gather(&client, &picture, ids, limit).await?;
                let width = terminal_width(io::stdout().is_terminal());
                Ok(table::snapshot(
                    &snapshot,
                    &picture,
                    limit,
                    &|file: &str| read(file, &snapshot),
                    width,
                ))
            }
        }
    });
    print(&text.map_err(|error: Error| error.to_string())?)?;
    Ok(0)
}

/// The process that is meant: the named one, else the only one that runs.
fn resolve(target: Option<&str>) -> Result<Target, String> {
    if let Some(text) = target {
        return text.parse().map_err(|error: Error| error.to_string());
    }
    match source::candidates().as_slice() {
        [] => Err(format!(
            "nothing runs with holdup here (looked in {}); to start a program under holdup: holdup run -- CMD",
            source::looked()
        )),
        [one] => Ok(Target::Pid(one.pid)),
        many => Err(format!(
            "several processes run with holdup: name one of them\n{}",
            table::processes(many)
        )),
    }
}

/// Fetches the oldest holds and the first waits of some resources, with their named stacks.
async fn gather(
    client: &Client,
    picture: &Picture,
    resources: Vec<ResourceId>,
    limit: usize,
) -> Result<Snapshot, Error> {
    let mut snapshot = picture.snapshot.clone();
    let mut seen = BTreeSet::new();
    let mut stacks = BTreeSet::new();
    for id in resources {
        if seen.len() == DETAILED || !seen.insert(id) {
            continue;
        }
        // One that is dropped meanwhile has no records.
        let (holds, waits) =
            match tokio::try_join!(client.holds(id, None, limit), client.waits(id, 0, limit)) {
                Err(Error::NoSuchResource(_)) => continue,
                pages => pages?,
            };
        for (site, place) in holds.sites.into_iter().chain(waits.sites) {
            let at = site.0 as usize;
            if at >= snapshot.sites.len() && at < snapshot.sites.len() + 1_000_000 {
                snapshot.sites.resize(at + 1, Site { file: "".into(), line: 0, column: 0 });
            }
            if let Some(known) = snapshot.sites.get_mut(at) {
                *known = place;
            }
        }
        stacks.extend(holds.records.iter().map(|h| h.stack));
        stacks.extend(waits.records.iter().map(|w| w.stack));
        snapshot.holds.extend(holds.records);
        snapshot.waits.extend(waits.records);
        snapshot.actors.extend(holds.actors);
        snapshot.actors.extend(waits.actors);
    }
    stacks.remove(&StackId::NONE);
    let ids: Vec<StackId> = stacks.into_iter().collect();
    snapshot.stacks = client.stacks(&ids).await?;
    snapshot.stacks.sort_by_key(|s| s.id);
    Ok(snapshot)
}

/// A source file of the process.
fn read(file: &str, snapshot: &Snapshot) -> Option<Arc<str>> {
    let process = &snapshot.process;
    source::read(file, &[process.working_directory.clone(), process.executable.clone()])
}

/// The columns to wrap at; `None` where there is no terminal.
fn terminal_width(terminal: bool) -> Option<u16> {
    if !terminal {
        return None;
    }
    crossterm::terminal::size().ok().map(|(columns, _)| columns)
}

/// A finding in full.
fn finding(finding: &holdup_core::Finding, snapshot: &Snapshot, style: &Style) -> String {
    text::render(finding, &|file: &str| read(file, snapshot), style)
}

/// Writes to stdout. A reader that has seen enough is no error.
fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write: {error}"))
        }
        _ => Ok(()),
    }
}

/// One line about a process.
fn headline(snapshot: &Snapshot) -> String {
    let process = &snapshot.process;
    format!(
        "{} · pid {} · up {} · {} · stacks: {} · holdup {}",
        format::clean(&process.name),
        process.pid,
        format::age(Duration::from_nanos(snapshot.taken.0)),
        if process.debug { "debug" } else { "release" },
        format::clean(&process.stacks),
        format::clean(&process.version),
    )
}
