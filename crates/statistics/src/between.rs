//! Compares two cells that were measured in different experiments.
//!
//! Runs of one experiment share the conditions of its day, so they are not independent: the unit is the median of the
//! experiment. The scatter of such medians is estimated from past experiments, and a difference counts only outside the
//! resulting prediction interval (Student's t; e.g. Hahn & Meeker 1991, "Statistical Intervals", section 4.7): for two
//! single experiments `t(ν, 1 − α/2) · s · √2`. True changes in the past are removed by estimating within the
//! segments between change points.
//!
//! Nights are not normal: some machines have two levels, or one bad night in ten. Student's t gets one degree of
//! freedom less, and a difference must also exceed the largest one between past experiments.
//!
//! Machines drift, so the time between the two experiments matters: the past must span at least that time. `s` is at
//! least the deviation of differences over that time (a variogram; Cressie 1993, "Statistics for
//! Spatial Data", section 2.4), and degrees of freedom count only experiments that are that far apart.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use utoipa::ToSchema;

use super::{change_points, describe::median, power::POWER};

/// Minimum degrees of freedom of an estimate.
const MIN_DEGREES: usize = 2;

/// Share of the time gap from which past experiments count as that far apart; nightly starts vary.
const TIME_TOLERANCE: f64 = 0.75;

/// One experiment's median of a metric in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentMedian {
    /// When it was measured, unix ms; none if unknown.
    pub at_ms: Option<i64>,
    /// Logarithm of the median; for a share the mean.
    pub value: f64,
}

/// Variation between the experiments of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    /// Number of experiments in the estimate.
    pub experiments: usize,
    /// Standard deviation of the medians of experiments, as a share: 0.03 is 3 %; for shares in points.
    pub deviation: f64,
    /// Degrees of freedom of the estimate.
    pub degrees: usize,
    /// The largest difference of past experiments that are far enough apart.
    largest: f64,
}

/// Why the past does not suffice to judge a difference between experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TooLittlePast {
    /// Too few past experiments of the cell.
    FewExperiments,
    /// The past experiments span less time than lies between the two compared ones.
    ShortSpan,
    /// It is unknown when one of them was measured.
    UnknownTime,
}

impl TooLittlePast {
    /// The reason, as the end of a sentence.
    pub fn because(self) -> &'static str {
        match self {
            Self::FewExperiments => {
                "fewer than two past experiments show how much this cell varies between experiments"
            }
            Self::ShortSpan => "past experiments of this cell span less time than lies between these two",
            Self::UnknownTime => "it is unknown when and in what order they were measured",
        }
    }
}

/// Estimates the variation between experiments that are `gap_ms` apart.
///
/// `past` is the past of the cell and the baseline's own experiments, without the candidate's: a true difference must
/// not hide itself.
pub fn between(past: &[ExperimentMedian], gap_ms: Option<i64>) -> Result<Between, TooLittlePast> {
    let gap = gap_ms.ok_or(TooLittlePast::UnknownTime)?;
    let mut timed: Vec<(i64, f64)> = past.iter().filter_map(|one| Some((one.at_ms?, one.value))).collect();
    timed.retain(|(_, value)| value.is_finite());
    timed.sort_by_key(|(at, _)| *at);
    if timed.len() <= MIN_DEGREES {
        return Err(if past.len() > timed.len() { TooLittlePast::UnknownTime } else { TooLittlePast::FewExperiments });
    }
    let values: Vec<f64> = timed.iter().map(|(_, value)| *value).collect();
    let mut bounds = change_points(&values);
    bounds.insert(0, 0);
    bounds.push(values.len());
    let segments: Vec<&[(i64, f64)]> = bounds.windows(2).map(|pair| &timed[pair[0]..pair[1]]).collect();
    let far = far_apart(gap);
    let degrees: usize = segments.iter().map(|segment| spaced(segment, far).saturating_sub(1)).sum();
    if degrees < MIN_DEGREES {
        return Err(TooLittlePast::ShortSpan);
    }
    let differences = differences(&segments, far);
    let variance = pooled_variance(&segments).max(half_mean_square(&differences));
    let largest = differences.into_iter().fold(0.0, f64::max);
    Ok(Between { experiments: timed.len(), deviation: variance.sqrt(), degrees, largest })
}

