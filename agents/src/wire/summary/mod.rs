//! k6's end-of-test summary in each of its shapes, and what is printed for people, read into one.
//!
//! - [`parse`] tells the shapes apart by their structure and refuses whatever their tool can't have written;
//! - [`Summary`] holds everything in it, under the names of `handleSummary`, whatever shape it came in;
//! - [`Summary::figures`] takes from it what runs are compared by.
//!
//! - [`Summary::lacks`] says what it does not have.
//!
//! Inside: `json` reads JSON, `handle`, `export` and `machine` know one shape each, `text` knows k6's report and wrk's
//! output, `groups` the tree of checks, `names` and `values` judge, `builtin` knows the metrics that k6 itself emits,
//! `fault` words what is wrong.

mod builtin;
mod export;
mod fault;
mod figures;
mod groups;
mod handle;
mod json;
mod lacks;
mod machine;
mod names;
mod text;
mod values;

use std::collections::BTreeMap;

use serde::Serialize;

pub use fault::Fault;
pub use figures::{Between, Figures, Latency};

use fault::Place;
use json::Node;

use crate::encoding::without_mark;

/// More metrics than this are refused: no script has them, and pages could not show them.
const METRICS_MAX: usize = 5_000;

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

/// Reads a summary, whichever shape it has. The caller has looked at its size.
///
/// Fails with the first fault found; a summary that is read has HTTP requests in it and a time in which they were made,
/// and none of its figures contradicts what k6 can measure.
pub fn parse(bytes: &[u8]) -> Result<Summary, Fault> {
    let bytes = without_mark(bytes).map_err(|fault| Place::root("the document").fault(fault))?;
    let summary = if is_json(bytes) { read_json(bytes)? } else { text::read(bytes)? };
    values::judge(&summary)?;
    Ok(summary)
}

/// Whether it is read as JSON, and not as what is printed for people, which never begins like JSON.
pub fn is_json(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let word = [&b"null"[..], b"true", b"false"].into_iter().any(|word| start.starts_with(word));
    word || start.first().is_none_or(|first| b"{[\"-0123456789".contains(first))
}

fn read_json(bytes: &[u8]) -> Result<Summary, Fault> {
    let document = json::read(bytes)?;
    match (document.get("results"), document.get("metrics")) {
        (Some(results), _) if matches!(results.get("metrics"), Some(Node::List(_))) => {
            machine::read(&document, results)
        }
        (_, Some(metrics)) => {
            let entries = metrics.entries(&Place::root("metrics"))?;
            if handle::recognises(entries) {
                handle::read(&document, entries)
            } else {
                export::read(&document, entries)
            }
        }
        _ => Err(foreign(&document)),
    }
}

fn foreign(document: &Node<'_>) -> Fault {
    let what = document.what();
    Place::root("the document").fault(format_args!(
        "is {what}, but not k6's: expected an object with \"metrics\" (handleSummary, --summary-export) or with a list \
         \"results.metrics\" (--new-machine-readable-summary)"
    ))
}

/// Reads the metrics of a shape that has them in an object.
fn read_metrics<'de>(
    entries: &[(std::borrow::Cow<'de, str>, Node<'de>)],
    read: fn(&str, &Node<'de>, &Place<'_>) -> Result<Metric, Fault>,
) -> Result<BTreeMap<String, Metric>, Fault> {
    let metrics = Place::root("metrics");
    not_too_many(entries.len(), &metrics)?;
    let one = |(name, node): &(std::borrow::Cow<'de, str>, Node<'de>)| {
        let place = metrics.key(name);
        names::metric(name, &place)?;
        Ok((name.to_string(), read(name, node, &place)?))
    };
    entries.iter().map(one).collect()
}

fn not_too_many(count: usize, place: &Place<'_>) -> Result<(), Fault> {
    if count > METRICS_MAX {
        return Err(place.fault(format_args!("has {count} metrics, more than the {METRICS_MAX} that are read")));
    }
    Ok(())
}
