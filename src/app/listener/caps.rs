//! Limits the number of connections: in total, per address and per network.
//!
//! Loopback and trusted proxies are *near*: many users may share one such address, so its share is large. All other
//! addresses are *far*. Neither side can use up the connections of the other. After an agent has authenticated, its
//! channel counts for the agent and not for the address.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;

use crate::app::networks::{Networks, network_of};

/// A group of connections that share a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Group {
    All,
    Near,
    Far,
    NearAddress(IpAddr),
    /// An IPv4 address, or the IPv6 network (/64) of one subscriber.
    Subscriber(IpNet),
    /// The IPv6 network (/48) of one site, which contains 65 536 subscriber networks.
    Site(IpNet),
    Agent(String),
}

/// The maximum number of connections per group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// All connections.
    total: usize,
    /// All near connections, and the same for far ones.
    side: usize,
    near_address: usize,
    subscriber: usize,
    site: usize,
    /// Channels of one agent: after a reconnect the old one may not have timed out yet.
    agent: usize,
}

impl ConnectionLimits {
    /// Derives the limits from a total.
    pub fn from_total(total: usize) -> Self {
        Self {
            total,
            side: total / 4 * 3,
            near_address: total / 2,
            subscriber: (total / 16).clamp(32, 1024),
            site: (total / 4).max(32),
            agent: 4,
        }
    }

    fn for_group(&self, group: &Group) -> usize {
        match group {
            Group::All => self.total,
            Group::Near | Group::Far => self.side,
            Group::NearAddress(_) => self.near_address,
            Group::Subscriber(_) => self.subscriber,
            Group::Site(_) => self.site,
            Group::Agent(_) => self.agent,
        }
    }
}

/// The open connections of a server; cheap to clone.
#[derive(Clone)]
pub struct Caps(Arc<Shared>);

struct Shared {
    limits: ConnectionLimits,
    proxies: Networks,
    open: Mutex<HashMap<Group, usize>>,
}

impl fmt::Debug for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caps").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl Caps {
    /// Creates the state without open connections.
    pub fn new(limits: ConnectionLimits, proxies: Networks) -> Self {
        Self(Arc::new(Shared { limits, proxies, open: Mutex::default() }))
    }

    /// Returns a slot for a connection from an address; `None` if a limit is reached.
    pub fn admit(&self, address: IpAddr) -> Option<Arc<Slot>> {
        let groups = self.groups(address.to_canonical());
        let entered = self.open().enter(&self.0.limits, &groups);
        entered.then(|| Arc::new(Slot { caps: self.clone(), groups: Mutex::new(groups) }))
    }

    /// Returns the number of open connections.
    pub fn count(&self) -> usize {
        self.open().0.get(&Group::All).copied().unwrap_or_default()
    }

    fn groups(&self, address: IpAddr) -> Vec<Group> {
        if address.is_loopback() || self.0.proxies.contains(address) {
            return vec![Group::All, Group::Near, Group::NearAddress(address)];
        }
        let subscriber = Group::Subscriber(network_of(address, if address.is_ipv4() { 32 } else { 64 }));
        let mut groups = vec![Group::All, Group::Far, subscriber];
        if address.is_ipv6() {
            groups.push(Group::Site(network_of(address, 48)));
        }
        groups
    }

    fn open(&self) -> Open<'_> {
        Open(self.0.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Open<'a>(MutexGuard<'a, HashMap<Group, usize>>);

impl Open<'_> {
    /// Enters all groups, or none if one of them is full.
    fn enter(&mut self, limits: &ConnectionLimits, groups: &[Group]) -> bool {
        let is_full = |group: &Group| self.0.get(group).is_some_and(|count| *count >= limits.for_group(group));
        if groups.iter().any(is_full) {
            return false;
        }
        for group in groups {
            *self.0.entry(group.clone()).or_default() += 1;
        }
        true
    }

    /// Leaves groups. Empty groups are removed, so that the map stays bounded.
    fn leave(&mut self, groups: &[Group]) {
        for group in groups {
            if let Some(count) = self.0.get_mut(group) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(group);
                }
            }
        }
    }
}