/// Returns the time from which experiments count as that far apart.
#[expect(clippy::cast_possible_truncation, reason = "milliseconds of a time that is far below 2^52")]
pub fn far_apart(gap_ms: i64) -> i64 {
    (gap_ms.abs() as f64 * TIME_TOLERANCE).floor() as i64
}

/// Returns how many experiments can be picked that are at least `far` apart.
fn spaced(segment: &[(i64, f64)], far: i64) -> usize {
    let mut picked = 0;
    let mut last: Option<i64> = None;
    for (at, _) in segment {
        if last.is_none_or(|last| at - last >= far) {
            (picked, last) = (picked + 1, Some(*at));
        }
    }
    picked
}

/// Pooled variance about the mean of each segment.
fn pooled_variance(segments: &[&[(i64, f64)]]) -> f64 {
    let degrees: usize = segments.iter().map(|segment| segment.len() - 1).sum();
    let squares: f64 = segments.iter().map(|segment| squares(segment.iter().map(|(_, value)| *value))).sum();
    squares / degrees.max(1) as f64
}

/// Sizes of the differences of experiments that are `far` apart.
fn differences(segments: &[&[(i64, f64)]], far: i64) -> Vec<f64> {
    let mut all = Vec::new();
    for segment in segments {
        for (place, (at, value)) in segment.iter().enumerate() {
            let later = segment[place + 1..].iter().filter(|(later, _)| later - at >= far);
            all.extend(later.map(|(_, other)| (value - other).abs()));
        }
    }
    all
}

/// Half the mean squared difference; without drift the variance.
fn half_mean_square(differences: &[f64]) -> f64 {
    let sum: f64 = differences.iter().map(|one| one.powi(2)).sum();
    sum / differences.len().max(1) as f64 / 2.0
}

/// Sum of the squared deviations from the mean.
pub(crate) fn squares(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    values.map(|value| (value - mean).powi(2)).sum()
}

impl Between {
    /// Deviation of the difference between two experiments. Neighbouring nights may be related, so that more experiments
    /// of a side say less than their number.
    fn difference_deviation(&self) -> f64 {
        self.deviation * std::f64::consts::SQRT_2
    }

    /// The two-sided p-value of a difference of logarithms.
    pub fn p(&self, difference: f64) -> f64 {
        let deviation = self.difference_deviation();
        // What the past itself shows is no difference, however rare.
        if difference.abs() <= self.largest {
            return 1.0;
        }
        if deviation <= 0.0 {
            return 0.0;
        }
        self.student().map_or(1.0, |t| 2.0 * t.sf(difference.abs() / deviation))
    }

    /// Largest difference of logarithms that variation between experiments explains at `level`.
    pub fn margin(&self, level: f64) -> f64 {
        let quantile = self.student().map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - level / 2.0));
        (quantile * self.difference_deviation()).max(self.largest)
    }

    /// Difference of logarithms that is found at `level`, and is at least the minimum effect, in 80 % of cases.
    pub fn detectable(&self, level: f64, min_effect: f64) -> f64 {
        let more = self.student().map_or(f64::INFINITY, |t| t.inverse_cdf(POWER));
        self.margin(level).max(min_effect.ln_1p()) + more * self.difference_deviation()
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, (self.degrees - 1).max(1) as f64).ok()
    }
}

/// Returns the level of a side, which is the mean of the medians of its experiments.
pub fn level(side: &[ExperimentMedian]) -> Option<f64> {
    (!side.is_empty()).then(|| side.iter().map(|one| one.value).sum::<f64>() / side.len() as f64)
}

