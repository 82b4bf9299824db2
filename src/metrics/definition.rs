//! The definition of a metric: its unit, direction and role. Pure.

pub use brewbench_statistics::Better;

use crate::metrics::{Figures, Metric};

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    RequestsPerS,
    /// Milliseconds.
    Ms,
    /// Seconds.
    Seconds,
    /// A share, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// A count.
    Count,
    /// A count divided by the requests.
    PerRequest,
}

/// How comparisons use a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Only lists and exports show it.
    Listed,
    /// Comparisons show it.
    Compared,
    /// Comparisons test it. The other metrics follow from the same requests: testing them, too, would only cost power.
    Judged,
}

/// The definition of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricDef {
    /// The metric.
    pub metric: Metric,
    /// Its name in JSON, URLs and commands.
    pub key: &'static str,
    /// Its name in `sort` and `columns` of a list; none if lists do not have it.
    pub list_key: Option<&'static str>,
    /// The column header, with the unit where the cells have none.
    pub head: &'static str,
    /// The short name on axes and in sentences.
    pub name: &'static str,
    /// The title of a chart or a table.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The direction in which it improves; none if neither direction is better.
    pub better: Option<Better>,
    /// Whether it is a latency of requests.
    pub is_latency: bool,
    /// Whether it is recorded by the agent and not part of the summary.
    pub is_recorded: bool,
    /// How comparisons use it.
    pub role: Role,
    /// Minimum requests of a run for a percentile to be judged: ten beyond the percentile, 10/(1 − p). None for others.
    pub min_requests: Option<u64>,
    /// The SQL expression over the table `run`: a generated column if an index sorts by it.
    pub sql: &'static str,
    /// The index that sorts a list by it; without one, sorting reads all runs.
    pub index: Option<&'static str>,
    /// Returns the figure of a run.
    pub get: fn(&Figures) -> Option<f64>,
}
