//! Measures what it costs to receive and merge the series of many load generators: a hundred k6 processes that report a
//! million requests a second together, in a simulated minute. Without HTTP, whose cost does not depend on the requests.

use std::time::Instant;

use brewbench_agent::series::collector::{Collector, Scope};
use brewbench_agent::series::messages::{BucketSpan, Label, NativeHistogram, Sample, TimeSeries};
use brewbench_wire::series::merge::{add_up, lines};
use prost::Message;

const GENERATORS: usize = 100;
const SECONDS: i64 = 60;
/// Requests of one generator in a second.
const RATE: u64 = 10_000;
/// Buckets with requests: latencies from 0.1 ms to 20 ms.
const BUCKETS: u32 = 64;
/// Sets of tags, for example of four statuses and URLs.
const TAGS: u64 = 4;

fn main() {
    let bodies: Vec<Vec<u8>> = (1..=SECONDS).map(push).collect();
    let bytes: usize = bodies.iter().map(Vec::len).sum::<usize>() * GENERATORS;
    let mut collectors: Vec<Collector> = (0..GENERATORS).map(|_| Collector::new(0, Scope::All)).collect();
    let begun = Instant::now();
    let mut shown = 0_u64;
    for (second, body) in (1..).zip(&bodies) {
        for (offset, collector) in (0..).zip(&mut collectors) {
            collector.take(body, second * 1_000 + offset);
        }
        // What the page of a run in progress gets.
        let after = u32::try_from(second - 1).unwrap_or(0);
        let all = collectors.iter().map(|one| lines(one.seconds_after(after * 1_000), 0, after)).collect();
        shown += add_up(all).iter().map(brewbench_wire::series::Second::requests).sum::<u64>();
    }
    let took = begun.elapsed().as_secs_f64();
    let expected = GENERATORS as u64 * RATE * SECONDS as u64;
    assert_eq!(shown, expected, "every request counts once");
    println!(
        "{GENERATORS} generators, {} requests/s: {:.3} s of CPU per second, {:.0} kB/s of pushes, {expected} requests counted",
        GENERATORS as u64 * RATE,
        took / SECONDS as f64,
        bytes as f64 / SECONDS as f64 / 1e3,
    );
}

/// Returns the push of a generator after this many seconds.
fn push(second: i64) -> Vec<u8> {
    let label = |name: &str, value: &str| Label { name: name.to_owned(), value: value.to_owned() };
    let labels = |name: &str, tag: u64| {
        vec![label("__name__", name), label("expected_response", "true"), label("status", &tag.to_string())]
    };
    let count = RATE * second.unsigned_abs();
    let mut series: Vec<TimeSeries> =
        (0..TAGS).map(|tag| latencies(labels("k6_http_req_duration_seconds", tag), count / TAGS)).collect();
    for name in ["k6_iterations_total", "k6_data_received_total", "k6_data_sent_total", "k6_vus"] {
        let samples = vec![Sample { value: count as f64, timestamp: 0 }];
        series.push(TimeSeries { labels: labels(name, 0), samples, ..TimeSeries::default() });
    }
    let message: Vec<u8> =
        series.iter().flat_map(|series| [vec![0x0a], series.encode_length_delimited_to_vec()].concat()).collect();
    snap::raw::Encoder::new().compress_vec(&message).unwrap_or_default()
}

fn latencies(labels: Vec<Label>, count: u64) -> TimeSeries {
    let before = |bucket: u32| count * u64::from(bucket) / u64::from(BUCKETS);
    let in_bucket = |bucket: u32| (before(bucket + 1) - before(bucket)).cast_signed();
    let counts: Vec<i64> = (0..BUCKETS).map(in_bucket).collect();
    let deltas = counts.iter().scan(0, |before, count| Some(*count - std::mem::replace(before, *count))).collect();
    let histogram = NativeHistogram {
        count,
        sum: 0.002 * count as f64,
        schema: 3,
        positive_spans: vec![BucketSpan { offset: -106, length: BUCKETS }],
        positive_deltas: deltas,
        ..NativeHistogram::default()
    };
    TimeSeries { labels, histograms: vec![histogram], ..TimeSeries::default() }
}
