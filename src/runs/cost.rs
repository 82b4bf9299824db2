//! What requests cost: what the target used while they were measured. Pure.

use brewbench_agent::wire::series::Series;

/// Taken from the samples of the measured phase. What was not sampled is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of all its processes, microseconds.
    pub cpu_us: Option<u64>,
    /// The most memory that a sample found in use, without what the kernel could have taken back at once.
    pub memory_bytes: Option<u64>,
}

impl Cost {
    /// From what happened second by second. One sample alone says how much memory was used, but of no time.
    pub fn of(series: &Series) -> Self {
        let usage = series.measured.as_ref().map_or(&[][..], |stretch| &stretch.usage);
        let cpu: Option<Vec<u64>> = usage.iter().skip(1).map(|sample| sample.target.cpu_us).collect();
        Self {
            cpu_us: cpu.filter(|times| !times.is_empty()).map(|times| times.iter().sum()),
            memory_bytes: usage.iter().filter_map(|sample| sample.target.memory_bytes).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::series::tests::rising;

    #[test]
    fn cpu_time_is_added_and_of_memory_the_most_counts() {
        assert_eq!(Cost::of(&rising()), Cost { cpu_us: Some(5_000_000), memory_bytes: Some(1 << 20) });
    }

    #[test]
    fn what_a_sample_lacks_is_not_known_and_never_less() {
        let mut series = rising();
        series.measured.as_mut().expect("seconds").usage[4].target.cpu_us = None;
        assert_eq!(Cost::of(&series), Cost { cpu_us: None, memory_bytes: Some(1 << 20) });
        series.measured = None;
        assert_eq!(Cost::of(&series), Cost::default());
    }
}
