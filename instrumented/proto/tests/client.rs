//! What a client says of counterparts that are not well, or not holdup.

#![cfg(unix)]

use holdup_core::snapshot::{ResourceId, StackId};
use holdup_proto::client::{Client, Error, Target};
use holdup_proto::v1::diagnostics_server::{Diagnostics, DiagnosticsServer};
use holdup_proto::{PROTOCOL, limits, v1};
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::{Request, Response, Status};

type Parts = ReceiverStream<Result<v1::Part, Status>>;

/// Says these things, whether they are right or not.
#[derive(Clone)]
struct Fake {
    hello: v1::HelloResponse,
    parts: Vec<v1::Part>,
}

impl Default for Fake {
    fn default() -> Self {
        let process = v1::Process { pid: 1, version: "0.9.9".to_owned(), ..v1::Process::default() };
        Self {
            hello: v1::HelloResponse { protocol: PROTOCOL, process: Some(process) },
            parts: Vec::new(),
        }
    }
}

impl Fake {
    fn parts(&self) -> Response<Parts> {
        let (sender, receiver) = tokio::sync::mpsc::channel(self.parts.len().max(1));
        for part in self.parts.clone() {
            sender.try_send(Ok(part)).expect("there is room");
        }
        Response::new(ReceiverStream::new(receiver))
    }
}

#[tonic::async_trait]
impl Diagnostics for Fake {
    type WatchStream = Parts;
    type SnapshotStream = Parts;
    type StacksStream = Parts;

    async fn hello(
        &self,
        _: Request<v1::HelloRequest>,
    ) -> Result<Response<v1::HelloResponse>, Status> {
        Ok(Response::new(self.hello.clone()))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Result<Response<Parts>, Status> {
        Ok(self.parts())
    }

    async fn snapshot(&self, _: Request<v1::SnapshotRequest>) -> Result<Response<Parts>, Status> {
        Ok(self.parts())
    }

    async fn stacks(&self, _: Request<v1::StacksRequest>) -> Result<Response<Parts>, Status> {
        Ok(self.parts())
    }

    async fn holds(
        &self,
        _: Request<v1::HoldsRequest>,
    ) -> Result<Response<v1::HoldsResponse>, Status> {
        Err(Status::not_found("no such resource"))
    }

    async fn waits(
        &self,
        _: Request<v1::WaitsRequest>,
    ) -> Result<Response<v1::WaitsResponse>, Status> {
        Err(Status::internal("an \x1b[31mescape\x07"))
    }
}

struct Counterpart {
    folder: tempfile::TempDir,
}

impl Counterpart {
    fn target(&self) -> Target {
        Target::Socket(self.socket())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn listener() -> (Self, UnixListener) {
        let this = Self { folder: tempfile::tempdir().expect("a folder") };
        let listener = UnixListener::bind(this.socket()).expect("a socket");
        (this, listener)
    }

    fn fake(fake: Fake) -> Self {
        let (this, listener) = Self::listener();
        let server = tonic::transport::Server::builder().add_service(DiagnosticsServer::new(fake));
        tokio::spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
        this
    }

    /// Does as it likes with the one connection that comes.
    fn raw<F: Future<Output = ()> + Send>(
        talk: impl FnOnce(UnixStream) -> F + Send + 'static,
    ) -> Self {
        let (this, listener) = Self::listener();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a connection");
            talk(stream).await;
        });
        this
    }

