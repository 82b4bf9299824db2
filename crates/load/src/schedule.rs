//! When requests start, and how many connections are in use, over time. Pure.

use brewbench_wire::load::Shape;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::clock::Clock;
use crate::plan::Spacing;
use crate::share::Share;

/// A level over time as consecutive ramps, with its integral: the number of arrivals if the level is a rate.
#[derive(Clone, Debug)]
pub struct Level {
    ramps: Vec<Ramp>,
}

/// A linear part of a level.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    from_s: f64,
    lasts_s: f64,
    low: f64,
    /// Change per second.
    slope: f64,
    /// The integral before it.
    before: f64,
    /// Its own integral.
    area: f64,
}

/// Tolerance of the integral: the 175th arrival of 174.999999999 is one.
const ROUNDING: f64 = 1e-6;

impl Level {
    /// Creates it from the shape of a load.
    pub fn new(shape: &Shape) -> Self {
        let (mut ramps, mut total) = (Vec::new(), 0.0);
        for pair in shape.points().windows(2) {
            let ((from, low), (until, high)) = (pair[0], pair[1]);
            if until > from {
                let (low, high, lasts_s) = (f64::from(low), f64::from(high), (until - from) as f64 / 1e3);
                let area = lasts_s * (low + high) / 2.0;
                let slope = (high - low) / lasts_s;
                ramps.push(Ramp { from_s: from as f64 / 1e3, lasts_s, low, slope, before: total, area });
                total += area;
            }
        }
        Self { ramps }
    }

    /// Returns the level at a time.
    pub fn at(&self, ns: u64) -> f64 {
        self.ramp(ns).map_or(0.0, |(ramp, s)| ramp.low + ramp.slope * s)
    }

    /// Returns the integral of the level until a time.
    fn integral(&self, ns: u64) -> f64 {
        self.ramp(ns).map_or(0.0, |(ramp, s)| ramp.before + ramp.low * s + ramp.slope * s * s / 2.0)
    }

    /// Returns the ramp at a time, or the last one before, and the seconds since its start.
    fn ramp(&self, ns: u64) -> Option<(Ramp, f64)> {
        let s = ns as f64 / 1e9;
        let after = self.ramps.partition_point(|ramp| ramp.from_s <= s);
        let ramp = self.ramps[after.checked_sub(1)?];
        Some((ramp, (s - ramp.from_s).min(ramp.lasts_s)))
    }
}

impl Ramp {
    /// Returns when its integral reaches a value, nanoseconds since the start.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within a day")]
    fn time_ns(&self, area: f64) -> u64 {
        // The stable form of the root of a quadratic: it is exact for a constant level, too.
        let root = (self.low * self.low + 2.0 * self.slope * area).max(0.0).sqrt();
        let s = if area > 0.0 { 2.0 * area / (self.low + root) } else { 0.0 };
        ((self.from_s + s.min(self.lasts_s)) * 1e9).round() as u64
    }
}

/// The intended starts of the requests of an open load that one thread makes, ascending.
#[derive(Clone, Debug)]
pub struct Arrivals {
    level: Level,
    ramp: usize,
    spacing: Gaps,
    /// Where the integral of the level reaches the next arrival.
    at: f64,
    next_ns: Option<u64>,
    clock: Clock,
}

/// The distance of arrivals, as integral of the rate of all threads.
#[derive(Clone, Debug)]
enum Gaps {
    /// Always the same.
    Equal { number: u64, step: u64 },
    /// Exponential.
    Random { rng: Box<ChaCha8Rng>, mean: f64 },
}

impl Arrivals {
    /// Creates those of a part of a load. The parts of a uniform load interleave, and those of a Poisson process are
    /// independent ones, whose sum is a Poisson process.
    pub fn new(level: Level, spacing: Spacing, share: Share, clock: Clock, rng: ChaCha8Rng) -> Self {
        let spacing = match spacing {
            Spacing::Uniform => Gaps::Equal { number: share.index, step: share.of },
            Spacing::Poisson => Gaps::Random { rng: Box::new(rng), mean: share.of as f64 },
        };
        let mut arrivals = Self { level, ramp: 0, spacing, at: 0.0, next_ns: None, clock };
        arrivals.at = match &mut arrivals.spacing {
            Gaps::Equal { number, .. } => *number as f64,
            Gaps::Random { rng, mean } => exponential(rng) * *mean,
        };
        arrivals.locate();
        arrivals
    }

    /// Returns the next intended start, nanoseconds since the start of the load.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Moves on to the arrival after the next one.
    pub fn advance(&mut self) {
        match &mut self.spacing {
            Gaps::Equal { number, step } => {
                *number += *step;
                self.at = *number as f64;
            }
            Gaps::Random { rng, mean } => self.at += exponential(rng) * *mean,
        }
        self.locate();
    }

    /// Returns how many are left before a time. Of a Poisson process, whose later arrivals are not drawn yet, it is the
    /// mean.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, at most 10^11")]
    pub fn left_until(&self, ns: u64) -> u64 {
        if self.next_ns.is_none_or(|next| next >= ns) {
            return 0;
        }
        let rest = (self.level.integral(self.clock.open_ns(ns)) - ROUNDING - self.at).max(0.0);
        match self.spacing {
            Gaps::Equal { step, .. } => 1 + (rest / step as f64) as u64,
            Gaps::Random { mean, .. } => 1 + (rest / mean).round() as u64,
        }
    }

