//! The Unix socket: made in a folder that only its user may enter, without signals, and removed at the end.

use crate::server::InitError;
use holdup_proto::discovery;
use rustix::net::SendFlags;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// How long a listener may take to let us in before it counts as alive.
const KNOCK: Duration = Duration::from_secs(1);
/// Left-over sockets that one start removes.
const SWEEP: usize = 64;

/// Listens on a socket of this process in the first of `folders` that will do.
pub(super) async fn bind(folders: &[PathBuf]) -> Result<(UnixListener, PathBuf), InitError> {
    let mut reasons = Vec::new();
    for folder in folders {
        match bind_in(folder).await {
            Ok(bound) => return Ok(bound),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(InitError::new(reasons.join("; ")))
}

async fn bind_in(folder: &Path) -> Result<(UnixListener, PathBuf), InitError> {
    prepare(folder)?;
    let pid = std::process::id();
    let path = folder.join(discovery::file_name(pid));
    discovery::check_length(&path).map_err(|error| InitError::new(error.to_string()))?;
    // A process of this number has ended long ago, or runs where processes have other numbers.
    if fs::symlink_metadata(&path).is_ok() && !refuses(&path).await {
        return Err(InitError::new(format!("another program listens on {}", path.display())));
    }
    // Made under another name and moved, so that clients find it only when it answers and has its mode. The
    // name is not longer than the final one.
    let making = folder.join(format!("{pid}.new"));
    let listener = make(&making).and_then(|listener| {
        fs::rename(&making, &path)?;
        Ok(listener)
    });
    let listener = listener.map_err(|error| {
        let _ = fs::remove_file(&making);
        InitError::io(format!("cannot make a socket in {}", folder.display()), error)
    })?;
    remove_at_exit(pid, &path);
    Ok((listener, path))
}

fn make(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Makes the folder, or makes sure that it is ours alone.
fn prepare(folder: &Path) -> Result<(), InitError> {
    let shown = folder.display();
    let cannot = |error| InitError::io(format!("cannot make the folder {shown}"), error);
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        // The process's mask may have taken away more.
        Ok(()) => {
            return fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(cannot);
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(cannot(error)),
    }
    let found = fs::symlink_metadata(folder).map_err(cannot)?;
    let mode = found.mode() & 0o777;
    if !found.is_dir() {
        return Err(InitError::new(format!("{shown} is no folder")));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(InitError::new(format!("the folder {shown} belongs to another user")));
    }
    if mode & 0o077 != 0 {
        return Err(InitError::new(format!(
            "others may enter the folder {shown} (mode {mode:03o}): `chmod 700` it, or name another one with {}",
            discovery::SOCKET_DIR
        )));
    }
    Ok(())
}

/// Whether nobody listens on the socket any more.
async fn refuses(path: &Path) -> bool {
    match timeout(KNOCK, UnixStream::connect(path)).await {
        Ok(Err(error)) => error.kind() == ErrorKind::ConnectionRefused,
        Ok(Ok(_)) | Err(_) => false,
    }
}

/// Removes what processes left over that could not clean up.
pub(super) async fn sweep(folders: &[PathBuf]) {
    let left_over = folders.iter().flat_map(|folder| discovery::left_over(folder));
    for found in left_over.take(SWEEP) {
        if refuses(&found.socket).await {
            let _ = fs::remove_file(&found.socket);
        }
    }
}

/// A connection that raises no signal when the other side has hung up: a program that leaves SIGPIPE as it
/// is by default would end.
#[derive(Debug)]
pub(super) struct Stream(UnixStream);

impl Stream {
    pub(super) fn new(stream: UnixStream) -> Self {
        Stream(stream)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Elsewhere the flag is an option of the socket, which is set already.
        #[cfg(not(target_vendor = "apple"))]
        const QUIETLY: SendFlags = SendFlags::NOSIGNAL;
        #[cfg(target_vendor = "apple")]
        const QUIETLY: SendFlags = SendFlags::empty();
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            let sent =
                self.0.try_io(Interest::WRITABLE, || Ok(rustix::net::send(&self.0, buf, QUIETLY)?));
            match sent {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The socket that this process has made.
static OWN: Mutex<Option<(u32, PathBuf)>> = Mutex::new(None);

#[expect(unsafe_code, reason = "std has no way to do something at the end of the process")]
mod exit {
    // SAFETY: the signature is that of the C standard, and the call has no requirements.
    unsafe extern "C" {
        pub(super) safe fn atexit(callback: extern "C" fn()) -> std::ffi::c_int;
    }
}

/// Remembers to remove the socket when the process ends in an orderly way. Otherwise the next one does.
fn remove_at_exit(pid: u32, path: &Path) {
    if let Ok(mut own) = OWN.lock() {
        let first = own.is_none();
        *own = Some((pid, path.to_owned()));
        // A forked child inherits the callback with the memory.
        if first {
            exit::atexit(remove_own);
        }
    }
}

extern "C" fn remove_own() {
    // Nothing waits and nothing panics at the end of a process.
    if let Ok(own) = OWN.try_lock()
        && let Some((pid, path)) = &*own
        && *pid == std::process::id()
    {
        let _ = fs::remove_file(path);
    }
}
