//! Descriptive statistics of a metric over the repetitions of a cell.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};
use utoipa::ToSchema;

use super::CONFIDENCE;

/// A metric over the repetitions of a cell, in the unit of the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    /// The median; the mean of the middle two for an even number.
    pub median: f64,
    /// The arithmetic mean; meaningless for percentiles, so pages do not show it for these.
    pub mean: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// Standard deviation as a share of the mean; null with one repetition or a mean of zero.
    pub deviation: Option<f64>,
    /// Lower end of the 95 % interval of the median; null with fewer than six repetitions.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Number of repetitions with the metric.
    pub count: usize,
}

/// Returns the spread of the finite values; none if there are none.
pub fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let values = sorted(values);
    let (min, max, count) = (*values.first()?, *values.last()?, values.len());
    let median = middle(&values);
    let mean = values.iter().sum::<f64>() / count as f64;
    let (low, high) = interval(&values).unzip();
    Some(Spread { median, mean, min, max, deviation: deviation(&values, mean), low, high, count })
}

/// Returns the median; none without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values.iter().copied()))
}

/// Returns the median of sorted values; none without values.
pub(crate) fn median_of_sorted(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| middle(values))
}

/// Returns the middle value, or the mean of the middle two. `values` must be sorted and not empty.
fn middle(values: &[f64]) -> f64 {
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// Returns the finite values in ascending order.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the interval of the median, for any distribution. `values` must be sorted.
///
/// The true median lies below the k-th of n values as often as fewer than k of n coins show heads (Conover 1999,
/// "Practical Nonparametric Statistics", section 3.2).
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let coins = Binomial::new(0.5, values.len() as u64).ok()?;
    let outside = |k: usize| coins.cdf(k as u64) <= (1.0 - CONFIDENCE) / 2.0;
    let place = (0..values.len() / 2).take_while(|k| outside(*k)).last()?;
    Some((values[place], values[values.len() - 1 - place]))
}

fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt() / mean.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_values_that_are_not_finite() {
        let three = spread([3.0, 1.0, 2.0]).expect("values");
        assert_eq!((three.median, three.mean, three.min, three.max, three.count), (2.0, 2.0, 1.0, 3.0, 3));
        let four = spread([4.0, 1.0, f64::NAN, 2.0, 3.0]).expect("values");
        assert_eq!((four.median, four.count), (2.5, 4));
        assert_eq!(spread([f64::INFINITY]), None);
    }

    #[test]
    fn one_repetition_has_neither_deviation_nor_interval() {
        let one = spread([7.0]).expect("a value");
        assert_eq!((one.deviation, one.low, one.high), (None, None, None));
        let flat = spread([0.0; 6]).expect("values");
        assert_eq!((flat.deviation, flat.low, flat.high), (None, Some(0.0), Some(0.0)));
    }

    /// Conover's table A3: n = 5 has none, n = 6 the first and the last, n = 10 the second and the ninth.
    #[test]
    fn the_interval_matches_the_table() {
        let upto = |n: u32| spread((1..=n).map(f64::from)).expect("values");
        assert_eq!(upto(5).low.zip(upto(5).high), None);
        assert_eq!(upto(6).low.zip(upto(6).high), Some((1.0, 6.0)));
        assert_eq!(upto(10).low.zip(upto(10).high), Some((2.0, 9.0)));
        assert_eq!(upto(20).low.zip(upto(20).high), Some((6.0, 15.0)));
    }
}
