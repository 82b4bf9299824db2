//! Nighthawk's output as JSON: Envoy's load generator. Durations are text: `0.000059131s`.

use serde::Deserialize;

use super::fields::{Loose, counts};
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};

pub(super) const FORMAT: Format = Format {
    name: "nighthawk",
    title: "Nighthawk's output as JSON",
    tool: "nighthawk",
    limits: "Only the result \"global\" is read.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| {
            let first = document.get("results").and_then(|results| results.item(0));
            (document.has(&["options", "results"]) && first.is_some_and(|first| first.has(&["statistics", "counters"])))
                .into()
        },
        read: |document| Ok(vec![document.read::<Nighthawk>()?.report()?]),
    },
};

/// The latency among the statistics.
const LATENCY: &str = "benchmark_http_client.request_to_response";

#[derive(Deserialize)]
struct Nighthawk {
    options: Options,
    results: Vec<Outcome>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    requests_per_second: Loose,
    connections: Loose,
    concurrency: Option<String>,
    duration: Option<String>,
    uri: Option<String>,
    open_loop: Option<bool>,
}

#[derive(Deserialize)]
struct Outcome {
    name: String,
    #[serde(default)]
    statistics: Vec<Statistic>,
    #[serde(default)]
    counters: Vec<Counter>,
    #[serde(default)]
    execution_duration: Option<String>,
}

#[derive(Deserialize)]
struct Statistic {
    id: String,
    #[serde(default)]
    mean: Option<String>,
    #[serde(default)]
    pstdev: Option<String>,
    #[serde(default)]
    min: Option<String>,
    #[serde(default)]
    max: Option<String>,
    #[serde(default)]
    percentiles: Vec<Percentile>,
}

#[derive(Deserialize)]
struct Percentile {
    percentile: f64,
    #[serde(default)]
    duration: Option<String>,
}

#[derive(Deserialize)]
struct Counter {
    name: String,
    value: Loose,
}

fn time(text: Option<&String>) -> Option<Time> {
    Time::printed(text?).map(|time| Time::exact(time.ms))
}

impl Nighthawk {
    fn report(self) -> Result<Report, Fault> {
        let Self { options, results } = self;
        let missing = || Place::root("results").fault("has no result \"global\"");
        let global = results.into_iter().find(|result| result.name == "global").ok_or_else(missing)?;
        let count = |name: &str| {
            let found = global.counters.iter().find(|counter| counter.name == name)?;
            found.value.count()
        };
        let class = |class: &str| count(&format!("benchmark.http_{class}")).unwrap_or_default();
        let statuses = counts(["1xx", "2xx", "3xx", "4xx", "5xx"].map(|name| (name, class(name))));
        let failures = counts(
            ["pool_connection_failure", "stream_resets", "pool_overflow"]
                .map(|name| (name, count(&format!("benchmark.{name}")).unwrap_or_default())),
        );
        let responses = super::fields::sum(statuses.values());
        let latency = global.statistics.iter().find(|statistic| statistic.id == LATENCY).map(|found| {
            let percentiles = found.percentiles.iter().map(|one| (one.percentile * 100.0, time(one.duration.as_ref())));
            let ends = [0.0, 1.0].map(|share| {
                let one = found.percentiles.iter().find(|one| (one.percentile - share).abs() < 1e-12);
                one.and_then(|one| time(one.duration.as_ref()))
            });
            let latencies = Latencies {
                min: time(found.min.as_ref()).or(ends[0]),
                mean: time(found.mean.as_ref()),
                max: time(found.max.as_ref()).or(ends[1]),
                stddev: time(found.pstdev.as_ref()),
                of: Population::Responses,
                definition: Definition::Histogram,
                ..Latencies::default()
            };
            latencies
                .with_percentiles(percentiles.filter(|(percent, _)| *percent > 0.0 && *percent < 100.0).map(rounded))
        });
        let duration = time(global.execution_duration.as_ref()).or_else(|| time(options.duration.as_ref()));
        // Options are of one worker.
        let workers = options.concurrency.as_deref().map_or(Some(1.0), |text| text.parse::<f64>().ok());
        let of_all = |value: Loose| value.0.zip(workers).map(|(value, workers)| value * workers);
        Ok(Report {
            url: options.uri,
            duration,
            load: Generated {
                connections: Loose(of_all(options.connections)).count(),
                rate_per_s: of_all(options.requests_per_second),
                model: options.open_loop.map(|is_open| if is_open { Model::Open } else { Model::Closed }),
                ..Generated::default()
            },
            requests: Some(responses.saturating_add(super::fields::sum(failures.values()))),
            failed: Some(super::fields::bad_statuses(&statuses).saturating_add(super::fields::sum(failures.values()))),
            failures,
            rate_per_s: duration.filter(|time| time.ms > 0.0).map(|time| responses as f64 / time.ms * 1e3),
            statuses,
            received_bytes: count("upstream_cx_rx_bytes_total"),
            sent_bytes: count("upstream_cx_tx_bytes_total"),
            latency: latency.unwrap_or_default(),
            ..Report::default()
        })
    }
}

/// Removes the errors of a multiplication: 99.9 instead of 99.900000000001.
fn rounded((percent, time): (f64, Option<Time>)) -> (f64, Option<Time>) {
    ((percent * 1e8).round() / 1e8, time)
}
