//! Limits authentication attempts per address, per network, and for all unknown addresses together.
//!
//! Attempts from unknown addresses do not lock out addresses that users are known to log in from. A login or
//! registration counts when it starts, so a started one can always be finished.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
};

use governor::{
    NotUntil, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed, keyed::HashMapStateStore},
};
use ipnet::IpNet;

use super::known::KnownAddresses;
use crate::app::{
    config::{Rate, Rates},
    error::{Error, Result},
    networks::network_of,
};

/// The limit of all unknown addresses together, as a multiple of the limit per address.
const UNKNOWN_FACTOR: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");
/// Number of attempts between two removals of inactive addresses.
const PRUNE_EVERY: u32 = 1_000;

/// The attempts at one server.
#[derive(Debug)]
pub struct LoginAttempts<C: Clock = DefaultClock> {
    sign_in: Gate<C>,
    wrong_secrets: Gate<C>,
    known: KnownAddresses,
}

impl LoginAttempts {
    /// Creates the limits with the system clock.
    pub fn new(rates: &Rates) -> Self {
        Self::with_clock(rates, &DefaultClock::default())
    }
}

impl<C: Clock + Clone> LoginAttempts<C> {
    /// Creates the limits with another clock.
    pub fn with_clock(rates: &Rates, clock: &C) -> Self {
        let Rates { sign_in, wrong_secrets } = rates;
        let (sign_in, wrong_secrets) = (Gate::new(*sign_in, clock), Gate::new(*wrong_secrets, clock));
        Self { sign_in, wrong_secrets, known: KnownAddresses::default() }
    }

    /// Counts the start of a login or registration, or the finish of one that was not started.
    pub fn sign_in(&self, address: Option<IpAddr>) -> Result<()> {
        self.sign_in.pass(address, self.is_known(address))
    }

    /// Marks an address as known after a login.
    pub fn signed_in(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.known.add(address);
        }
    }

    /// Counts an invalid token or key. Valid ones are not counted, so that a neighbour who guesses does not lock out
    /// their holders; guessing 256 bits is hopeless at any rate.
    pub fn wrong_secret(&self, address: Option<IpAddr>) -> Result<()> {
        self.wrong_secrets.pass(address, self.is_known(address))
    }

    fn is_known(&self, address: Option<IpAddr>) -> bool {
        address.is_some_and(|address| self.known.has(address))
    }
}

/// Prefix lengths of IPv6 networks and their limits as multiples of the limit per address: a site with a /48 has 65 536
/// networks. Only the first applies to IPv4 addresses.
const SIZES: [(u8, NonZeroU32); 3] = [(64, times(1)), (56, times(2)), (48, times(4))];

const fn times(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

type Keyed<C> = RateLimiter<IpNet, HashMapStateStore<IpNet>, C, NoOpMiddleware<<C as Clock>::Instant>>;

struct Gate<C: Clock> {
    clock: C,
    each: [(u8, Keyed<C>); SIZES.len()],
    unknown: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    tries: AtomicU32,
}

impl<C: Clock> fmt::Debug for Gate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("tries", &self.tries).finish_non_exhaustive()
    }
}

impl<C: Clock + Clone> Gate<C> {
    fn new(rate: Rate, clock: &C) -> Self {
        let quota = |times: NonZeroU32| {
            let Rate { burst, per_minute } = rate;
            Quota::per_minute(per_minute.saturating_mul(times)).allow_burst(burst.saturating_mul(times))
        };
        Self {
            clock: clock.clone(),
            each: SIZES.map(|(bits, times)| (bits, RateLimiter::hashmap_with_clock(quota(times), clock.clone()))),
            unknown: RateLimiter::direct_with_clock(quota(UNKNOWN_FACTOR), clock.clone()),
            tries: AtomicU32::new(0),
        }
    }

