//! The outside world of the app: processes, the connection to one of them, source files.
//!
//! Requests go in, messages come out. One task keeps one connection; every question is bounded in time by the
//! client, and a new attachment ends what the old one had still to say.

use crate::message::{Candidate, Cursor, Message, Overview, PAGE, Page, Records, Request};
use holdup_core::snapshot::{ResourceId, StackId};
use holdup_proto::client::{Client, Error, Target};
use holdup_proto::discovery;
use holdup_proto::parts::Picture;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Pictures come this often.
const INTERVAL: Duration = Duration::from_millis(250);
/// The pause before another attempt at a process that is alive.
const AGAIN: Duration = Duration::from_secs(1);
/// Attempts at a process on another machine, of which we cannot know whether it is alive.
const REMOTE_ATTEMPTS: u32 = 5;
/// The largest source file that is read.
const FILE_BYTES: u64 = 4 << 20;
/// Questions that may wait for the connection.
const QUESTIONS: usize = 64;

/// Takes what the source says; false if nobody listens any more.
pub trait Sink: Clone + Send + Sync + 'static {
    /// Takes a message.
    fn send(&self, message: Message) -> bool;
}

/// Serves requests until their sender is gone.
pub async fn serve(mut requests: mpsc::Receiver<Request>, sink: impl Sink) {
    let mut tasks = JoinSet::new();
    let mut session: Option<(AbortHandle, mpsc::Sender<Request>)> = None;
    while let Some(request) = requests.recv().await {
        while tasks.try_join_next().is_some() {}
        match request {
            Request::Discover => {
                sink.send(processes());
            }
            Request::File { file, bases } => {
                let text = read(&file, &bases);
                sink.send(Message::File(file, text));
            }
            Request::Attach(address) => {
                if let Some((old, _)) = session.take() {
                    old.abort();
                }
                match address.parse::<Target>() {
                    Ok(target) => {
                        let (questions, asked) = mpsc::channel(QUESTIONS);
                        let task = tasks.spawn(attach(target, asked, sink.clone()));
                        session = Some((task, questions));
                    }
                    Err(error) => {
                        sink.send(Message::Lost { why: error.to_string(), again: false });
                    }
                }
            }
            Request::Detach => {
                if let Some((old, _)) = session.take() {
                    old.abort();
                }
            }
            question @ (Request::Records { .. } | Request::Stacks(_)) => {
                if let Some((_, questions)) = &session {
                    // A full queue belongs to a connection that is about to be given up.
                    let _ = questions.try_send(question);
                }
            }
        }
    }
}

/// The processes that can be attached.
#[must_use]
pub fn candidates() -> Vec<Candidate> {
    let found = discovery::running().into_iter();
    let candidate = |it: discovery::Found| Candidate {
        pid: it.pid,
        name: it.name.unwrap_or_default(),
        up: up(it.pid),
        address: it.socket.display().to_string(),
    };
    found.map(candidate).collect()
}

/// Where [`candidates`] looks.
#[must_use]
pub fn looked() -> String {
    let folders: Vec<String> =
        discovery::folders().iter().map(|f| f.display().to_string()).collect();
    folders.join(" and ")
}

fn processes() -> Message {
    Message::Processes(candidates(), looked())
}

/// How long a process has run: its entry in the file system is as old as it is.
fn up(pid: u32) -> Option<Duration> {
    std::fs::metadata(format!("/proc/{pid}")).ok()?.modified().ok()?.elapsed().ok()
}

/// Keeps a connection to the target for as long as that makes sense.
async fn attach(target: Target, mut questions: mpsc::Receiver<Request>, sink: impl Sink) {
    let mut attached: Option<u32> = None;
    let mut attempts = 0;
    loop {
        let error = match Client::connect(&target).await {
            Ok(client) => {
                attached = Some(client.process().pid);
                attempts = 0;
                sink.send(Message::Attached(client.process().clone()));
                watch(&client, &mut questions, &sink).await
            }
            Err(error) => error,
        };
        let again = match (attached, &target) {
            // What never answered is the user's to try again.
            (None, _) => false,
            (Some(_), Target::Tcp(_)) => attempts < REMOTE_ATTEMPTS,
            (Some(pid), _) => discovery::is_running(pid),
        };
        let ended = attached.is_some_and(|_| !again && !matches!(target, Target::Tcp(_)));
        let why = if ended { "the process has ended".into() } else { error.to_string() };
        if !sink.send(Message::Lost { why, again }) || !again {
            return;
        }
        attempts += 1;
        tokio::time::sleep(AGAIN).await;
    }
}

