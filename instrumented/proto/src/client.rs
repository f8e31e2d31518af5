//! Talking to a program under holdup.
//!
//! ```no_run
//! use holdup_proto::client::{Client, Target};
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), holdup_proto::client::Error> {
//! let target: Target = "4711".parse()?;
//! let client = Client::connect(&target).await?;
//! println!("attached to {}", client.process().name);
//! let mut watch = client.watch(Duration::from_millis(250)).await?;
//! let picture = watch.next().await?;
//! println!("{} resources", picture.snapshot.resources.len());
//! # Ok(())
//! # }
//! ```

use crate::convert;
use crate::discovery;
use crate::limits;
use crate::parts::{Assembler, Picture};
use crate::v1;
use crate::v1::diagnostics_client::DiagnosticsClient;
use crate::{PROTOCOL, VERSION};
use holdup_core::snapshot::{
    Actor, Hold, HoldId, Moment, Process, ResourceId, Site, SiteId, Stack, StackId, Wait,
};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// How long a service that is well may take for a small answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take between two parts of a large one; it may have to read debug info first.
const PATIENCE_LARGE: Duration = Duration::from_secs(60);
/// How often an attached service is asked for a sign of life, and how long it may take to give one.
const PULSE: Duration = Duration::from_secs(3);
/// The bytes that may be on their way in one answer.
const WINDOW: u32 = 256 << 10;
/// The memory that a whole snapshot may take.
const SNAPSHOT_MEMORY: usize = 2 << 30;
/// The memory that what a watch shows may take.
const WATCH_MEMORY: usize = 256 << 20;

/// A program to attach to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The process with this id, on this machine.
    Pid(u32),
    /// The program that listens on this Unix socket.
    Socket(PathBuf),
    /// The program that listens at this `host:port`.
    Tcp(String),
}

impl FromStr for Target {
    type Err = Error;

    /// Reads a process id, the path of a socket, or `host:port`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Ok(pid) = text.parse() {
            return Ok(Self::Pid(pid));
        }
        if text.contains('/') || text.ends_with(".sock") {
            return Ok(Self::Socket(PathBuf::from(text)));
        }
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match port.map(|(_, port)| port.parse::<u16>()) {
            Some(Ok(_)) => Ok(Self::Tcp(text.to_owned())),
            _ => Err(Error::Target(text.to_owned())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "process {pid}"),
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text names no target.
    Target(String),
    /// There is no process with this id.
    NoSuchProcess(u32),
    /// The process runs, and does not serve.
    NotServing(u32),
    /// There is no such socket.
    NoSocket(PathBuf),
    /// Nobody listens there: a socket that a process left over, or a port that is not open.
    Refused(Target),
    /// The socket is another user's.
    Denied(Target),
    /// The connection failed for another reason.
    Unreachable(Target, io::Error),
    /// Somebody listens and does not answer.
    NoAnswer(Target),
    /// Somebody listens and hangs up.
    HungUp(Target),
    /// Somebody answers who is no holdup service.
    NotHoldup(Target, String),
    /// The service cannot serve any more clients, or refuses the request.
    Rejected(Target, String),
    /// The service speaks another protocol.
    Version {
        /// Who.
        target: Target,
        /// The protocol that the service speaks.
        protocol: u32,
        /// The version of holdup in the program.
        version: String,
    },
    /// The connection ended after it had worked: the program has ended, most often.
    Lost(Target, String),
    /// The resource is no more.
    NoSuchResource(ResourceId),
    /// The service sent what no holdup sends.
    Malformed(Target, convert::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(text) => write!(
                f,
                "`{}` is neither a process id, nor a socket's path, nor host:port",
                printable(text)
            ),
            Self::NoSuchProcess(pid) => write!(f, "no such process: {pid}"),
            Self::NotServing(pid) => write!(
                f,
                "process {pid} runs without a holdup service: start it with `holdup run -- CMD` or \
                 with HOLDUP_SERVE=1, or call `holdup::init()` in it"
            ),
            Self::NoSocket(path) => write!(f, "no such socket: {}", path.display()),
            Self::Refused(target @ Target::Tcp(_)) => write!(f, "nobody listens at {target}"),
            Self::Refused(target) => {
                write!(f, "nobody listens at {target} any more: the program that did has ended")
            }
            Self::Denied(target) => write!(
                f,
                "permission denied for {target}: only the user who runs the program may attach"
            ),
            Self::Unreachable(target, error) => write!(f, "cannot connect to {target}: {error}"),
            Self::NoAnswer(target) => write!(
                f,
                "{target} does not answer: the program may be stopped, or no holdup service"
            ),
            Self::HungUp(target) => write!(
                f,
                "{target} hung up: the program is about to end or has too many clients, or it is no \
                 holdup service"
            ),
            Self::NotHoldup(target, why) => {
                write!(f, "what answers at {target} is no holdup service ({why})")
            }
            Self::Rejected(target, why) => write!(f, "{target} refuses: {why}"),
            Self::Version { target, protocol, version } => write!(
                f,
                "version mismatch: {target} has holdup {} (protocol {protocol}), this is holdup \
                 {VERSION} (protocol {PROTOCOL}): use the same version on both sides",
                printable(version)
            ),
            Self::Lost(target, why) => write!(f, "connection to {target} lost: {why}"),
            Self::NoSuchResource(id) => write!(f, "resource {id} is no more"),
            Self::Malformed(target, error) => write!(f, "{target} sent a {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable(_, error) => Some(error),
            Self::Malformed(_, error) => Some(error),
            _ => None,
        }
    }
}

