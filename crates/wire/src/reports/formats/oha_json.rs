//! oha's output as JSON (`--output-format json`, or `-j` of old versions). Times are seconds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, bad_statuses, sum};
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::time::Time;

pub(super) const FORMAT: Format = Format {
    name: "oha",
    title: "oha's output as JSON",
    tool: "oha",
    limits: "It lacks the address and the number of connections. Requests that were still running at the end are not \
             counted, except in the rate.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| document.has(&["summary", "latencyPercentiles", "statusCodeDistribution"]).into(),
        read: |document| Ok(vec![document.read::<Oha>()?.report()]),
    },
};

/// What oha calls requests that the end of the time interrupted. They did not fail.
pub(super) const AT_DEADLINE: &str = "aborted due to deadline";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Oha {
    summary: Summary,
    latency_percentiles: BTreeMap<String, Loose>,
    #[serde(default)]
    latency_percentiles_successful: Option<BTreeMap<String, Loose>>,
    status_code_distribution: BTreeMap<String, u64>,
    #[serde(default)]
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    total: Loose,
    #[serde(default)]
    slowest: Loose,
    #[serde(default)]
    fastest: Loose,
    #[serde(default)]
    average: Loose,
    #[serde(default)]
    requests_per_sec: Loose,
    #[serde(default)]
    total_data: Loose,
}

impl Oha {
    fn report(self) -> Report {
        let Self { summary, status_code_distribution: statuses, mut error_distribution, .. } = self;
        error_distribution.remove(AT_DEADLINE);
        let errors = sum(error_distribution.values());
        let percentiles = |found: &BTreeMap<String, Loose>| {
            let one = |(name, value): (&String, &Loose)| Some((name.strip_prefix('p')?.parse().ok()?, value.time(1e3)));
            found.iter().filter_map(one).collect::<Vec<(f64, Option<Time>)>>()
        };
        let base = Latencies { of: Population::Responses, definition: Definition::Rank, ..Latencies::default() };
        let ok = self.latency_percentiles_successful.as_ref().map(percentiles).unwrap_or_default();
        Report {
            duration: summary.total.time(1e3),
            requests: Some(sum(statuses.values()).saturating_add(errors)),
            failed: Some(errors.saturating_add(bad_statuses(&statuses))),
            failures: error_distribution,
            statuses,
            rate_per_s: summary.requests_per_sec.0,
            received_bytes: summary.total_data.count(),
            latency: Latencies {
                min: summary.fastest.time(1e3),
                mean: summary.average.time(1e3),
                max: summary.slowest.time(1e3),
                ..base.clone()
            }
            .with_percentiles(percentiles(&self.latency_percentiles)),
            ok_latency: Latencies { of: Population::Successful, ..base }.with_percentiles(ok),
            ..Report::default()
        }
    }
}
