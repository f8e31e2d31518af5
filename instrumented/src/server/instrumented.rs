//! Serves what the books tell.

mod address;
mod connection;
mod service;
#[cfg(unix)]
mod socket;

use super::{Address, InitError, Service};
use crate::config;
use address::Bind;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long starting may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl InitError {
    fn new(what: impl Into<String>) -> Self {
        InitError { what: what.into(), source: None }
    }

    fn io(what: impl Into<String>, source: io::Error) -> Self {
        InitError { what: what.into(), source: Some(source) }
    }
}

/// The service that runs, and the process that it runs in: a forked child inherits the memory, not the thread.
static RUNNING: Mutex<Option<(u32, Service)>> = Mutex::new(None);

/// Starts the service, or returns the one that runs.
pub(super) fn start() -> Result<Service, InitError> {
    if !config::get().on {
        return Ok(Service { address: None });
    }
    let pid = std::process::id();
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, service)) = &*running
        && *owner == pid
    {
        return Ok(service.clone());
    }
    let bind = Bind::from_env()?;
    let (ready, started) = sync_channel(1);
    std::thread::Builder::new()
        .name("holdup-server".to_owned())
        .spawn(move || run(bind, &ready))
        .map_err(|error| InitError::io("cannot start a thread for the service", error))?;
    let address = started
        .recv_timeout(PATIENCE)
        .map_err(|_| InitError::new("the service does not start"))??;
    let service = Service { address: Some(address) };
    *running = Some((pid, service.clone()));
    Ok(service)
}

/// Starts the service at the first use of an instrumented type, if `HOLDUP_SERVE=1` says so.
///
/// Cheap when it is called again, which a forked child does for itself.
pub(crate) fn start_from_env() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    if ASKED.load(Ordering::Relaxed) == pid || ASKED.swap(pid, Ordering::Relaxed) == pid {
        return;
    }
    if std::env::var_os("HOLDUP_SERVE").is_some_and(|value| value == "1")
        && let Err(error) = start()
    {
        // Not `eprintln!`, which panics where nobody reads.
        let _ = writeln!(io::stderr(), "holdup: cannot be attached to: {error}");
    }
}

/// Keeps what the current thread does out of what the program traces.
fn quiet() -> tracing::dispatcher::DefaultGuard {
    // A subscriber that ignores everything would do so, too, but every callsite of the program would ask it.
    tracing::dispatcher::set_default(&tracing::Dispatch::none())
}

/// The service's thread.
fn run(bind: Bind, ready: &SyncSender<Result<Address, InitError>>) {
    let _quiet = quiet();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(InitError::io("cannot start a runtime for the service", error)));
            return;
        }
    };
    runtime.block_on(async {
        match bind {
            Bind::Tcp(address) => {
                let listener = match tokio::net::TcpListener::bind(address).await {
                    Ok(listener) => listener,
                    Err(error) => {
                        let _ = ready
                            .send(Err(InitError::io(format!("cannot listen on {address}"), error)));
                        return;
                    }
                };
                let address = listener.local_addr().unwrap_or(address);
                let _ = ready.send(Ok(Address::Tcp(address)));
                service::serve(connection::accept(listener)).await;
            }
            #[cfg(unix)]
            Bind::Socket(folders) => match socket::bind(&folders).await {
                Ok((listener, path)) => {
                    let _ = ready.send(Ok(Address::Socket(path)));
                    socket::sweep(&folders).await;
                    service::serve(connection::accept(listener)).await;
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            },
        }
    });
}
