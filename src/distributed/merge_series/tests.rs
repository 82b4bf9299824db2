//! Merged series are exact for any clock offsets, and live points are a prefix of them.

use brewbench_wire::{
    histogram::Histogram,
    series::{Consumption, Gaps, Usage},
};
use proptest::prelude::*;

use brewbench_wire::series::Second;

use super::*;
use crate::results::clock::Clock;

const SCHEMA: i8 = 3;

/// A histogram of latencies in milliseconds, by the definition of the buckets.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "logarithms are small, sums are not negative"
)]
fn histogram(latencies: &[f64]) -> Histogram {
    let index = |ms: f64| ((ms / 1e3).log2() * f64::from(SCHEMA).exp2()).ceil() as i32;
    let sum_ns = latencies.iter().sum::<f64>() * 1e6;
    Histogram::new(SCHEMA, 0, sum_ns as u64, latencies.iter().map(|&ms| (index(ms), 1))).expect("a histogram")
}

fn second(until_ms: u32, latencies: &[f64]) -> Second {
    let count = latencies.len() as u64;
    Second {
        until_ms,
        vus: Some(5),
        iterations: count,
        received_bytes: 7 * count,
        succeeded: histogram(latencies),
        ..Second::default()
    }
}

fn series(start_ms: i64, seconds: Vec<Second>) -> Series {
    let gaps = Gaps { missing_seconds: 1, restarts: 1, ..Gaps::default() };
    Series { warm_up: None, measured: Some(Window { start_ms, seconds, usage: Vec::new(), gaps }) }
}

fn host(start_ms: i64) -> Series {
    let side = Consumption { cpu_us: Some(1), ..Consumption::default() };
    let usage =
        (0..=3).map(|n| Usage { at_ms: n * 1_000, target: side, generator: side, ..Usage::default() }).collect();
    Series { warm_up: None, measured: Some(Window { start_ms, usage, ..Window::default() }) }
}

fn by(series: &Series, offset_ms: f64) -> Clocked<'_> {
    Clocked { series, clock: Some(Clock { offset_ms, error_ms: 1.0 }) }
}

fn three(start_ms: i64) -> Series {
    series(start_ms, (1..=3).map(|n| second(n * 1_000, &[f64::from(n), 2.0])).collect())
}

fn measured(series: Series) -> Window {
    series.measured.expect("a measured part")
}

#[test]
fn known_clock_offsets_of_hours_do_not_matter() {
    // They began at 100,000 and 100,150 by the server's clock, the host at 99,990.
    let (ahead, behind, of_host) = (three(3_700_000), three(-3_499_850), host(99_990));
    let total = measured(merged(Some(by(&of_host, 0.0)), &[by(&ahead, 3_600_000.0), by(&behind, -3_600_000.0)]));
    assert_eq!(total.start_ms, 100_000);
    let ends: Vec<u32> = total.seconds.iter().map(|second| second.until_ms).collect();
    assert_eq!(ends, [1_150, 2_150, 3_150], "a second of the sum has ended when the last one's has");
    assert!(total.seconds.iter().all(|second| (second.requests(), second.vus) == (4, Some(10))), "{total:?}");
    let at: Vec<i32> = total.usage.iter().map(|usage| usage.at_ms).collect();
    assert_eq!(at, [-10, 990, 1_990, 2_990]);
    assert!(total.usage.iter().all(|usage| usage.generator == Consumption::default()), "samples have no generator");
    assert_eq!((total.gaps.missing_seconds, total.gaps.restarts), (1, 2));
}

#[test]
fn a_generator_without_a_clock_starts_with_the_others() {
    let (known, unknown) = (three(100_000), three(77));
    let total = measured(merged(None, &[by(&known, 0.0), Clocked { series: &unknown, clock: None }]));
    assert_eq!((total.start_ms, total.seconds.len()), (100_000, 3));
    let alone = measured(merged(None, &[Clocked { series: &unknown, clock: None }]));
    assert_eq!(alone.start_ms, 77);
}

#[test]
fn virtual_users_are_unknown_unless_all_report_them() {
    let (long, short) = (three(0), series(0, vec![second(1_000, &[1.0])]));
    let total = measured(merged(None, &[by(&long, 0.0), by(&short, 0.0)]));
    assert_eq!(total.seconds.iter().map(|second| second.vus).collect::<Vec<_>>(), [Some(10), None, None]);
}

#[test]
fn a_partial_second_is_added_to_its_neighbour() {
    let (one, other) = (series(0, vec![second(1_000, &[1.0]), second(1_040, &[1.0; 3])]), series(0, Vec::new()));
    let total = measured(merged(None, &[by(&one, 0.0), by(&other, 0.0)]));
    assert_eq!(
        total.seconds.iter().map(|second| (second.until_ms, second.requests())).collect::<Vec<_>>(),
        [(1_040, 4)]
    );
}

