//! Change points of a series: E-Divisive, corrected for autocorrelation. Pure; the same series gives the same result.
//!
//! Source: Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data",
//! Journal of the American Statistical Association 109 (2014), sections 2 and 3. Daly et al., "The use of change point
//! detection to identify software performance regressions in a continuous integration system", ICPE 2020, show that it
//! suits the histories of benchmarks. For every split of a segment into `X`, its first `m` points, and `Y`, the `n`
//! points that follow (all the rest or fewer, so that a change that is reverted later is found)
//!
//! ```text
//! Q = mn / (m + n) · ( 2 / mn · Σ|x − y|  −  1 / (m choose 2) · Σ|x − x′|  −  1 / (n choose 2) · Σ|y − y′| )
//! ```
//!
//! measures the distance between the two. The split with the greatest `Q` is a change point if at most `ALPHA` of all
//! permutations have a `Q` as great, estimated from random permutations. Then both sides are searched recursively.
//!
//! A permutation test assumes that the points are exchangeable. Benchmarks drift: neighbours resemble each other, and
//! with an autocorrelation of 0.3 one flat series of 200 points in five would show a change. So each change point has
//! to pass a second test on the residuals within the segments. Their autocorrelation ρ is estimated; where it is
//! positive, the standard error of the difference of two neighbouring means grows by √((1 + ρ) / (1 − ρ)), and by
//! Student's t that difference must be significant at `ALPHA_CORRELATED`, corrected for all places where the change
//! could be (Bonferroni). The weakest change point that fails is removed until all pass.
//!
//! At most 2 % of flat series of 6 to 200 points show a change with normal or t₃ noise, and at most 5 % with an
//! autocorrelation of 0.3. A series that is searched again with each new point has as many chances of a false change:
//! 19 % of series of 60 points with that autocorrelation show one at some time. [`withstand`] finds those that are
//! significant with such an autocorrelation even if the series itself shows none.
//!
//! Points far from the median of their segment are clamped to five deviations, which limits the weight of an outlier.

use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::spread;

/// Minimum number of points on each side of a change point.
pub const MIN_SIDE: usize = 3;

/// A series with fewer points has no change points.
pub const MIN_POINTS: usize = 2 * MIN_SIDE;

/// Significance level of the search: the share of flat, independent series that show a change.
const ALPHA: f64 = 0.01;

/// Points farther than this many deviations from the median of their segment are clamped.
const OUTLIER: f64 = 5.0;

/// Maximum distance that a change point moves when its position is refined.
const REACH: usize = 5;

/// Up to this length a series has so few distinct permutations that the p-value needs many draws.
const SHORT: usize = 32;

/// Random permutations drawn for a short series.
const SHUFFLES_SHORT: u32 = 3_999;

/// Random permutations for a longer series; enough for a short one if none has as great a `Q`.
const SHUFFLES: u32 = 299;

/// Significance level of the second test, calibrated to an autocorrelation of 0.3.
const ALPHA_CORRELATED: f64 = 0.02;

/// Maximum autocorrelation that is corrected for.
const MAX_AUTOCORRELATION: f64 = 0.9;

/// Autocorrelation that a change point has to withstand: short series estimate their own badly.
const ASSUMED_AUTOCORRELATION: f64 = 0.3;

/// Significance level at which it has to.
const ALPHA_WITHSTAND: f64 = 0.005;

/// Returns the change points of a series in order: the index of the first point of each new segment.
///
/// No segment has fewer than [`MIN_SIDE`] points. A series with fewer than [`MIN_POINTS`] points or with a value
/// that is not finite has none. The result does not depend on the unit of the values.
#[must_use]
pub fn change_points(values: &[f64]) -> Vec<usize> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut points = Vec::new();
    search(values, 0, &mut points);
    points.sort_unstable();
    refine(values, &mut points);
    confirm(values, &mut points);
    points
}

/// Returns which change points remain significant with an autocorrelation of at least 0.3 between neighbours.
#[must_use]
pub fn withstand(values: &[f64], points: &[usize]) -> Vec<bool> {
    let residuals = Residuals::new(values, points);
    let autocorrelation = residuals.autocorrelation().unwrap_or(0.0).max(ASSUMED_AUTOCORRELATION);
    let is_significant = |(strength, count)| residuals.is_significant(strength, count, ALPHA_WITHSTAND);
    residuals.strengths(autocorrelation).map(is_significant).collect()
}

