//! How far percentiles of several load generators may be from the exact ones. Pure.

use brewbench_wire::{histogram::Histogram, reports::summary::Resolution};

use super::{
    series::model::latencies,
    verdict::input::{Execution, StoredSeries},
};
use crate::metrics::{Figures, Metric};

/// The percentiles that come from the merged histogram.
const PERCENTILES: [(Metric, f64); 5] =
    [(Metric::P50Ms, 0.5), (Metric::P90Ms, 0.9), (Metric::P95Ms, 0.95), (Metric::P99Ms, 0.99), (Metric::P999Ms, 0.999)];

/// Adds the resolution of percentiles that were merged: each is anywhere in its bucket.
///
/// A summary whose percentiles come from the buckets of its own histograms has a resolution already.
pub fn add(figures: &mut Figures, execution: &Execution) {
    let Execution { evidence, series: StoredSeries::Series(series), .. } = execution else { return };
    let Some(measured) = series.measured.as_ref().filter(|_| !evidence.generators.is_empty()) else { return };
    let (succeeded, failed) = latencies(measured);
    let all: Histogram = [&succeeded, &failed].into_iter().sum();
    for (metric, share) in PERCENTILES {
        let Some((quantile, value)) = all.quantile(share).zip((metric.def().get)(figures)) else { continue };
        let error = (value - quantile.low).max(quantile.high - value);
        let known = Resolution::of(value, error).filter(|_| !figures.resolution.contains_key(&metric));
        figures.resolution.extend(known.map(|error| (metric, error)));
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::{
        engine::EngineKind,
        outcome::{Enforced, Mechanism},
        series::{Second, Series, Window},
    };

    use super::*;
    use crate::results::{evidence::Evidence, generator_record::GeneratorRecord};

    /// A run whose latencies are in a bucket from 1 to 1.09 ms, with some above.
    fn execution(generators: usize) -> Execution {
        let slow = Histogram::new(3, 0, 0, [(-79, 900), (-60, 100)]).expect("a histogram");
        let second = Second { until_ms: 1_000, succeeded: slow, ..Second::default() };
        let window = Window { seconds: vec![second], ..Window::default() };
        Execution {
            engine: EngineKind::K6,
            kind: None,
            enforced: Enforced { cpu: Mechanism::None, memory: Mechanism::None },
            vcpus: None,
            load: None,
            evidence: Evidence { generators: vec![GeneratorRecord::default(); generators], ..Evidence::default() },
            series: StoredSeries::Series(Box::new(Series { warm_up: None, measured: Some(window) })),
        }
    }

    #[test]
    fn a_merged_percentile_is_known_to_its_bucket() {
        let figures = || Figures { p50_ms: Some(1.05), p999_ms: None, ..Figures::default() };
        let (mut merged, mut exact) = (figures(), figures());
        add(&mut merged, &execution(2));
        add(&mut exact, &execution(0));
        assert_eq!(exact, figures(), "one load generator on the machine of the agent computes its percentiles itself");
        let error = merged.resolution[&Metric::P50Ms];
        let (low, high) = Histogram::new(3, 0, 0, []).expect("a histogram").bounds_ms(-79);
        assert!((error - (1.05 - low).max(high - 1.05)).abs() < 1e-9, "{error} in {low} to {high}");
        assert_eq!(merged.resolution.len(), 1, "an unknown percentile has none");
    }
}
