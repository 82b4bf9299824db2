//! Follows the TCP connections of the load generator: where its bytes go, and how many segments are lost on the way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use brewbench_wire::traffic::{MAX_PEERS, Peer, Segments, Traffic};
use rustix::time::{ClockId, clock_gettime};

use super::sock_diag::{Counters, SockDiag, Socket};
use crate::host::procfs;
use crate::run::destination::Destination;

/// Looking at the sockets may take one part in this many of a CPU: with many thousands of them, looks become rare.
const BUDGET: u32 = 100;

/// Fewer bytes are those that the kernel counts for opening and closing a connection.
const MIN_BYTES: u64 = 3;

/// DNS over TCP.
const DNS: u16 = 53;

/// The load generator, whose sockets are those of its control group, or else those among the files of its processes. A
/// connection of less than a millisecond is often gone before the files are listed.
#[derive(Clone, Copy, Debug)]
pub struct Generator<'a> {
    /// Its processes.
    pub processes: &'a BTreeSet<i32>,
    /// The inode of its control group; `None` without cgroup v2.
    pub group: Option<u64>,
}

impl Generator<'_> {
    fn inodes(&self) -> HashSet<u64> {
        match self.group {
            Some(_) => HashSet::new(),
            None => self.processes.iter().flat_map(|pid| procfs::sockets(*pid)).collect(),
        }
    }
}

/// Follows the connections of one k6 process.
#[derive(Debug)]
pub struct Connections {
    /// `None` if the kernel does not list sockets.
    kernel: Option<SockDiag>,
    destination: Destination,
    /// Where k6 pushes its series; a connection to it shows that k6's sockets are in this network namespace.
    receiver: SocketAddr,
    known: HashMap<u64, KnownSocket>,
    last_ms: i64,
    /// When the budget allows the next look.
    due: Option<Instant>,
    /// Whether there were new sockets at the last look.
    reconnects: bool,
    /// Whether the connection to the receiver was found.
    is_visible: bool,
    looks: Vec<Look>,
}

/// A socket at the last look.
#[derive(Clone, Copy, Debug)]
struct KnownSocket {
    counters: Counters,
    is_generators: bool,
}

/// What happened between two looks.
#[derive(Clone, Debug, Default)]
struct Look {
    from_ms: i64,
    at_ms: i64,
    peers: BTreeMap<SocketAddr, Exchange>,
    segments: Segments,
    /// The target's ends.
    ends: u64,
    /// Those that held back a part of a response.
    held_back: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    bytes: u64,
    connections: u64,
    reconnects: u64,
}

impl Connections {
    /// Follows the load on a destination. The load generator pushes its series to `receiver`.
    pub fn new(destination: Destination, receiver: SocketAddr) -> Self {
        Self {
            kernel: SockDiag::open().ok(),
            destination,
            receiver,
            known: HashMap::new(),
            last_ms: i64::MIN,
            due: None,
            reconnects: false,
            is_visible: false,
            looks: Vec::new(),
        }
    }

    /// Looks at the sockets at this time, unix milliseconds, unless the last look was too costly. Without a load
    /// generator on this machine only the target's sockets count.
    pub fn look(&mut self, at_ms: i64, generator: Option<Generator<'_>>) {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let begun = cpu_time();
        let before = generator.filter(|_| self.reconnects).map(|generator| generator.inodes()).unwrap_or_default();
        let Some(sockets) = self.kernel.as_ref().and_then(|kernel| kernel.sockets().ok()) else {
            return self.kernel = None;
        };
        let owned = self.owned(&sockets, generator, before);
        let look = self.compare(at_ms, &sockets, &owned, generator.is_some());
        // Nothing is known about the time before the first look.
        if self.last_ms > i64::MIN {
            self.add(look);
        }
        self.last_ms = at_ms;
        let known = |socket: &Socket| {
            let is_generators = owned.contains(&socket.cookie);
            (socket.cookie, KnownSocket { counters: socket.counters, is_generators })
        };
        self.known = sockets.iter().filter(|socket| socket.inode > 0).map(known).collect();
        self.due = Some(Instant::now() + cpu_time().saturating_sub(begun) * BUDGET);
    }

    /// Returns the cookies of the load generator's sockets. Its files are listed only if there are new sockets, or none
    /// of its own was found yet, as when a look came before its process was known; `inodes` are among them, or were
    /// before.
    fn owned(
        &mut self,
        sockets: &[Socket],
        generator: Option<Generator<'_>>,
        mut inodes: HashSet<u64>,
    ) -> HashSet<u64> {
        let Some(generator) = generator else { return HashSet::new() };
        let is_new = |socket: &Socket| socket.inode > 0 && !self.known.contains_key(&socket.cookie);
        self.reconnects = !self.is_visible || sockets.iter().any(is_new);
        if self.reconnects {
            inodes.extend(generator.inodes());
        }
        let is_owned = |socket: &&Socket| {
            let is_its =
                || inodes.contains(&socket.inode) || generator.group.is_some_and(|group| group == socket.group);
            let known = self.known.get(&socket.cookie).filter(|known| known.is_generators || self.is_visible);
            known.map_or_else(is_its, |known| known.is_generators)
        };
        sockets.iter().filter(is_owned).map(|socket| socket.cookie).collect()
    }

