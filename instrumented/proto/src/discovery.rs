//! Where the sockets of running programs are.
//!
//! A program under holdup listens on `<pid>.sock` in a folder that only its user may enter: the one that
//! `HOLDUP_SOCKET_DIR` names, or `$XDG_RUNTIME_DIR/holdup`, or `holdup-<uid>` under the temp directory.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder, for the program as for its clients.
pub const SOCKET_DIR: &str = "HOLDUP_SOCKET_DIR";

/// The folders that sockets may be in, the preferred one first; never empty.
///
/// A program uses the first in which it can make a socket, a client looks into all.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set(SOCKET_DIR) {
        return vec![folder];
    }
    let runtime = set("XDG_RUNTIME_DIR").filter(|folder| folder.is_absolute());
    let mut folders: Vec<_> = runtime.map(|folder| folder.join("holdup")).into_iter().collect();
    folders.push(temporary(user()));
    folders
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Where users have no numbers, nobody listens on sockets, either.
#[cfg(not(unix))]
fn user() -> u32 {
    0
}

fn temporary(user: u32) -> PathBuf {
    env::temp_dir().join(format!("holdup-{user}"))
}

/// The name of the socket of the process `pid` in its folder.
#[must_use]
pub fn file_name(pid: u32) -> String {
    format!("{pid}.sock")
}

/// A socket that was found in one of the [`folders`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The process that made it.
    pub pid: u32,
    /// The process's name, where the system tells it.
    pub name: Option<String>,
    /// The socket.
    pub socket: PathBuf,
}

/// The sockets of processes that run, by pid.
///
/// Folders that are missing have no sockets, and another user's folder is not looked into.
/// Left-over sockets of processes that have ended are skipped. What answers on a socket is not known until
/// a client connects.
#[must_use]
pub fn running() -> Vec<Found> {
    running_in(&folders())
}

/// The sockets in `folders` of processes that run, by pid.
#[must_use]
pub fn running_in(folders: &[PathBuf]) -> Vec<Found> {
    let mut found: Vec<_> = folders.iter().flat_map(|folder| sockets(folder)).collect();
    found.retain(|it| is_running(it.pid));
    found.sort_by_key(|it| it.pid);
    found.dedup_by_key(|it| it.pid);
    for it in &mut found {
        it.name = name(it.pid);
    }
    found
}

/// The sockets of processes that have ended, by pid, left over in `folder`.
#[must_use]
pub fn left_over(folder: &Path) -> Vec<Found> {
    let mut found = sockets(folder);
    found.retain(|it| !is_running(it.pid));
    found.sort_by_key(|it| it.pid);
    found
}

/// The socket of the process `pid`, if there is one.
///
/// For another user's process, his folders are looked into as well: an administrator may enter them.
#[must_use]
pub fn socket_of(pid: u32) -> Option<PathBuf> {
    let mut places = folders();
    if let Some(owner) = owner(pid).filter(|&owner| owner != user()) {
        places.push(PathBuf::from(format!("/run/user/{owner}/holdup")));
        places.push(temporary(owner));
    }
    let mut sockets = places.into_iter().map(|folder| folder.join(file_name(pid)));
    // A folder that may not be entered cannot be looked into: connecting then tells why.
    sockets.find(|socket| match fs::symlink_metadata(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    })
}

/// Whether the process `pid` runs.
#[cfg(not(unix))]
#[must_use]
pub fn is_running(_: u32) -> bool {
    true
}

/// Whether the process `pid` runs.
#[cfg(unix)]
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(rustix::io::Errno::PERM) => true,
        Err(_) => false,
    }
}

/// The name of the process `pid`, where the system tells it.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Who runs the process `pid`, where the system tells it.
fn owner(pid: u32) -> Option<u32> {
    user_of(&fs::metadata(format!("/proc/{pid}")).ok()?)
}

#[cfg(unix)]
fn user_of(file: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(file))
}

#[cfg(not(unix))]
fn user_of(_: &fs::Metadata) -> Option<u32> {
    None
}

/// Whether nobody else has put something there. An administrator may look at everybody's.
fn is_trusted(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| user() == 0 || user_of(&found) == Some(user()))
}

fn sockets(folder: &Path) -> Vec<Found> {
    if !is_trusted(folder) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let sockets = entries.filter_map(|entry| {
        let socket = entry.ok()?.path();
        let pid = socket.file_name()?.to_str()?.strip_suffix(".sock")?;
        let pid = pid.parse().ok()?;
        // `007.sock` is none of ours.
        (file_name(pid) == socket.file_name()?.to_str()?).then_some(Found {
            pid,
            name: None,
            socket,
        })
    });
    sockets.collect()
}

/// The longest path that a Unix socket may have on this system, in bytes.
pub const PATH_LIMIT: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// A path that is too long for a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTooLong(PathBuf);

impl fmt::Display for PathTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.display();
        let length = self.0.as_os_str().len();
        write!(
            f,
            "the path {path} has {length} bytes, and a socket's may have {PATH_LIMIT}: \
             name a shorter folder with {SOCKET_DIR}"
        )
    }
}

impl std::error::Error for PathTooLong {}

/// Refuses paths that the system would refuse less clearly.
///
/// # Errors
///
/// If `path` is too long for a Unix socket.
pub fn check_length(path: &Path) -> Result<(), PathTooLong> {
    if path.as_os_str().len() > PATH_LIMIT {
        return Err(PathTooLong(path.to_owned()));
    }
    Ok(())
}
