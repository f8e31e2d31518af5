//! The service that the terminal app attaches to.
//!
//! It has a thread and a runtime of its own, so it answers while every thread of the program is stuck, and a
//! client cannot slow the program down: whoever reads slowly misses pictures. It reads these environment
//! variables, when it is started:
//!
//! | variable | meaning |
//! |---|---|
//! | `HOLDUP=off` | nothing is started |
//! | `HOLDUP_SERVE=1` | the service starts at the first use of an instrumented type, without any code |
//! | `HOLDUP_BIND` | listen on this TCP port, or `address:port`, instead of a Unix socket; a port alone, or `:port`, stands for 127.0.0.1 |
//! | `HOLDUP_SOCKET_DIR` | the folder of the Unix socket; without it, see [`holdup_proto::discovery`] |

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
#[path = "instrumented.rs"]
mod door;
#[cfg(not(all(not(holdup_off), any(debug_assertions, feature = "always-on"))))]
#[path = "passthrough.rs"]
mod door;

#[cfg(all(not(holdup_off), any(debug_assertions, feature = "always-on")))]
pub(crate) use door::start_from_env;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serves this process to the terminal app, until it ends; a second call returns the same service.
///
/// By default the service listens on a Unix socket that only this user can reach, where the app finds it by
/// itself. It has a thread and a runtime of its own, so it can be called before there is a runtime, and it
/// answers while all threads of the program are stuck. It costs nothing while nobody is attached. After a
/// fork, a child is served only if it calls this, too.
///
/// # Environment
///
/// `HOLDUP=off` starts nothing. `HOLDUP_BIND=PORT` or `HOLDUP_BIND=ADDRESS:PORT` listens on TCP instead: the
/// port alone is open to this machine only. Everybody who can connect can see what the program waits for.
/// `HOLDUP_SOCKET_DIR=FOLDER` names the folder of the socket, in place of `$XDG_RUNTIME_DIR/holdup` or, without
/// that, `holdup-UID` under the temp directory; nobody else may have access to it.
///
/// # Errors
///
/// If it cannot listen there: the folder cannot be made or is open to others, the port is taken, or there are
/// no threads or files left. The program can go on without.
///
/// # Examples
///
/// ```no_run
/// match holdup::init() {
///     Ok(service) => {
///         if let Some(address) = service.address() {
///             println!("look inside with: holdup {address}");
///         }
///     }
///     Err(error) => eprintln!("holdup: {error}"),
/// }
/// ```
pub fn init() -> Result<Service, InitError> {
    door::start()
}

/// The service of this process.
///
/// It goes on serving when this is dropped, until the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    address: Option<Address>,
}

impl Service {
    /// Where it listens; `None` if holdup is turned off, by `HOLDUP=off` or in this build.
    #[must_use]
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }
}

/// Where the service listens. What it displays as is a TARGET for `holdup`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A TCP port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// Why the service could not be started. The program can go on without.
#[derive(Debug)]
pub struct InitError {
    what: String,
    source: Option<io::Error>,
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
