//! Finds the time of the load in a series, and limits the series to it. Pure.

use std::time::Duration;

use brewbench_wire::load_record::LoadRecord;
use brewbench_wire::load_time::LoadTime;
use brewbench_wire::series::merge::moved;
use brewbench_wire::series::{Second, Window};

/// When a load was meant to run, by the clock of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Start of the executors, unix milliseconds.
    pub start_ms: i64,
    /// Their regular end, milliseconds after the start; iterations in progress may end later.
    pub regular_ms: u64,
}

impl Planned {
    /// Returns the times that k6 reported; `None` if one of them is unknown. k6 keeps the duration of a load exactly,
    /// unless something cuts it short, and its messages arrive a little late.
    pub fn new(record: &LoadRecord, duration: Option<Duration>) -> Option<Self> {
        let exact_ms = duration.filter(|_| record.cut_short.is_none()).map(|duration| duration.as_millis());
        let regular_ms = exact_ms.and_then(|ms| u64::try_from(ms).ok()).or(record.regular_ms)?;
        Some(Self { start_ms: record.load_start_ms?, regular_ms })
    }

    /// Limits a series to the load whose last request ended at this time, and returns its time. The last second then
    /// has all that came after the last report within the regular time.
    pub fn limit(self, window: &mut Window, last_request_ms: i64) -> LoadTime {
        let time = self.time(window, last_request_ms);
        self.cut_end(window);
        let shift_ms = self.start_ms.saturating_sub(window.start_ms);
        let is_before = |second: &Second| second.is_idle() && i64::from(second.until_ms) <= shift_ms;
        let before = window.seconds.iter().take_while(|second| is_before(second)).count();
        window.seconds.drain(..before);
        for second in &mut window.seconds {
            second.until_ms = moved(second.until_ms, -shift_ms);
        }
        window.start_ms = self.start_ms;
        time
    }

    fn time(self, window: &Window, last_request_ms: i64) -> LoadTime {
        let mut after = window.seconds[self.within(window)..].iter();
        let report_ms = after.next().map(|second| at_ms(window, second));
        let late_requests = after.fold(0, |sum: u64, second| sum.saturating_add(second.requests()));
        // k6 reads the machine's clock, which may have been set: no request ended after the last report.
        let last_report_ms = window.seconds.last().map_or(last_request_ms, |second| at_ms(window, second));
        let last_request_ms = last_request_ms.min(last_report_ms);
        let last_ms = report_ms.filter(|_| late_requests > 0).unwrap_or(last_request_ms);
        let ms = last_ms.max(self.end_ms()).saturating_sub(self.start_ms);
        LoadTime { ms: u64::try_from(ms).unwrap_or_default(), late_requests }
    }

    fn cut_end(self, window: &mut Window) {
        let within = self.within(window);
        let active = window.seconds.iter().rposition(|second| !second.is_idle()).map_or(0, |last| last + 1);
        window.seconds.truncate(active.max(within + 1));
        let rest = window.seconds.split_off(within.min(window.seconds.len()));
        window.seconds.extend(rest.into_iter().reduce(|mut sum, next| {
            sum.add(next);
            sum
        }));
    }

    /// Returns how many seconds end within the regular time.
    fn within(self, window: &Window) -> usize {
        window.seconds.partition_point(|second| at_ms(window, second) < self.end_ms())
    }

    fn end_ms(self) -> i64 {
        self.start_ms.saturating_add_unsigned(self.regular_ms)
    }
}

fn at_ms(window: &Window, second: &Second) -> i64 {
    window.start_ms.saturating_add(second.until_ms.into())
}

#[cfg(test)]
mod tests {
    use brewbench_wire::histogram::Histogram;

    use super::*;

    /// Returns a series that starts at 1,000,000, with requests of 1 ms until these times.
    fn window(seconds: &[(u32, u64)]) -> Window {
        let second = |&(until_ms, count): &(u32, u64)| {
            let mut succeeded = Histogram::default();
            (0..count).for_each(|_| succeeded.add(&one()));
            Second { until_ms, succeeded, ..Second::default() }
        };
        Window { start_ms: 1_000_000, seconds: seconds.iter().map(second).collect(), ..Window::default() }
    }

    fn one() -> Histogram {
        use crate::series::messages::{BucketSpan, NativeHistogram};
        let histogram = NativeHistogram {
            count: 1,
            sum: 0.001,
            schema: 3,
            positive_spans: vec![BucketSpan { offset: -79, length: 1 }],
            positive_deltas: vec![1],
            ..NativeHistogram::default()
        };
        histogram.read().expect("a histogram")
    }

    fn points(window: &Window) -> Vec<(u32, u64)> {
        window.seconds.iter().map(|second| (second.until_ms, second.requests())).collect()
    }

    #[test]
    fn setup_and_teardown_are_cut_off() {
        let mut window = window(&[(1_000, 0), (2_000, 0), (3_000, 9), (4_000, 10), (5_000, 2), (6_000, 0), (7_000, 0)]);
        let planned = Planned { start_ms: 1_002_100, regular_ms: 2_000 };
        let time = planned.limit(&mut window, 1_004_103);
        assert_eq!(time, LoadTime { ms: 2_003, late_requests: 0 });
        assert_eq!((window.start_ms, points(&window)), (1_002_100, vec![(900, 9), (1_900, 10), (2_900, 2)]));
    }

    #[test]
    fn waits_of_iterations_do_not_lengthen_the_load() {
        let mut window = window(&[(1_000, 2), (2_000, 0), (33_000, 0)]);
        let time = Planned { start_ms: 1_000_100, regular_ms: 3_000 }.limit(&mut window, 1_000_103);
        assert_eq!(time, LoadTime { ms: 3_000, late_requests: 0 });
        assert_eq!(points(&window), [(900, 2), (1_900, 0), (32_900, 0)], "the first report after the end");
    }

    #[test]
    fn late_requests_count_but_not_for_the_rate() {
        let mut window = window(&[(1_000, 5), (2_000, 5), (3_000, 1), (4_000, 0), (5_000, 2)]);
        let time = Planned { start_ms: 1_000_000, regular_ms: 2_000 }.limit(&mut window, 1_004_900);
        assert_eq!(time, LoadTime { ms: 2_000, late_requests: 3 });
        assert_eq!(points(&window), [(1_000, 5), (5_000, 8)], "all that ended after the last report in time");
    }

    #[test]
    fn a_clock_that_is_set_does_not_lengthen_the_load() {
        let planned = Planned { start_ms: 1_000_000, regular_ms: 1_200 };
        let time = planned.limit(&mut window(&[(1_000, 5), (1_500, 1)]), 4_600_000);
        assert_eq!(time, LoadTime { ms: 1_500, late_requests: 0 });
    }

    #[test]
    fn a_series_without_seconds_is_left_alone() {
        let mut window = window(&[]);
        let time = Planned { start_ms: 1_000_500, regular_ms: 2_000 }.limit(&mut window, 1_000_600);
        assert_eq!((time.ms, window.seconds.len()), (2_000, 0));
    }
}