    fn locate(&mut self) {
        self.next_ns = None;
        while let Some(ramp) = self.level.ramps.get(self.ramp) {
            let area = self.at - ramp.before;
            let last = self.ramp + 1 == self.level.ramps.len();
            if area < ramp.area - if last { ROUNDING } else { 0.0 } {
                self.next_ns = Some(self.clock.at(ramp.time_ns(area)));
                return;
            }
            self.ramp += 1;
        }
    }
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::{Form, Open, Stage};
    use rand::SeedableRng;

    use super::*;

    fn level(form: Form) -> Level {
        Level::new(Open::new(form, Some(1)).expect("a load").rate())
    }

    fn stages(stages: &[(u64, u32)]) -> Level {
        level(Form::Stages(stages.iter().map(|&(duration_ms, target)| Stage { duration_ms, target }).collect()))
    }

    fn all(mut arrivals: Arrivals) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(ns) = arrivals.next_ns() {
            times.push(ns);
            arrivals.advance();
        }
        times
    }

    fn part(level: &Level, spacing: Spacing, index: u64, of: u64) -> Arrivals {
        Arrivals::new(level.clone(), spacing, Share { index, of }, Clock::start(None), ChaCha8Rng::seed_from_u64(index))
    }

    #[test]
    fn a_constant_rate_starts_requests_at_equal_distances() {
        let level = level(Form::Constant { level: 4, duration_ms: 1_500 });
        let ms: Vec<u64> = all(part(&level, Spacing::Uniform, 0, 1)).iter().map(|ns| ns / 1_000_000).collect();
        assert_eq!(ms, [0, 250, 500, 750, 1_000, 1_250]);
    }

    #[test]
    fn the_parts_of_a_load_have_each_start_of_the_complete_one_once() {
        for level in [
            level(Form::Constant { level: 999, duration_ms: 1_001 }),
            stages(&[(1_000, 100), (500, 100), (0, 50), (1_000, 0)]),
            stages(&[(0, 70), (0, 20), (1_000, 33)]),
        ] {
            let complete = all(part(&level, Spacing::Uniform, 0, 1));
            assert_eq!(complete.len() as u64, part(&level, Spacing::Uniform, 0, 1).left_until(u64::MAX));
            let mut parts: Vec<u64> = (0..7).flat_map(|index| all(part(&level, Spacing::Uniform, index, 7))).collect();
            parts.sort_unstable();
            assert_eq!(parts, complete);
        }
    }

    #[test]
    fn the_number_of_arrivals_is_the_integral_of_the_rate() {
        let ramp = stages(&[(1_000, 100), (1_000, 100), (0, 50), (1_000, 0)]);
        let times = all(part(&ramp, Spacing::Uniform, 0, 1));
        assert_eq!(times.len(), 175);
        let left = |ms: u64| part(&ramp, Spacing::Uniform, 0, 1).left_until(ms * 1_000_000);
        assert_eq!(
            [left(0), left(800), left(1_000), left(2_000), left(2_500), left(9_000)],
            [0, 32, 50, 150, 169, 175]
        );
        // A ramp from 0 to 100/s has its n-th arrival after √(n/50) s.
        assert_eq!(times[32], 800_000_000);
        assert!(times.is_sorted() && times.iter().all(|&ns| ns < 3_000_000_000));
    }

    #[test]
    fn the_level_is_interpolated() {
        let ramp = stages(&[(1_000, 100), (0, 50), (1_000, 0)]);
        for (ms, level) in [(0, 0.0), (500, 50.0), (1_000, 50.0), (1_500, 25.0), (2_000, 0.0), (9_000, 0.0)] {
            assert!((ramp.at(ms * 1_000_000) - level).abs() < 1e-9, "{ms}");
        }
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_variance_of_their_distribution() {
        let level = level(Form::Constant { level: 100_000, duration_ms: 1_000 });
        let times: Vec<u64> = (0..4).flat_map(|index| all(part(&level, Spacing::Poisson, index, 4))).collect();
        // Seeded. Five standard deviations of the count.
        assert!(times.len().abs_diff(100_000) < 1_600, "{}", times.len());
        let mut per_ms = vec![0.0; 1_000];
        for ns in times {
            per_ms[usize::try_from(ns / 1_000_000).expect("small")] += 1.0;
        }
        let variance = per_ms.iter().map(|count: &f64| (count - 100.0).powi(2)).sum::<f64>() / 1_000.0;
        assert!((80.0..125.0).contains(&variance), "{variance}");
        let again = all(part(&level, Spacing::Poisson, 2, 4));
        assert_eq!(again, all(part(&level, Spacing::Poisson, 2, 4)), "the same seed gives the same starts");
        assert!(
            again
                .len()
                .abs_diff(usize::try_from(part(&level, Spacing::Poisson, 2, 4).left_until(u64::MAX)).expect("few"))
                < 1_000
        );
    }
}