/// What somebody else wrote, fit for a terminal.
fn printable(text: &str) -> String {
    text.chars().take(300).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A connection to a program under holdup.
#[derive(Clone, Debug)]
pub struct Client {
    target: Target,
    process: Process,
    service: DiagnosticsClient<Channel>,
}

/// A page of holds or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// When it was copied.
    pub taken: Moment,
    /// The records in their order.
    pub records: Vec<T>,
    /// There may be more after the last one.
    pub more: bool,
    /// The source places that the records refer to.
    pub sites: BTreeMap<SiteId, Site>,
    /// What is known of the actors that the records refer to.
    pub actors: Vec<Actor>,
}

impl Client {
    /// Connects, and makes sure that a holdup of this protocol answers.
    ///
    /// # Errors
    ///
    /// Whatever hinders that; a silent counterpart does so within seconds.
    pub async fn connect(target: &Target) -> Result<Self, Error> {
        let no_answer = || Error::NoAnswer(target.clone());
        let stream = timeout(PATIENCE, open(target)).await.map_err(|_| no_answer())??;
        let channel = channel(stream).await.map_err(|why| Error::Lost(target.clone(), why))?;
        let service = DiagnosticsClient::new(channel).max_decoding_message_size(limits::MESSAGE);
        let mut client = Self { target: target.clone(), process: Process::default(), service };
        client.process = match timeout(PATIENCE, client.introduce()).await {
            Ok(answer) => answer?,
            Err(_) => return Err(no_answer()),
        };
        Ok(client)
    }

