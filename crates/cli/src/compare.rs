//! `brewbench compare`

use std::{fmt::Write, process::ExitCode};

use brewbench::{
    app::ids::joined,
    compare::{
        cell::Cell, metric::Metric, proposal::Proposal, script_metrics::ScriptMetrics, selection::By, stat::Stat,
        trust::Trust, view::Comparison,
    },
    metrics,
};
use brewbench_io::client::Client;
use clap::{Args, builder::PossibleValuesParser, error::ErrorKind};
use reqwest::Method;

use super::{
    gate::{Gate, Unusable, exit_code},
    table::{at_spaces, cut_middle, figure, plain, short_id, table},
};
use crate::{
    common::Common,
    connection::Connection,
    run::which::{experiment_id, full_id},
};

/// Compare runs; with --candidate, pass or fail a candidate for CI.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Compare {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: RunSelection,
    /// Target to compare the others with [default: each with each other, relative to the first by name]. With
    /// --candidate: a named baseline, an experiment, or run ids separated by commas
    #[arg(long)]
    baseline: Option<String>,
    #[command(flatten)]
    how: CompareFlags,
    /// Show the script's own metrics instead: custom ones, and those of protocols besides HTTP
    #[arg(long, conflicts_with = "candidate")]
    script_metrics: bool,
    #[command(flatten)]
    gate: Gate,
}

const EXIT_CODES: &str = "\
Exit codes with --candidate:
  0   passed: every confidence interval lies within its rule's limit
  1   regression: a difference significantly beyond a rule's limit
  2   cannot say: wide intervals, too few repetitions, excluded runs,
      confounders, or no response
  64  invalid command line, or an unknown run, experiment, baseline or target";

