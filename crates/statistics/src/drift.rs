//! Detects a trend or step in a single series that its own noise does not explain. Pure.
//!
//! Seconds of a run are not independent: effects of garbage collections, caches and neighbours last longer. A test that
//! assumes independence finds a drift in half of all steady runs. So the noise of the logarithms is modelled as a
//! first-order autoregression, and each possible drift (a line, a line with a bend, a step at any place, an approach to
//! a level as of a just-in-time compiler, a departure from one) is tested by generalised least squares after the
//! transformation of Prais & Winsten (1954), "Trend Estimators and Serial Correlation", Cowles Commission Discussion
//! Paper 383. Variance and autocorrelation are those of the residuals of the best-fitting drift, corrected for the bias
//! of the latter towards zero (Marriott & Pope 1954, Biometrika 41, 390–402). A second test uses the residuals of the
//! three best-fitting drifts, so that a large drift of another shape is not mistaken for correlated noise.
//!
//! The statistic is the maximum F ratio of all drifts, as Andrews (1993, Econometrica 61, 821–856) proposes for a step
//! at an unknown place. Its critical values are simulated: at most 5 % of stationary series with an autocorrelation up
//! to 0.9 exceed them, so much less correlated ones almost never do. The tests below verify that.

/// Minimum number of points: the noise of fewer can't be estimated.
pub const MIN_POINTS: usize = 8;

/// Maximum number of points; callers merge neighbours, because more do not make the test sharper.
pub const MAX_POINTS: usize = 60;

/// Maximum autocorrelation of a stationary series.
const MAX_CORRELATION: f64 = 0.98;

/// Time constants of an approach to a level, as shares of a series.
const APPROACHES: [f64; 4] = [0.05, 0.1, 0.2, 0.35];

/// Positions of the bend of a line, as shares of a series.
const BENDS: [f64; 3] = [0.25, 0.5, 0.75];

/// Numbers of best-fitting drifts to remove before the noise is estimated.
const CLEARED: [usize; 2] = [1, 3];

/// Critical values of the statistic by the number of points, for each of [`CLEARED`]; simulated.
const CRITICAL: [(f64, [f64; 2]); 6] = [
    (8.0, [100.0, 105.0]),
    (14.0, [90.0, 160.0]),
    (20.0, [80.0, 164.0]),
    (28.0, [72.0, 160.0]),
    (40.0, [58.0, 125.0]),
    (60.0, [40.0, 89.0]),
];

/// Lower bound of values as a share of the mean, because zero has no logarithm.
pub(crate) const MIN_SHARE: f64 = 0.01;

/// A significant drift: the fitted level at the start and at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Level of the first point.
    pub first: f64,
    /// Level of the last point.
    pub last: f64,
}

impl Drift {
    /// Returns the change of the level as a share of the first.
    pub fn change(&self) -> f64 {
        self.last / self.first - 1.0
    }
}

/// Returns the drift of a series with points of equal length; None if not significant or the series is too short.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    if !(MIN_POINTS..=MAX_POINTS).contains(&count) || mean <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.max(MIN_SHARE * mean).ln()).collect();
    let middle = logs.iter().sum::<f64>() / count as f64;
    let centred: Vec<f64> = logs.iter().map(|log| log - middle).collect();
    if square(&centred).sqrt() <= 1e-9 {
        return None;
    }
    let shapes = shapes(count);
    let limits = critical(count);
    let found = CLEARED.into_iter().zip(limits).find_map(|(cleared, limit)| {
        let whitened = Whitened::new(&centred, &noise(&centred, &shapes, cleared), cleared)?;
        let ratios = shapes.iter().map(|shape| whitened.ratio(shape)).enumerate();
        let (place, ratio) = ratios.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (ratio > limit).then_some(place)
    })?;
    let fit = dot(&shapes[found], &centred);
    let level = |at: usize| (middle + fit * shapes[found][at]).exp();
    Some(Drift { first: level(0), last: level(count - 1) })
}