    fn compare(&mut self, at_ms: i64, sockets: &[Socket], owned: &HashSet<u64>, has_generator: bool) -> Look {
        let mut look = Look { from_ms: self.last_ms, at_ms, ..Look::default() };
        let own = || sockets.iter().filter(|socket| owned.contains(&socket.cookie));
        // The agent resumes a paused k6 through a port of k6.
        let ports: HashSet<u16> = own().filter(|socket| socket.listens).map(|socket| socket.local.port()).collect();
        let mut to_target = HashSet::new();
        for socket in own().filter(|socket| !socket.listens && !ports.contains(&socket.local.port())) {
            if socket.remote == self.receiver {
                self.is_visible = true;
                continue;
            }
            if socket.remote.port() == DNS {
                continue;
            }
            if self.destination.covers(socket.remote) {
                to_target.insert((socket.remote, socket.local));
                look.add_segments(self.since(socket));
            }
            let bytes = self.since(socket).bytes;
            if bytes >= MIN_BYTES {
                let exchange = look.peers.entry(socket.remote).or_default();
                exchange.bytes = exchange.bytes.saturating_add(bytes);
                exchange.connections += 1;
                exchange.reconnects += u64::from(!self.known.contains_key(&socket.cookie));
            }
        }
        // The target's ends of these connections, if they are on this machine.
        let is_end = |socket: &&Socket| {
            if has_generator {
                return to_target.contains(&(socket.local, socket.remote));
            }
            !socket.listens && self.destination.covers(socket.local)
        };
        for socket in sockets.iter().filter(is_end) {
            look.add_segments(self.since(socket));
            look.ends += 1;
            look.held_back += u64::from(socket.holds_back);
        }
        look
    }

    /// Returns what a socket counted since the last look.
    fn since(&self, socket: &Socket) -> Counters {
        let Counters { bytes, segments, retransmitted, spurious } = socket.counters;
        let before = self.known.get(&socket.cookie).map_or_else(Counters::default, |known| known.counters);
        Counters {
            bytes: bytes.saturating_sub(before.bytes),
            segments: segments.saturating_sub(before.segments),
            retransmitted: retransmitted.saturating_sub(before.retransmitted),
            spurious: spurious.saturating_sub(before.spurious),
        }
    }

    fn add(&mut self, look: Look) {
        if self.looks.len() == super::collector::MAX_SECONDS {
            pair_up(&mut self.looks);
        }
        self.looks.push(look);
    }

    /// Returns the traffic in the looks that began and ended within these times, unix milliseconds; `None` if the
    /// kernel does not list sockets.
    pub fn traffic(self, from_ms: i64, to_ms: i64) -> Option<Traffic> {
        let Self { kernel, destination, is_visible, looks, .. } = self;
        kernel?;
        let (mut peers, mut segments) = (BTreeMap::<SocketAddr, Peer>::new(), Segments::default());
        let (mut count, mut elapsed_ms, mut ends, mut held_back) = (0, 0, 0, 0);
        for look in looks.iter().filter(|look| look.from_ms >= from_ms && look.at_ms <= to_ms) {
            count += 1;
            elapsed_ms += u64::try_from(look.at_ms - look.from_ms).unwrap_or_default();
            segments.add(look.segments);
            ends += look.ends;
            held_back += look.held_back;
            for (address, exchange) in &look.peers {
                let is_target = destination.covers(*address);
                let none = Peer { address: *address, is_target, bytes: 0, connections: 0, reconnects: 0 };
                let peer = peers.entry(*address).or_insert(none);
                peer.bytes = peer.bytes.saturating_add(exchange.bytes);
                peer.connections = peer.connections.saturating_add(exchange.connections);
                peer.reconnects += u32::from(exchange.reconnects > 0);
            }
        }
        let mut peers: Vec<Peer> = peers.into_values().collect();
        peers.sort_by_key(|peer| std::cmp::Reverse(peer.bytes));
        peers.truncate(MAX_PEERS);
        let target = destination.to_string();
        let peers = is_visible.then_some(peers);
        Some(Traffic { target, looks: count, elapsed_ms, peers, segments, ends, held_back })
    }
}

impl Look {
    fn add_segments(&mut self, counters: Counters) {
        let Counters { segments: sent, retransmitted, spurious, .. } = counters;
        self.segments.add(Segments { sent, retransmitted, spurious });
    }
}

/// Returns the CPU time of this thread, which leaves out its waits on a busy machine.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Halves the number of looks by adding up pairs.
fn pair_up(looks: &mut Vec<Look>) {
    let mut all = std::mem::take(looks).into_iter();
    while let Some(mut first) = all.next() {
        if let Some(Look { from_ms: _, at_ms, peers, segments, ends, held_back }) = all.next() {
            first.at_ms = at_ms;
            first.segments.add(segments);
            first.ends += ends;
            first.held_back += held_back;
            for (address, exchange) in peers {
                let sum = first.peers.entry(address).or_default();
                sum.bytes = sum.bytes.saturating_add(exchange.bytes);
                sum.connections = sum.connections.saturating_add(exchange.connections);
                sum.reconnects = sum.reconnects.saturating_add(exchange.reconnects);
            }
        }
        looks.push(first);
    }
}
