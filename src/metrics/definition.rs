//! What a metric is: its unit, direction and role. Pure.

use crate::metrics::{Figures, Metric};

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    RequestsPerS,
    /// Milliseconds.
    Ms,
    /// Seconds.
    Seconds,
    /// 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// How many.
    Count,
}

/// How far comparisons use a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It is in lists and exports only.
    Listed,
    /// They show it.
    Compared,
    /// They judge it. The others follow from the same requests: judging them too would only make it harder to be sure of
    /// any.
    Judged,
}

/// The definition of a metric.
#[derive(Debug)]
pub struct MetricDef {
    /// Which.
    pub metric: Metric,
    /// What JSON, addresses and commands call it.
    pub key: &'static str,
    /// What `sort` and `columns` of a list call it; none if lists do not have it.
    pub list_key: Option<&'static str>,
    /// The head of a column, with the unit where the cells have none.
    pub head: &'static str,
    /// The short name on an axis and in a sentence.
    pub name: &'static str,
    /// The head of a chart or a table.
    pub title: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Which way is better; none where neither is.
    pub better: Option<Better>,
    /// Whether it is the latency of requests.
    pub is_latency: bool,
    /// Whether it comes from what an agent recorded beside the summary.
    pub is_recorded: bool,
    /// How far comparisons use it.
    pub role: Role,
    /// The fewest requests of a run for which it is judged: ten beyond the percentile, so 10/(1 − p). None for what is no
    /// percentile.
    pub min_requests: Option<u64>,
    /// SQL over the table `run`.
    pub sql: &'static str,
    /// The index by which a list is sorted; without one, sorting reads all runs.
    pub index: Option<&'static str>,
    /// The figure of a run.
    pub get: fn(&Figures) -> Option<f64>,
}
