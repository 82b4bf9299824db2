//! k6's end-of-test summary in each of its shapes, and what is printed for people, read into one.
//!
//! - [`crate::reports::read::parse`] tells the shapes apart by their structure and refuses whatever their tool can't have
//!   written;
//! - [`Summary`] holds everything in it, under the names of `handleSummary`, whatever shape it came in;
//! - [`Summary::figures`] takes from it what runs are compared by;
//! - [`Summary::lacks`] says what it does not have.
//!
//! The other files of [`crate::reports`]: `json` reads JSON; `handle_summary`, `export` and `machine_readable` know one
//! shape each; `text` knows k6's report and wrk's output; `metrics` and `groups` read metrics and the tree of checks;
//! `names` and `values` check what was read; `builtin` knows the metrics that k6 itself emits; `validate` words what is
//! wrong.

use std::collections::BTreeMap;

use serde::Serialize;

pub use crate::reports::figures::{Between, Figures, Latency};
pub use crate::reports::validate::Fault;

/// Everything that k6 (or wrk) said at the end of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The form it was written in.
    pub shape: Shape,
    /// Only the machine-readable shape says it, e.g. `1.8.1`.
    pub k6_version: Option<String>,
    /// How long the test ran, where the summary says so; `--summary-export` doesn't.
    pub duration_ms: Option<f64>,
    /// By name; sub-metrics carry their tags in it: `http_req_duration{phase:open}`.
    pub metrics: BTreeMap<String, Metric>,
    /// The checks outside any group, and the groups.
    pub root: Group,
}

/// The forms in which k6 writes a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// What a script's `handleSummary(data)` gets.
    HandleSummary,
    /// `--summary-export` as it always was.
    SummaryExport,
    /// Either of these under `--new-machine-readable-summary`. It knows neither groups nor
    /// thresholds, and of percentiles only the 90th and 95th.
    MachineReadable,
    /// What k6 prints for people. It rounds: times to two decimals of their unit, bytes to two or three digits.
    TextReport,
    /// What wrk prints. It knows neither iterations nor checks; a connection stands for a virtual user.
    Wrk,
}

impl Shape {
    /// The load generator that makes such reports.
    pub fn engine(self) -> &'static str {
        match self {
            Self::HandleSummary | Self::SummaryExport | Self::MachineReadable | Self::TextReport => "k6",
            Self::Wrk => "wrk",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HandleSummary => "k6's handleSummary data",
            Self::SummaryExport => "k6's --summary-export",
            Self::MachineReadable => "k6's machine-readable summary",
            Self::TextReport => "k6's text report",
            Self::Wrk => "wrk's output",
        }
    }

    /// Whether it was printed for people, with figures that were rounded.
    pub fn is_text(self) -> bool {
        matches!(self, Self::TextReport | Self::Wrk)
    }
}

/// One metric, or the part of one that carries certain tags.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// What it does with its samples.
    pub kind: Kind,
    /// What its samples are.
    pub contains: Contains,
    /// By `handleSummary`'s names: `count`, `rate`, `passes`, `fails`, `value`, `avg`, `min`, `med`, `max`, `p(99.9)`.
    /// Times are milliseconds, a counter's rate is per second. What k6 was not asked to compute is absent.
    pub values: BTreeMap<String, f64>,
    /// In the order of the file; the machine-readable shape has none.
    pub thresholds: Vec<Threshold>,
}

/// k6's types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A sum: `count`, `rate`.
    Counter,
    /// The last value: `value`, `min`, `max`.
    Gauge,
    /// How often something was true: `passes`, `fails`, `rate`.
    Rate,
    /// A distribution: whichever statistics were asked for.
    Trend,
}

/// What the samples of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contains {
    /// Plain numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
    /// The summary doesn't say: a script's own metric in `--summary-export`.
    Unknown,
}

/// A condition that the script set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threshold {
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether it held.
    pub passed: bool,
}

/// A part of the script that it gave a name; the root has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// As in the script: any text, HTML included.
    pub name: String,
    /// The names from the root down, each behind `::`.
    pub path: String,
    /// The groups in it.
    pub groups: Vec<Group>,
    /// The checks in it, those of its groups left out.
    pub checks: Vec<Check>,
}

/// Something that the script looked at again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// As in the script: any text, HTML included.
    pub name: String,
    /// The names from the root down, each behind `::`. The machine-readable shape leaves the groups out.
    pub path: String,
    /// How often it was true.
    pub passes: u64,
    /// How often it was not.
    pub fails: u64,
}
