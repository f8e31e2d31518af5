//! Where to listen, as the environment says.

use crate::server::InitError;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
#[cfg(unix)]
use std::path::PathBuf;

const VARIABLE: &str = "HOLDUP_BIND";

#[derive(Debug)]
pub(super) enum Bind {
    Tcp(SocketAddr),
    /// In the first of these folders that will do.
    #[cfg(unix)]
    Socket(Vec<PathBuf>),
}

impl Bind {
    pub(super) fn from_env() -> Result<Self, InitError> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => Ok(Bind::Tcp(tcp(&text)?)),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(InitError::new(format!("{VARIABLE} is no text")))
            }
            #[cfg(unix)]
            _ => Ok(Bind::Socket(holdup_proto::discovery::folders())),
            #[cfg(not(unix))]
            _ => Err(InitError::new(format!(
                "this system has no Unix sockets: name a TCP port with {VARIABLE}"
            ))),
        }
    }
}

/// An address with a port. Other machines may connect only if somebody wrote an address of this machine that
/// they can reach.
fn tcp(text: &str) -> Result<SocketAddr, InitError> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let resolved = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    resolved.ok_or_else(|| {
        InitError::new(format!("{VARIABLE}={text} is neither a port nor address:port"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_for_this_machine_only() {
        for (text, address) in [
            ("6669", "127.0.0.1:6669"),
            (":6669", "127.0.0.1:6669"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::1]:6669", "[::1]:6669"),
            ("0.0.0.0:6669", "0.0.0.0:6669"),
        ] {
            assert_eq!(tcp(text).expect(text).to_string(), address);
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in ["", " ", "70000", "127.0.0.1", "a:b:c"] {
            let error = tcp(text).expect_err(text).to_string();
            assert!(error.contains(VARIABLE), "{error}");
        }
    }
}