    async fn attach(&self) -> Client {
        Client::connect(&self.target()).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Checks what is said when one attaches, apart from the path.
    #[track_caller]
    fn check<T>(&self, result: Result<T, Error>, said: &str) {
        let Err(error) = result else { panic!("there is no error") };
        let error = error.to_string().replace(&self.socket().display().to_string(), "SOCKET");
        assert_eq!(error, said);
    }
}

#[tokio::test]
async fn another_version_is_called_by_its_name() {
    let mut fake = Fake::default();
    fake.hello.protocol = PROTOCOL + 1;
    let other = Counterpart::fake(fake);
    other.check(
        Client::connect(&other.target()).await,
        &format!(
            "version mismatch: SOCKET has holdup 0.9.9 (protocol {}), this is holdup {} (protocol {PROTOCOL}): \
             use the same version on both sides",
            PROTOCOL + 1,
            env!("CARGO_PKG_VERSION"),
        ),
    );
}

#[tokio::test]
async fn what_is_no_holdup_service_is_told_apart() {
    let http1 = Counterpart::raw(async |mut stream| {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let Err(error) = Client::connect(&http1.target()).await else { panic!("it is no holdup") };
    assert!(matches!(error, Error::NotHoldup(..)), "{error}");

    let hangs_up = Counterpart::raw(async |_| ());
    hangs_up.check(
        Client::connect(&hangs_up.target()).await,
        "SOCKET hung up: the program is about to end or has too many clients, or it is no holdup service",
    );
    let hangs_up_later = Counterpart::raw(async |mut stream| {
        let _ = stream.read(&mut [0; 1024]).await;
    });
    hangs_up_later.check(
        Client::connect(&hangs_up_later.target()).await,
        "SOCKET hung up: the program is about to end or has too many clients, or it is no holdup service",
    );

    let silent = Counterpart::raw(async |_stream| std::future::pending().await);
    silent.check(
        Client::connect(&silent.target()).await,
        "SOCKET does not answer: the program may be stopped, or no holdup service",
    );
}

#[tokio::test]
async fn what_is_not_there_is_told_apart() {
    let (gone, listener) = Counterpart::listener();
    drop(listener);
    gone.check(
        Client::connect(&gone.target()).await,
        "nobody listens at SOCKET any more: the program that did has ended",
    );
    std::fs::remove_file(gone.socket()).expect("it was there");
    gone.check(Client::connect(&gone.target()).await, "no such socket: SOCKET");

    let this = std::process::id();
    gone.check(
        Client::connect(&Target::Pid(this)).await,
        &format!(
            "process {this} runs without a holdup service: start it with `holdup run -- CMD` or with \
             HOLDUP_SERVE=1, or call `holdup::init()` in it"
        ),
    );
    let nobody = i32::MAX.unsigned_abs();
    gone.check(Client::connect(&Target::Pid(nobody)).await, &format!("no such process: {nobody}"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a free port").to_string();
    gone.check(
        Client::connect(&port.parse().expect("a target")).await,
        &format!("nobody listens at {port}"),
    );
    let long = Target::Socket("x/".repeat(60).into());
    let Err(error) = Client::connect(&long).await else { panic!("it is too long") };
    assert!(error.to_string().contains("name a shorter folder"), "{error}");
}

#[test]
fn targets_are_told_apart() {
    for (text, target) in [
        ("4711", Target::Pid(4711)),
        ("./4711", Target::Socket("./4711".into())),
        (
            "/run/user/1000/holdup/4711.sock",
            Target::Socket("/run/user/1000/holdup/4711.sock".into()),
        ),
        ("4711.sock", Target::Socket("4711.sock".into())),
        ("localhost:6669", Target::Tcp("localhost:6669".into())),
        ("[::1]:6669", Target::Tcp("[::1]:6669".into())),
    ] {
        assert_eq!(text.parse::<Target>().expect(text), target);
    }
    for text in ["", "checkout", ":6669", "host:", "host:99999", "99999999999", "-1"] {
        let error = text.parse::<Target>().expect_err(text);
        assert!(error.to_string().contains("is neither a process id"), "{error}");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_true_are_errors() {
    let head = || Some(v1::Head { revision: 1, findings_told: true, ..v1::Head::default() });
    let hold = v1::Hold { id: 1, ..v1::Hold::default() };
    let huge = v1::Resource { initial: u64::MAX, added: 1, ..v1::Resource::default() };
    let finding = v1::Finding { marks: vec![v1::Mark::default()], ..v1::Finding::default() };
    let findings = vec![v1::Finding::default(); limits::FINDINGS + 1];
    for (part, said) in [
        (v1::Part::default(), "a picture without a head"),
        (
            v1::Part { head: head(), holds: vec![hold], ..v1::Part::default() },
            "an actor without an id",
        ),
        (
            v1::Part { head: head(), resources: vec![huge], ..v1::Part::default() },
            "a resource of impossible size",
        ),
        (
            v1::Part { head: head(), findings: vec![finding], ..v1::Part::default() },
            "a mark without a site",
        ),
        (v1::Part { head: head(), findings, ..v1::Part::default() }, "too many findings"),
    ] {
        let other = Counterpart::fake(Fake { parts: vec![part], ..Fake::default() });
        let client = other.attach().await;
        let said = format!("SOCKET sent a malformed message: {said}");
        other.check(client.snapshot(false).await, &said);
        let mut watch = client.watch(limits::INTERVAL).await.expect("a watch");
        other.check(watch.next().await, &said);
    }

    let begun = v1::Part { head: head(), more: true, ..v1::Part::default() };
    let other =
        Counterpart::fake(Fake { parts: vec![begun.clone(), begun.clone()], ..Fake::default() });
    other.check(
        other.attach().await.snapshot(false).await,
        "SOCKET sent a malformed message: a picture that begins within another",
    );
    let other = Counterpart::fake(Fake { parts: vec![begun], ..Fake::default() });
    other.check(
        other.attach().await.snapshot(false).await,
        "connection to SOCKET lost: the program ended the transfer",
    );
    let stacks = vec![v1::Stack::default(); 2];
    let other = Counterpart::fake(Fake {
        parts: vec![v1::Part { stacks, ..v1::Part::default() }],
        ..Fake::default()
    });
    other.check(
        other.attach().await.stacks(&[StackId(1)]).await,
        "SOCKET sent a malformed message: stacks nobody asked for",
    );
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused() {
    let file = "f".repeat(limits::MESSAGE);
    let part =
        v1::Part { sites: vec![v1::Site { file, ..v1::Site::default() }], ..v1::Part::default() };
    let other = Counterpart::fake(Fake { parts: vec![part], ..Fake::default() });
    let Err(error) = other.attach().await.snapshot(false).await else { panic!("it is too large") };
    assert!(error.to_string().contains("message length too large"), "{error}");
}

#[tokio::test]
async fn what_the_service_says_is_fit_for_a_terminal() {
    let other = Counterpart::fake(Fake::default());
    let client = other.attach().await;
    other.check(client.holds(ResourceId(7), None, 1).await, "resource 7 is no more");
    other.check(
        client.waits(ResourceId(7), 0, 1).await,
        "connection to SOCKET lost: an  [31mescape ",
    );
}

#[tokio::test]
async fn a_lost_connection_is_an_error_and_nobody_reconnects() {
    let (this, listener) = Counterpart::listener();
    let fake = Fake {
        parts: vec![v1::Part { head: Some(v1::Head::default()), ..v1::Part::default() }],
        ..Fake::default()
    };
    let server = tonic::transport::Server::builder().add_service(DiagnosticsServer::new(fake));
    // Passes on what is said until the test cuts it.
    let (cut, is_cut) = tokio::sync::oneshot::channel::<()>();
    let (mut near, far) = UnixStream::pair().expect("a pair");
    let relay = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a connection");
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut near) => {}
            _ = is_cut => {}
        }
        listener
    });
    tokio::spawn(server.serve_with_incoming(tokio_stream::once(Ok::<_, std::io::Error>(far))));

    let client = this.attach().await;
    let mut watch = client.watch(limits::INTERVAL).await.expect("a watch");
    watch.next().await.expect("a picture");
    cut.send(()).expect("the connection is there");
    let listener = relay.await.expect("it ends");
    let Err(error) = watch.next().await else { panic!("it was cut") };
    assert!(matches!(error, Error::Lost(..)), "{error}");
    let Err(error) = client.snapshot(false).await else { panic!("it was cut") };
    assert!(matches!(error, Error::Lost(..)), "{error}");
    let listener = listener.into_std().expect("still open");
    let again = listener.accept().expect_err("nobody has tried to connect");
    assert_eq!(again.kind(), std::io::ErrorKind::WouldBlock);
}
