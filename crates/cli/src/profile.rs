//! `brewbench profile …`

use std::{fmt::Write, fs, path::PathBuf};

use anyhow::{Context, bail};
use brewbench::{
    catalog::model::short_size,
    experiments::model::ExperimentWithRuns,
    profiles::{
        markdown,
        model::{Delta, FunctionChange, FunctionRow, Overhead, ProfileComparison, ProfileTable},
        words,
    },
    runs::model::Run,
    web::format,
};
use brewbench_wire::profile::ProfileKind;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::table::{cut, hanging, plain, table};
use crate::{common::Common, connection::encoded, run::which::experiment_id};

/// Characters of a function's name in a table.
const NAME: usize = 60;

/// Show which functions take the CPU time of targets, and compare them.
#[derive(Debug, Subcommand)]
pub enum Profile {
    /// Show the profile of a cell: the functions that take the most CPU time
    Show(Show),
    /// Compare the profiles of two cells: the functions whose CPU time per request differs
    Compare(Compare),
    /// Download the profile of a run as a pprof file, for `go tool pprof`, speedscope, Parca or Pyroscope
    Download(Download),
}

/// What is shown.
#[derive(Debug, Args)]
pub struct ProfileFlags {
    /// Kind of profile: cpu, heap or allocs
    #[arg(long, default_value = "cpu")]
    kind: ProfileKind,
    /// Number of functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

/// The profiled runs of an experiment.
#[derive(Debug, Args)]
pub struct ExperimentSelection {
    /// Id of an experiment, or `last`; targets are then given by name instead of by the ids of runs
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
    /// Name of a machine size, if the experiment has several
    #[arg(long, requires = "experiment")]
    size: Option<String>,
}

/// Shows a profile.
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    common: Common,
    /// A target of the experiment, or ids of profiled runs of one cell, separated by commas
    target: String,
    #[command(flatten)]
    of: ExperimentSelection,
    #[command(flatten)]
    shown: ProfileFlags,
}

/// Compares two profiles.
#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    common: Common,
    /// The baseline: a target of the experiment, or ids of profiled runs of one cell, separated by commas
    #[arg(long, value_name = "TARGET")]
    baseline: String,
    /// The candidate, in the same form
    #[arg(long, value_name = "TARGET")]
    candidate: String,
    #[command(flatten)]
    of: ExperimentSelection,
    #[command(flatten)]
    shown: ProfileFlags,
    /// Compare even if more than the target differs
    #[arg(long)]
    allow_confounders: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Downloads a profile.
#[derive(Debug, Args)]
pub struct Download {
    #[command(flatten)]
    common: Common,
    /// Id of a profiled run
    run: String,
    /// Kind of profile: cpu, heap or allocs
    #[arg(long, default_value = "cpu")]
    kind: ProfileKind,
    /// File to write [default: RUN-KIND.pb.gz]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Profile {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Show(show) => show.run().await,
            Self::Compare(compare) => compare.run().await,
            Self::Download(download) => download.run().await,
        }
    }
}

impl Show {
    async fn run(self) -> anyhow::Result<()> {
        let Self { common, target, of, shown } = self;
        let client = common.connect()?.client;
        let runs = of.load(&common).await?;
        let query = [
            ("runs", of.runs(runs.as_deref(), &target)?),
            ("kind", shown.kind.to_string()),
            ("limit", shown.top.to_string()),
        ];
        let found: ProfileTable = client.json(client.request(Method::GET, "api/v1/profiles").query(&query)).await?;
        common.print(&found, text)
    }
}

impl Compare {
    async fn run(self) -> anyhow::Result<()> {
        let Self { common, baseline, candidate, of, shown, allow_confounders, markdown } = self;
        let client = common.connect()?.client;
        let runs = of.load(&common).await?;
        let query = [
            ("baseline", of.runs(runs.as_deref(), &baseline)?),
            ("candidate", of.runs(runs.as_deref(), &candidate)?),
            ("kind", shown.kind.to_string()),
            ("limit", shown.top.to_string()),
            ("allow_confounders", allow_confounders.to_string()),
        ];
        let request = client.request(Method::GET, "api/v1/profiles/compare").query(&query);
        let found: ProfileComparison = client.json(request).await?;
        common.print(&found, if markdown { markdown::text } else { compared })
    }
}

