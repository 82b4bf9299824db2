//! Measured figures as rows of a table, each with a unit and an optional goal.

use std::{fmt, io::Write, path::Path};

use serde::Serialize;
use serde_json::json;

/// A figure that was measured once or several times.
#[derive(Debug, Serialize)]
pub struct Figure {
    what: String,
    unit: &'static str,
    goal: Option<Goal>,
    median: f64,
    least: f64,
    greatest: f64,
}

/// The goal of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Creates a figure that was measured once.
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self { what: what.into(), unit, goal: None, median: value, least: value, greatest: value }
    }

    /// Creates a figure that was measured several times; NaN without values.
    pub fn from_values(what: impl Into<String>, unit: &'static str, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        let median = f64::midpoint(at(last / 2), at(sorted.len() / 2));
        Self { what: what.into(), unit, goal: None, median, least: at(0), greatest: at(last) }
    }

    /// Sets an upper goal.
    pub fn at_most(self, goal: f64) -> Self {
        Self { goal: Some(Goal::AtMost(goal)), ..self }
    }

    /// Sets a lower goal.
    pub fn at_least(self, goal: f64) -> Self {
        Self { goal: Some(Goal::AtLeast(goal)), ..self }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(formatter, "≤ {most}"),
            Self::AtLeast(least) => write!(formatter, "≥ {least}"),
        }
    }
}

/// Formats a row of a Markdown table.
impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self { what, unit, goal, median, least, greatest } = self;
        let goal = goal.map_or_else(|| "–".to_owned(), |goal| goal.to_string());
        write!(formatter, "| {what} | {unit} | {goal} | {} |", short(*median))?;
        if least.total_cmp(greatest).is_eq() {
            formatter.write_str(" – |")
        } else {
            write!(formatter, " {} … {} |", short(*least), short(*greatest))
        }
    }
}

/// Formats with three significant digits, or all digits before the decimal point.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Prints a table.
pub fn print(title: &str, figures: &[Figure]) {
    println!("\n| {title} | unit | goal | median | least … greatest |\n|---|---|---|---|---|");
    for figure in figures {
        println!("{figure}");
    }
}

/// Returns the reported quantiles of response times.
pub fn p50_p99(what: &str, times_ms: &[f64], p99_goal: Option<f64>) -> [Figure; 2] {
    let [p50, p99] = quantiles(times_ms);
    let p99 = Figure::new(format!("{what}: p99"), "ms", p99);
    [Figure::new(format!("{what}: p50"), "ms", p50), p99_goal.into_iter().fold(p99, Figure::at_most)]
}

/// Returns the 50th and 99th percentile; NaN without values.
pub fn quantiles(times: &[f64]) -> [f64; 2] {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    [times.len() / 2, times.len() * 99 / 100].map(|place| times.get(place).copied().unwrap_or(f64::NAN))
}

/// Writes all figures as JSON.
pub fn write(file: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    Ok(std::fs::write(file, serde_json::to_string_pretty(figures)? + "\n")?)
}

/// Appends the medians as one line, to compare releases.
pub fn record(file: &Path, figures: &[Figure]) -> anyhow::Result<()> {
    let medians: serde_json::Map<String, serde_json::Value> =
        figures.iter().map(|Figure { what, unit, median, .. }| (format!("{what} [{unit}]"), json!(median))).collect();
    let cores = std::thread::available_parallelism()?;
    let line = json!({"version": env!("CARGO_PKG_VERSION"), "at_ms": brewbench_wire::now_ms(), "cores": cores, "figures": medians});
    let mut file = std::fs::File::options().create(true).append(true).open(file)?;
    Ok(writeln!(file, "{line}")?)
}
