//! A bridge on this machine, with an address for each node and each Pod.
//!
//! All nodes share the bridge, so Pods of different nodes reach each other without forwarding, which is a setting of the
//! whole machine. Services have addresses of their own, and nothing answers there unless a test starts
//! [`crate::ServiceProxy`]. There is no DNS.

use std::{
    collections::BTreeSet,
    fs, io,
    net::Ipv4Addr,
    process::Child,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::process::{command, ip, is_gone, run};

/// Networks are `10.77.N.0/24`.
const PREFIX: [u8; 2] = [10, 77];
/// The Services of a cluster are in `10.78.N.0/24`.
const SERVICES: [u8; 2] = [10, 78];
const BRIDGES: &str = "brewbench-k";

/// Number of networks of this process so far.
static CREATED: AtomicU32 = AtomicU32::new(0);

/// A bridge with a free subnet. Dropping it removes the bridge.
#[derive(Debug)]
pub struct Network {
    number: u8,
    addresses: Mutex<Addresses>,
}

/// The last parts of addresses.
///
/// Freed ones are used again as late as possible, so that a stale address shows.
#[derive(Debug)]
struct Addresses {
    last: u8,
    used: BTreeSet<u8>,
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
        let network = Self { number, addresses: Mutex::new(Addresses { last: 1, used: BTreeSet::new() }) };
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

    /// Reserves an address.
    pub fn reserve(self: &Arc<Self>) -> io::Result<Address> {
        let mut addresses = self.addresses();
        let after = (addresses.last..=254).chain(2..=254).skip(1);
        let Some(part) = after.filter(|part| *part > 1).find(|part| !addresses.used.contains(part)) else {
            return Err(io::Error::other("all addresses are in use"));
        };
        addresses.last = part;
        addresses.used.insert(part);
        Ok(Address { network: Arc::clone(self), part, on_bridge: false })
    }

    /// Reserves an address at which this machine itself answers.
    pub fn reserve_for_node(self: &Arc<Self>) -> io::Result<Address> {
        let mut address = self.reserve()?;
        ip(&format!("address add {}/24 dev {}", address.ip(), self.bridge()))?;
        address.on_bridge = true;
        Ok(address)
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

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = ip(&format!("link delete {}", self.bridge()));
    }
}

/// A reserved address, free again when dropped.
#[derive(Debug)]
pub struct Address {
    network: Arc<Network>,
    part: u8,
    on_bridge: bool,
}

impl Address {
    /// Returns the address.
    pub fn ip(&self) -> Ipv4Addr {
        address(self.network.number, self.part)
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        if self.on_bridge {
            let _ = ip(&format!("address delete {}/24 dev {}", self.ip(), self.network.bridge()));
        }
        self.network.addresses().used.remove(&self.part);
    }
}

/// The network namespace of one Pod.
///
/// A process holds it, so it vanishes with the test even if that is killed.
#[derive(Debug)]
pub struct PodNetwork {
    holder: Child,
    address: Address,
}

impl PodNetwork {
    /// Creates a namespace with a new address on the bridge.
    pub fn create(network: &Arc<Network>) -> io::Result<Self> {
        let address = network.reserve()?;
        let mut holder = command("unshare");
        holder.args(["--net", "sleep", "infinity"]);
        let pod = Self { holder: holder.spawn()?, address };
        pod.wait_until_unshared()?;
        let (device, pid) = (pod.device(), pod.holder.id());
        ip(&format!("link add {device} type veth peer name eth0 netns {pid}"))?;
        ip(&format!("link set {device} master {} up", network.bridge()))?;
        let inside = format!(
            "ip link set lo up && ip address add {}/24 dev eth0 && ip link set eth0 up && ip route add default via {}",
            pod.address(),
            network.gateway()
        );
        run("nsenter", &[&format!("--net={}", pod.path()), "sh", "-c", &inside])?;
        Ok(pod)
    }

    /// Returns the address of the Pod.
    pub fn address(&self) -> Ipv4Addr {
        self.address.ip()
    }

    /// Returns the path by which a process enters the namespace.
    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    fn device(&self) -> String {
        format!("bbk{}-{}", self.address.network.number, self.address.part)
    }

    fn wait_until_unshared(&self) -> io::Result<()> {
        let own = fs::read_link("/proc/self/ns/net")?;
        let begun = Instant::now();
        while fs::read_link(self.path())? == own {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(io::Error::other("no network namespace was created"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        // The kernel would remove it with the namespace, but not at once.
        let _ = ip(&format!("link delete {}", self.device()));
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Returns the path of this machine's network namespace, for Pods without their own.
pub fn own_path() -> String {
    format!("/proc/{}/ns/net", std::process::id())
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
