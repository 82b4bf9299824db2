//! Irregular pushes.

use proptest::prelude::*;
use prost::Message;

use super::super::messages::{BucketSpan, Label, NativeHistogram};
use super::*;

const BEGUN: i64 = 1_000_000;

fn labels(name: &str, tag: &str) -> Vec<Label> {
    let label = |name: &str, value: &str| Label { name: name.to_owned(), value: value.to_owned() };
    vec![label("__name__", name), label("page", tag)]
}

fn number(name: &str, tag: &str, value: f64) -> TimeSeries {
    let samples = vec![Sample { value, timestamp: 0 }];
    TimeSeries { labels: labels(name, tag), samples, ..TimeSeries::default() }
}

/// Returns a series of `count` requests with the same latency.
fn requests(tag: &str, count: u64) -> TimeSeries {
    let histogram = NativeHistogram {
        count,
        sum: 0.001 * count as f64,
        schema: 3,
        positive_spans: vec![BucketSpan { offset: -79, length: 1 }],
        positive_deltas: vec![count.cast_signed()],
        ..NativeHistogram::default()
    };
    let labels = labels("k6_http_req_duration_seconds", tag);
    TimeSeries { labels, histograms: vec![histogram], ..TimeSeries::default() }
}

fn push(series: &[TimeSeries]) -> Vec<u8> {
    let message: Vec<u8> =
        series.iter().flat_map(|series| [vec![0x0a], series.encode_length_delimited_to_vec()].concat()).collect();
    snap::raw::Encoder::new().compress_vec(&message).expect("packed")
}

/// Takes pushes at milliseconds after the start.
fn collect<'a>(pushes: impl IntoIterator<Item = (i64, &'a [TimeSeries])>) -> Window {
    let mut collector = Collector::new(BEGUN, Scope::All);
    for (at, series) in pushes {
        collector.take(&push(series), BEGUN + at);
    }
    collector.finish().0
}

fn counts(window: &Window) -> Vec<u64> {
    window.seconds.iter().map(Second::requests).collect()
}

#[test]
fn a_second_sums_all_sets_of_tags() {
    let first = [requests("a", 10), requests("b", 5), number("k6_vus", "", 4.0)];
    let second = [requests("a", 12), requests("b", 9), number("k6_iterations_total", "", 7.0)];
    let window = collect([(1000, &first[..]), (2000, &second[..]), (3000, &[requests("b", 10)])]);
    assert_eq!(counts(&window), [15, 6, 1]);
    let iterations: Vec<_> = window.seconds.iter().map(|second| second.iterations).collect();
    assert_eq!(iterations, [0, 7, 0]);
    assert_eq!(window.seconds[0].vus, Some(4));
    assert_eq!(window.gaps, Gaps { unfinished: 1, ..Gaps::default() });
}

#[test]
fn a_restart_of_k6_is_counted_and_loses_nothing() {
    let before = [requests("a", 10), number("k6_iterations_total", "", 7.0)];
    let after = [requests("a", 3), number("k6_iterations_total", "", 2.0)];
    let window = collect([(1000, &before[..]), (2000, &after[..]), (3000, &[requests("a", 4)])]);
    assert_eq!(counts(&window), [10, 3, 1]);
    assert_eq!(window.seconds[1].iterations, 2);
    assert_eq!(window.gaps.restarts, 1);
}

#[test]
fn a_missing_second_is_counted_and_its_requests_are_in_the_next() {
    let window = collect([(1000, &[requests("a", 10)][..]), (4000, &[requests("a", 40)])]);
    assert_eq!(counts(&window), [10, 30]);
    assert_eq!(window.seconds[1].until_ms, 4000);
    assert_eq!(window.gaps.missing_seconds, 2);
}

#[test]
fn an_early_push_is_counted_and_added_to_the_previous_second() {
    let [a, b, c] = [10, 11, 20].map(|count| [requests("a", count)]);
    let window = collect([(1000, &a[..]), (1010, &b), (2000, &c), (2000, &c)]);
    assert_eq!(counts(&window), [11, 9]);
    assert_eq!(window.gaps.doubled_seconds, 1, "every run ends with an early push");
}

