//! Detects changes that are larger than the noise of any steady target, and changes that last. Pure.
//!
//! The test in [`drift`](mod@super::drift) estimates the noise of a series from the series itself. A large ramp with an
//! irregular course looks like strongly correlated noise to it, and a short burst like a step. Both have a simple
//! answer: a steady target does not multiply its throughput, and a burst does not move a median.

use crate::drift::Drift;

/// Minimum number of points.
const MIN_POINTS: usize = 12;

/// Ratio of the levels at both ends that no steady target has: noise with a standard deviation of 20 % and an
/// autocorrelation of 0.9 has it in less than one of 1,000 series.
const MIN_RATIO: f64 = 2.25;

/// Kendall's rank correlation with time that a ramp has at least; noise of such a size mostly goes up and down.
const MIN_CORRELATION: f64 = 0.5;

/// Returns the medians of the first and the last third of a series if they differ by a factor that noise does not
/// explain, and most of the points between them follow.
pub fn ramp(values: &[f64]) -> Option<Drift> {
    let third = values.len() / 3;
    if values.len() < MIN_POINTS {
        return None;
    }
    let [first, last] = [&values[..third], &values[values.len() - third..]].map(median);
    let is_ramp = first > 0.0 && last > 0.0 && (last / first).max(first / last) >= MIN_RATIO;
    let follows = correlation(values) * (last - first).signum() >= MIN_CORRELATION;
    (is_ramp && follows).then_some(Drift { first, last })
}

/// Returns the change from the median of the first half of a series to that of the second, as a share of the first.
/// Short bursts do not move it.
pub fn lasting_change(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    let [first, last] = [&values[..half], &values[values.len() - half..]].map(median);
    if first > 0.0 { last / first - 1.0 } else { 0.0 }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Returns Kendall's rank correlation with time.
fn correlation(values: &[f64]) -> f64 {
    let pairs = || (0..values.len()).flat_map(|at| (0..at).map(move |before| (before, at)));
    let sign = |(before, at): (usize, usize)| {
        let difference = values[at] - values[before];
        if difference == 0.0 { 0.0 } else { difference.signum() }
    };
    pairs().map(sign).sum::<f64>() / pairs().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::tests::Numbers;

    /// Requests per second of two runs of a Java server without a warm-up.
    const JAVA: [[f64; 15]; 2] = [
        [
            893.0, 2054.0, 2968.0, 2993.0, 3314.0, 3724.0, 3433.0, 4621.0, 7373.0, 13408.0, 14100.0, 13900.0, 14500.0,
            14300.0, 14737.0,
        ],
        [
            427.0, 1112.0, 1604.0, 2100.0, 2500.0, 3000.0, 3500.0, 3800.0, 4200.0, 4600.0, 5255.0, 5100.0, 4800.0,
            4300.0, 4186.0,
        ],
    ];

    #[test]
    fn real_warm_ups_are_ramps_with_and_without_their_ends() {
        for series in &JAVA {
            for part in [&series[..], &series[1..], &series[1..14]] {
                let found = ramp(part).expect("a ramp");
                assert!(found.change() > 1.25 && lasting_change(part) > 0.5, "{found:?}");
            }
            let falling: Vec<f64> = series.iter().rev().copied().collect();
            assert!(ramp(&falling).is_some_and(|found| found.change() < -0.5));
        }
        assert_eq!(ramp(&JAVA[0][..11]), None, "too short");
        assert_eq!(ramp(&[0.0; 15]), None);
    }

    #[test]
    fn correlated_noise_is_no_ramp() {
        let mut numbers = Numbers(12);
        for (deviation, limit) in [(0.1, 0.0), (0.2, 0.001), (0.3, 0.03)] {
            for (count, correlation) in [(12, 0.5), (13, 0.9), (28, 0.9), (60, 0.9)] {
                const SERIES: usize = 2_000;
                let found = (0..SERIES).filter(|_| {
                    let noise = numbers.series(count, correlation);
                    ramp(&noise.iter().map(|value| (deviation * value).exp()).collect::<Vec<_>>()).is_some()
                });
                let share = found.count() as f64 / SERIES as f64;
                assert!(share <= limit, "{count} points, {correlation}, {deviation}: {share}");
            }
        }
    }

    #[test]
    fn a_burst_does_not_last() {
        for from in 0..12 {
            let values: Vec<f64> =
                (0..13).map(|at| if (from..from + 2).contains(&at) { 600.0 } else { 1_000.0 }).collect();
            assert_eq!((lasting_change(&values), ramp(&values)), (0.0, None));
        }
    }
}
