//! Conversion of series, and a fixture for other tests.

use super::*;

/// Returns a series with 2 s of warm-up and 10 s measured: n × 100 requests in second n, one of them failed.
pub(crate) fn rising() -> Series {
    let second = |number: u32| Second {
        until_ms: number * 1_000,
        vus: Some(10),
        succeeded: latencies(u64::from(number) * 100 - 1),
        failed: latencies(1),
        ..Second::default()
    };
    let usage = |number: i32| {
        let cpu_us = Some(if number == 0 { 0 } else { 500_000 });
        let target = Consumption {
            cpu_us,
            throttled_us: Some(0),
            memory_bytes: Some(1 << 20),
            held_memory_bytes: Some(1 << 19),
            file_cache_bytes: Some(1 << 21),
            ..Default::default()
        };
        Usage { at_ms: number * 1_000, target, ..Usage::default() }
    };
    let window = |start_ms, seconds| Window {
        start_ms,
        seconds: (1..=seconds).map(second).collect(),
        usage: (0..=seconds.cast_signed()).map(usage).collect(),
        ..Window::default()
    };
    Series { warm_up: Some(window(1_000_000, 2)), measured: Some(window(1_002_500, 10)) }
}

/// Returns `count` requests of 0.92 to 1 ms.
fn latencies(count: u64) -> Histogram {
    Histogram::new(3, 0, count * 960_000, [(-79, count)]).expect("a histogram")
}

#[test]
fn times_count_from_the_warm_up_and_rates_are_counts_by_time() {
    let body = SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default());
    let (warm_up, measured) = (body.warm_up.expect("exists"), body.measured.expect("exists"));
    assert_eq!((body.start_ms, warm_up.from_s, measured.from_s), (Some(1_000_000), 0.0, 2.5));
    let last = measured.seconds.last().expect("ten");
    assert_eq!((last.at_s, last.length_s, last.requests, last.rps), (12.5, 1.0, 1_000, Some(1_000.0)));
    assert_eq!((last.failed_rps, last.succeeded.count, last.failed.count), (Some(1.0), 999, 1));
}

#[test]
fn a_part_has_the_latencies_of_all_its_requests() {
    let measured = SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default()).measured.expect("exists");
    assert_eq!((measured.succeeded.count, measured.failed.count), (5_490, 10));
    let p99 = measured.succeeded.p99_ms.expect("known");
    assert!((0.9..=1.1).contains(&p99), "{p99}");
    assert_eq!(measured.succeeded.buckets.len(), 1);
}

#[test]
fn the_first_sample_has_levels_only() {
    let measured = SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default()).measured.expect("exists");
    let sides = [&measured.usage[0], &measured.usage[1]].map(|usage| (usage.target.cores, usage.target.memory_bytes));
    assert_eq!(sides, [(None, Some(1 << 20)), (Some(0.5), Some(1 << 20))]);
    assert_eq!(measured.usage[1].generator.cores, None, "unknown is not zero");
}

#[test]
fn a_second_without_time_or_requests_has_no_rate() {
    let empty = SecondBody::new(&Second::default(), 0, 0);
    assert_eq!((empty.rps, empty.succeeded), (None, LatencyBody::default()));
}

#[test]
fn fewer_points_keep_all_counts() {
    let limited = SeriesBody::new(&"run".to_owned().into(), &limit_points(rising(), 4), SideCores::default())
        .measured
        .expect("exists");
    let requests: Vec<u64> = limited.seconds.iter().map(|second| second.requests).collect();
    assert_eq!((requests, limited.succeeded.count), (vec![600, 1_500, 2_400, 1_000], 5_490));
    let last = limited.seconds.last().expect("four");
    assert_eq!((last.at_s, last.length_s, last.rps), (12.5, 1.0, Some(1_000.0)));
}

#[test]
fn an_update_converts_like_the_complete_series() {
    let series = rising();
    let measured = series.measured.as_ref().expect("exists");
    let whole = SeriesBody::new(&"run".to_owned().into(), &series, SideCores::default()).measured.expect("exists");
    let offset = offset_ms(measured, start_ms(&series).expect("exists"));
    assert_eq!(seconds_after(offset, 4_000, &measured.seconds[4..]), whole.seconds[4..]);
    assert_eq!(usage_after(offset, Some(3_000), &measured.usage[4..], SideCores::default()), whole.usage[4..]);
}

#[test]
fn throttled_time_is_a_share_of_the_time_of_all_cores() {
    // Four cores, each throttled for half of each second.
    let mut series = rising();
    for window in [&mut series.warm_up, &mut series.measured].into_iter().flatten() {
        window.usage.iter_mut().for_each(|usage| usage.target.throttled_us = Some(2_000_000));
    }
    let throttled = |target| {
        let cores = SideCores { target, generator: None };
        SeriesBody::new(&"run".to_owned().into(), &series, cores).measured.expect("exists").usage[1].target.throttled
    };
    assert_eq!((throttled(Some(4.0)), throttled(Some(1.0)), throttled(None)), (Some(0.5), Some(1.0), None));
    let none = SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default()).measured.expect("exists");
    assert_eq!(none.usage[1].target.throttled, Some(0.0), "not throttled");
}
