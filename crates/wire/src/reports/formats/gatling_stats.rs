//! Gatling's `stats.json` and `global_stats.json`. Times are whole milliseconds; `-` stands for no value.

use serde::Deserialize;

use super::fields::Loose;
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Latencies, Population, Report};

pub(super) const FORMAT: Format = Format {
    name: "gatling-stats",
    title: "Gatling's stats.json",
    tool: "gatling",
    limits: "Only the global statistics are read. Its four percentiles are taken for the 50th, 75th, 95th and 99th, which is \
             Gatling's default. Times are whole milliseconds. It lacks the duration, the users and the statuses.",
    is_rounded: true,
    timeout_ms: Some(60_000.0),
    reader: Reader::Json {
        is: |document| {
            let keys = ["numberOfRequests", "percentiles1", "meanNumberOfRequestsPerSecond"];
            (document.has(&keys) || document.has_in("stats", &keys)).into()
        },
        read: |document| {
            let stats = match document.get("stats") {
                Some(stats) => stats.read::<Stats>()?,
                None => document.read::<Stats>()?,
            };
            Ok(vec![stats.report()])
        },
    },
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    number_of_requests: Parts,
    min_response_time: Parts,
    max_response_time: Parts,
    mean_response_time: Parts,
    standard_deviation: Parts,
    percentiles1: Parts,
    percentiles2: Parts,
    percentiles3: Parts,
    #[serde(default)]
    percentiles4: Option<Parts>,
    mean_number_of_requests_per_second: Parts,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Parts {
    total: Loose,
    #[serde(default)]
    ok: Loose,
    #[serde(default)]
    ko: Loose,
}

impl Stats {
    fn report(&self) -> Report {
        let requests = self.number_of_requests.total.count();
        let has = |part: fn(Parts) -> Loose| part(self.number_of_requests).0.is_none_or(|count| count > 0.0);
        let latencies = |part: fn(Parts) -> Loose, of: Population| {
            let time = |parts: Parts| part(parts).whole_time(1.0);
            let ends = Latencies {
                min: time(self.min_response_time),
                mean: time(self.mean_response_time),
                max: time(self.max_response_time),
                stddev: time(self.standard_deviation),
                of,
                definition: Definition::Estimated,
                ..Latencies::default()
            };
            let percentiles = [
                (50.0, time(self.percentiles1)),
                (75.0, time(self.percentiles2)),
                (95.0, time(self.percentiles3)),
                (99.0, self.percentiles4.and_then(time)),
            ];
            // Start and end are cut.
            if has(part) { ends.with_percentiles(percentiles).at_least(1.0) } else { Latencies::default() }
        };
        Report {
            requests,
            failed: self.number_of_requests.ko.count(),
            rate_per_s: self.mean_number_of_requests_per_second.total.0,
            latency: latencies(|parts| parts.total, Population::All),
            ok_latency: latencies(|parts| parts.ok, Population::Successful),
            ..Report::default()
        }
    }
}