/// Returns all drifts to test, centred and of length 1.
pub(crate) fn shapes(count: usize) -> Vec<Vec<f64>> {
    let ends = (count.div_ceil(10)).max(2);
    let length = count as f64;
    let shape = |at: &dyn Fn(f64) -> f64| (0..count).map(|place| at(place as f64)).collect::<Vec<f64>>();
    let mut all = vec![shape(&|at| at)];
    all.extend((ends..=count - ends).map(|from| shape(&|at| if at >= from as f64 { 1.0 } else { 0.0 })));
    for share in APPROACHES {
        all.push(shape(&|at| -(-at / (share * length)).exp()));
        all.push(shape(&|at| ((at - length) / (share * length)).exp()));
    }
    for share in BENDS {
        all.push(shape(&|at| at.min(share * length)));
        all.push(shape(&|at| at.max(share * length)));
    }
    // Some have no bend within a short series: then they are constant.
    all.into_iter()
        .map(|shape| centred(&shape))
        .filter(|shape| square(shape) > 1e-12)
        .map(|shape| normal(&shape))
        .collect()
}

pub(crate) fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

fn normal(values: &[f64]) -> Vec<f64> {
    let length = square(values).sqrt();
    values.iter().map(|value| value / length).collect()
}

/// Returns the residuals of a series after removing the best-fitting drifts one by one.
fn noise(centred: &[f64], shapes: &[Vec<f64>], cleared: usize) -> Vec<f64> {
    let mut left = centred.to_vec();
    let mut removed: Vec<Vec<f64>> = Vec::new();
    for _ in 0..cleared {
        let fit = |shape: &&Vec<f64>| dot(shape, &left).abs();
        let Some(best) = shapes.iter().max_by(|a, b| fit(a).total_cmp(&fit(b))) else { break };
        let own = removed.iter().fold(best.clone(), |own, other| without(&own, other));
        // This drift has already been removed.
        if square(&own) < 1e-18 {
            break;
        }
        let own = normal(&own);
        left = without(&left, &own);
        removed.push(own);
    }
    left
}

/// A series with independent noise, and its residuals after removing a constant.
struct Whitened {
    correlation: f64,
    constant: Vec<f64>,
    left: Vec<f64>,
    variance: f64,
}

impl Whitened {
    /// Returns None if there are too few points to estimate the noise.
    fn new(values: &[f64], noise: &[f64], cleared: usize) -> Option<Self> {
        let count = values.len() as f64;
        let own = square(noise);
        let found = noise.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / own;
        let found = if own > 0.0 { found } else { 0.0 };
        let parameters = (1 + 2 * cleared) as f64;
        let correlation = (found + (parameters + 5.0 * found) / count).clamp(0.0, MAX_CORRELATION);
        let constant = transformed(&vec![1.0; values.len()], correlation);
        let left = without(&transformed(values, correlation), &constant);
        let degrees = (count - parameters).max(1.0);
        let variance = square(&transformed(noise, correlation)) / degrees;
        (values.len() > 2 * cleared).then_some(Self { correlation, constant, left, variance })
    }

    /// Returns how much better a drift fits than a constant, in variances of the noise.
    fn ratio(&self, shape: &[f64]) -> f64 {
        let shape = without(&transformed(shape, self.correlation), &self.constant);
        let explained = dot(&shape, &self.left).powi(2) / square(&shape);
        // Without noise, any drift is significant.
        if self.variance > 1e-18 { explained / self.variance } else { explained / 1e-18 }
    }
}

/// Applies the Prais–Winsten transformation.
fn transformed(values: &[f64], correlation: f64) -> Vec<f64> {
    let first = values.first().map(|value| value * (1.0 - correlation * correlation).sqrt());
    first.into_iter().chain(values.windows(2).map(|pair| pair[1] - correlation * pair[0])).collect()
}

/// Removes the component that another vector explains.
fn without(values: &[f64], other: &[f64]) -> Vec<f64> {
    let factor = dot(values, other) / square(other);
    values.iter().zip(other).map(|(value, other)| value - factor * other).collect()
}

pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

pub(crate) fn square(values: &[f64]) -> f64 {
    dot(values, values)
}