#[test]
fn long_runs_are_downsampled_without_loss() {
    let mut collector = Collector::new(BEGUN, Scope::All);
    let seconds = MAX_SECONDS as u64 + 10;
    for second in 1..=seconds {
        collector.take(&push(&[requests("a", 2 * second)]), BEGUN + 1000 * second.cast_signed());
    }
    assert_eq!(collector.seconds_after(3_600_000).len(), 10);
    let (window, _) = collector.finish();
    assert_eq!(window.seconds.len(), MAX_SECONDS / 2 + 10);
    assert_eq!(counts(&window).iter().sum::<u64>(), 2 * seconds);
    assert_eq!((window.seconds[0].until_ms, window.seconds[0].requests()), (2000, 4));
    assert_eq!(window.gaps.missing_seconds, 0);
}

#[test]
fn a_slow_start_of_k6_is_not_a_missing_second() {
    let window = collect([(5000, &[requests("a", 10)][..])]);
    assert_eq!((window.start_ms, window.seconds[0].until_ms), (BEGUN + 4000, 1000));
    assert_eq!(window.gaps.missing_seconds, 0);
}

#[test]
fn a_script_that_tags_by_address_is_limited_in_memory() {
    let tags: Vec<String> = (0..MAX_KNOWN + 50).map(|number| format!("/page/{number}")).collect();
    let series = |count| tags.iter().map(|tag| requests(tag, count)).collect::<Vec<_>>();
    let window = collect([(1000, &series(1)[..]), (2000, &series(3))]);
    assert_eq!(counts(&window), [MAX_KNOWN as u64, 2 * MAX_KNOWN as u64]);
    assert_eq!(window.gaps.dropped_values, 100);
}

#[test]
fn the_final_push_adds_the_last_requests_but_no_counts() {
    let mut last = requests("a", 11);
    let stale = Sample { value: f64::from_bits(STALE), timestamp: 0 };
    last.samples.push(stale);
    let mut iterations = number("k6_iterations_total", "", 5.0);
    let first = [requests("a", 10), iterations.clone()];
    iterations.samples = vec![stale];
    let window = collect([(1000, &first[..]), (1001, &[last, iterations])]);
    assert_eq!(counts(&window), [11]);
    assert_eq!(window.seconds[0].iterations, 5);
    assert_eq!(window.gaps, Gaps::default());
}

#[test]
fn unreadable_pushes_are_counted() {
    let mut collector = Collector::new(BEGUN, Scope::All);
    collector.take(b"neither snappy nor protobuf", BEGUN);
    collector.take(&push(&[number("k6_iterations_total", "", f64::NAN)]), BEGUN + 1000);
    collector.take(&push(&[number("k6_iterations_total", "", -1.0)]), BEGUN + 2000);
    collector.take(&push(&[number("k6_http_req_duration_seconds", "", 1.0)]), BEGUN + 3000);
    collector.take(&push(&[number("k6_of_the_future", "", 1.0), number("", "", 1.0)]), BEGUN + 4000);
    assert_eq!(collector.finish().0.gaps, Gaps { damaged: 4, unfinished: 1, ..Gaps::default() });
}

#[test]
fn a_script_that_pushes_nothing_has_an_empty_series() {
    let window = collect([]);
    assert_eq!((window.seconds.len(), window.start_ms), (0, BEGUN));
}

fn tagged(mut series: TimeSeries, tags: &[(&str, &str)]) -> TimeSeries {
    let label = |(name, value): &(&str, &str)| Label { name: (*name).to_owned(), value: (*value).to_owned() };
    series.labels.extend(tags.iter().map(label));
    series
}

/// Returns the connect times of `count` requests, of which `reused` used an open connection.
fn connecting(count: u64, reused: u64, tags: &[(&str, &str)]) -> TimeSeries {
    let mut series = requests("a", count);
    series.labels = labels("k6_http_req_connecting_seconds", "a");
    let histogram = &mut series.histograms[0];
    (histogram.zero_count, histogram.positive_deltas) = (reused, vec![(count - reused).cast_signed()]);
    tagged(series, tags)
}

