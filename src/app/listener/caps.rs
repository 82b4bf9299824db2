//! How many connections there may be: in all, of one address, of one network.
//!
//! Loopback and trusted proxies are near: many people may stand behind one address of theirs, so each has much, but never
//! all. Everybody else is far. Neither side can take what the other needs. An agent's channel counts for the agent, not for
//! its address, once the agent has shown its key.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;

use crate::app::networks::{Networks, around};

/// Who shares a number of connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Group {
    All,
    Near,
    Far,
    NearAddress(IpAddr),
    /// An IPv4 address, or the IPv6 network (/64) of one subscriber.
    Subscriber(IpNet),
    /// An IPv6 network (/48) of one site: whoever has one has 65 536 of the above.
    Site(IpNet),
    Agent(String),
}

/// At most so many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// In all.
    total: usize,
    /// From near, and as many from afar.
    side: usize,
    near_address: usize,
    subscriber: usize,
    site: usize,
    /// The channel of one agent; while it connects anew the old one may not have been found dead.
    agent: usize,
}

impl Most {
    /// Shares of a total.
    pub fn of(total: usize) -> Self {
        Self {
            total,
            side: total / 4 * 3,
            near_address: total / 2,
            subscriber: (total / 16).clamp(32, 1024),
            site: (total / 4).max(32),
            agent: 4,
        }
    }

    fn of_group(&self, group: &Group) -> usize {
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

/// The connections of one server; cheap to clone.
#[derive(Clone)]
pub struct Caps(Arc<Shared>);

struct Shared {
    most: Most,
    proxies: Networks,
    open: Mutex<HashMap<Group, usize>>,
}

impl fmt::Debug for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caps").field("most", &self.0.most).finish_non_exhaustive()
    }
}

impl Caps {
    /// None are open yet.
    pub fn new(most: Most, proxies: Networks) -> Self {
        Self(Arc::new(Shared { most, proxies, open: Mutex::default() }))
    }

    /// A place for a connection from an address; none if there are too many already.
    pub fn admit(&self, address: IpAddr) -> Option<Arc<Place>> {
        let groups = self.groups(address.to_canonical());
        let entered = self.open().enter(&self.0.most, &groups);
        entered.then(|| Arc::new(Place { caps: self.clone(), groups: Mutex::new(groups) }))
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.open().0.get(&Group::All).copied().unwrap_or_default()
    }

    fn groups(&self, address: IpAddr) -> Vec<Group> {
        if address.is_loopback() || self.0.proxies.have(address) {
            return vec![Group::All, Group::Near, Group::NearAddress(address)];
        }
        let subscriber = Group::Subscriber(around(address, if address.is_ipv4() { 32 } else { 64 }));
        let mut groups = vec![Group::All, Group::Far, subscriber];
        if address.is_ipv6() {
            groups.push(Group::Site(around(address, 48)));
        }
        groups
    }

    fn open(&self) -> Open<'_> {
        Open(self.0.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Open<'a>(MutexGuard<'a, HashMap<Group, usize>>);

impl Open<'_> {
    /// All of them, or none if one of them is full.
    fn enter(&mut self, most: &Most, groups: &[Group]) -> bool {
        let is_full = |group: &Group| self.0.get(group).is_some_and(|count| *count >= most.of_group(group));
        if groups.iter().any(is_full) {
            return false;
        }
        for group in groups {
            *self.0.entry(group.clone()).or_default() += 1;
        }
        true
    }

    /// What nobody is in any more is forgotten: this never holds more than there are connections.
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

/// The place of one connection, given back when this is dropped. Handlers have it as an extension of their request.
#[derive(Debug)]
pub struct Place {
    caps: Caps,
    groups: Mutex<Vec<Group>>,
}

impl Place {
    /// From now on the connection counts for an agent that has shown its key; false if the agent has too many already.
    #[must_use]
    pub fn becomes_agents(&self, agent: &str) -> bool {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = vec![Group::All, Group::Agent(agent.to_owned())];
        let mut open = self.caps.open();
        open.leave(&groups);
        let entered = open.enter(&self.caps.0.most, &agents);
        if entered {
            *groups = agents;
        } else {
            // There was room for this a moment ago, and the lock has been held since.
            open.enter(&self.caps.0.most, &groups);
        }
        entered
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let groups = self.groups.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.caps.open().leave(groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(total: usize, proxies: &str) -> Caps {
        Caps::new(Most::of(total), proxies.parse().expect("networks"))
    }

    /// As many as get in, up to a thousand.
    fn admitted(caps: &Caps, address: impl Fn(usize) -> String) -> Vec<Arc<Place>> {
        (0..1000).map_while(|n| caps.admit(address(n).parse().expect("an address"))).collect()
    }

    fn one(caps: &Caps, address: &str) -> Option<Arc<Place>> {
        caps.admit(address.parse().expect("an address"))
    }

    #[test]
    fn an_address_has_its_share_and_gives_it_back() {
        let caps = caps(1600, "");
        let places = admitted(&caps, |_| "192.0.2.1".to_owned());
        assert_eq!((places.len(), caps.count()), (100, 100));
        assert!(one(&caps, "::ffff:192.0.2.1").is_none(), "the same in IPv6 clothes");
        assert!(one(&caps, "192.0.2.2").is_some());
        drop(places);
        assert_eq!(caps.count(), 0);
        assert!(caps.0.open.lock().expect("not poisoned").is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn one_site_of_many_networks_is_capped_as_a_whole() {
        let caps = caps(1600, "");
        let one_network = admitted(&caps, |n| format!("2001:db8::{n:x}"));
        assert_eq!(one_network.len(), 100);
        let site = admitted(&caps, |n| format!("2001:db8:0:{:x}::1", n + 1));
        assert_eq!(one_network.len() + site.len(), 400);
        assert!(one(&caps, "2001:db8:1::1").is_some(), "another site");
    }

    #[test]
    fn those_afar_leave_room_for_those_near_and_the_other_way_round() {
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
    fn a_trusted_proxy_has_much_and_never_all() {
        let caps = caps(160, "192.0.2.0/24");
        assert_eq!(admitted(&caps, |_| "192.0.2.7".to_owned()).len(), 80);
    }

    #[test]
    fn an_agents_channel_counts_for_the_agent() {
        let caps = caps(512, "");
        let places = admitted(&caps, |_| "192.0.2.1".to_owned());
        assert_eq!(places.len(), 32);
        let agents = places.iter().filter(|place| place.becomes_agents("rack")).count();
        assert_eq!((agents, caps.count()), (4, 32), "the others stay what they were");
        assert_eq!(admitted(&caps, |_| "192.0.2.1".to_owned()).len(), 4, "the address has room again");
        drop(places);
        assert_eq!(caps.count(), 0);
    }
}
