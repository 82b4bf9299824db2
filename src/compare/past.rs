//! Noise of compared cells in earlier experiments: the scatter within an experiment and the variation between
//! experiments. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    metric::Metric,
    statistics::{
        self, Between, ExperimentMedian, Noise, Observation, TooLittlePast,
        between::{far_apart, gap_ms, level},
    },
};
use crate::{
    app::ids::{ExperimentId, RunId},
    runs::{
        model::{Origin, Run},
        store::cells::PastRun,
    },
};

/// Maximum number of past runs of a cell; more would not improve the estimate.
pub const MAX_RUNS: i64 = 200;

/// The metrics whose scatter is shown. Failures are either zero or need attention.
pub const METRICS: [Metric; 5] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs, Metric::Memory];

/// Past runs of cells, by [`cell_id`].
pub type History = BTreeMap<String, Vec<PastRun>>;

/// Identifies runs that share a past: everything but the version and the repetition is the same.
pub fn cell_id(run: &Run) -> String {
    serde_json::json!([run.cell_key(), run.spec.load, run.agent]).to_string()
}

/// Returns one run that counts of each cell, by which its past is queried.
pub fn representatives(runs: &[Run]) -> BTreeMap<String, RunId> {
    let counting = runs.iter().filter(|run| run.counts() && run.experiment.is_some());
    counting.map(|run| (cell_id(run), run.id.clone())).collect()
}

/// Removes the compared experiments from the past.
pub fn without_experiments_of(runs: &[Run], history: History) -> History {
    let compared: BTreeSet<_> = runs.iter().filter_map(|run| run.experiment.as_ref()).collect();
    let is_past = |run: &PastRun| !compared.contains(&run.experiment);
    history.into_iter().map(|(cell, past)| (cell, past.into_iter().filter(is_past).collect())).collect()
}

/// Returns the noise of each metric of runs; empty unless they all share one past. It is empty for those of duets, too: in
/// a duet only the difference counts, of which a cell alone knows nothing.
pub fn noise_of<'a>(runs: impl Iterator<Item = &'a Run>, history: &History) -> BTreeMap<Metric, Noise> {
    let past = past_of(runs.filter(|run| !run.spec.duet), history);
    let noise = |metric: Metric| {
        let values: Vec<Vec<f64>> = by_experiment(past)
            .values()
            .map(|runs| runs.iter().filter_map(|run| metric.of_past(run)).collect())
            .collect();
        Some((metric, statistics::noise(values.iter().map(Vec::as_slice))?))
    };
    METRICS.into_iter().filter_map(noise).collect()
}

/// Returns the scatter of a metric within the experiments of a past.
pub fn scatter(past: &[PastRun], metric: Metric) -> Option<f64> {
    let values: Vec<Vec<f64>> =
        by_experiment(past).values().map(|runs| runs.iter().filter_map(|run| metric.of_past(run)).collect()).collect();
    statistics::noise(values.iter().map(Vec::as_slice))?.scatter
}

fn past_of<'a, 'h>(runs: impl Iterator<Item = &'a Run>, history: &'h History) -> &'h [PastRun] {
    let ids: BTreeSet<String> = runs.map(cell_id).collect();
    let past = ids.first().filter(|_| ids.len() == 1).and_then(|id| history.get(id));
    past.map_or(&[], Vec::as_slice)
}

/// Groups runs by experiment; ids are in order of submission.
fn by_experiment(past: &[PastRun]) -> BTreeMap<&ExperimentId, Vec<&PastRun>> {
    let mut experiments: BTreeMap<&ExperimentId, Vec<&PastRun>> = BTreeMap::new();
    for run in past {
        experiments.entry(&run.experiment).or_default().push(run);
    }
    experiments
}

/// Which of the values that a rounded one can stand for is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The one that was read.
    AsRead,
    /// The lowest.
    Lowest,
    /// The highest.
    Highest,
}

/// Returns the values of a metric with the place where each was measured.
pub fn observations<'a>(runs: &[&'a Run], metric: Metric, rounding: Rounding) -> Vec<Observation<'a>> {
    let moved = |value: f64, run: &Run| match rounding {
        Rounding::AsRead => value,
        Rounding::Lowest => value - run.resolution(metric),
        Rounding::Highest => value + run.resolution(metric),
    };
    let observation = |run: &&'a Run| {
        Some(Observation {
            experiment: run.experiment.as_ref().map(ExperimentId::as_str),
            block: run.repetition,
            agent: run.agent.as_deref(),
            at_ms: time_of(run),
            interleaved: run.interleaved,
            paired: run.spec.duet,
            value: metric.judged_value(run).map(|value| moved(value, run)).filter(|value| value.is_finite())?,
        })
    };
    runs.iter().filter_map(observation).collect()
}

/// A difference between experiments, and the usual variation between such experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossExperimentDifference {
    /// Difference of the logarithms; for shares in points.
    pub difference: f64,
    /// Variation between experiments.
    pub between: Between,
}

