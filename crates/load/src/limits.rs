//! Limits of this machine: they are never counted as errors of the target.

use std::fs;
use std::io;
use std::net::SocketAddr;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::plan::{Fault, fault};

/// Open files of a load generator beside its connections.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files as far as it goes, and refuses more connections than it allows.
pub fn allow_connections(connections: u64) -> Result<(), Fault> {
    let limit = |error: Errno| fault("load", format!("the limit of open files can't be read: {error}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(limit)?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_err() {
        return check_files(connections, soft);
    }
    check_files(connections, hard)
}

fn check_files(connections: u64, limit: u64) -> Result<(), Fault> {
    let needed = connections.saturating_add(OTHER_FILES);
    if needed <= limit {
        return Ok(());
    }
    let text = format!(
        "{connections} connections need {needed} open files, and this load generator may open {limit}: raise the hard \
         limit `nofile`, use fewer connections, or share the load among several generators"
    );
    Err(fault("load", text))
}

/// Returns a sentence if an error of a new connection is due to this machine, not to the target.
pub fn local_fault(error: &io::Error, address: SocketAddr) -> Option<String> {
    let range = || fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let what = match Errno::from_raw(error.raw_os_error()?) {
        Errno::EADDRNOTAVAIL => {
            let range = range().split_whitespace().collect::<Vec<_>>().join(" to ");
            format!(
                "has no local port left for connections to {address} (net.ipv4.ip_local_port_range is {range}): widen \
                 that range, keep connections open, or use fewer of them"
            )
        }
        Errno::EMFILE => "may not open more files: raise the limit `nofile`, or use fewer connections".to_owned(),
        Errno::ENFILE => "has reached the system's limit of open files: raise fs.file-max".to_owned(),
        Errno::ENOSPC => "may not watch more sockets: raise fs.epoll.max_user_watches".to_owned(),
        Errno::ENOBUFS | Errno::ENOMEM => "has no memory left for sockets: use fewer connections".to_owned(),
        _ => return None,
    };
    Some(format!("the load generator {what}; that is not the target's fault"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_connections_are_refused_with_the_limit() {
        assert_eq!(check_files(936, 1_000), Ok(()));
        let sentence = check_files(937, 1_000).expect_err("a fault").to_string();
        assert!(sentence.starts_with("load: 937 connections need 1001 open files, and"), "{sentence}");
        assert!(sentence.contains("may open 1000: raise the hard limit"), "{sentence}");
    }

    #[test]
    fn limits_of_this_machine_are_told_from_errors_of_the_target() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let fault = |errno: Errno| local_fault(&io::Error::from_raw_os_error(errno as i32), address);
        assert_eq!(fault(Errno::ECONNREFUSED), None);
        assert_eq!(fault(Errno::ETIMEDOUT), None);
        let ports = fault(Errno::EADDRNOTAVAIL).expect("a sentence");
        assert!(ports.contains("no local port left for connections to 127.0.0.1:80 (net.ipv4.ip_local_port_range is "));
        assert!(fault(Errno::EMFILE).expect("a sentence").contains("nofile"));
    }
}
