//! Estimates the scatter of runs robustly, so that one disturbed run has little influence. Pure.
//!
//! The estimate is the median of the absolute differences between all runs of a group, over all groups, scaled to the
//! standard deviation of normal noise (Rousseeuw & Croux 1993, "Alternatives to the median absolute deviation", section
//! 2; Hodges & Lehmann 1963 use the same differences for the shift). Differences need no centre, so groups of two to
//! four runs add no bias. Like the rank test, they depend on how often runs lie close together rather than on how far
//! the farthest one is. A group of k runs weighs as much as its k − 1 degrees of freedom.

/// Scales the median of the absolute differences of normal noise to its standard deviation: 1 ÷ (√2 · 0.67449).
const TO_DEVIATION: f64 = 1.048_358;

/// Scales the upper quartile instead, for values that are mostly tied: 1 ÷ (√2 · 1.15035).
const QUARTILE_TO_DEVIATION: f64 = 0.614_687;

/// Scatter below this is rounding error.
pub(crate) const MIN_SCATTER: f64 = 1e-9;

/// Returns the standard deviation within groups; none if fewer than a quarter of the differences show any.
pub(crate) fn scatter(groups: &[Vec<f64>]) -> Option<f64> {
    let mut differences: Vec<(f64, f64)> = Vec::new();
    for group in groups {
        let weight = 1.0 / group.len().max(1) as f64;
        for (place, one) in group.iter().enumerate() {
            differences.extend(group[place + 1..].iter().map(|other| ((one - other).abs(), weight)));
        }
    }
    differences.sort_by(|one, other| one.0.total_cmp(&other.0));
    let scaled = [(0.5, TO_DEVIATION), (0.75, QUARTILE_TO_DEVIATION)]
        .map(|(share, scale)| quantile(&differences, share).map(|found| found * scale));
    scaled.into_iter().flatten().find(|scatter| *scatter > MIN_SCATTER)
}

/// Returns the weighted quantile of sorted values, interpolated between the centres of their weights.
fn quantile(values: &[(f64, f64)], share: f64) -> Option<f64> {
    let place = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut below: Option<(f64, f64)> = None;
    let mut sum = 0.0;
    for (value, weight) in values {
        let centre = sum + weight / 2.0;
        if centre >= place {
            return Some(match below {
                Some((at, lower)) => lower + (value - lower) * (place - at) / (centre - at),
                None => *value,
            });
        }
        below = Some((centre, *value));
        sum += weight;
    }
    below.map(|(_, value)| value)
}