    /// Counts an attempt. The smallest network is checked first, so that refused attempts do not use up the limits of
    /// larger networks.
    fn pass(&self, address: Option<IpAddr>, is_known: bool) -> Result<()> {
        if self.tries.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            self.each.iter().for_each(|(_, each)| each.retain_recent());
        }
        // Callers without an address share the limit of one address.
        let address = address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)).to_canonical();
        let sizes = if address.is_ipv4() { 1 } else { SIZES.len() };
        for (bits, each) in &self.each[..sizes] {
            each.check_key(&network_of(address, *bits)).map_err(|until| self.refused(&until))?;
        }
        if is_known { Ok(()) } else { self.unknown.check().map_err(|until| self.refused(&until)) }
    }

    fn refused(&self, until: &NotUntil<C::Instant>) -> Error {
        Error::TooMany(until.wait_time_from(self.clock.now()).as_secs() + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn tries() -> (LoginAttempts<FakeRelativeClock>, FakeRelativeClock) {
        let (clock, rate) = (FakeRelativeClock::default(), Rate::new(3, 6));
        (LoginAttempts::with_clock(&Rates { sign_in: rate, wrong_secrets: rate }, &clock), clock)
    }

    fn from(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    fn wait(result: Result<()>) -> Option<u64> {
        match result {
            Ok(()) => None,
            Err(Error::TooMany(seconds)) => Some(seconds),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_address_with_too_many_attempts_waits_and_others_do_not() {
        let (tries, clock) = tries();
        for _ in 0..3 {
            assert_eq!(wait(tries.sign_in(from("192.0.2.1"))), None);
        }
        let seconds = wait(tries.sign_in(from("192.0.2.1"))).expect("refused");
        assert!((10..=11).contains(&seconds), "{seconds}");
        assert_eq!(wait(tries.sign_in(from("192.0.2.2"))), None);
        assert_eq!(wait(tries.wrong_secret(from("192.0.2.1"))), None, "counted separately");
        clock.advance(Duration::from_secs(seconds));
        assert_eq!(wait(tries.sign_in(from("192.0.2.1"))), None, "the reported wait suffices");
        assert!(wait(tries.sign_in(from("192.0.2.1"))).is_some());
    }

    #[test]
    fn all_unknown_addresses_together_have_ten_times_the_limit() {
        let (tries, clock) = tries();
        let outcome =
            |n: u32| wait(tries.wrong_secret(Some(IpAddr::from([10, 0, 0, u8::try_from(n).expect("small")]))));
        assert_eq!((0..30).filter_map(outcome).count(), 0);
        assert_eq!(outcome(31), Some(2));
        clock.advance(Duration::from_secs(2));
        assert_eq!(outcome(32), None);
    }

    #[test]
    fn known_addresses_are_not_affected_by_unknown_ones() {
        let (tries, _clock) = tries();
        tries.signed_in(from("192.0.2.1"));
        tries.signed_in(from("2001:db8:7::1"));
        for n in 0..30_u8 {
            assert_eq!(wait(tries.sign_in(Some(IpAddr::from([10, 0, 0, n])))), None);
        }
        assert!(wait(tries.sign_in(from("192.0.2.2"))).is_some(), "unknown addresses wait");
        assert_eq!(wait(tries.sign_in(from("192.0.2.1"))), None);
        assert_eq!(wait(tries.sign_in(from("2001:db8:7::ffff"))), None, "the same network");
        assert!((0..3).any(|_| wait(tries.sign_in(from("192.0.2.1"))).is_some()), "its own limit still applies");
    }

    #[test]
    fn a_site_with_many_networks_does_not_lock_out_others() {
        let (tries, _clock) = tries();
        let passed = (0..1000).filter(|n| wait(tries.sign_in(from(&format!("2001:db8:0:{n:x}::1")))).is_none()).count();
        assert_eq!(passed, 12, "four times what one network has");
        assert_eq!(wait(tries.sign_in(from("2001:db8:1::1"))), None, "another site");
        let passed = (0..256).filter(|n| wait(tries.sign_in(from(&format!("2001:db8:2:{n:x}::1")))).is_none()).count();
        assert_eq!(passed, 6, "twice that of a /56");
    }

    #[test]
    fn callers_without_an_address_share_one_limit() {
        let (tries, _clock) = tries();
        assert_eq!((0..9).filter(|_| wait(tries.sign_in(None)).is_none()).count(), 3);
    }

    #[test]
    fn addresses_of_one_network_share_a_limit() {
        let (tries, _clock) = tries();
        for end in 1..=3 {
            assert_eq!(wait(tries.sign_in(from(&format!("2001:db8::{end}")))), None);
        }
        assert!(wait(tries.sign_in(from("2001:db8::ffff:1"))).is_some());
        assert_eq!(wait(tries.sign_in(from("2001:db8:0:1::1"))), None);
    }
}
