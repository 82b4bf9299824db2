//! Addresses that users log in from. Attempts from unknown addresses do not slow them down.

use std::{
    collections::{HashSet, VecDeque},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use ipnet::IpNet;

use crate::app::networks::network_of;

/// The maximum number of known networks; the oldest are dropped.
pub const MAX_KNOWN: usize = 10_000;

/// Known IPv4 addresses and IPv6 networks (/64).
#[derive(Debug, Default)]
pub struct KnownAddresses(Mutex<Networks>);

#[derive(Debug, Default)]
struct Networks {
    all: HashSet<IpNet>,
    /// In the order they were added.
    order: VecDeque<IpNet>,
}

impl KnownAddresses {
    /// Records a login from an address.
    pub fn add(&self, address: IpAddr) {
        let place = network_of(address, 64);
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !places.all.insert(place) {
            return;
        }
        places.order.push_back(place);
        if places.order.len() > MAX_KNOWN
            && let Some(oldest) = places.order.pop_front()
        {
            places.all.remove(&oldest);
        }
    }

    /// Returns whether a user has logged in from this address or its network.
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.contains(&network_of(address, 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_addresses_are_dropped() {
        let known = KnownAddresses::default();
        let place = |n: usize| IpAddr::from(u32::try_from(n).expect("small").to_be_bytes());
        for n in 0..=MAX_KNOWN {
            known.add(place(n));
            known.add(place(n));
        }
        assert!(!known.has(place(0)) && known.has(place(1)) && known.has(place(MAX_KNOWN)));
    }
}
