//! What clients may ask, and what they are told.

use super::connection::{CLIENTS, Connection, Info};
use crate::{monitor, registry, stack};
use holdup_core::snapshot::{HoldId, Moment, ResourceId, StackId};
use holdup_proto::parts::{self, Current, Listed, Page, Parts, Told};
use holdup_proto::v1::diagnostics_server::{Diagnostics, DiagnosticsServer};
use holdup_proto::{PROTOCOL, limits, v1};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// Streams that one client may have open.
const STREAMS: u32 = 16;
/// Watches at a time, of all clients.
const WATCHES: usize = 2 * CLIENTS;
/// Large answers that are made or sent at a time, of all clients.
const LARGE: usize = 2;
/// How long a client may wait for its turn with a large answer.
const TURN: Duration = Duration::from_secs(20);
/// How long a client may take to fetch a part of a large answer.
const FETCH: Duration = Duration::from_secs(10);
/// How long a request may take to come in, and a small answer to be made.
const REQUEST: Duration = Duration::from_secs(10);
/// How often a silent client is asked for a sign of life, and how long it may take to give one.
const PULSE: Duration = Duration::from_secs(5);
/// The largest block of headers, in bytes.
const HEADERS: u32 = 16 * 1024;
/// For each unit of time spent on the pictures of a watch, this many are not.
const REST: u32 = 9;

/// Serves until the process ends.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    incoming: impl Stream<Item = io::Result<Connection<S>>>,
) {
    let service =
        Service { watches: Semaphore::new(WATCHES).into(), large: Semaphore::new(LARGE).into() };
    let service = DiagnosticsServer::new(service)
        .max_decoding_message_size(limits::REQUEST)
        .max_encoding_message_size(limits::MESSAGE);
    let server = Server::builder()
        .max_concurrent_streams(STREAMS)
        .timeout(REQUEST)
        .http2_keepalive_interval(Some(PULSE))
        .http2_keepalive_timeout(Some(PULSE))
        .http2_max_header_list_size(HEADERS)
        .add_service(InterceptedService::new(service, welcome));
    // An error would be one of the incoming connections, which has none that ends the service.
    let _ = server.serve_with_incoming(incoming).await;
}

/// Lets in those whose connection is within the limit.
fn welcome(request: Request<()>) -> Result<Request<()>, Status> {
    match request.extensions().get::<Info>() {
        Some(Info { welcome: false }) => {
            Err(Status::resource_exhausted(format!("{CLIENTS} clients are attached already")))
        }
        _ => Ok(request),
    }
}

struct Service {
    watches: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

type Sender = mpsc::Sender<Result<v1::Part, Status>>;
type PartStream = ReceiverStream<Result<v1::Part, Status>>;

#[tonic::async_trait]
impl Diagnostics for Service {
    type WatchStream = PartStream;
    type SnapshotStream = PartStream;
    type StacksStream = PartStream;

