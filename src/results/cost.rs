//! What requests cost: the target's resource use during the measurement. Pure.

use brewbench_wire::series::{Consumption, Series};

use super::verdict::{
    input::{Execution, StoredSeries},
    usage::throttled_share,
};
use crate::metrics::{Figures, counters::PerRequest};

/// Adds the target's resource use to figures that have the requests; without samples, what the series shows is unknown.
pub fn add(figures: &mut Figures, execution: &Execution) {
    if let StoredSeries::Series(series) = &execution.series {
        add_sampled(figures, series, execution.target_cores());
    }
    let conditions = &execution.evidence.conditions;
    figures.startup_ms = conditions.startup_ms;
    figures.idle_memory_bytes = conditions.idle_memory_bytes;
    figures.idle_held_memory_bytes = conditions.idle_held_memory_bytes;
    if let Some(counters) = &conditions.counters {
        figures.counters = PerRequest::new(counters, figures.requests);
    }
}

/// Adds the resource use by the samples of a series, on this many cores. A single sample has memory only.
fn add_sampled(figures: &mut Figures, series: &Series, cores: Option<f64>) {
    let usage = series.measured.as_ref().map_or(&[][..], |window| &window.usage);
    let sum = |times: Option<Vec<u64>>| times.filter(|times| !times.is_empty()).map(|times| times.iter().sum::<u64>());
    let throttled_us = sum(usage.iter().skip(1).map(|sample| sample.target.throttled_us).collect());
    let elapsed_ms =
        usage.first().zip(usage.last()).map(|(first, last)| f64::from(last.at_ms) - f64::from(first.at_ms));
    let throttled = throttled_us.zip(elapsed_ms.filter(|ms| *ms > 0.0)).zip(cores);
    // Unknown unless every sample has it.
    let cpu_us = sum(usage.iter().skip(1).map(|sample| sample.target.cpu_us).collect());
    let requests = figures.requests.filter(|requests| *requests > 0);
    figures.cpu_ms_per_request = cpu_us.zip(requests).map(|(us, requests)| us as f64 / 1_000.0 / requests as f64);
    let most = |of: fn(&Consumption) -> Option<u64>| usage.iter().filter_map(|sample| of(&sample.target)).max();
    figures.held_memory_bytes = most(|used| used.held_memory_bytes);
    figures.file_cache_bytes = most(|used| used.file_cache_bytes);
    figures.target_memory_bytes = most(|used| used.memory_bytes);
    figures.throttled_share = throttled.map(|((us, ms), cores)| throttled_share(us as f64, ms * 1_000.0, cores));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::series::model::tests::rising;

    fn sampled(series: &Series, cores: Option<f64>) -> Figures {
        let mut figures = Figures { requests: Some(1_000), ..Figures::default() };
        add_sampled(&mut figures, series, cores);
        figures
    }

    #[test]
    fn cpu_time_is_summed_and_the_most_memory_counts() {
        let figures = Figures {
            requests: Some(1_000),
            cpu_ms_per_request: Some(5.0),
            held_memory_bytes: Some(1 << 19),
            file_cache_bytes: Some(1 << 21),
            target_memory_bytes: Some(1 << 20),
            throttled_share: Some(0.0),
            ..Figures::default()
        };
        assert_eq!(sampled(&rising(), Some(1.0)), figures);
        assert_eq!(sampled(&rising(), None), Figures { throttled_share: None, ..figures.clone() });
        // Before protocol 26, an agent knew the working set only.
        let mut old = rising();
        for sample in &mut old.measured.as_mut().expect("seconds").usage {
            (sample.target.held_memory_bytes, sample.target.file_cache_bytes) = (None, None);
        }
        let only = Figures { held_memory_bytes: None, file_cache_bytes: None, ..figures };
        assert_eq!(sampled(&old, Some(1.0)), only);
    }

    #[test]
    fn throttled_time_is_a_share_of_all_cores() {
        let mut series = rising();
        for sample in &mut series.measured.as_mut().expect("seconds").usage {
            sample.target.throttled_us = Some(500_000);
        }
        assert_eq!(sampled(&series, Some(1.0)).throttled_share, Some(0.5));
        assert_eq!(sampled(&series, Some(2.0)).throttled_share, Some(0.25));
        series.measured.as_mut().expect("seconds").usage[4].target.throttled_us = None;
        assert_eq!(sampled(&series, Some(1.0)).throttled_share, None);
    }

    #[test]
    fn a_sum_with_a_missing_sample_is_unknown() {
        let unknown = Figures { requests: Some(1_000), ..Figures::default() };
        let mut series = rising();
        series.measured.as_mut().expect("seconds").usage[4].target.cpu_us = None;
        let figures = sampled(&series, None);
        assert_eq!((figures.cpu_ms_per_request, figures.held_memory_bytes), (None, Some(1 << 19)));
        series.measured = None;
        assert_eq!(sampled(&series, Some(1.0)), unknown);
    }

    #[test]
    fn cpu_time_per_request_is_unknown_without_requests() {
        for requests in [None, Some(0)] {
            let mut figures = Figures { requests, ..Figures::default() };
            add_sampled(&mut figures, &rising(), None);
            assert_eq!((figures.cpu_ms_per_request, figures.held_memory_bytes), (None, Some(1 << 19)));
        }
    }
}