/// The slot of one connection, released on drop. Handlers find it in the extensions of their request.
#[derive(Debug)]
pub struct Slot {
    caps: Caps,
    groups: Mutex<Vec<Group>>,
}

impl Slot {
    /// Counts the connection for an authenticated agent from now on; false if the agent has too many already.
    #[must_use]
    pub fn assign_to_agent(&self, agent: &str) -> bool {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = vec![Group::All, Group::Agent(agent.to_owned())];
        let mut open = self.caps.open();
        open.leave(&groups);
        let entered = open.enter(&self.caps.0.limits, &agents);
        if entered {
            *groups = agents;
        } else {
            // This cannot fail: the slot was just released, and the lock is still held.
            open.enter(&self.caps.0.limits, &groups);
        }
        entered
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.caps.open().leave(groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(total: usize, proxies: &str) -> Caps {
        Caps::new(ConnectionLimits::from_total(total), proxies.parse().expect("networks"))
    }

    /// Returns the admitted connections out of a thousand.
    fn admitted(caps: &Caps, address: impl Fn(usize) -> String) -> Vec<Arc<Slot>> {
        (0..1000).map_while(|n| caps.admit(address(n).parse().expect("an address"))).collect()
    }

    fn one(caps: &Caps, address: &str) -> Option<Arc<Slot>> {
        caps.admit(address.parse().expect("an address"))
    }

    #[test]
    fn an_address_has_a_share_that_is_released() {
        let caps = caps(1600, "");
        let slots = admitted(&caps, |_| "192.0.2.1".to_owned());
        assert_eq!((slots.len(), caps.count()), (100, 100));
        assert!(one(&caps, "::ffff:192.0.2.1").is_none(), "the same as a mapped address");
        assert!(one(&caps, "192.0.2.2").is_some());
        drop(slots);
        assert_eq!(caps.count(), 0);
        assert!(caps.0.open.lock().expect("not poisoned").is_empty(), "empty groups are removed");
    }

    #[test]
    fn the_networks_of_a_site_share_a_limit() {
        let caps = caps(1600, "");
        let one_network = admitted(&caps, |n| format!("2001:db8::{n:x}"));
        assert_eq!(one_network.len(), 100);
        let site = admitted(&caps, |n| format!("2001:db8:0:{:x}::1", n + 1));
        assert_eq!(one_network.len() + site.len(), 400);
        assert!(one(&caps, "2001:db8:1::1").is_some(), "another site");
    }

    #[test]
    fn near_and_far_connections_leave_room_for_each_other() {
        let crowded = caps(160, "");
        let far = admitted(&crowded, |n| format!("10.0.{}.{}", n / 250, n % 250));
        assert_eq!(far.len(), 120);
        assert!(one(&crowded, "127.0.0.1").is_some());
        drop(far);
        let first = admitted(&crowded, |_| "127.0.0.2".to_owned());
        let second = admitted(&crowded, |_| "::1".to_owned());
        assert_eq!((first.len(), second.len()), (80, 40), "half each, three quarters together");
        assert!(one(&crowded, "192.0.2.1").is_some());
    }

    #[test]
    fn a_trusted_proxy_gets_half_of_the_connections() {
        let caps = caps(160, "192.0.2.0/24");
        assert_eq!(admitted(&caps, |_| "192.0.2.7".to_owned()).len(), 80);
    }

    #[test]
    fn channels_count_for_their_agent() {
        let caps = caps(512, "");
        let slots = admitted(&caps, |_| "192.0.2.1".to_owned());
        assert_eq!(slots.len(), 32);
        let agents = slots.iter().filter(|slot| slot.assign_to_agent("rack")).count();
        assert_eq!((agents, caps.count()), (4, 32), "the others still count for the address");
        assert_eq!(admitted(&caps, |_| "192.0.2.1".to_owned()).len(), 4, "the address has room again");
        drop(slots);
        assert_eq!(caps.count(), 0);
    }
}