    async fn hello(
        &self,
        _: Request<v1::HelloRequest>,
    ) -> Result<Response<v1::HelloResponse>, Status> {
        let process = Some((&registry::process()).into());
        Ok(Response::new(v1::HelloResponse { protocol: PROTOCOL, process }))
    }

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<PartStream>, Status> {
        let place = Arc::clone(&self.watches).try_acquire_owned();
        let place = place.map_err(|_| {
            Status::resource_exhausted(format!("{WATCHES} watches are open already"))
        })?;
        let interval = interval(request.into_inner().interval_ms);
        let (sender, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            watch(&sender, interval).await;
            drop(place);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<PartStream>, Status> {
        let names = request.into_inner().names;
        Ok(self.large(move || {
            let mut snapshot = registry::snapshot();
            if names {
                snapshot.stacks = stack::stacks(snapshot.stacks.iter().map(|stack| stack.id));
                snapshot.sites = registry::sites();
            }
            Parts::of_snapshot(snapshot, monitor::findings())
        }))
    }

    async fn stacks(
        &self,
        request: Request<v1::StacksRequest>,
    ) -> Result<Response<PartStream>, Status> {
        let ids = request.into_inner().ids;
        if ids.len() > limits::STACKS {
            return Err(Status::invalid_argument(format!(
                "at most {} stacks at a time",
                limits::STACKS
            )));
        }
        Ok(self.large(move || Parts::of_stacks(stack::stacks(ids.into_iter().map(StackId)))))
    }

    async fn holds(
        &self,
        request: Request<v1::HoldsRequest>,
    ) -> Result<Response<v1::HoldsResponse>, Status> {
        let request = request.into_inner();
        let limit = page_limit(request.limit);
        let after = request.after.map(|after| (Moment(after.since), HoldId(after.id)));
        let taken = registry::now().0;
        let holds =
            registry::holds(ResourceId(request.resource), after, limit).ok_or_else(no_resource)?;
        let Page { records: holds, more, sites, actors } = page(&holds, limit);
        Ok(Response::new(v1::HoldsResponse { taken, holds, more, sites, actors }))
    }

    async fn waits(
        &self,
        request: Request<v1::WaitsRequest>,
    ) -> Result<Response<v1::WaitsResponse>, Status> {
        let request = request.into_inner();
        let limit = page_limit(request.limit);
        let skip = usize::try_from(request.skip).unwrap_or(usize::MAX);
        let taken = registry::now().0;
        let waits =
            registry::waits(ResourceId(request.resource), skip, limit).ok_or_else(no_resource)?;
        let Page { records: waits, more, sites, actors } = page(&waits, limit);
        Ok(Response::new(v1::WaitsResponse { taken, waits, more, sites, actors }))
    }
}

impl Service {
    /// Sends what `make` makes when its turn has come, on a thread of its own: it may take a second.
    fn large(&self, make: impl FnOnce() -> Parts + Send + 'static) -> Response<PartStream> {
        let turns = Arc::clone(&self.large);
        let (sender, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            if let Err(status) = send_large(&turns, make, &sender).await {
                // If there is no room, the client does not read, and sees an end without the last part.
                let _ = sender.try_send(Err(status));
            }
        });
        Response::new(ReceiverStream::new(stream))
    }
}

async fn send_large(
    turns: &Semaphore,
    make: impl FnOnce() -> Parts + Send + 'static,
    sender: &Sender,
) -> Result<(), Status> {
    let turn = timeout(TURN, turns.acquire()).await;
    let _turn =
        turn.map_err(|_| Status::resource_exhausted("other clients' answers take too long"))?;
    let (made, parts) = oneshot::channel();
    std::thread::Builder::new()
        .name("holdup-server".to_owned())
        .spawn(move || {
            let _quiet = super::quiet();
            let _ = made.send(make());
        })
        .map_err(|error| {
            Status::resource_exhausted(format!("the program cannot start a thread: {error}"))
        })?;
    let parts = parts.await.map_err(|_| Status::internal("the answer could not be made"))?;
    for part in parts {
        match timeout(FETCH, sender.send(Ok(part))).await {
            Ok(Ok(())) => {}
            // The client has gone.
            Ok(Err(_)) => break,
            Err(_) => {
                return Err(Status::deadline_exceeded("the client does not fetch its answer"));
            }
        }
    }
    Ok(())
}

/// Tells a client what is new, as often as it wants to know, until it goes away.
async fn watch(sender: &Sender, interval: Duration) {
    let mut told = Told::default();
    let mut changes = monitor::changes();
    // A picture is taken only when there is room for it: whoever does not read gets no old ones.
    while let Ok(room) = sender.reserve().await {
        let start = Instant::now();
        changes.mark_unchanged();
        let mut parts = told.next(Current {
            taken: registry::now(),
            process: registry::process(),
            resources: registry::resources(),
            // After the resources: they refer to sites that are listed by then.
            sites: &registry::sites(),
            findings: monitor::findings(),
            dropped: registry::dropped(),
        });
        let cost = start.elapsed();
        if let Some(part) = parts.next() {
            room.send(Ok(part));
        }
        for part in parts {
            if sender.send(Ok(part)).await.is_err() {
                return;
            }
        }
        let rest = cost * REST;
        // A finding is told at once, but not more often than pictures may be asked for.
        let soon = limits::INTERVAL_MIN.saturating_sub(start.elapsed()).max(rest);
        let pause = interval.saturating_sub(start.elapsed()).max(rest).saturating_sub(soon);
        if timeout(soon, sender.closed()).await.is_ok() {
            return;
        }
        let (mut closed, mut changed) = (pin!(sender.closed()), pin!(changes.changed()));
        let gone = poll_fn(|cx| match closed.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => changed.as_mut().poll(cx).map(|_| false),
        });
        if timeout(pause, gone).await.is_ok_and(|gone| gone) {
            return;
        }
    }
}

fn interval(milliseconds: u32) -> Duration {
    match milliseconds {
        0 => limits::INTERVAL,
        wanted => {
            Duration::from_millis(wanted.into()).clamp(limits::INTERVAL_MIN, limits::INTERVAL_MAX)
        }
    }
}

fn page_limit(wanted: u32) -> usize {
    match usize::try_from(wanted) {
        Ok(wanted @ 1..=limits::PAGE) => wanted,
        _ => limits::PAGE,
    }
}

fn page<T: Listed>(records: &[T], limit: usize) -> Page<T::Wire> {
    let actors = registry::actors(records.iter().flat_map(Listed::actors));
    parts::page(records, limit, &registry::sites(), &actors)
}

fn no_resource() -> Status {
    Status::not_found("no such resource")
}
