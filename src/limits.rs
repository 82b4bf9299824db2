//! How often somebody may try: per address, and all addresses together ten times as often. In memory: a restart forgives.
//!
//! Addresses of one IPv6 network (/64) count as one, as whoever has one of them has them all.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed, keyed::HashMapStateStore},
};

use crate::{
    config::{Rate, Rates},
    error::{Error, Result},
};

/// So many more tries all addresses together have.
const TOGETHER: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");
/// Addresses that have not tried for a while are forgotten every so many tries.
const FORGET_EVERY: u32 = 1_000;

/// The limits of one server, by one clock.
#[derive(Debug)]
pub struct Limits<C: Clock = DefaultClock> {
    sign_in: Gate<C>,
    wrong_secrets: Gate<C>,
}

impl Limits {
    /// By the clock of the machine.
    pub fn new(rates: &Rates) -> Self {
        Self::by(rates, &DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limits<C> {
    /// By some clock.
    pub fn by(rates: &Rates, clock: &C) -> Self {
        let Rates { sign_in, wrong_secrets } = rates;
        Self { sign_in: Gate::new(*sign_in, clock), wrong_secrets: Gate::new(*wrong_secrets, clock) }
    }

    /// Somebody takes a step towards a login or a registration.
    pub fn sign_in(&self, address: Option<IpAddr>) -> Result<()> {
        self.sign_in.pass(address)
    }

    /// Somebody came with a token or a key that opens nothing. Good ones are not counted: who holds one is not locked
    /// out by a neighbour who guesses, and guessing 256 bits is hopeless at any rate.
    pub fn wrong_secret(&self, address: Option<IpAddr>) -> Result<()> {
        self.wrong_secrets.pass(address)
    }
}

struct Gate<C: Clock> {
    clock: C,
    each: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, C, NoOpMiddleware<C::Instant>>,
    all: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    tries: AtomicU32,
}

impl<C: Clock> fmt::Debug for Gate<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("tries", &self.tries).finish_non_exhaustive()
    }
}

impl<C: Clock + Clone> Gate<C> {
    fn new(rate: Rate, clock: &C) -> Self {
        let Rate { burst, per_minute } = rate;
        let each = Quota::per_minute(per_minute).allow_burst(burst);
        let all = Quota::per_minute(per_minute.saturating_mul(TOGETHER)).allow_burst(burst.saturating_mul(TOGETHER));
        Self {
            clock: clock.clone(),
            each: RateLimiter::hashmap_with_clock(each, clock.clone()),
            all: RateLimiter::direct_with_clock(all, clock.clone()),
            tries: AtomicU32::new(0),
        }
    }

    /// An address comes first: one that is refused takes nothing away from the others.
    fn pass(&self, address: Option<IpAddr>) -> Result<()> {
        if self.tries.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.each.retain_recent();
        }
        let refused = |wait: Duration| Error::TooMany(wait.as_secs() + 1);
        let address = network(address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
        self.each.check_key(&address).map_err(|until| refused(until.wait_time_from(self.clock.now())))?;
        self.all.check().map_err(|until| refused(until.wait_time_from(self.clock.now())))
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limits() -> (Limits<FakeRelativeClock>, FakeRelativeClock) {
        let (clock, number) = (FakeRelativeClock::default(), |n| NonZeroU32::new(n).expect("not zero"));
        let rate = Rate { burst: number(3), per_minute: number(6) };
        (Limits::by(&Rates { sign_in: rate, wrong_secrets: rate }, &clock), clock)
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
    fn an_address_that_tries_too_often_waits_and_others_do_not() {
        let (limits, clock) = limits();
        for _ in 0..3 {
            assert_eq!(wait(limits.sign_in(from("192.0.2.1"))), None);
        }
        let told = wait(limits.sign_in(from("192.0.2.1"))).expect("refused");
        assert!((10..=11).contains(&told), "{told}");
        assert_eq!(wait(limits.sign_in(from("192.0.2.2"))), None);
        assert_eq!(wait(limits.wrong_secret(from("192.0.2.1"))), None, "what is counted apart");
        clock.advance(Duration::from_secs(told));
        assert_eq!(wait(limits.sign_in(from("192.0.2.1"))), None, "it was told the truth");
        assert!(wait(limits.sign_in(from("192.0.2.1"))).is_some());
    }

    #[test]
    fn all_addresses_together_have_ten_times_as_many_tries() {
        let (limits, clock) = limits();
        let outcome =
            |n: u32| wait(limits.wrong_secret(Some(IpAddr::from([10, 0, 0, u8::try_from(n).expect("small")]))));
        assert_eq!((0..30).filter_map(outcome).count(), 0);
        assert_eq!(outcome(31), Some(2));
        clock.advance(Duration::from_secs(2));
        assert_eq!(outcome(32), None);
    }

    #[test]
    fn the_addresses_of_one_network_count_as_one() {
        let (limits, _clock) = limits();
        for end in 1..=3 {
            assert_eq!(wait(limits.sign_in(from(&format!("2001:db8::{end}")))), None);
        }
        assert!(wait(limits.sign_in(from("2001:db8::ffff:1"))).is_some());
        assert_eq!(wait(limits.sign_in(from("2001:db8:0:1::1"))), None);
        assert_eq!(network(IpAddr::V6("::ffff:192.0.2.1".parse().expect("mapped"))), IpAddr::from([192, 0, 2, 1]));
    }
}