    /// The program, as it introduced itself.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Where the program was found.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    async fn introduce(&self) -> Result<Process, Error> {
        let request = v1::HelloRequest { protocol: PROTOCOL, version: VERSION.to_owned() };
        let answer = self.service.clone().hello(request).await;
        let answer = answer.map_err(|status| match status.code() {
            Code::ResourceExhausted => self.error(&status),
            _ if has_hung_up(&status) => Error::HungUp(self.target.clone()),
            _ => Error::NotHoldup(self.target.clone(), reason(&status)),
        })?;
        let answer = answer.into_inner();
        let process = answer.process.map(Process::from);
        if answer.protocol != PROTOCOL {
            return Err(Error::Version {
                target: self.target.clone(),
                protocol: answer.protocol,
                version: process.map(|it| it.version).unwrap_or_default(),
            });
        }
        process.ok_or_else(|| self.malformed(convert::Error::new("a greeting without a process")))
    }

    fn has_ended(&self) -> bool {
        matches!(self.target, Target::Pid(pid) if !discovery::is_running(pid))
    }

    /// Follows the program: a picture at once, and then one every `interval`, as fast as they are taken.
    ///
    /// The interval is kept within 50 ms and 10 s.
    ///
    /// # Errors
    ///
    /// If the connection is lost or the program refuses.
    pub async fn watch(&self, interval: Duration) -> Result<Watch, Error> {
        let interval = interval.clamp(limits::INTERVAL_MIN, limits::INTERVAL_MAX);
        let interval_ms = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX);
        let mut service = self.service.clone();
        let parts = service.watch(v1::WatchRequest { interval_ms });
        let parts = self.within(PATIENCE, parts).await?;
        Ok(Watch { client: self.clone(), parts, assembler: Assembler::new(WATCH_MEMORY) })
    }

    /// Everything, once. With `names`, the frames of all stacks are named, which may take a second.
    ///
    /// # Errors
    ///
    /// If the connection is lost, the program refuses, or the snapshot would take gigabytes.
    pub async fn snapshot(&self, names: bool) -> Result<Picture, Error> {
        let mut service = self.service.clone();
        let parts = service.snapshot(v1::SnapshotRequest { names });
        let mut parts = self.within(PATIENCE_LARGE, parts).await?;
        let mut assembler = Assembler::new(SNAPSHOT_MEMORY);
        loop {
            let part = self.part(PATIENCE_LARGE, &mut parts).await?;
            if let Some(picture) = assembler.add(part).map_err(|error| self.malformed(error))? {
                return Ok(picture);
            }
        }
    }

    /// A page of the holds of `resource`, oldest first: those after the hold `after`, which is known by its
    /// `since` and its id.
    ///
    /// # Errors
    ///
    /// If there is no such resource, the connection is lost, or the program refuses.
    pub async fn holds(
        &self,
        resource: ResourceId,
        after: Option<(Moment, HoldId)>,
        limit: usize,
    ) -> Result<Page<Hold>, Error> {
        let after = after.map(|(since, id)| v1::HoldCursor { since: since.0, id: id.0 });
        let request = v1::HoldsRequest { resource: resource.0, after, limit: page_limit(limit) };
        let mut service = self.service.clone();
        let page = self.within(PATIENCE, service.holds(request)).await;
        let page = page.map_err(|error| self.about(resource, error))?;
        self.page(page.taken, page.holds, page.more, page.sites, page.actors)
    }

    /// A page of the waits on `resource`, in queue order, without the first `skip`.
    ///
    /// # Errors
    ///
    /// If there is no such resource, the connection is lost, or the program refuses.
    pub async fn waits(
        &self,
        resource: ResourceId,
        skip: usize,
        limit: usize,
    ) -> Result<Page<Wait>, Error> {
        let skip = skip as u64;
        let request = v1::WaitsRequest { resource: resource.0, skip, limit: page_limit(limit) };
        let mut service = self.service.clone();
        let page = self.within(PATIENCE, service.waits(request)).await;
        let page = page.map_err(|error| self.about(resource, error))?;
        self.page(page.taken, page.waits, page.more, page.sites, page.actors)
    }

    /// Call stacks with the names of their frames; ids that the program does not know are left out.
    ///
    /// # Errors
    ///
    /// If the connection is lost or the program refuses.
    pub async fn stacks(&self, ids: &[StackId]) -> Result<Vec<Stack>, Error> {
        let mut stacks = Vec::with_capacity(ids.len());
        for ids in ids.chunks(limits::STACKS) {
            let request = v1::StacksRequest { ids: ids.iter().map(|id| id.0).collect() };
            let mut service = self.service.clone();
            let mut parts = self.within(PATIENCE_LARGE, service.stacks(request)).await?;
            let end = stacks.len() + ids.len();
            loop {
                let part = self.part(PATIENCE_LARGE, &mut parts).await?;
                stacks.extend(part.stacks.into_iter().map(Stack::from));
                if stacks.len() > end {
                    return Err(self.malformed(convert::Error::new("stacks nobody asked for")));
                }
                if !part.more {
                    break;
                }
            }
        }
        Ok(stacks)
    }

    fn page<W, T: TryFrom<W, Error = convert::Error>>(
        &self,
        taken: u64,
        records: Vec<W>,
        more: bool,
        sites: Vec<v1::PlacedSite>,
        actors: Vec<v1::Actor>,
    ) -> Result<Page<T>, Error> {
        let malformed = |error| self.malformed(error);
        let records = records.into_iter().map(T::try_from);
        let actors = actors.into_iter().map(Actor::try_from);
        Ok(Page {
            taken: Moment(taken),
            records: records.collect::<Result<_, _>>().map_err(malformed)?,
            more,
            sites: (sites.into_iter())
                .filter_map(|it| Some((SiteId(it.id), it.site?.into())))
                .collect(),
            actors: actors.collect::<Result<_, _>>().map_err(malformed)?,
        })
    }

    async fn within<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, Error> {
        match timeout(patience, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(self.error(&status)),
            Err(_) => Err(Error::NoAnswer(self.target.clone())),
        }
    }

    async fn part(
        &self,
        patience: Duration,
        parts: &mut Streaming<v1::Part>,
    ) -> Result<v1::Part, Error> {
        match timeout(patience, parts.message()).await {
            Ok(Ok(Some(part))) => Ok(part),
            Ok(Ok(None)) => {
                let why = "the program ended the transfer".to_owned();
                Err(Error::Lost(self.target.clone(), why))
            }
            Ok(Err(status)) => Err(self.error(&status)),
            Err(_) => Err(Error::NoAnswer(self.target.clone())),
        }
    }

    fn malformed(&self, error: convert::Error) -> Error {
        Error::Malformed(self.target.clone(), error)
    }

    fn about(&self, resource: ResourceId, error: Error) -> Error {
        match error {
            Error::NoSuchResource(_) => Error::NoSuchResource(resource),
            other => other,
        }
    }

    fn error(&self, status: &Status) -> Error {
        let target = self.target.clone();
        match status.code() {
            Code::NotFound => Error::NoSuchResource(ResourceId(0)),
            Code::ResourceExhausted | Code::InvalidArgument | Code::DeadlineExceeded => {
                Error::Rejected(target, printable(status.message()))
            }
            _ if self.has_ended() => Error::Lost(target, "the program has ended".to_owned()),
            _ => Error::Lost(target, reason(status)),
        }
    }
}