impl Compare {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { common, which, baseline, how, script_metrics, gate } = self;
        if let (Some(candidate), Some(baseline)) = (&gate.candidate, &baseline) {
            return Ok(gate.run(&common, baseline, candidate, how.primary.as_deref()).await);
        }
        if !gate.rules.fail_on.is_empty() {
            let missing = Unusable("--fail-on needs --baseline and --candidate".to_owned());
            return Ok(exit_code(Err(missing.into())));
        }
        let connection = common.connect()?;
        let query = which.query(&connection, baseline, how).await?;
        if script_metrics {
            let request = connection.client.request(Method::GET, "api/v1/compare/metrics").query(&query);
            let metrics: ScriptMetrics = connection.client.json(request).await?;
            common.print(&metrics, metrics_text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let comparison = fetch(&connection.client, &query).await?;
        common.print(&comparison, text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The query parameters of a comparison.
pub type Query = Vec<(&'static str, String)>;

/// Flags that select the runs of a comparison.
#[derive(Debug, Args)]
pub struct RunSelection {
    /// Run ids, or their last characters
    ids: Vec<String>,
    /// Add the runs of this experiment, `last` for the newest; repeatable
    #[arg(long, value_name = "ID")]
    experiment: Vec<String>,
    /// Add the runs of this baseline; repeatable
    #[arg(long, value_name = "NAME")]
    runs_of: Vec<String>,
}

/// Flags that select how runs are compared.
#[derive(Debug, Args)]
pub struct CompareFlags {
    /// Minimum effect: the smallest difference that matters, percent by metric [default: 1; failures: 0.1 points]
    #[arg(long, alias = "least", value_name = "rps:2,p99_ms:5")]
    min_effect: Option<String>,
    /// Primary metric, tested first [default: throughput; p99 if the load is a rate; CPU time for duets beside other
    /// programs]
    #[arg(long, value_parser = PossibleValuesParser::new(metrics::judged().map(Metric::key)))]
    primary: Option<String>,
    /// Compare by [default: target and version]
    #[arg(long, value_parser = By::ALL.map(By::key))]
    by: Option<String>,
    /// Compare runs even if more than the target differs
    #[arg(long, alias = "confounders")]
    allow_confounders: bool,
}

impl RunSelection {
    /// Returns the query of their comparison, with full run ids.
    pub async fn query(
        &self,
        connection: &Connection,
        baseline: Option<String>,
        how: CompareFlags,
    ) -> anyhow::Result<Query> {
        let Self { ids, experiment, runs_of } = self;
        if [ids, experiment, runs_of].into_iter().all(Vec::is_empty) {
            let message = "no runs given; set run ids, --experiment or --runs-of";
            let mut command = Self::augment_args(clap::Command::new("brewbench compare"));
            command.error(ErrorKind::MissingRequiredArgument, message).exit();
        }
        let mut full = Vec::new();
        for id in ids {
            full.push(full_id(connection, id).await?);
        }
        let mut query: Query = Vec::new();
        query.extend((!full.is_empty()).then(|| ("runs", joined(&full))));
        for id in experiment {
            query.push(("experiments", experiment_id(connection, id).await?.to_string()));
        }
        query.extend(runs_of.iter().map(|name| ("baselines", name.clone())));
        query.extend(baseline.map(|baseline| ("baseline", baseline)));
        let CompareFlags { min_effect, primary, by, allow_confounders } = how;
        query.extend(min_effect.map(|min_effect| ("min_effect", min_effect)));
        query.extend(primary.map(|primary| ("primary", primary)));
        query.extend(by.map(|by| ("by", by)));
        query.extend(allow_confounders.then(|| ("allow_confounders", "true".to_owned())));
        Ok(query)
    }
}

/// Fetches a comparison from the server.
pub async fn fetch(client: &Client, query: &[(&str, String)]) -> anyhow::Result<Comparison> {
    Ok(client.json(client.request(Method::GET, "api/v1/compare").query(query)).await?)
}

/// Formats the comparison: headline, notes, table.
pub fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n{}\n\n", wrapped(&plain(&comparison.title)), wrapped(&plain(&comparison.shared)));
    for headline in &comparison.answer.headlines {
        let _ = writeln!(text, "{}", wrapped(&plain(&format!("{}.", headline.line()))));
        if !headline.details.is_empty() {
            let _ = writeln!(text, "  {}", wrapped(&plain(&headline.details)));
        }
    }
    let Trust { level, text: why, .. } = &comparison.answer.trust;
    let _ = writeln!(text, "{}", wrapped(&plain(&format!("{}: {why}", level.title()))));
    if let Some(Proposal { experiment, repetitions, text: what }) = &comparison.answer.more {
        let _ = writeln!(text, "{}", wrapped(&plain(what)));
        let _ = writeln!(text, "  brewbench experiment add {experiment} --repeat {repetitions}");
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "{}", wrapped(&format!("! {} {}", plain(&note.title), plain(&note.text))));
        if let Some([run, with]) = &note.environments {
            let [run, with] = [run, with].map(|id| plain(&short_id(id.as_str())));
            let _ = writeln!(text, "  details: brewbench run environment {run} {with}");
        }
    }
    if comparison.with_confounders.is_some() {
        let _ = writeln!(text, "! Not comparable: more than the target differs.");
        let _ = writeln!(text, "  `brewbench compare --allow-confounders` compares anyway.");
    }
    if comparison.rows.iter().any(|row| !row.has_equal_work()) {
        let _ = writeln!(text, "! Not comparable: the work differs.");
        let _ = writeln!(text, "  `brewbench difference accept` accepts a known difference.");
    }
    text + "\n" + &figures(comparison)
}

/// Formats the script's own metrics as a table for each setting.
fn metrics_text(metrics: &ScriptMetrics) -> String {
    if metrics.is_empty() {
        return "The runs have no metrics of the script.\n".to_owned();
    }
    let mut text = String::new();
    for row in metrics.rows.iter().filter(|row| !row.metrics.is_empty()) {
        let _ = writeln!(text, "{}", wrapped(&plain(&row.setting)));
        let cells = row.metrics.iter().flat_map(|metric| metric.cells.iter().map(move |cell| (metric, cell)));
        let head = ["metric", "statistic", "target", ">median", ">runs", "difference"];
        text.push_str(&table(&head, cells, |(metric, cell)| {
            let unit = if metric.unit == "ms" { " ms" } else { "" };
            vec![
                cut_middle(&plain(&metric.name), MAX_METRIC),
                metric.statistic.clone(),
                cut_middle(&plain(&cell.label), MAX_METRIC),
                format!("{}{unit}", metric.text(&cell.median)),
                cell.runs.to_string(),
                cell.difference().unwrap_or_default(),
            ]
        }));
        let _ = writeln!(text, "Intervals: {} each, 95 % together.", row.level_text());
    }
    text
}

/// Letters of the name of a metric or target in a table.
const MAX_METRIC: usize = 18;

/// Wraps text to the terminal's width, or to 80 columns without a terminal.
fn wrapped(text: &str) -> String {
    textwrap::fill(text, at_spaces(textwrap::termwidth()).subsequent_indent("  "))
}

/// Title, metric and scale of each column.
const COLUMNS: [(&str, Metric, f64); 7] = [
    ("req/s", Metric::Rps, 1.0),
    ("p50 ms", Metric::P50Ms, 1.0),
    ("p95 ms", Metric::P95Ms, 1.0),
    ("p99 ms", Metric::P99Ms, 1.0),
    ("failed %", Metric::ErrorRate, 100.0),
    ("CPU ms", Metric::CpuMs, 1.0),
    ("MiB", Metric::Memory, 1.0 / 1_048_576.0),
];

/// Formats the figures as a table, with each setting on a line of its own above its cells.
fn figures(comparison: &Comparison) -> String {
    let titles = COLUMNS.map(|(title, ..)| format!(">{title}"));
    let head: Vec<_> = ["target", ">runs"].into_iter().chain(titles.iter().map(String::as_str)).collect();
    let rows: Vec<_> =
        comparison.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| cells(comparison, cell))).collect();
    let all = table(&head, rows, |row| row);
    let (first, rest) = all.split_once('\n').unwrap_or_default();
    let mut lines = rest.lines();
    let mut text = format!("{first}\n");
    for row in &comparison.rows {
        if comparison.rows.len() > 1 {
            let _ = writeln!(text, "{}", wrapped(&plain(&row.setting.label)));
        }
        for line in lines.by_ref().take(row.cells.len()) {
            let _ = writeln!(text, "{line}");
        }
    }
    let any_suspect = comparison.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.counts.suspect > 0);
    let hint = if any_suspect { "? some of these runs are suspect\n" } else { "" };
    let others = if comparison.rows.len() > 1 { " of its group" } else { "" };
    text + "* better than all others" + others + "\n" + hint
}

fn cells(comparison: &Comparison, cell: &Cell) -> Vec<String> {
    let name = comparison.subjects.get(cell.subject).map_or("", |subject| &subject.label);
    let counted = cell.counts.valid + cell.counts.suspect;
    let mark = if cell.counts.suspect > 0 { "?" } else { "" };
    let total = if counted == cell.runs.len() { String::new() } else { format!("/{}", cell.runs.len()) };
    let runs = format!("{counted}{total}{mark}");
    let mut line = vec![cut_middle(name, 18), runs];
    let find = |metric: Metric| cell.stats.iter().find(|stat| stat.metric == metric);
    line.extend(COLUMNS.map(|(_, metric, scale)| find(metric).map_or_else(String::new, |found| stat(found, scale))));
    line
}

fn stat(stat: &Stat, scale: f64) -> String {
    let value = figure(stat.value.map(|value| value * scale));
    if stat.best { format!("{value}*") } else { value }
}
