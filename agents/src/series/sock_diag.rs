//! Lists the TCP sockets of this network namespace with their counters: a dump by `sock_diag(7)`, as `ss` does it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// Type of a request and of its replies.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// The attribute with `struct tcp_info`, and its bit in a request.
const INFO: u16 = 2;
const WITH_INFO: u8 = 1 << (INFO - 1);
/// The attribute with the id of the control group that the socket was opened in.
const CGROUP: u16 = 21;
/// `TCP_LISTEN`.
const LISTEN: u8 = 10;
/// Established, half closed and listening sockets: bits of the states 1, 4, 5, 8, 9, 10 and 11. The others have no
/// owner, or no data yet.
const STATES: u32 = 0b1111_0011_0010;

/// Sizes of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;

/// Kernels send at most this much at once.
const BUFFER: usize = 64 << 10;

/// The kernel replies at once; a lost reply must not block the caller.
const PATIENCE: Duration = Duration::from_secs(1);

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its own address.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// Whether it accepts connections.
    pub listens: bool,
    /// Its inode, which is the target of a link in `/proc/PID/fd`; 0 once its process has closed it.
    pub inode: u64,
    /// The inode of the control group (v2) that it was opened in; 0 if the kernel does not report it.
    pub group: u64,
    /// Identifies it among all sockets since boot.
    pub cookie: u64,
    /// Its counters.
    pub counters: Counters,
    /// Whether less than a segment waits for the acknowledgement of what was sent before: Nagle's algorithm (RFC 896).
    pub holds_back: bool,
}

/// Counters of a socket since it was opened; 0 if the kernel is too old to have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes received, and bytes sent that the other end has acknowledged.
    pub bytes: u64,
    /// Segments sent.
    pub segments: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments sent again that the other end already had, as it reports (RFC 2883).
    pub spurious: u64,
}

/// A connection to the kernel for dumps.
#[derive(Debug)]
pub struct SockDiag(OwnedFd);

impl SockDiag {
    /// Opens it. Fails if the kernel does not have `sock_diag`.
    pub fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// Returns all sockets. Fails if the kernel does not list those of IPv4; one without IPv6 has none of these.
    pub fn sockets(&self) -> io::Result<Vec<Socket>> {
        let mut sockets = self.dump(AF_INET)?;
        sockets.extend(self.dump(AF_INET6).unwrap_or_default());
        Ok(sockets)
    }

