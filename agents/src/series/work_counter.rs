//! Counts k6's requests by status and protocol, and the connections they opened.
//!
//! k6 records `http_req_connecting` for every request, exactly 0 on a reused connection. In its native histogram these
//! are the observations in the zero bucket, so all others opened a connection.

use std::collections::{BTreeMap, HashMap};

use brewbench_wire::histogram::Histogram;
use brewbench_wire::load_record::Messages;
use brewbench_wire::work_done::WorkDone;

use super::messages::TimeSeries;

/// Maximum sets of tags, counted per metric; the rest is dropped. A histogram takes about a kilobyte, so this bounds
/// memory to a few megabytes.
pub const MAX_KNOWN: usize = 4000;

/// k6's status of a request without a response. It has no protocol.
const NO_RESPONSE: &str = "0";

/// Counts the series of one k6 process.
#[derive(Debug, Default)]
pub struct WorkCounter {
    statuses: Tally,
    protocols: Tally,
    /// GET requests by their path, as the script names them.
    paths: Tally,
    /// Unexpected responses, by status and request.
    failures: BTreeMap<String, u64>,
    /// Connections opened so far, by the hash of a series.
    opened: HashMap<u64, u64>,
    /// There were more series than the limit.
    overflowed: bool,
}

/// Requests by the values of a tag.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: BTreeMap<String, u64>,
    /// Some requests lack the tag: a script can choose its tags.
    incomplete: bool,
}

impl Tally {
    fn add(&mut self, value: Option<&str>, count: u64) {
        match value {
            Some(value) => {
                let all = self.counts.entry(value.to_owned()).or_default();
                *all = all.saturating_add(count);
            }
            None => self.incomplete = true,
        }
    }

    fn finish(self) -> Option<BTreeMap<String, u64>> {
        Some(self.counts).filter(|counts| !self.incomplete && !counts.is_empty())
    }
}

/// Returns the name of a request, of a URL its path. Scripts name their requests; k6's own name is the URL.
fn name_of(series: &TimeSeries) -> Option<&str> {
    let name = series.label("name")?;
    let path = name.split_once("://").map(|(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    Some(path.unwrap_or(name))
}

/// Describes a failed request: `404 (GET /hash)`.
fn describe_failure(status: &str, series: &TimeSeries) -> String {
    let status = if status == NO_RESPONSE { "no response" } else { status };
    match (series.label("method"), name_of(series)) {
        (Some(method), Some(name)) => format!("{status} ({method} {name})"),
        (None, Some(name)) => format!("{status} ({name})"),
        (_, None) => status.to_owned(),
    }
}

impl WorkCounter {
    /// Counts requests of a latency series.
    pub fn requests(&mut self, series: &TimeSeries, count: u64) {
        if count == 0 {
            return;
        }
        let status = series.label("status");
        self.statuses.add(status, count);
        if status != Some(NO_RESPONSE) {
            self.protocols.add(series.label("proto"), count);
        }
        let is_get = series.label("method") == Some("GET");
        self.paths.add(name_of(series).filter(|name| is_get && name.starts_with('/')), count);
        if let Some(status) = status.filter(|_| series.label("expected_response") == Some("false")) {
            let all = self.failures.entry(describe_failure(status, series)).or_default();
            *all = all.saturating_add(count);
        }
    }

    /// Counts the connections opened by the requests of a series, from its cumulative histogram.
    pub fn connecting(&mut self, series: u64, all: &Histogram) {
        if self.opened.len() >= MAX_KNOWN && !self.opened.contains_key(&series) {
            self.overflowed = true;
            return;
        }
        self.opened.insert(series, all.total().saturating_sub(all.zero()));
    }

    /// Returns the requests by path, if all are GET requests whose names are paths.
    pub fn paths(&self) -> Option<BTreeMap<String, u64>> {
        self.paths.clone().finish()
    }

    /// Returns all counts, once k6 has ended.
    pub fn finish(self) -> WorkDone {
        let known = !self.overflowed && !self.opened.is_empty();
        WorkDone {
            statuses: self.statuses.finish(),
            protocols: self.protocols.finish(),
            failures: Some(Messages::from_counts(self.failures)).filter(|failures| failures.count > 0),
            new_connections: known.then(|| self.opened.values().fold(0, |sum: u64, count| sum.saturating_add(*count))),
        }
        .checked()
    }
}