fn page_limit(limit: usize) -> u32 {
    u32::try_from(limit.min(limits::PAGE)).unwrap_or(u32::MAX)
}

/// The most specific thing that can be said of a failed call.
fn reason(status: &Status) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    let mut reason = status.message().to_owned();
    while let Some(error) = cause {
        reason = error.to_string();
        cause = error.source();
    }
    printable(&reason)
}

/// Whether the connection was closed, as opposed to something strange being said on it.
fn has_hung_up(status: &Status) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(status);
    while let Some(error) = cause {
        let closed = [
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::ConnectionAborted,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::UnexpectedEof,
            // What `channel` says when it is asked to connect once more.
            io::ErrorKind::NotConnected,
        ];
        if error.downcast_ref().is_some_and(|error: &io::Error| closed.contains(&error.kind())) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Pictures of a program, one after the other.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    parts: Streaming<v1::Part>,
    assembler: Assembler,
}

impl Watch {
    /// Waits for the next picture. Holds, waits, actors and stacks are not in it: ask for those of the
    /// resource on screen.
    ///
    /// Pictures that are not asked for in time are skipped by the program. After an error the watch is over.
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped before it is ready loses nothing.
    ///
    /// # Errors
    ///
    /// If the connection is lost.
    pub async fn next(&mut self) -> Result<Picture, Error> {
        loop {
            let part = self.client.part(PATIENCE_LARGE, &mut self.parts).await?;
            let picture = self.assembler.add(part);
            if let Some(picture) = picture.map_err(|error| self.client.malformed(error))? {
                return Ok(picture);
            }
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens the one connection of a client.
async fn open(target: &Target) -> Result<Box<dyn Stream>, Error> {
    let stream = match target {
        Target::Tcp(address) => {
            let stream = tokio::net::TcpStream::connect(address.as_str()).await;
            stream.map(|stream| Box::new(stream) as Box<dyn Stream>)
        }
        Target::Socket(path) => unix(path).await,
        &Target::Pid(pid) => match discovery::socket_of(pid) {
            Some(path) => unix(&path).await,
            None if discovery::is_running(pid) => return Err(Error::NotServing(pid)),
            None => return Err(Error::NoSuchProcess(pid)),
        },
    };
    stream.map_err(|error| match (error.kind(), target) {
        (io::ErrorKind::NotFound, Target::Socket(path)) => Error::NoSocket(path.clone()),
        (io::ErrorKind::NotFound, &Target::Pid(pid)) => Error::NotServing(pid),
        (io::ErrorKind::ConnectionRefused, &Target::Pid(pid)) if discovery::is_running(pid) => {
            Error::NotServing(pid)
        }
        (io::ErrorKind::ConnectionRefused, _) => Error::Refused(target.clone()),
        (io::ErrorKind::PermissionDenied, _) => Error::Denied(target.clone()),
        _ => Error::Unreachable(target.clone(), error),
    })
}

#[cfg(not(unix))]
async fn unix(_: &std::path::Path) -> io::Result<Box<dyn Stream>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
async fn unix(path: &std::path::Path) -> io::Result<Box<dyn Stream>> {
    discovery::check_length(path)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

/// A channel over `stream`. When the connection ends the channel is dead: whoever wants another one says so.
async fn channel(stream: Box<dyn Stream>) -> Result<Channel, String> {
    let stream = Mutex::new(Some(stream));
    let once = tower::service_fn(move |_| {
        let stream = stream.lock().ok().and_then(|mut stream| stream.take());
        async { stream.map(TokioIo::new).ok_or(io::Error::from(io::ErrorKind::NotConnected)) }
    });
    let endpoint = Endpoint::from_static("http://holdup")
        .http2_keep_alive_interval(PULSE)
        .keep_alive_timeout(PULSE)
        .keep_alive_while_idle(true)
        // What is on its way grows old when the reader is slow.
        .initial_stream_window_size(WINDOW);
    endpoint.connect_with_connector(once).await.map_err(|error| error.to_string())
}
