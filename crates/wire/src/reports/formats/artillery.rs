//! Artillery's report as JSON, of version 2 and of version 1. Times are milliseconds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, bad_statuses, sum};
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};
use crate::reports::time::Time;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "artillery",
    title: "Artillery's report as JSON",
    tool: "artillery",
    limits: "Only the aggregate is read. Latencies are whole milliseconds, percentiles come from a sketch. It lacks the address. Its rate is that of a period of ten \
             seconds, so requests are divided by the time between the first and the last event instead.",
    is_rounded: true,
    timeout_ms: Some(10_000.0),
    reader: Reader::Json {
        is: |document| {
            (document.has_in("aggregate", &["counters"])
                || document.has_in("aggregate", &["requestsCompleted", "codes"]))
            .into()
        },
        read: |document| {
            let aggregate = document.get("aggregate");
            match aggregate.filter(|aggregate| aggregate.has(&["counters"])) {
                Some(second) => Ok(vec![second.read::<Second>()?.report()]),
                None => Ok(vec![document.read::<First>()?.aggregate.report()]),
            }
        },
    },
};

/// The aggregate of version 2.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Second {
    counters: BTreeMap<String, Loose>,
    #[serde(default)]
    rates: BTreeMap<String, Loose>,
    #[serde(default)]
    summaries: BTreeMap<String, Option<Times>>,
    #[serde(default)]
    histograms: BTreeMap<String, Option<Times>>,
    #[serde(default)]
    first_counter_at: Loose,
    #[serde(default)]
    last_counter_at: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Times {
    min: Loose,
    max: Loose,
    mean: Loose,
    median: Loose,
    p50: Loose,
    p75: Loose,
    p90: Loose,
    p95: Loose,
    p99: Loose,
    p999: Loose,
}

impl Times {
    fn latencies(&self) -> Latencies {
        let ms = |value: Loose| value.0.map(Time::exact);
        let ends = Latencies {
            min: ms(self.min),
            mean: ms(self.mean),
            max: ms(self.max),
            of: Population::Responses,
            definition: Definition::Estimated,
            ..Latencies::default()
        };
        // A sketch has an error of a hundredth.
        let near = |value: Loose| ms(value).map(|time| time.within(0.01));
        let median = if self.p50.0.is_some() { self.p50 } else { self.median };
        ends.with_percentiles([
            (50.0, near(median)),
            (75.0, near(self.p75)),
            (90.0, near(self.p90)),
            (95.0, near(self.p95)),
            (99.0, near(self.p99)),
            (99.9, near(self.p999)),
        ])
        .at_least(0.5)
    }
}

impl Second {
    fn report(self) -> Report {
        let counter = |name: &str| self.counters.get(name).and_then(|value| value.count());
        let named = |prefix: &str| {
            let found = self
                .counters
                .iter()
                .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.count()?)));
            found.collect::<BTreeMap<String, u64>>()
        };
        let statuses = named("http.codes.");
        let mut failures = named("errors.");
        // Errors of scripts are not of requests.
        let responses = counter("http.responses").unwrap_or_else(|| sum(statuses.values()));
        let requests = counter("http.requests").unwrap_or(responses);
        let without = requests.saturating_sub(responses);
        if without > 0 && failures.is_empty() {
            failures.insert("no response".to_owned(), without);
        }
        let span = self.first_counter_at.0.zip(self.last_counter_at.0).map(|(first, last)| last - first);
        let rate = self.rates.get("http.request_rate").and_then(|rate| rate.0);
        let times = [&self.summaries, &self.histograms].into_iter().find_map(|found| found.get("http.response_time"));
        let latency = times.and_then(Option::as_ref).map(Times::latencies).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let started = self.first_counter_at.0.map(|ms| ms as i64);
        Report {
            started_ms: started,
            duration: span.filter(|ms| *ms > 0.0).map(Time::exact),
            load: Generated { model: Some(Model::Open), ..Generated::default() },
            requests: Some(requests),
            failed: Some(without.saturating_add(bad_statuses(&statuses)).min(requests)),
            failures,
            statuses,
            received_bytes: counter("http.downloaded_bytes"),
            others: rate.map(|rate| ("http.request_rate".to_owned(), rate)).into_iter().collect(),
            latency,
            warnings: vec![Warning::LoadUnknown("Artillery's report has no arrival rate".to_owned())],
            ..Report::default()
        }
    }
}

/// A report of version 1.
#[derive(Deserialize)]
struct First {
    aggregate: FirstAggregate,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstAggregate {
    requests_completed: u64,
    codes: BTreeMap<String, u64>,
    #[serde(default)]
    errors: BTreeMap<String, u64>,
    #[serde(default)]
    latency: Times,
    #[serde(default)]
    rps: Rate,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rate {
    count: Loose,
    mean: Loose,
}

impl FirstAggregate {
    fn report(self) -> Report {
        let without = sum(self.errors.values());
        let requests = self.rps.count.count().unwrap_or(0).max(self.requests_completed.saturating_add(without));
        Report {
            load: Generated { model: Some(Model::Open), ..Generated::default() },
            requests: Some(requests),
            failed: Some(without.saturating_add(bad_statuses(&self.codes)).min(requests)),
            failures: self.errors,
            statuses: self.codes,
            rate_per_s: self.rps.mean.0,
            latency: if self.requests_completed > 0 { self.latency.latencies() } else { Latencies::default() },
            warnings: vec![Warning::LoadUnknown("Artillery's report has no arrival rate".to_owned())],
            ..Report::default()
        }
    }
}