/// Passes on pictures and answers questions until the connection ends.
async fn watch(
    client: &Client,
    questions: &mut mpsc::Receiver<Request>,
    sink: &impl Sink,
) -> Error {
    let mut watch = match client.watch(INTERVAL).await {
        Ok(watch) => watch,
        Err(error) => return error,
    };
    // Dropped with the connection, and with it whatever is still being asked.
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            picture = watch.next() => match picture {
                Ok(picture) => {
                    sink.send(Message::Overview(overview(picture)));
                }
                Err(error) => return error,
            },
            Some(question) = questions.recv() => {
                answers.spawn(answer(client.clone(), question, sink.clone()));
            }
            Some(_) = answers.join_next() => {}
        }
    }
}

fn overview(picture: Picture) -> Overview {
    Overview {
        taken: picture.snapshot.taken,
        resources: picture.snapshot.resources.into(),
        sites: picture.snapshot.sites.into(),
        findings: picture.findings.into(),
        dropped: picture.snapshot.dropped,
        resources_left_out: picture.resources_left_out,
        findings_left_out: picture.findings_left_out,
    }
}

/// Asks the process. A question that fails because the connection does is not answered: the watch says why.
async fn answer(client: Client, question: Request, sink: impl Sink) {
    match question {
        Request::Records { resource, holds, waits } => {
            match records(&client, resource, holds, waits).await {
                Ok(records) => {
                    sink.send(Message::Records(records));
                }
                Err(Error::NoSuchResource(_)) => {
                    sink.send(Message::NoResource(resource));
                }
                Err(_) => {
                    sink.send(Message::NoAnswer);
                }
            }
        }
        Request::Stacks(ids) => {
            if let Ok(stacks) = stacks(&client, &ids).await {
                sink.send(Message::Stacks(stacks));
            } else {
                sink.send(Message::NoAnswer);
            }
        }
        _ => {}
    }
}

async fn records(
    client: &Client,
    resource: ResourceId,
    holds: Cursor,
    waits: Cursor,
) -> Result<Records, Error> {
    let skip = usize::try_from(waits.skipped).unwrap_or(usize::MAX);
    let (h, w) = tokio::try_join!(
        client.holds(resource, holds.after, PAGE),
        client.waits(resource, skip, PAGE)
    )?;
    let mut actors = h.actors;
    actors.extend(w.actors);
    Ok(Records {
        resource,
        holds: Page { cursor: holds, taken: h.taken, rows: h.records },
        waits: Page { cursor: waits, taken: w.taken, rows: w.records },
        actors,
        sites: h.sites.into_iter().chain(w.sites).collect(),
    })
}

async fn stacks(
    client: &Client,
    ids: &[StackId],
) -> Result<Vec<holdup_core::snapshot::Stack>, Error> {
    client.stacks(ids).await
}

/// Reads a source file as the compiler recorded it. A relative path is relative to the folder that cargo was
/// called for, which is the working directory, the executable's folder, or one above them.
#[must_use]
pub fn read(file: &str, bases: &[String]) -> Option<Arc<str>> {
    let path = Path::new(file);
    if path.is_absolute() {
        return read_file(path);
    }
    let folders =
        bases.iter().filter(|b| !b.is_empty()).flat_map(|base| Path::new(base).ancestors());
    let mut places = folders.map(|folder| folder.join(path));
    places.find_map(|place: PathBuf| read_file(&place))
}

fn read_file(path: &Path) -> Option<Arc<str>> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > FILE_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_above_the_executable() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("src")).expect("a folder");
        std::fs::create_dir_all(root.join("target/debug")).expect("a folder");
        std::fs::write(root.join("src/main.rs"), "fn main() {}\n").expect("a file");
        let bases = ["".into(), root.join("target/debug/app").display().to_string()];
        assert_eq!(read("src/main.rs", &bases).as_deref(), Some("fn main() {}\n"));
        assert_eq!(read("src/other.rs", &bases), None);
        assert_eq!(read("src", &bases), None);
    }
}
