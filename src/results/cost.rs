//! What requests cost: the target's resource use during the measurement. Pure.

use brewbench_agent::wire::series::Series;

use crate::metrics::counters::Counts;

use super::verdict::{
    input::{Execution, StoredSeries},
    usage::throttled_share,
};

/// Resource use of the target, from the samples of the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// CPU time of all its processes, microseconds; None unless every sample has it.
    pub cpu_us: Option<u64>,
    /// Highest memory use of a sample, without memory that the kernel can reclaim at once.
    pub memory_bytes: Option<u64>,
    /// Share of the time for which its CPU quota throttled it.
    pub throttled_share: Option<f64>,
    /// From starting the target's process to its first verified response, milliseconds.
    pub startup_ms: Option<f64>,
    /// Memory that the target used before the load.
    pub idle_memory_bytes: Option<u64>,
    /// What the kernel and the processor counted.
    pub counts: Option<Counts>,
}

impl Cost {
    /// Returns the cost of a run; without samples, what the series shows is unknown.
    pub fn from_execution(execution: &Execution) -> Self {
        let sampled = match &execution.series {
            StoredSeries::Series(series) => Self::sampled(series, execution.target_cores()),
            StoredSeries::Missing | StoredSeries::NotRecorded => Self::default(),
        };
        let conditions = &execution.evidence.conditions;
        let counts = conditions.counters.as_ref().map(|counters| counters.counts);
        let (startup_ms, idle_memory_bytes) = (conditions.startup_ms, conditions.idle_memory_bytes);
        Self { startup_ms, idle_memory_bytes, counts: counts.filter(|counts| *counts != Counts::default()), ..sampled }
    }

    /// Returns the cost by the samples of a series, on this many cores. A single sample has memory only.
    fn sampled(series: &Series, cores: Option<f64>) -> Self {
        let usage = series.measured.as_ref().map_or(&[][..], |window| &window.usage);
        let sum =
            |times: Option<Vec<u64>>| times.filter(|times| !times.is_empty()).map(|times| times.iter().sum::<u64>());
        let throttled_us = sum(usage.iter().skip(1).map(|sample| sample.target.throttled_us).collect());
        let elapsed_ms =
            usage.first().zip(usage.last()).map(|(first, last)| f64::from(last.at_ms) - f64::from(first.at_ms));
        let throttled = throttled_us.zip(elapsed_ms.filter(|ms| *ms > 0.0)).zip(cores);
        Self {
            cpu_us: sum(usage.iter().skip(1).map(|sample| sample.target.cpu_us).collect()),
            memory_bytes: usage.iter().filter_map(|sample| sample.target.memory_bytes).max(),
            throttled_share: throttled.map(|((us, ms), cores)| throttled_share(us as f64, ms * 1_000.0, cores)),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::series::model::tests::rising;

    #[test]
    fn cpu_time_is_summed_and_peak_memory_counts() {
        let cost = Cost {
            cpu_us: Some(5_000_000),
            memory_bytes: Some(1 << 20),
            throttled_share: Some(0.0),
            ..Cost::default()
        };
        assert_eq!(Cost::sampled(&rising(), Some(1.0)), cost);
        assert_eq!(Cost::sampled(&rising(), None), Cost { throttled_share: None, ..cost });
    }

    #[test]
    fn throttled_time_is_a_share_of_all_cores() {
        let mut series = rising();
        for sample in &mut series.measured.as_mut().expect("seconds").usage {
            sample.target.throttled_us = Some(500_000);
        }
        assert_eq!(Cost::sampled(&series, Some(1.0)).throttled_share, Some(0.5));
        assert_eq!(Cost::sampled(&series, Some(2.0)).throttled_share, Some(0.25));
        series.measured.as_mut().expect("seconds").usage[4].target.throttled_us = None;
        assert_eq!(Cost::sampled(&series, Some(1.0)).throttled_share, None);
    }

    #[test]
    fn a_sum_with_a_missing_sample_is_unknown() {
        let mut series = rising();
        series.measured.as_mut().expect("seconds").usage[4].target.cpu_us = None;
        let cost = Cost { cpu_us: None, memory_bytes: Some(1 << 20), throttled_share: None, ..Cost::default() };
        assert_eq!(Cost::sampled(&series, None), cost);
        series.measured = None;
        assert_eq!(Cost::sampled(&series, Some(1.0)), Cost::default());
    }
}
