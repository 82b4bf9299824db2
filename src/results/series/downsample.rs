//! Downsamples a series: counts stay exact, only the time resolution becomes coarser.

use brewbench_wire::series::{Second, Series, Usage, Window};

/// Length of a downsampled point, ms.
const POINT_MS: i64 = 10_000;

/// Merges points within the same ten seconds. Counts and histograms add up exactly.
pub fn downsample(series: Series) -> Series {
    let Series { warm_up, measured } = series;
    Series { warm_up: warm_up.map(window), measured: measured.map(window) }
}

fn window(window: Window) -> Window {
    let Window { start_ms, seconds, usage, gaps } = window;
    let mut usage = usage.into_iter();
    // The first sample has levels only: nothing can be added to it.
    let first = usage.next();
    let rest = merged(usage, |sample| i64::from(sample.at_ms), Usage::add);
    let seconds = merged(seconds.into_iter(), |second| i64::from(second.until_ms), Second::add);
    Window { start_ms, seconds, usage: first.into_iter().chain(rest).collect(), gaps }
}

fn merged<T>(points: impl Iterator<Item = T>, end_ms: impl Fn(&T) -> i64, add: impl Fn(&mut T, T)) -> Vec<T> {
    // The end of a point belongs to it.
    let place = |point: &T| (end_ms(point) - 1).div_euclid(POINT_MS);
    let mut all: Vec<T> = Vec::new();
    for point in points {
        match all.last_mut() {
            Some(last) if place(last) == place(&point) => add(last, point),
            _ => all.push(point),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use brewbench_wire::{
        histogram::Histogram,
        series::{Consumption, Gaps},
    };

    use super::*;

    fn second(n: u32) -> Second {
        let succeeded = Histogram::new(3, 0, 1_000_000, [(-80 + n.cast_signed() % 7, 1)]).expect("a histogram");
        Second { until_ms: n * 1_000, iterations: 1, succeeded, ..Second::default() }
    }

    #[test]
    fn ten_seconds_become_one_point_and_counts_are_kept() {
        let seconds: Vec<_> = (1..=25).map(second).collect();
        let sample = |n: i32| Usage {
            at_ms: n * 1_000,
            target: Consumption { cpu_us: Some(if n == 0 { 0 } else { 7 }), ..Consumption::default() },
            ..Usage::default()
        };
        let usage: Vec<_> = (0..=25).map(sample).collect();
        let whole = Window { start_ms: 5, seconds: seconds.clone(), usage, gaps: Gaps::default() };
        let coarse = downsample(Series { warm_up: None, measured: Some(whole) });
        assert_eq!(coarse.warm_up, None);
        let measured = coarse.measured.clone().expect("a window");
        let ends: Vec<_> = measured.seconds.iter().map(|second| second.until_ms).collect();
        assert_eq!(ends, [10_000, 20_000, 25_000]);
        let times: Vec<_> = measured.usage.iter().map(|sample| sample.at_ms).collect();
        assert_eq!(times, [0, 10_000, 20_000, 25_000]);
        assert_eq!(measured.usage.iter().filter_map(|sample| sample.target.cpu_us).sum::<u64>(), 25 * 7);
        let sum = |seconds: Vec<Second>| {
            let add = |mut sum: Second, next: Second| {
                sum.add(next);
                sum
            };
            seconds.into_iter().reduce(add).expect("seconds")
        };
        assert_eq!(sum(measured.seconds), sum(seconds));
        assert_eq!(downsample(coarse.clone()), coarse, "downsampling twice changes nothing");
    }
}