/// Returns the time between two sides: between the median times of their experiments.
pub fn gap_ms(one: &[ExperimentMedian], other: &[ExperimentMedian]) -> Option<i64> {
    let middle = |side: &[ExperimentMedian]| -> Option<f64> {
        let times: Vec<f64> = side.iter().map(|one| one.at_ms.map(|at| at as f64)).collect::<Option<_>>()?;
        median(&times)
    };
    #[expect(clippy::cast_possible_truncation, reason = "unix milliseconds are far below 2^52")]
    let gap = (middle(one)? - middle(other)?).abs() as i64;
    Some(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    fn nightly(values: &[f64]) -> Vec<ExperimentMedian> {
        (0..).zip(values).map(|(day, value)| ExperimentMedian { at_ms: Some(day * DAY), value: *value }).collect()
    }

    #[test]
    fn two_past_experiments_and_the_baseline_give_two_degrees_of_freedom() {
        let found = between(&nightly(&[0.0, 0.03, -0.03]), Some(DAY)).expect("enough");
        assert_eq!((found.experiments, found.degrees), (3, 2));
        assert!((found.deviation - 0.03).abs() < 1e-12, "{found:?}");
        // t(0.975; 1) = 12.706; two single experiments.
        assert!((found.margin(0.05) - 12.7062 * 0.03 * 2.0_f64.sqrt()).abs() < 1e-3);
        assert!((found.p(found.margin(0.05)) - 0.05).abs() < 1e-6);
        assert_eq!(between(&nightly(&[0.0, 0.03]), Some(DAY)), Err(TooLittlePast::FewExperiments));
    }

    #[test]
    fn an_afternoon_does_not_show_the_variation_between_days() {
        let afternoon: Vec<ExperimentMedian> = (0..12)
            .map(|n| ExperimentMedian {
                at_ms: Some(n * 1_800_000),
                value: f64::from(u8::try_from(n % 3).expect("few")) / 1_000.0,
            })
            .collect();
        assert_eq!(between(&afternoon, Some(DAY)), Err(TooLittlePast::ShortSpan));
        assert!(between(&afternoon, Some(3_600_000)).is_ok(), "but shows that between hours");
        let mut two_days = afternoon;
        two_days.push(ExperimentMedian { at_ms: Some(-DAY), value: 0.1 });
        assert_eq!(
            between(&two_days, Some(DAY)),
            Err(TooLittlePast::ShortSpan),
            "one other day is one degree of freedom"
        );
    }

    #[test]
    fn a_true_change_of_the_past_does_not_widen_the_interval() {
        let wobble = |n: u32| 0.002 * f64::from(n * 7919 % 11);
        let steady: Vec<f64> = (0..20).map(wobble).collect();
        let stepped: Vec<f64> = (0..20).map(|n| wobble(n) + if n < 10 { 0.0 } else { 0.3 }).collect();
        let of = |values: &[f64]| between(&nightly(values), Some(DAY)).expect("enough").deviation;
        assert!((of(&stepped) / of(&steady) - 1.0).abs() < 0.2, "{} {}", of(&stepped), of(&steady));
    }

    /// One bad night in ten is a difference of 15 % that the past has seen.
    #[test]
    fn a_difference_that_the_past_has_seen_often_enough_is_not_rare() {
        let bad: Vec<f64> =
            (0..30).map(|n| 0.001 * f64::from(n * 7919 % 11) - if n % 10 == 3 { 0.15 } else { 0.0 }).collect();
        let found = between(&nightly(&bad), Some(DAY)).expect("enough");
        let (p, margin) = (found.p(0.145), found.margin(0.05));
        assert!(p > 0.05 && margin > 0.14, "{p} {margin}");
        assert!(found.p(0.4) < 1e-3, "what the past has never seen is not bounded by it");
        for level in [0.3, 0.05, 0.01] {
            let margin = found.margin(level);
            assert!(found.p(margin + 1e-9) <= level + 1e-9 && found.p(margin - 1e-9) > level - 1e-9);
        }
    }

    #[test]
    fn slow_drift_widens_the_margin_with_time() {
        let drifting: Vec<f64> = (0..20).map(|n| 0.001 * f64::from(n)).collect();
        let of = |days: i64| between(&nightly(&drifting), Some(days * DAY)).map(|found| found.margin(0.05));
        assert!(of(6).expect("enough") > of(1).expect("enough"));
        assert_eq!(of(30), Err(TooLittlePast::ShortSpan));
    }

    #[test]
    fn unknown_times_are_inconclusive() {
        let mut past = nightly(&[0.0, 0.01, 0.02]);
        assert_eq!(between(&past, None), Err(TooLittlePast::UnknownTime));
        past[0].at_ms = None;
        assert_eq!(between(&past, Some(DAY)), Err(TooLittlePast::UnknownTime));
        assert_eq!(gap_ms(&past, &past), None);
    }
}
