//! Who may come in, how many, and how long somebody may say nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// Clients that are served at a time.
pub(super) const CLIENTS: usize = 16;
/// Further connections, which are told that there are too many.
const CROWD: usize = 8;
/// How long a connection may take to begin to speak HTTP/2; after that it is asked for signs of life.
const GREETING: Duration = Duration::from_secs(5);
/// How long a connection may take nothing of what is said to it, once its buffers are full.
const STALL: Duration = Duration::from_secs(10);
/// The bytes that an HTTP/2 client sends first.
const PREFACE: usize = 24;
/// The pause after a connection that could not be accepted, because the process has no more files for example.
const PAUSE: Duration = Duration::from_millis(200);

/// Something that connections come from.
pub(super) trait Listen: Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(unix)]
impl Listen for tokio::net::UnixListener {
    type Stream = super::socket::Stream;

    async fn accept(&self) -> io::Result<Self::Stream> {
        Ok(super::socket::Stream::new(tokio::net::UnixListener::accept(self).await?.0))
    }
}

/// The connections that come in. Beyond the limits they are closed at once.
pub(super) fn accept<L: Listen>(listener: L) -> ReceiverStream<io::Result<Connection<L::Stream>>> {
    let (accepted, incoming) = mpsc::channel(1);
    let places = Arc::new(Semaphore::new(CLIENTS));
    let crowd = Arc::new(Semaphore::new(CROWD));
    tokio::spawn(async move {
        loop {
            let Ok(stream) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (place, welcome) = match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => (Some(place), true),
                Err(_) => (Arc::clone(&crowd).try_acquire_owned().ok(), false),
            };
            let Some(place) = place else { continue };
            let greeting = Some(Box::pin(tokio::time::sleep(GREETING)));
            let connection =
                Connection { stream, welcome, greeting, heard: 0, stall: None, _place: place };
            if accepted.send(Ok(connection)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(incoming)
}

/// A connection, until it is closed.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    welcome: bool,
    /// Runs until the client has greeted.
    greeting: Option<Pin<Box<Sleep>>>,
    heard: usize,
    /// Runs while what is said is not taken. HTTP/2's own pings are of no help then: they cannot be said.
    stall: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// What a request knows of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    /// It is within the limit.
    pub(super) welcome: bool,
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Info;

    fn connect_info(&self) -> Info {
        Info { welcome: self.welcome }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Some(greeting) = &mut self.greeting {
            if read.is_pending() {
                return greeting.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
            }
            self.heard += buf.filled().len() - before;
            if self.heard >= PREFACE {
                self.greeting = None;
            }
        }
        read
    }
}

impl<S> Connection<S> {
    /// Passes on what came of writing, unless that has been pending for too long.
    fn unless_stalled<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        stall.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.unless_stalled(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
