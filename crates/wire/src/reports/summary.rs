//! The end-of-test summary of k6 in each of its shapes, and what a page shows of other tools.
//!
//! - [`crate::reports::read::parse`] recognizes the format by its structure and rejects everything that the tool can't
//!   have written;
//! - [`Summary`] holds all values of k6 under the names of `handleSummary`, whatever the shape, and those of other
//!   tools under neutral names;
//! - [`Summary::figures`] returns the values by which runs are compared;
//! - [`Summary::missing`] lists the values it lacks.
//!
//! The other files of [`crate::reports`] about k6: `json` reads JSON; `handle_summary`, `export` and
//! `machine_readable` read one shape each; `metrics` and `groups` read metrics and the tree of checks; `names` and
//! `values` validate; `builtin` lists k6's built-in metrics; `validate` describes errors.

use std::collections::BTreeMap;

use serde::Serialize;

use super::builtin;
pub use crate::reports::figures::{Between, Connections, FailedCheck, Figures, Latency, Resolution};
pub use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

/// The report of k6 at the end of a test, or the values of another tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Its shape.
    pub shape: Shape,
    /// k6's version, e.g. `1.8.1`; only in the machine-readable shape.
    pub k6_version: Option<String>,
    /// Duration of the test; missing in `--summary-export`.
    pub duration_ms: Option<f64>,
    /// By name; sub-metrics include their tags: `http_req_duration{phase:open}`.
    pub metrics: BTreeMap<String, Metric>,
    /// Checks outside of groups, and the groups.
    pub root: Group,
    /// Times with a negative statistic, mostly the minimum, which k6 measures on some clocks; it is removed.
    pub negative_minima: Vec<String>,
    /// The main metrics of another tool, whose names mean nothing to k6.
    #[serde(skip)]
    pub stated: Option<Box<Figures>>,
    /// How far its rounded values may be from those that were measured.
    #[serde(skip)]
    pub resolution: Resolution,
    /// Warnings of the reader of the file.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
}

impl Summary {
    pub(super) fn remove_negative_times(&mut self) {
        for (name, metric) in &mut self.metrics {
            let is_time = metric.kind == Kind::Trend && builtin::lookup(name).is_some();
            if is_time && metric.values.values().any(|value| *value < 0.0) {
                metric.values.retain(|_, value| *value >= 0.0);
                self.negative_minima.push(name.clone());
            }
        }
    }

    /// k6 evaluates no threshold of a metric without samples, and reports it as not crossed.
    pub(super) fn forget_unevaluated_thresholds(&mut self) {
        for metric in self.metrics.values_mut().filter(|metric| metric.is_empty()) {
            metric.thresholds.iter_mut().for_each(|threshold| threshold.passed = None);
        }
    }
}

/// The shapes of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// The argument of a script's `handleSummary(data)`.
    HandleSummary,
    /// `--summary-export`.
    SummaryExport,
    /// Either of these with `--new-machine-readable-summary`. It has no groups and no thresholds, and only the 90th and
    /// 95th percentile.
    MachineReadable,
    /// k6's text output. It rounds: times to two decimals of their unit, bytes to two or three digits.
    TextReport,
    /// Another format of the table `FORMATS`. It has no iterations and no checks; a connection corresponds to a virtual
    /// user.
    Other(OtherTool),
}

/// A tool besides k6, and its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OtherTool {
    /// Name of the format.
    pub format: &'static str,
    /// What a page calls a file of it.
    pub title: &'static str,
    /// The tool.
    pub tool: &'static str,
    /// Whether its values are rounded for display.
    pub is_rounded: bool,
}

impl Shape {
    /// Returns the load generator that writes this shape.
    pub fn engine(self) -> &'static str {
        match self {
            Self::Other(other) => other.tool,
            _ => "k6",
        }
    }

    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HandleSummary => "k6's handleSummary data",
            Self::SummaryExport => "k6's --summary-export",
            Self::MachineReadable => "k6's machine-readable summary",
            Self::TextReport => "k6's text report",
            Self::Other(other) => other.title,
        }
    }

    /// Whether its values are rounded.
    pub fn is_text(self) -> bool {
        match self {
            Self::Other(other) => other.is_rounded,
            shape => shape == Self::TextReport,
        }
    }
}

/// A metric or sub-metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// How it aggregates its samples.
    pub kind: Kind,
    /// The unit of its samples.
    pub contains: Contains,
    /// By the names of `handleSummary`: `count`, `rate`, `passes`, `fails`, `value`, `avg`, `min`, `med`, `max`,
    /// `p(99.9)`. Times are in milliseconds, a counter's rate is per second. Statistics that k6 did not compute are
    /// absent.
    pub values: BTreeMap<String, f64>,
    /// In file order; none in the machine-readable shape.
    pub thresholds: Vec<Threshold>,
}

impl Metric {
    /// Whether it has no samples, for which k6 writes zeros. A gauge does not show how often it was set.
    pub fn is_empty(&self) -> bool {
        let is_zero = |name| self.values.get(name) == Some(&0.0);
        match self.kind {
            Kind::Rate => is_zero("passes") && is_zero("fails"),
            Kind::Counter => is_zero("count"),
            Kind::Trend if self.values.contains_key("count") => is_zero("count"),
            Kind::Trend => self.values.values().all(|value| *value == 0.0),
            Kind::Gauge => false,
        }
    }
}

/// k6's types of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A sum: `count`, `rate`.
    Counter,
    /// The last value: `value`, `min`, `max`.
    Gauge,
    /// The share of true values: `passes`, `fails`, `rate`.
    Rate,
    /// A distribution: the configured statistics.
    Trend,
}

/// The unit of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contains {
    /// Plain numbers.
    Default,
    /// Milliseconds.
    Time,
    /// Bytes.
    Data,
    /// Unknown: a custom metric in `--summary-export`.
    Unknown,
}

/// A pass/fail condition of the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Threshold {
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether it passed; `None` if its metric has no samples.
    pub passed: Option<bool>,
}

/// A named group of the script; the root has an empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Any text, including HTML.
    pub name: String,
    /// The names from the root, each after `::`.
    pub path: String,
    /// Nested groups.
    pub groups: Vec<Group>,
    /// Checks of this group, without nested groups.
    pub checks: Vec<Check>,
}

/// A check of the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Any text, including HTML.
    pub name: String,
    /// The names from the root, each after `::`. The machine-readable shape omits groups.
    pub path: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it failed.
    pub fails: u64,
}