#[test]
fn an_absurd_clock_neither_panics_nor_loses_a_request() {
    let (one, other) = (three(i64::MAX), three(i64::MIN));
    for offset in [0.0, f64::MAX, f64::NAN, -1e300] {
        let total = measured(merged(Some(by(&one, offset)), &[by(&one, offset), by(&other, -offset)]));
        assert_eq!(total.seconds.iter().map(Second::requests).sum::<u64>(), 12);
    }
}

fn prefix(series: &Series, seconds: usize) -> Series {
    let mut part = series.clone();
    part.measured.as_mut().expect("a part").seconds.truncate(seconds);
    part
}

#[test]
fn live_points_wait_for_the_slowest_and_are_a_prefix_of_the_sum() {
    let (first, second, of_host) = (three(1_000), three(1_100), host(1_000));
    let now = |a: usize, b: usize, since: Since| {
        let (a, b) = (prefix(&first, a), prefix(&second, b));
        fresh(WindowKind::Measured, Some(by(&of_host, 0.0)), &[by(&a, 0.0), by(&b, 0.0)], since)
    };
    assert_eq!(now(2, 0, Since::All), None, "one of them has reported nothing");
    let total = measured(merged(Some(by(&of_host, 0.0)), &[by(&first, 0.0), by(&second, 0.0)]));
    let shown = now(3, 2, Since::All).expect("two seconds");
    assert_eq!((shown.seconds_after_ms, shown.usage_after_ms), (0, i32::MIN));
    // What the host used before its first sample is not part of the load.
    let mut usage = shown.points.usage.clone();
    usage[0] = usage[0].without_counts();
    assert_eq!((&shown.points.seconds[..], &usage), (&total.seconds[..2], &total.usage));
    // The second generator reports its third second; its second one may have grown.
    let more = now(3, 3, Since::Seconds { generator: 1, after_ms: 2_000 }).expect("the third");
    assert_eq!((more.seconds_after_ms, more.usage_after_ms), (1_499, i32::MAX));
    assert_eq!((&more.points.seconds[..], more.points.usage.len()), (&total.seconds[1..], 0));
    // The first generator is ahead: its newer seconds are not shown, and nothing is removed.
    let ahead = now(3, 1, Since::Seconds { generator: 0, after_ms: 2_000 }).expect("nothing");
    assert_eq!((ahead.seconds_after_ms, ahead.points.seconds.len()), (1_499, 0));
    let usage = now(3, 3, Since::Usage { after_ms: 2_000 }).expect("a sample");
    assert_eq!((usage.seconds_after_ms, usage.usage_after_ms), (u32::MAX, 2_000));
    assert_eq!((usage.points.seconds.len(), &usage.points.usage[..]), (0, &total.usage[3..]));
}

/// k6's formula.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
fn exact(sorted: &[f64], q: f64) -> f64 {
    let rank = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    low + (high - low) * (rank - rank.floor())
}

fn any_seconds() -> impl Strategy<Value = Vec<(u32, Vec<f64>)>> {
    proptest::collection::vec((1..1_400_u32, proptest::collection::vec(0.01..5_000_f64, 0..20)), 1..12)
}

fn series_of(parts: &[(u32, Vec<f64>)], start_ms: i64) -> Series {
    let ends = parts.iter().scan(0, |end, (length, _)| {
        *end += length;
        Some(*end)
    });
    series(start_ms, ends.zip(parts).map(|(end, (_, latencies))| second(end, latencies)).collect())
}

proptest! {
    #[test]
    fn totals_are_exact_and_percentiles_are_within_a_bucket(
        a in any_seconds(),
        b in any_seconds(),
        starts in proptest::collection::vec(-5_000..5_000_i64, 2),
        offset in -1e7..1e7_f64,
        q in 0.0..=1.0_f64,
    ) {
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let shift = offset.round() as i64;
        let (one, other) = (series_of(&a, starts[0]), series_of(&b, starts[1] + shift));
        let total = measured(merged(None, &[by(&one, 0.0), by(&other, offset)]));
        let mut pooled: Vec<f64> = a.iter().chain(&b).flat_map(|(_, latencies)| latencies.clone()).collect();
        prop_assert_eq!(total.start_ms, starts[0].min(starts[1]));
        prop_assert!(total.seconds.windows(2).all(|pair| pair[0].until_ms < pair[1].until_ms));
        let all: Histogram = total.seconds.iter().map(|second| &second.succeeded).sum();
        prop_assert_eq!(all.total(), pooled.len() as u64);
        prop_assert_eq!(total.seconds.iter().map(|second| second.received_bytes).sum::<u64>(), 7 * pooled.len() as u64);
        if !pooled.is_empty() {
            pooled.sort_by(f64::total_cmp);
            let (found, exact) = (all.quantile(q).expect("not empty"), exact(&pooled, q));
            let epsilon = exact * 1e-9;
            prop_assert!(found.low - epsilon <= exact && exact <= found.high + epsilon, "{exact} in {found:?}");
        }
    }
}