    fn dump(&self, family: u8) -> io::Result<Vec<Socket>> {
        sendto(&self.0, &request(family), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let (mut sockets, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        loop {
            let (length, _) = recv(&self.0, buffer.as_mut_slice(), RecvFlags::empty())?;
            if read(&buffer[..length], &mut sockets)? {
                return Ok(sockets);
            }
        }
    }
}

fn request(family: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(72_u32.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, WITH_INFO, 0]);
    bytes.extend(STATES.to_ne_bytes());
    // Any address and port.
    bytes.resize(HEADER + REQUEST, 0);
    bytes
}

/// Reads the messages of a reply; returns whether it is the last one.
fn read(mut bytes: &[u8], sockets: &mut Vec<Socket>) -> io::Result<bool> {
    let damaged = || io::Error::other("a damaged reply of sock_diag");
    while !bytes.is_empty() {
        let length = number::<4>(bytes, 0).map(u32::from_ne_bytes).ok_or_else(damaged)? as usize;
        let kind = number::<2>(bytes, 4).map(u16::from_ne_bytes).ok_or_else(damaged)?;
        let body = bytes.get(HEADER..length).ok_or_else(damaged)?;
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = number::<4>(body, 0).map_or(0, i32::from_ne_bytes);
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            _ => sockets.extend(parse(body)),
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

/// Parses `struct inet_diag_msg` and its attributes.
fn parse(body: &[u8]) -> Option<Socket> {
    let family = *body.first()?;
    let port = |at| number::<2>(body, at).map(u16::from_be_bytes);
    let address = |at| match family {
        AF_INET => number::<4>(body, at).map(|bytes| IpAddr::from(Ipv4Addr::from(bytes))),
        AF_INET6 => number::<16>(body, at).map(|bytes| IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()),
        _ => None,
    };
    let (local, remote) = (SocketAddr::new(address(8)?, port(4)?), SocketAddr::new(address(24)?, port(6)?));
    let cookie = u64::from_ne_bytes(number::<8>(body, 44)?);
    let inode = u32::from_ne_bytes(number::<4>(body, MESSAGE - 4)?).into();
    let attributes = body.get(MESSAGE..)?;
    let info = attribute(attributes, INFO).unwrap_or_default();
    let group = attribute(attributes, CGROUP).and_then(|id| number::<8>(id, 0)).map_or(0, u64::from_ne_bytes);
    let listens = *body.get(1)? == LISTEN;
    let (counters, holds_back) = (counters(info), !listens && holds_back(info));
    Some(Socket { local, remote, listens, inode, group, cookie, counters, holds_back })
}

/// Returns the content of an attribute.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(number::<2>(bytes, 0)?));
        let content = bytes.get(4..length)?;
        if u16::from_ne_bytes(number::<2>(bytes, 2)?) == wanted {
            return Some(content);
        }
        bytes = bytes.get(aligned(length)..)?;
    }
}

/// Reads a field of `struct tcp_info`, which grows with each kernel, by its offset.
fn short(info: &[u8], at: usize) -> u64 {
    number::<4>(info, at).map_or(0, |bytes| u32::from_ne_bytes(bytes).into())
}

fn holds_back(info: &[u8]) -> bool {
    let (segment, unacknowledged, unsent) = (short(info, 16), short(info, 24), short(info, 144));
    unacknowledged > 0 && (1..segment).contains(&unsent)
}

fn counters(info: &[u8]) -> Counters {
    let long = |at| number::<8>(info, at).map_or(0, u64::from_ne_bytes);
    Counters {
        bytes: long(120).saturating_add(long(128)),
        segments: short(info, 136),
        retransmitted: short(info, 100),
        spurious: short(info, 216),
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use brewbench_testing::skip;

    use super::*;

    fn between(one: &TcpStream, sockets: &[Socket]) -> Option<Socket> {
        let (local, remote) = (one.local_addr().expect("bound"), one.peer_addr().expect("connected"));
        sockets.iter().find(|socket| (socket.local, socket.remote) == (local, remote)).copied()
    }

    #[test]
    fn bytes_of_a_connection_are_counted_at_both_ends() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                skip(&format!("this machine can't bind {address}"));
                continue;
            };
            let mut near = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
            let (mut far, _) = listener.accept().expect("accepted");
            far.write_all(&[7; 5_000]).expect("written");
            near.read_exact(&mut [0; 5_000]).expect("read");
            let sockets = SockDiag::open().and_then(|kernel| kernel.sockets()).expect("a dump");
            let ends = [&near, &far].map(|end| between(end, &sockets).expect("listed"));
            for end in ends {
                assert!((5_000..5_010).contains(&end.counters.bytes), "{end:?}");
                assert!(end.inode > 0 && !end.listens, "{end:?}");
            }
            assert_ne!(ends[0].cookie, ends[1].cookie);
            let own = listener.local_addr().expect("bound");
            assert!(sockets.iter().any(|socket| socket.listens && socket.local == own), "{own}");
        }
    }

    #[test]
    fn damaged_replies_are_refused() {
        let mut sockets = Vec::new();
        for bytes in [vec![1], vec![0; 16], [255; 20].to_vec(), 40_u32.to_ne_bytes().to_vec()] {
            assert!(read(&bytes, &mut sockets).is_err(), "{bytes:?}");
        }
        assert_eq!((sockets, parse(&[AF_INET; 50]), attribute(&[0; 8], INFO)), (Vec::new(), None, None));
    }
}