/// Splits a segment as long as there is a significant split.
fn search(values: &[f64], start: usize, points: &mut Vec<usize>) {
    let clamped = clamp_outliers(values);
    let mut scan = Scan::new(values.len());
    let Some((at, strength)) = scan.best_split(&clamped) else { return };
    if scan.is_significant(&clamped, strength) {
        points.push(start + at);
        search(&values[..at], start, points);
        search(&values[at..], start + at, points);
    }
}

/// Removes the change points that autocorrelation explains.
fn confirm(values: &[f64], points: &mut Vec<usize>) {
    while !points.is_empty()
        && let Some(weakest) = first_unconfirmed(values, points)
    {
        points.remove(weakest);
    }
}

/// Returns the weakest change point if it fails the test corrected for autocorrelation.
fn first_unconfirmed(values: &[f64], points: &[usize]) -> Option<usize> {
    let residuals = Residuals::new(values, points);
    let autocorrelation = residuals.autocorrelation().filter(|autocorrelation| *autocorrelation > 0.0)?;
    let (place, (strength, count)) =
        residuals.strengths(autocorrelation).enumerate().min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))?;
    (!residuals.is_significant(strength, count, ALPHA_CORRELATED)).then_some(place)
}

/// Level of a segment.
struct Level {
    count: f64,
    mean: f64,
}

/// Residuals of a series without the levels of its segments.
struct Residuals {
    segments: Vec<Level>,
    /// Number of points in the series.
    count: f64,
    /// Sum of the squares of the residuals.
    squares: f64,
    /// Sum of the products of neighbouring residuals.
    products: f64,
}

impl Residuals {
    fn new(values: &[f64], points: &[usize]) -> Self {
        let mut all = Self { segments: Vec::new(), count: values.len() as f64, squares: 0.0, products: 0.0 };
        let bounds: Vec<usize> = [0].into_iter().chain(points.iter().copied()).chain([values.len()]).collect();
        for pair in bounds.windows(2) {
            let segment = clamp_outliers(&values[pair[0]..pair[1]]);
            let count = segment.len() as f64;
            let mean = segment.iter().sum::<f64>() / count;
            all.squares += segment.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            all.products += segment.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
            all.segments.push(Level { count, mean });
        }
        all
    }

    fn freedom(&self) -> f64 {
        self.count - self.segments.len() as f64
    }

    /// Returns Student's t of the difference of neighbouring segments, each with the number of their points.
    fn strengths(&self, autocorrelation: f64) -> impl Iterator<Item = (f64, f64)> {
        let inflation = (1.0 + autocorrelation) / (1.0 - autocorrelation);
        let variance = self.squares / self.freedom() * inflation;
        self.segments.windows(2).map(move |pair| {
            let error = (variance * (1.0 / pair[0].count + 1.0 / pair[1].count)).sqrt();
            ((pair[0].mean - pair[1].mean).abs() / error, pair[0].count + pair[1].count)
        })
    }

    /// Whether Student's t is significant, corrected for all places where the change could be.
    fn is_significant(&self, strength: f64, places: f64, alpha: f64) -> bool {
        StudentsT::new(0.0, 1.0, self.freedom()).is_ok_and(|t| strength >= t.inverse_cdf(1.0 - alpha / (2.0 * places)))
    }

    /// Autocorrelation at lag 1; none without scatter.
    fn autocorrelation(&self) -> Option<f64> {
        let raw = (self.squares > 0.0).then(|| self.products / self.squares)?;
        // Each estimated mean biases it by about −(1 + 3ρ) / n (Marriott and Pope, Biometrika 41, 1954).
        let bias = self.segments.len() as f64 / self.count * (1.0 + 3.0 * raw.max(0.0));
        Some((raw + bias).min(MAX_AUTOCORRELATION))
    }
}

/// Finds the best split of series of one length, reusing memory.
struct Scan {
    /// Row `i`, column `j`: the sum of the distances of point `j` to the first `i` points.
    sums: Vec<f64>,
    /// 1 ÷ index.
    inverse: Vec<f64>,
}

impl Scan {
    fn new(length: usize) -> Self {
        let inverse = (0..=length).map(|count| 1.0 / count.max(1) as f64).collect();
        Self { sums: vec![0.0; (length + 1) * length], inverse }
    }