#[test]
fn the_work_is_counted_by_status_protocol_and_connection() {
    let moved = [("status", "302"), ("proto", "HTTP/1.1")];
    let found = [("status", "200"), ("proto", "HTTP/1.1")];
    let lost = [("status", "0"), ("expected_response", "false")];
    let missing = [
        ("status", "404"),
        ("expected_response", "false"),
        ("method", "GET"),
        ("name", "http://[::1]:80/hash"),
        ("proto", "HTTP/1.1"),
    ];
    let first = [tagged(requests("a", 5), &moved), tagged(requests("a", 5), &found), connecting(10, 8, &found)];
    let second = [
        tagged(requests("a", 9), &moved),
        tagged(requests("a", 8), &found),
        tagged(requests("a", 1), &lost),
        tagged(requests("a", 3), &missing),
        connecting(17, 13, &found),
        connecting(1, 0, &lost),
    ];
    let mut collector = Collector::new(BEGUN, Scope::All);
    collector.take(&push(&first), BEGUN + 1000);
    collector.take(&push(&second), BEGUN + 2000);
    let work = collector.finish().1;
    let lines = |counts: Option<std::collections::BTreeMap<String, u64>>| {
        counts.expect("counts").into_iter().map(|(value, count)| format!("{value}: {count}")).collect::<Vec<_>>()
    };
    assert_eq!(lines(work.statuses), ["0: 1", "200: 8", "302: 9", "404: 3"]);
    assert_eq!(lines(work.protocols), ["HTTP/1.1: 20"]);
    assert_eq!(work.new_connections, Some(5));
    let failures = work.failures.expect("failures");
    let texts: Vec<_> = failures.commonest.iter().map(|one| (one.text.as_str(), one.count)).collect();
    assert_eq!((failures.count, texts), (4, vec![("404 (GET /hash)", 3), ("no response", 1)]));
}

#[test]
fn work_without_tags_is_unknown() {
    let mut collector = Collector::new(BEGUN, Scope::All);
    let ok = tagged(requests("a", 5), &[("status", "200"), ("proto", "HTTP/1.1")]);
    collector.take(&push(&[requests("b", 1), ok]), BEGUN + 1000);
    assert_eq!(collector.finish().1, WorkDone::default());
}

proptest! {
    #[test]
    fn any_times_and_counts_are_accepted(
        pushes in proptest::collection::vec((any::<i64>(), any::<u64>().prop_map(|count| count >> 1), any::<f64>()), 0..20),
    ) {
        let mut collector = Collector::new(BEGUN, Scope::All);
        for (at, count, value) in pushes {
            let series = [requests("a", count), number("k6_data_sent_total", "", value), number("k6_vus", "", value)];
            collector.take(&push(&series), at);
        }
        let seconds = collector.finish().0.seconds;
        prop_assert!(seconds.is_sorted_by(|a, b| a.until_ms < b.until_ms));
    }
}

#[test]
fn the_time_in_which_k6_was_paused_is_no_part_of_the_series() {
    let idle = [number("k6_vus", "", 0.0)];
    let paused = || {
        let mut collector = Collector::new(BEGUN, Scope::All);
        for at in [1_000, 2_000, 3_000] {
            collector.take(&push(&idle), BEGUN + at);
        }
        collector
    };
    let mut known = paused();
    known.begin(BEGUN + 3_200);
    known.take(&push(&[requests("a", 10)]), BEGUN + 4_000);
    // A load that another program has started is noticed only after its first push.
    let mut noticed = paused();
    noticed.take(&push(&[requests("a", 10)]), BEGUN + 4_000);
    noticed.begin(BEGUN + 3_200);
    for collector in [known, noticed] {
        let window = collector.finish().0;
        assert_eq!((window.start_ms, window.seconds.len()), (BEGUN + 3_200, 1), "{window:?}");
        assert_eq!((window.seconds[0].until_ms, counts(&window)[0]), (800, 10));
        assert_eq!(window.gaps, Gaps { unfinished: 1, ..Gaps::default() });
    }
}

#[test]
fn requests_of_setup_and_teardown_are_not_of_the_load() {
    let tagged = |mut series: TimeSeries| {
        let [name, value] = load::TAG.map(str::to_owned);
        series.labels.push(Label { name, value });
        series
    };
    let at = |mut series: TimeSeries, ms: i64| {
        series.histograms[0].timestamp = BEGUN + ms;
        series
    };
    let mut collector = Collector::new(BEGUN, Scope::Tagged);
    let first = [at(requests("a", 9), 900), number("k6_vus", "", 4.0), number("k6_data_sent_total", "a", 5.0)];
    let second = [at(tagged(requests("a", 3)), 1_900), tagged(number("k6_data_sent_total", "a", 2.0))];
    let third = [at(requests("a", 10), 2_900)];
    for (at, series) in [(1_000, &first[..]), (2_000, &second[..]), (3_000, &third[..])] {
        collector.take(&push(series), BEGUN + at);
    }
    assert_eq!(collector.last_request_ms(), Some(BEGUN + 1_900));
    let window = collector.finish().0;
    assert_eq!(counts(&window), [0, 3, 0]);
    assert_eq!((window.seconds[0].vus, window.seconds[0].sent_bytes, window.seconds[1].sent_bytes), (Some(4), 0, 2));
}
