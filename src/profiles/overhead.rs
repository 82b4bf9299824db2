//! What the profiler costs: profiled runs relative to the measured repetitions of the same cell. Pure.

use super::model::Overhead;
use crate::compare::statistics::ALPHA;
use crate::{
    compare::statistics::{Stratum, effect},
    metrics::Metric,
    runs::model::Run,
};

/// The metrics that a profiler changes.
const METRICS: [Metric; 2] = [Metric::CpuMs, Metric::Rps];

/// Compares profiled runs with the other repetitions of their cell. Metrics without values are left out.
pub fn overhead(profiled: &[Run], repetitions: &[Run]) -> Vec<Overhead> {
    let measured: Vec<&Run> = repetitions.iter().filter(|run| run.counts()).collect();
    METRICS
        .into_iter()
        .filter_map(|metric| {
            let base = measured.iter().filter_map(|run| metric.value_in(run)).collect();
            let other = profiled.iter().filter_map(|run| metric.value_in(run)).collect();
            let effect = effect(&[Stratum { base, other }], ALPHA)?;
            let (low, high) = effect.interval().unzip();
            Some(Overhead { metric: metric.def().key.to_owned(), change: effect.change(), low, high })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{
        model::RunSpec,
        testing::{figured, finished},
    };

    #[test]
    fn profiled_runs_are_compared_with_the_measured_ones_only() {
        let with = |cpu: f64, profiled| {
            let run = figured(finished("servy", 1), |figures| figures.cpu_ms_per_request = Some(cpu));
            Run { spec: RunSpec { profiled, ..run.spec.clone() }, ..run }
        };
        let profiled: Vec<Run> = [0.11, 0.111, 0.112, 0.109].map(|cpu| with(cpu, true)).into();
        let measured: Vec<Run> = [0.1, 0.101, 0.099, 0.1].map(|cpu| with(cpu, false)).into();
        let all = [profiled.clone(), measured].concat();
        let found = overhead(&profiled, &all);
        assert_eq!(found[0].metric, Metric::CpuMs.def().key);
        assert!(found[0].change > 0.09 && found[0].low.is_some_and(|low| low > 0.05), "{found:?}");
        assert_eq!(overhead(&profiled, &profiled), [], "nothing to compare with");
    }
}