impl Download {
    async fn run(self) -> anyhow::Result<()> {
        let Self { common, run, kind, output } = self;
        let client = common.connect()?.client;
        let path = format!("api/v1/runs/{}/profile", encoded(&run));
        let request = client.request(Method::GET, &path).query(&[("kind", kind.as_str())]);
        let bytes = client.send(request).await?.bytes().await.context("the download broke off")?;
        let file = output.unwrap_or_else(|| format!("{run}-{kind}.pb.gz").into());
        fs::write(&file, &bytes).with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("wrote {}", file.display());
        Ok(())
    }
}

impl ExperimentSelection {
    /// Loads the profiled runs of the experiment, if one is named.
    async fn load(&self, common: &Common) -> anyhow::Result<Option<Vec<Run>>> {
        let Some(id) = &self.experiment else { return Ok(None) };
        let connection = common.connect()?;
        let path = format!("api/v1/experiments/{}", experiment_id(&connection, id).await?);
        let found: ExperimentWithRuns = connection.client.get(&path).await?;
        let profiled = found.runs.into_iter().filter(|run| run.spec.profiled && run.has_result()).collect::<Vec<_>>();
        if profiled.is_empty() {
            bail!("experiment {id} has no profiled runs; submit one with --profile");
        }
        Ok(Some(profiled))
    }

    /// Returns the ids of a target's profiled runs, or the ids as given.
    fn runs(&self, runs: Option<&[Run]>, target: &str) -> anyhow::Result<String> {
        let Some(runs) = runs else { return Ok(target.to_owned()) };
        let is_size = |run: &Run| match (&self.size, &run.spec.size) {
            (Some(wanted), Some(size)) => {
                *wanted == size.name || *wanted == short_size(size.vcpus, size.memory_bytes, size.replicas)
            }
            (None, _) => true,
            (Some(_), None) => false,
        };
        let found: Vec<&Run> = runs.iter().filter(|run| run.spec.target == target && is_size(run)).collect();
        if found.is_empty() {
            let mut targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
            targets.sort_unstable();
            targets.dedup();
            bail!("no profiled runs of {target:?}; profiled: {}", targets.join(", "));
        }
        Ok(found.iter().map(|run| run.id.as_str()).collect::<Vec<_>>().join(","))
    }
}

fn text(found: &ProfileTable) -> String {
    let ProfileTable { target, unit, total, functions, functions_in_total, profiles, overhead, .. } = found;
    let mut text = format!(
        "{}: {} {unit}, mean of {}\n",
        plain(target),
        number(*total),
        format::plural(profiles.len(), "profiled run")
    );
    for overhead in overhead {
        let _ = writeln!(text, "{}", hanging(&self::overhead(overhead), 0));
    }
    text.push('\n');
    let head = [">self", ">self %", ">total", ">total %", "function"];
    let row = |row: &FunctionRow| {
        let share = |share: f64| format::percent(Some(share)).text().replace(['\u{a0}', '%'], "");
        vec![number(row.own), share(row.own_share), number(row.total), share(row.total_share), row.function.clone()]
    };
    text.push_str(&table(&head, functions, row));
    if functions.len() < *functions_in_total {
        let _ = writeln!(text, "\nand {} more; --top shows them", functions_in_total - functions.len());
    }
    text
}

fn compared(found: &ProfileComparison) -> String {
    let mut text =
        words::conclusions(found).iter().map(|line| hanging(&spaced(&plain(line)), 0) + "\n").collect::<String>();
    let head = [">baseline", ">candidate", ">difference", "95 % interval", "function"];
    let row = |change: &FunctionChange| {
        let FunctionChange { function, own, .. } = change;
        vec![number(own.baseline), number(own.candidate), marked(own), interval(own), cut(function, NAME)]
    };
    let _ = writeln!(text, "\n{}, functions without what they call; * shows a difference", found.unit);
    text + &table(&head, &found.functions, row)
}

fn overhead(overhead: &Overhead) -> String {
    format!("profiler: {}", spaced(&words::overhead(overhead)))
}

/// Terminals do not need protected spaces.
fn spaced(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

fn number(value: f64) -> String {
    spaced(&words::number(value))
}

fn signed(value: f64) -> String {
    spaced(&words::signed(value))
}

fn marked(delta: &Delta) -> String {
    format!("{}{}", signed(delta.difference), if delta.is_significant { "*" } else { " " })
}

fn interval(delta: &Delta) -> String {
    spaced(&words::interval(delta))
}
