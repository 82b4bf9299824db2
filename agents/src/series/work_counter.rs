//! Counts what k6's requests were: their statuses, their protocols, and how many opened a connection.
//!
//! k6 gives every request a `http_req_connecting`, which is exactly 0 where the connection was there already. In its
//! native histogram these are the observations in the zero bucket, so all others opened one.

use std::collections::{BTreeMap, HashMap};

use super::collector::MAX_KNOWN;
use super::histogram::Histogram;
use super::messages::TimeSeries;
use crate::wire::work_done::WorkDone;

/// k6's status of a request that got no response. It has no protocol.
const NO_RESPONSE: &str = "0";

/// Takes the series of one k6.
#[derive(Debug, Default)]
pub struct WorkCounter {
    statuses: Tally,
    protocols: Tally,
    /// Connections opened so far, by the hash of a series.
    opened: HashMap<u64, u64>,
    /// There were more series than fit.
    overflowed: bool,
}

/// Requests by the values of a tag.
#[derive(Debug, Default)]
struct Tally {
    counts: BTreeMap<String, u64>,
    /// Some requests do not have the tag: their script chooses its tags itself.
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

impl WorkCounter {
    /// Counts requests that came with a series of latencies.
    pub fn requests(&mut self, series: &TimeSeries, count: u64) {
        if count == 0 {
            return;
        }
        let status = series.label("status");
        self.statuses.add(status, count);
        if status != Some(NO_RESPONSE) {
            self.protocols.add(series.label("proto"), count);
        }
    }

    /// Takes the times in which the requests of a series connected, all since the start of k6.
    pub fn connecting(&mut self, series: u64, all: &Histogram) {
        if self.opened.len() >= MAX_KNOWN && !self.opened.contains_key(&series) {
            self.overflowed = true;
            return;
        }
        self.opened.insert(series, all.total().saturating_sub(all.zero()));
    }

    /// All of it, once k6 has ended.
    pub fn finish(self) -> WorkDone {
        let known = !self.overflowed && !self.opened.is_empty();
        WorkDone {
            statuses: self.statuses.finish(),
            protocols: self.protocols.finish(),
            new_connections: known.then(|| self.opened.values().fold(0, |sum: u64, count| sum.saturating_add(*count))),
        }
        .checked()
    }
}