impl CrossExperimentDifference {
    /// Returns the p-value of the difference from an expected one; for shares in points, otherwise logarithms.
    pub fn p(&self, expected: f64) -> f64 {
        self.between.p(self.difference - expected)
    }
}

/// Compares two sides of different experiments with the past of their cells. None without values.
pub fn apart(
    base: &[&Run],
    other: &[&Run],
    metric: Metric,
    history: &History,
) -> Option<Result<CrossExperimentDifference, TooLittlePast>> {
    let (own, others) = medians(measured(base, metric), measured(other, metric), metric)?;
    let (base_level, other_level) = (level(&own)?, level(&others)?);
    let gap = gap_ms(&own, &others);
    let past = |runs: &[&Run]| medians_of_past(past_of(runs.iter().copied(), history), metric);
    // Without the candidate's own experiment: a true difference would hide itself.
    let of_base = statistics::between(&[past(base), own].concat(), gap);
    let is_one_cell = past_of(base.iter().copied(), history) == past_of(other.iter().copied(), history);
    let of_other = if is_one_cell { of_base.clone() } else { statistics::between(&past(other), gap) };
    let wider = |one: Between, two: Between| {
        let margin = |between: &Between| between.margin(statistics::ALPHA);
        if margin(&two) > margin(&one) { two } else { one }
    };
    let between = match (of_base, of_other) {
        (Ok(one), Ok(two)) => Ok(wider(one, two)),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(why), Err(_)) => Err(why),
    };
    Some(between.map(|between| CrossExperimentDifference { difference: other_level - base_level, between }))
}

/// When runs of one experiment were measured, and their values.
type TimedValues = Vec<(Option<i64>, f64)>;

/// Returns when a run was measured. The time of an import is not the time of the measurement.
fn time_of(run: &Run) -> Option<i64> {
    run.started_at_ms.filter(|_| run.origin == Origin::Agent)
}

/// Returns the values of each experiment.
fn measured(runs: &[&Run], metric: Metric) -> Vec<TimedValues> {
    let mut experiments: BTreeMap<Option<&ExperimentId>, TimedValues> = BTreeMap::new();
    for run in runs {
        let Some(value) = metric.judged_value(run) else { continue };
        let at_ms = time_of(run).filter(|_| run.experiment.is_some());
        experiments.entry(run.experiment.as_ref()).or_default().push((at_ms, value));
    }
    experiments.into_values().collect()
}

/// Returns the medians of the experiments of both sides. None if a value has no logarithm.
///
/// Experiments of a side that are closer in time than the other side share their night: they are one.
fn medians(
    one: Vec<TimedValues>,
    other: Vec<TimedValues>,
    metric: Metric,
) -> Option<(Vec<ExperimentMedian>, Vec<ExperimentMedian>)> {
    let start = |values: &TimedValues| values.iter().map(|(at, _)| *at).min().flatten();
    let starts = |side: &[TimedValues]| side.iter().map(start).collect::<Option<Vec<i64>>>();
    let nearest = starts(&one)
        .zip(starts(&other))
        .and_then(|(one, other)| one.iter().flat_map(|at| other.iter().map(move |other| (at - other).abs())).min());
    let side = |mut side: Vec<TimedValues>| -> Option<Vec<ExperimentMedian>> {
        side.sort_by_key(start);
        let mut merged: Vec<TimedValues> = Vec::new();
        let mut last = None;
        for values in side {
            let at = start(&values);
            let is_near = |(at, last): (i64, i64)| nearest.is_some_and(|gap| at - last < far_apart(gap));
            match merged.last_mut() {
                Some(night) if at.zip(last).is_some_and(is_near) => night.extend(values),
                _ => merged.push(values),
            }
            last = at;
        }
        merged.iter().map(|values| experiment_median(values, metric)).collect()
    };
    Some((side(one)?, side(other)?))
}

fn medians_of_past(past: &[PastRun], metric: Metric) -> Vec<ExperimentMedian> {
    let median = |runs: Vec<&PastRun>| {
        let values: Vec<(Option<i64>, f64)> =
            runs.iter().filter_map(|run| Some((run.at_ms, metric.of_past(run)?))).collect();
        experiment_median(&values, metric)
    };
    by_experiment(past).into_values().filter_map(median).collect()
}

/// Returns the logarithm of the median, or the mean of a share. None if a value has no logarithm.
fn experiment_median(values: &[(Option<i64>, f64)], metric: Metric) -> Option<ExperimentMedian> {
    let at_ms = values.iter().map(|(at, _)| *at).min().flatten();
    let spread = statistics::spread(values.iter().map(|(_, value)| *value))?;
    let value = if metric.is_share() { spread.mean } else { spread.median.ln() };
    value.is_finite().then_some(ExperimentMedian { at_ms, value })
}

#[cfg(test)]
mod tests;
