//! A bridge on this machine, with an address for each node and each Pod.
//!
//! All nodes share the bridge, so Pods of different nodes reach each other without forwarding, which is a setting of the
//! whole machine. Services have addresses of their own, and nothing answers there unless a test starts
//! [`crate::ServiceProxy`]. There is no DNS.

use std::{
    fs, io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
};

use crate::process::{ip, is_gone, run};

/// Networks are `10.77.N.0/24`.
const PREFIX: [u8; 2] = [10, 77];
/// The Services of a cluster are in `10.78.N.0/24`.
const SERVICES: [u8; 2] = [10, 78];
const BRIDGES: &str = "brewbench-k";

/// Number of networks of this process so far.
static CREATED: AtomicU32 = AtomicU32::new(0);

/// Each node has its own range of a network's addresses, which begins at a multiple of this.
const RANGE: u8 = 32;

/// A bridge with a free subnet. Dropping it removes the bridge.
#[derive(Debug)]
pub struct Network {
    number: u8,
    /// Number of nodes so far.
    nodes: AtomicU8,
}

impl Network {
    /// Creates a bridge.
    ///
    /// Its name is that of its subnet, so that the kernel lets only one test have it.
    pub fn create() -> io::Result<Self> {
        sweep();
        // Each network of a process is another one, so that what is left of one is not taken for the next.
        let first = std::process::id().wrapping_add(CREATED.fetch_add(1, Ordering::Relaxed));
        let numbers = (0..250).map(|step| (first.wrapping_add(step) % 250) as u8 + 1);
        let mut failure = io::Error::other("no free subnet below 10.77.0.0/16");
        for number in numbers.filter(|&number| is_free(number)) {
            match ip(&format!("link add {} type bridge", bridge(number))) {
                Ok(()) => return Self::configure(number),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn configure(number: u8) -> io::Result<Self> {
        let network = Self { number, nodes: AtomicU8::new(0) };
        let name = network.bridge();
        run("ip", &["link", "set", &name, "alias", &format!("pid {}", std::process::id())])?;
        ip(&format!("address add {}/24 dev {name}", network.gateway()))?;
        ip(&format!("link set {name} up"))?;
        Ok(network)
    }

    /// Returns the address of this machine for the Pods.
    pub fn gateway(&self) -> Ipv4Addr {
        address(self.number, 1)
    }

    /// Gives this machine an address for another node.
    pub fn reserve(self: &Arc<Self>) -> io::Result<Address> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        if node >= u8::MAX / RANGE {
            return Err(io::Error::other("a network has no addresses for more nodes"));
        }
        let address = Address { network: Arc::clone(self), node };
        ip(&format!("address add {}/24 dev {}", address.ip(), self.bridge()))?;
        Ok(address)
    }

    /// Returns the subnet of nodes and Pods.
    pub fn subnet(&self) -> String {
        format!("{}/24", address(self.number, 0))
    }

    /// Returns the subnet of the cluster's Services.
    pub fn services(&self) -> String {
        format!("{}.{}.{}.0/24", SERVICES[0], SERVICES[1], self.number)
    }

    /// Returns the address of the API server for the Pods.
    pub fn first_service(&self) -> Ipv4Addr {
        Ipv4Addr::new(SERVICES[0], SERVICES[1], self.number, 1)
    }

    /// Returns the name of the bridge.
    pub fn bridge(&self) -> String {
        bridge(self.number)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = ip(&format!("link delete {}", self.bridge()));
    }
}

/// The address of a node, at which this machine answers until it is dropped.
#[derive(Debug)]
pub struct Address {
    network: Arc<Network>,
    node: u8,
}

impl Address {
    /// Returns the address.
    pub fn ip(&self) -> Ipv4Addr {
        address(self.network.number, self.node + 2)
    }

    /// Returns the first and the last address for the node's Pods.
    pub fn pods(&self) -> (Ipv4Addr, Ipv4Addr) {
        let first = (self.node + 1) * RANGE;
        (address(self.network.number, first), address(self.network.number, first + RANGE - 2))
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = ip(&format!("address delete {}/24 dev {}", self.ip(), self.network.bridge()));
    }
}

fn bridge(number: u8) -> String {
    format!("{BRIDGES}{number}")
}

fn address(number: u8, part: u8) -> Ipv4Addr {
    Ipv4Addr::new(PREFIX[0], PREFIX[1], number, part)
}

/// Whether nothing on this machine has an address or a route in its subnets.
fn is_free(number: u8) -> bool {
    let routes = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    [PREFIX, SERVICES].iter().all(|[first, second]| !routes.contains(&format!("{first}.{second}.{number}.")))
}

/// Removes the bridges of tests that were killed.
fn sweep() {
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let alias = fs::read_to_string(entry.path().join("ifalias")).unwrap_or_default();
        let owner = alias.trim().strip_prefix("pid ");
        if name.starts_with(BRIDGES) && owner.is_some_and(is_gone) {
            let _ = ip(&format!("link delete {name}"));
        }
    }
}