/// Returns the critical values for a number of points, interpolated between the simulated ones.
fn critical(count: usize) -> [f64; 2] {
    let count = count as f64;
    let between = CRITICAL.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&count));
    let Some([(from, here), (to, there)]) = between else { return CRITICAL[CRITICAL.len() - 1].1 };
    let share = (count - from) / (to - from);
    [0, 1].map(|place| here[place] + (there[place] - here[place]) * share)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A reproducible random number generator: splitmix64.
    pub struct Numbers(pub u64);

    impl Numbers {
        pub fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        pub fn normal(&mut self) -> f64 {
            let (radius, angle) = (self.uniform().max(1e-300), self.uniform());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }

        /// Returns a whole number below a limit.
        pub fn below(&mut self, limit: usize) -> usize {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the limit")]
            let number = (self.uniform() * limit as f64) as usize;
            number
        }

        /// Returns a stationary autoregression with a standard deviation of 1.
        pub fn series(&mut self, count: usize, correlation: f64) -> Vec<f64> {
            let fresh = (1.0 - correlation * correlation).sqrt();
            let mut last = self.normal();
            (0..count)
                .map(|_| {
                    last = correlation * last + fresh * self.normal();
                    last
                })
                .collect()
        }
    }

    fn share_found(seed: u64, count: usize, correlation: f64, noise: f64, level: impl Fn(f64) -> f64) -> f64 {
        const SERIES: usize = 300;
        let mut numbers = Numbers(seed);
        let one = |at: usize, noise_at: f64| 1_000.0 * (level(at as f64 / (count - 1) as f64) + noise * noise_at);
        let found = (0..SERIES).filter(|_| {
            let noise = numbers.series(count, correlation);
            let values: Vec<f64> = noise.into_iter().enumerate().map(|(at, noise)| one(at, noise)).collect();
            drift(&values).is_some_and(|drift| drift.change().abs() > 0.01)
        });
        found.count() as f64 / SERIES as f64
    }

    #[test]
    fn correlated_noise_is_not_a_drift() {
        for count in [8, 12, 20, 28, 60] {
            for correlation in [0.0, 0.5, 0.9] {
                let share = share_found(1, count, correlation, 0.03, |_| 1.0);
                // Of 300 series, three standard errors of 5 % are 4 points.
                assert!(share <= 0.09, "{count} points, {correlation}: {share}");
                assert!(correlation > 0.5 || share <= 0.03, "{count} points, {correlation}: {share}");
            }
        }
    }

    #[test]
    fn heavy_tails_and_regular_pauses_are_not_a_drift() {
        let mut numbers = Numbers(2);
        let heavy = (0..300).filter(|_| {
            let values: Vec<f64> =
                (0..28).map(|_| 1_000.0 + 20.0 * numbers.normal() / numbers.uniform().sqrt()).collect();
            drift(&values).is_some()
        });
        assert!(heavy.count() <= 9);
        for period in 2..8 {
            let values: Vec<f64> = (0..28).map(|at| if at % period == 0 { 800.0 } else { 1_000.0 }).collect();
            assert_eq!(drift(&values), None, "a pause every {period} seconds");
        }
    }

    #[test]
    fn a_warming_jit_compiler_is_detected_within_half_a_minute() {
        let line = |at: f64| 0.85 + 0.15 * at;
        let approach = |at: f64| 1.0 - 0.3 * (-5.0 * at).exp();
        let step = |at: f64| if at < 1.0 / 3.0 { 0.9 } else { 1.0 };
        // Slow at the start, because each request costs five times as much, for half of the time or all of it.
        let costly = |until: f64| move |at: f64| 1.0 / (1.0 + 4.0 * (1.0 - at / until).max(0.0));
        assert!(share_found(7, 28, 0.0, 0.03, costly(0.5)) >= 0.9);
        assert!(share_found(8, 28, 0.0, 0.03, costly(1.0)) >= 0.95);
        assert!(share_found(9, 10, 0.0, 0.03, costly(1.0)) >= 0.8);
        assert!(share_found(3, 28, 0.0, 0.02, line) >= 0.9);
        assert!(share_found(4, 28, 0.0, 0.02, approach) >= 0.99);
        assert!(share_found(5, 28, 0.5, 0.02, approach) >= 0.9);
        assert!(share_found(6, 28, 0.0, 0.02, step) >= 0.9);
    }

    #[test]
    fn the_size_of_a_drift_is_estimated() {
        let rising: Vec<f64> = (0..28).map(|at| 850.0 + 150.0 * f64::from(at) / 27.0 + f64::from(at % 2)).collect();
        let found = drift(&rising).expect("a drift");
        assert!((found.change() - 0.176).abs() < 0.01, "{found:?}");
        let falling: Vec<f64> = (0..28).map(|at| if at < 14 { 1_000.0 } else { 900.0 }).collect();
        assert!((drift(&falling).expect("a drift").change() + 0.1).abs() < 1e-9);
    }

    #[test]
    fn too_few_or_constant_points_are_not_a_drift() {
        assert_eq!(drift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), None);
        assert_eq!(drift(&[5.0; 20]), None);
        assert_eq!(drift(&[0.0; 20]), None);
        assert_eq!(drift(&[]), None);
    }
}
