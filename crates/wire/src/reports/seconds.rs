//! Collects single requests into a time series, in bounded memory. Pure.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::reports::values::to_integer;
use crate::series::{Second, Window};

/// Maximum number of seconds with a request: a longer series is left out.
const SECONDS_MAX: usize = 8_000;

/// Buckets are 9 % wide, as k6's.
const SCHEMA: i8 = 3;

/// The load per second.
#[derive(Debug, Default)]
pub struct Seconds {
    /// By unix second.
    seconds: BTreeMap<i64, Collected>,
    is_too_long: bool,
}

#[derive(Debug, Default)]
struct Collected {
    succeeded: Latencies,
    failed: Latencies,
    vus: Option<u64>,
    iterations: u64,
    dropped_iterations: u64,
    received_bytes: u64,
    sent_bytes: u64,
}

#[derive(Debug, Default)]
struct Latencies {
    zero: u64,
    sum_ms: f64,
    buckets: BTreeMap<i16, u64>,
}

/// What happened at a time.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request ended.
    Request {
        /// Its latency.
        ms: f64,
        /// Whether it failed.
        is_failed: bool,
    },
    /// The number of virtual users.
    Vus(f64),
    /// Iterations that ended.
    Iterations(f64),
    /// Iterations that were dropped.
    Dropped(f64),
    /// Bytes that arrived.
    Received(f64),
    /// Bytes that were sent.
    Sent(f64),
}

impl Seconds {
    /// Adds what happened at a time, unix milliseconds.
    pub fn add(&mut self, at_ms: i64, event: Event) {
        if self.is_too_long {
            return;
        }
        let second = self.seconds.entry(at_ms.div_euclid(1000)).or_default();
        let add = |count: &mut u64, more: f64| *count = count.saturating_add(to_integer(more.max(0.0)));
        match event {
            Event::Request { ms, is_failed: false } => second.succeeded.add(ms),
            Event::Request { ms, is_failed: true } => second.failed.add(ms),
            Event::Vus(vus) => second.vus = Some(second.vus.unwrap_or_default().max(to_integer(vus.max(0.0)))),
            Event::Iterations(more) => add(&mut second.iterations, more),
            Event::Dropped(more) => add(&mut second.dropped_iterations, more),
            Event::Received(more) => add(&mut second.received_bytes, more),
            Event::Sent(more) => add(&mut second.sent_bytes, more),
        }
        if self.seconds.len() > SECONDS_MAX {
            (self.seconds, self.is_too_long) = (BTreeMap::new(), true);
        }
    }

    /// Returns the series; `None` if there is nothing in it, or too much.
    pub fn window(self) -> Option<Window> {
        let start = *self.seconds.keys().next()?;
        let second = |(at, found): (i64, Collected)| {
            let Collected { succeeded, failed, vus, iterations, dropped_iterations, received_bytes, sent_bytes } =
                found;
            Some(Second {
                until_ms: u32::try_from((at - start + 1).checked_mul(1000)?).ok()?,
                vus,
                iterations,
                dropped_iterations,
                received_bytes,
                sent_bytes,
                succeeded: succeeded.histogram()?,
                failed: failed.histogram()?,
            })
        };
        let seconds = self.seconds.into_iter().map(second).collect::<Option<Vec<_>>>()?;
        Some(Window { start_ms: start.checked_mul(1000)?, seconds, ..Window::default() })
    }
}

impl Latencies {
    fn add(&mut self, ms: f64) {
        if ms.is_nan() || ms <= 0.0 {
            self.zero += 1;
            return;
        }
        self.sum_ms += ms;
        #[expect(clippy::cast_possible_truncation, reason = "clamped to what a histogram holds")]
        let index = ((ms / 1e3).log2() * f64::from(SCHEMA).exp2()).ceil().clamp(-512.0, 512.0) as i16;
        *self.buckets.entry(index).or_default() += 1;
    }

    fn histogram(self) -> Option<Histogram> {
        let buckets = self.buckets.into_iter().map(|(index, count)| (i32::from(index), count));
        Histogram::new(SCHEMA, self.zero, to_integer((self.sum_ms * 1e6).round()), buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_in_the_second_of_their_end() {
        let mut seconds = Seconds::default();
        for (at_ms, ms, is_failed) in [(10_000, 1.0, false), (10_999, 2.0, true), (12_000, 0.0, false)] {
            seconds.add(at_ms, Event::Request { ms, is_failed });
        }
        seconds.add(12_500, Event::Vus(4.0));
        let window = seconds.window().expect("a series");
        assert_eq!(window.start_ms, 10_000);
        let found: Vec<_> = window
            .seconds
            .iter()
            .map(|one| (one.until_ms, one.succeeded.total(), one.failed.total(), one.vus))
            .collect();
        assert_eq!(found, [(1_000, 1, 1, None), (3_000, 1, 0, Some(4))]);
        assert_eq!(window.seconds.first().map(|one| one.succeeded.sum_ns()), Some(1_000_000));
        let (low, high) =
            window.seconds[0].succeeded.bounds_ms(window.seconds[0].succeeded.buckets().next().expect("one").0);
        assert!(low < 1.0 && 1.0 <= high * (1.0 + 1e-9), "{low} {high}");
    }

    #[test]
    fn a_series_that_is_too_long_is_left_out() {
        let mut seconds = Seconds::default();
        (0..9_000).for_each(|second| seconds.add(second * 1000, Event::Vus(1.0)));
        assert_eq!(seconds.window(), None);
    }
}
