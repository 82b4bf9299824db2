//! The result of Microsoft's crank as JSON. Latencies are milliseconds.
//!
//! crank runs another load generator, whose measurements have names such as `http/rps/mean` or, in older versions,
//! `wrk/rps/mean`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::Loose;
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::validate::{Fault, Place};

pub(super) const FORMAT: Format = Format {
    name: "crank",
    title: "crank's result as JSON",
    tool: "crank",
    limits: "Only the job \"load\" is read. It lacks the duration and the connections.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| document.has_in("jobResults", &["jobs"]).into(),
        read: |document| document.read::<Crank>().and_then(Crank::report),
    },
};

/// Prefixes of measurements, and milliseconds of their unit of time.
const PREFIXES: [(&str, f64); 4] = [("http", 1.0), ("wrk", 1.0), ("wrk2", 1.0), ("bombardier", 1e-3)];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Crank {
    job_results: JobResults,
}

#[derive(Deserialize)]
struct JobResults {
    jobs: BTreeMap<String, Job>,
    #[serde(default)]
    properties: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Job {
    #[serde(default)]
    results: BTreeMap<String, Loose>,
}

impl Crank {
    fn report(self) -> Result<Vec<Report>, Fault> {
        let JobResults { jobs, properties } = self.job_results;
        let missing = || Place::root("jobResults.jobs.load.results").fault("has no HTTP requests");
        let results = &jobs.get("load").ok_or_else(missing)?.results;
        let has = |(prefix, _): &(&str, f64)| results.contains_key(&format!("{prefix}/requests"));
        let (prefix, unit_ms) = PREFIXES.into_iter().find(has).ok_or_else(missing)?;
        let get = |name: &str| results.get(&format!("{prefix}/{name}")).copied().unwrap_or_default();
        let count = |name: &str| get(name).count();
        let start = format!("{prefix}/latency/");
        let percentiles = results.iter().filter_map(|(name, value)| {
            let percent = name.strip_prefix(&start)?.parse().ok()?;
            Some((percent, value.time(unit_ms)))
        });
        let ends = Latencies {
            mean: get("latency/mean").time(unit_ms),
            max: get("latency/max").time(unit_ms),
            of: Population::Responses,
            definition: Definition::Unknown,
            ..Latencies::default()
        };
        let failures = [
            ("status", count("requests/badresponses").or(count("badresponses"))),
            ("errors", count("requests/errors").or(count("errors/socketerrors"))),
        ];
        let failures: BTreeMap<String, u64> =
            failures.into_iter().filter_map(|(name, found)| Some((name.to_owned(), found?))).collect();
        // Measurements of the target beside it: CPU, memory, start.
        let others = jobs.get("application").map(|job| &job.results).into_iter().flatten();
        let others = others.filter_map(|(name, value)| Some((name.clone(), value.0?)));
        Ok(vec![Report {
            name: properties.get("scenario").and_then(|name| name.as_str()).map(str::to_owned),
            requests: count("requests"),
            failed: (!failures.is_empty()).then(|| super::fields::sum(failures.values())),
            failures,
            rate_per_s: get("rps/mean").0,
            others: others.take(100).collect(),
            latency: ends.with_percentiles(percentiles),
            ..Report::default()
        }])
    }
}