    /// Returns the index with the greatest `Q`, and that `Q`; none with too few points.
    fn best_split(&mut self, values: &[f64]) -> Option<(usize, f64)> {
        let length = values.len();
        if length < MIN_POINTS {
            return None;
        }
        self.fill(values);
        let Self { sums, inverse } = self;
        let row = |index: usize| &sums[index * length..(index + 1) * length];
        let own: Vec<f64> = (0..length).map(|index| row(index)[index]).collect();
        let mut left: f64 = own[..MIN_SIDE - 1].iter().sum();
        let mut best: Option<(usize, f64)> = None;
        for at in MIN_SIDE..=length - MIN_SIDE {
            left += own[at - 1];
            let (m, left_mean) = (at as f64, left * inverse[at - 1]);
            let (mut between, mut right) = (0.0, 0.0);
            for (n, (to_left, to_all)) in (1..).zip(row(at)[at..].iter().zip(&own[at..])) {
                between += to_left;
                right += to_all - to_left;
                if n >= MIN_SIDE {
                    let q = 2.0 * inverse[at + n] * (between - n as f64 * left_mean - m * right * inverse[n - 1]);
                    if best.is_none_or(|(_, known)| q > known) {
                        best = Some((at, q));
                    }
                }
            }
        }
        best
    }

    fn fill(&mut self, values: &[f64]) {
        let length = values.len();
        self.sums[..length].fill(0.0);
        for (index, value) in values.iter().enumerate() {
            let (filled, rest) = self.sums.split_at_mut((index + 1) * length);
            let before = &filled[index * length..];
            for ((sum, before), other) in rest[..length].iter_mut().zip(before).zip(values) {
                *sum = before + (other - value).abs();
            }
        }
    }

    /// Whether few enough permutations of the points have a split as strong.
    fn is_significant(&mut self, values: &[f64], strength: f64) -> bool {
        let shuffles = if values.len() <= SHORT { SHUFFLES_SHORT } else { SHUFFLES };
        let mut random = StdRng::seed_from_u64(values.len() as u64);
        let mut order = values.to_vec();
        let mut stronger = 0;
        for drawn in 1..=shuffles {
            order.shuffle(&mut random);
            if self.best_split(&order).is_some_and(|(_, other)| other >= strength * (1.0 - 1e-12)) {
                stronger += 1;
            }
            if f64::from(stronger + 1) / f64::from(shuffles + 1) > ALPHA {
                return false;
            }
            if stronger == 0 && drawn >= SHUFFLES {
                return true;
            }
        }
        true
    }
}

/// Clamps outliers. If more than half of the values are equal, none is an outlier.
fn clamp_outliers(values: &[f64]) -> Vec<f64> {
    let Some(median) = median(values) else { return Vec::new() };
    // The factor makes it the standard deviation of normal noise.
    let deviation =
        1.4826 * self::median(&values.iter().map(|value| (value - median).abs()).collect::<Vec<_>>()).unwrap_or(0.0);
    let (low, high) = (median - OUTLIER * deviation, median + OUTLIER * deviation);
    values.iter().map(|value| if deviation > 0.0 { value.clamp(low, high) } else { *value }).collect()
}

/// Moves each change point to where the points are nearest to the medians of both sides.
///
/// A segment may have had several levels when it was split.
fn refine(values: &[f64], points: &mut [usize]) {
    for place in 0..points.len() {
        let from = if place == 0 { 0 } else { points[place - 1] };
        let to = points.get(place + 1).copied().unwrap_or(values.len());
        let candidates =
            (from + MIN_SIDE).max(points[place].saturating_sub(REACH))..=(to - MIN_SIDE).min(points[place] + REACH);
        let distance = |at: &usize| distance_to_median(&values[from..*at]) + distance_to_median(&values[*at..to]);
        if let Some(best) = candidates.min_by(|a, b| distance(a).total_cmp(&distance(b))) {
            points[place] = best;
        }
    }
}

fn distance_to_median(values: &[f64]) -> f64 {
    median(values).map_or(0.0, |median| values.iter().map(|value| (value - median).abs()).sum())
}

fn median(values: &[f64]) -> Option<f64> {
    spread(values.iter().copied()).map(|spread| spread.median)
}

#[cfg(test)]
mod tests;
