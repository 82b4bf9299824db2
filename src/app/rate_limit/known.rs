//! Where people log in from: strangers who try often elsewhere are no reason to slow them down.

use std::{
    collections::{HashSet, VecDeque},
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use ipnet::IpNet;

use crate::app::networks::around;

/// Of more places the oldest are forgotten; each is a few bytes.
pub const MOST: usize = 10_000;

/// IPv4 addresses and IPv6 networks (/64).
#[derive(Debug, Default)]
pub struct Known(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    all: HashSet<IpNet>,
    /// The one that was added first comes first.
    order: VecDeque<IpNet>,
}

impl Known {
    /// Somebody has logged in from here.
    pub fn add(&self, address: IpAddr) {
        let place = around(address, 64);
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !places.all.insert(place) {
            return;
        }
        places.order.push_back(place);
        if places.order.len() > MOST
            && let Some(oldest) = places.order.pop_front()
        {
            places.all.remove(&oldest);
        }
    }

    /// Whether somebody has.
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.contains(&around(address, 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_places_the_oldest_are_forgotten() {
        let known = Known::default();
        let place = |n: usize| IpAddr::from(u32::try_from(n).expect("small").to_be_bytes());
        for n in 0..=MOST {
            known.add(place(n));
            known.add(place(n));
        }
        assert!(!known.has(place(0)) && known.has(place(1)) && known.has(place(MOST)));
    }
}
