//! Reads processes and sockets from `/proc`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Returns the processes that were started with all of these environment variables, except the caller and its
/// ancestors.
pub fn marked<V: AsRef<str>>(marks: &[(&str, V)]) -> BTreeSet<i32> {
    let wanted: Vec<Vec<u8>> =
        marks.iter().map(|(name, value)| format!("{name}={}", value.as_ref()).into_bytes()).collect();
    let family = family();
    let carries = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variables: HashSet<&[u8]> = environment.split(|&byte| byte == 0).collect();
        wanted.iter().all(|mark| variables.contains(mark.as_slice()))
    };
    all().filter(|pid| !family.contains(pid)).filter(carries).collect()
}

/// Returns the inodes of sockets that accept connections to this address.
pub fn listeners(at: SocketAddr) -> HashSet<u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|path| parse_listeners(&fs::read_to_string(path).unwrap_or_default(), at))
        .collect()
}

/// Returns the inodes of a process's sockets; empty if it is gone or belongs to another user.
pub fn sockets(pid: i32) -> HashSet<u64> {
    let inode = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().filter_map(inode).collect()
}

/// Whether a process has a virtual CPU of KVM.
pub fn has_kvm(pid: i32) -> bool {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = links.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| link.to_string_lossy().contains("kvm-vcpu"))
}

/// Returns the name of a process, for messages.
pub fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}

/// Returns when a process was started, in kernel ticks since boot; `None` if it is gone or a zombie.
pub fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second column is a name with arbitrary characters; the third is the state, the 22nd the start time.
    let (_, columns) = stat.rsplit_once(')')?;
    let mut columns = columns.split_whitespace();
    let state = columns.next()?;
    if matches!(state, "Z" | "X" | "x") { None } else { columns.nth(18)?.parse().ok() }
}

/// Returns all processes.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the calling process and its ancestors.
fn family() -> BTreeSet<i32> {
    let mut family = BTreeSet::new();
    let mut next = i32::try_from(std::process::id()).ok();
    while let Some(pid) = next.filter(|&pid| pid > 0 && family.insert(pid)) {
        next = parent(pid);
    }
    family
}

/// Returns the process that started the others: the oldest of those whose parent is none of them.
pub fn first_of(processes: &BTreeSet<i32>) -> Option<i32> {
    let is_first = |pid: &i32| parent(*pid).is_none_or(|parent| !processes.contains(&parent));
    let running = processes.iter().copied().filter_map(|pid| Some((start_ticks(pid)?, pid)));
    running.filter(|(_, pid)| is_first(pid)).min().map(|(_, pid)| pid)
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Columns of the table: number, local address, remote address, state (`0A` is listening), queues, timer, retransmits,
/// user, timeout, inode, … Addresses are hexadecimal 32-bit words in the machine's byte order.
fn parse_listeners(table: &str, at: SocketAddr) -> Vec<u64> {
    let inode = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (address, local_port) = columns.get(1)?.split_once(':')?;
        let listens = *columns.get(3)? == "0A" && u16::from_str_radix(local_port, 16).ok()? == at.port();
        (listens && accepts(address, at.ip())).then(|| columns.get(9)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// Whether a socket bound to `bound` accepts connections to an address: bound to it, or to any address.
fn accepts(bound: &str, wanted: IpAddr) -> bool {
    let word = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
        format!("{:08X}", u32::from_ne_bytes(bytes))
    };
    let words = |bytes: &[u8]| bytes.chunks(4).map(word).collect::<String>();
    let any = bound.bytes().all(|byte| byte == b'0');
    any || match wanted {
        IpAddr::V4(address) => bound == words(&address.octets()) || bound == words(&address.to_ipv6_mapped().octets()),
        IpAddr::V6(address) => bound == words(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use brewbench_testing::skip;

    use super::*;

    #[test]
    fn a_listening_socket_is_found_with_its_process() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                skip(&format!("this machine can't bind {address}"));
                continue;
            };
            let port = listener.local_addr().expect("bound").port();
            let found = listeners(([127, 0, 0, 1], port).into());
            assert_eq!(found.len(), 1, "{address}");
            let own = i32::try_from(std::process::id()).expect("a pid");
            assert!(found.is_subset(&sockets(own)), "{address}");
        }
    }

    #[test]
    fn sockets_of_other_addresses_don_t_count() {
        let listener = TcpListener::bind("127.0.0.2:0").expect("Linux has all of 127.0.0.0/8");
        let port = listener.local_addr().expect("bound").port();
        assert!(listeners(([127, 0, 0, 1], port).into()).is_empty());
        assert_eq!(listeners(([127, 0, 0, 2], port).into()).len(), 1);
    }

    #[test]
    fn a_process_has_a_constant_start_time_until_it_ends() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let start = start_ticks(own).expect("running");
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("a child");
        let pid = i32::try_from(child.id()).expect("a pid");
        assert!(start_ticks(pid).expect("running") >= start);
        child.kill().expect("killed");
        while start_ticks(pid).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().expect("an exit status");
        assert_eq!((start_ticks(own), start_ticks(pid)), (Some(start), None));
    }

    #[test]
    fn the_caller_is_never_among_the_marked() {
        let path = std::env::var("PATH").expect("a PATH");
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert!(!marked(&[("PATH", path)]).contains(&own));
    }
}
