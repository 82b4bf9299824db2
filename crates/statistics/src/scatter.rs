//! Estimates the scatter of runs robustly, so that one disturbed run has little influence. Pure.
//!
//! The estimate is a quantile of the absolute differences between all runs of a group, over all groups, scaled to the
//! standard deviation of normal noise (Rousseeuw & Croux 1993, "Alternatives to the median absolute deviation", section
//! 3, with a higher quantile, as the extremes of heavy tails matter to a rank test of few runs). Differences need no
//! centre, so groups of two to four runs add no bias. A group of k runs weighs as much as its k − 1 degrees of freedom.

use statrs::distribution::{ContinuousCDF, Normal};

/// Which share of the differences is at most the quantile: not more, as outliers in a tenth of the runs are part of a
/// fifth of the differences.
const SHARE: f64 = 0.75;

/// The share with few runs is one minus this many differences for each run. A single disturbed run is part of two.
const SPARED: f64 = 3.0;

/// Scatter below this is rounding error.
pub(crate) const MIN_SCATTER: f64 = 1e-9;

/// Returns the standard deviation within groups; none if most differences are zero.
pub(crate) fn scatter(groups: &[Vec<f64>]) -> Option<f64> {
    let mut differences: Vec<(f64, f64)> = Vec::new();
    for group in groups {
        let weight = 1.0 / group.len().max(1) as f64;
        for (place, one) in group.iter().enumerate() {
            differences.extend(group[place + 1..].iter().map(|other| ((one - other).abs(), weight)));
        }
    }
    differences.sort_by(|one, other| one.0.total_cmp(&other.0));
    let runs = groups.iter().map(Vec::len).sum::<usize>();
    let share = (1.0 - SPARED / runs as f64).clamp(0.5, SHARE);
    let of_normal = Normal::standard().inverse_cdf(f64::midpoint(1.0, share)) * std::f64::consts::SQRT_2;
    let scatter = quantile(&differences, share)? / of_normal;
    (scatter > MIN_SCATTER).then_some(scatter)
}

/// Returns the weighted quantile of sorted values, interpolated between the centres of their weights.
fn quantile(values: &[(f64, f64)], share: f64) -> Option<f64> {
    let place = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut below: Option<(f64, f64)> = None;
    let mut sum = 0.0;
    for (value, weight) in values {
        let centre = sum + weight / 2.0;
        if centre >= place {
            let between = |(at, lower): (f64, f64)| lower + (value - lower) * (place - at) / (centre - at);
            return Some(below.map_or(*value, between));
        }
        below = Some((centre, *value));
        sum += weight;
    }
    below.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_normal_noise() {
        let quantiles = |count: u32| -> Vec<f64> {
            let at = |k: u32| Normal::standard().inverse_cdf((f64::from(k) + 0.5) / f64::from(count));
            (0..count).map(|k| 100.0 + 3.0 * at(k)).collect()
        };
        assert!((scatter(&[quantiles(400)]).expect("some") / 3.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn groups_have_their_own_levels() {
        let group = |level: f64| vec![level + 0.1, level - 0.1, level, level + 0.2];
        let one = scatter(&[group(0.0), group(0.0), group(0.0)]).expect("some");
        let moving = scatter(&[group(5.0), group(-70.0), group(0.0)]).expect("some");
        assert!((one - moving).abs() < 1e-9 && (0.1..0.2).contains(&one), "{one} {moving}");
    }

    #[test]
    fn mostly_equal_runs_have_no_scatter() {
        assert_eq!(scatter(&[vec![1.0; 20]]), None);
        assert_eq!(scatter(&[[vec![1.0; 9], vec![500.0]].concat()]), None, "one run is different");
        assert_eq!(scatter(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(scatter(&[]), None);
        let coarse = scatter(&[vec![1.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0, 2.0, 2.0, 1.0]]).expect("two steps");
        assert!((0.3..0.8).contains(&coarse), "{coarse}");
    }
}
