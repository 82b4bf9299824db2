//! `brewbench experiment …`

use std::{fmt::Write, process::ExitCode};

use anyhow::bail;
use brewbench::{
    app::ids::ExperimentId,
    experiments::{
        describe::describe_plan,
        knee::history::RateStep,
        model::{AddRepetitions, ExperimentInfo, ExperimentList, ExperimentWithRuns},
        progress::ExperimentState,
        stopping_rule::Pair,
    },
    runs::model::{NoteText, RunList},
};
use brewbench_io::client::Client;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    compare, duration, files, progress,
    table::{self, cut, table},
};
use crate::{common::Common, connection::encoded, exit_code::judge, run::which::experiment_id};

/// Manage experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// List experiments with their results, newest first
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Only experiments after this one in the list, for the next page
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// Only experiments with this label
        #[arg(long)]
        label: Option<String>,
        /// Maximum number of experiments
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// Show an experiment's progress, runs and comparison
    Show {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The experiment's id, its last characters, or `last`
        id: String,
    },
    /// Follow the progress of an experiment until it ends
    Watch {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The experiment's id, its last characters, or `last`
        id: String,
    },
    /// Pause an experiment: start no more of its runs. A run in progress finishes
    Pause(Named),
    /// Resume a paused experiment
    Resume(Named),
    /// Add repetitions to an experiment, even after it has ended
    Add {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The experiment's id, its last characters, or `last`
        id: String,
        /// Repetitions to add to each cell
        #[arg(long, value_name = "N")]
        repeat: u32,
    },
    /// Cancel an experiment: cancel its unfinished runs and queue no more
    Cancel {
        /// The experiment
        #[command(flatten)]
        named: Named,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Add or remove a label of an experiment
    #[command(subcommand)]
    Label(Label),
    /// Print, write or remove the note of an experiment
    Note {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The experiment's id, its last characters, or `last`
        id: String,
        /// The note as Markdown; `-` reads standard input, "" removes the note [default: print the note]
        text: Option<String>,
    },
}

/// Arguments of commands on one experiment.
#[derive(Debug, Args)]
pub struct Named {
    #[command(flatten)]
    common: Common,
    /// The experiment's id, its last characters, or `last`
    id: String,
}

/// `experiment label …`
#[derive(Debug, Subcommand)]
pub enum Label {
    /// Add a label to an experiment
    Add(LabelCommand),
    /// Remove a label from an experiment
    Remove(LabelCommand),
}

/// Arguments of `experiment label`.
#[derive(Debug, Args)]
pub struct LabelCommand {
    #[command(flatten)]
    common: Common,
    /// The label
    label: String,
    /// The experiment's id, its last characters, or `last`
    id: String,
}

impl Experiment {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List { common, after, label, limit } => list(&common, after, label, limit).await?,
            Self::Show { common, id } => show(&common, &id).await?,
            Self::Watch { common, id } => return watch(&common, &id).await,
            Self::Pause(named) => named.post("pause").await?,
            Self::Resume(named) => named.post("resume").await?,
            Self::Add { common, id, repeat } => add(&common, &id, repeat).await?,
            Self::Cancel { named, yes: true } => named.post("cancel").await?,
            Self::Cancel { named, yes: false } => cancel(named).await?,
            Self::Label(Label::Add(labelled)) => labelled.run(Method::PUT).await?,
            Self::Label(Label::Remove(labelled)) => labelled.run(Method::DELETE).await?,
            Self::Note { common, id, text } => set_note(&common, &id, text).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn list(common: &Common, after: Option<String>, label: Option<String>, limit: u32) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let mut query = vec![("limit", limit.to_string())];
    if let Some(id) = after {
        query.push(("after", experiment_id(&connection, &id).await?.to_string()));
    }
    query.extend(label.map(|label| ("label", label)));
    let request = connection.client.request(Method::GET, "api/v1/experiments").query(&query);
    let list: ExperimentList = connection.client.json(request).await?;
    common.print(&list, |list| rows(&list.experiments))
}

fn rows(experiments: &[ExperimentInfo]) -> String {
    if experiments.is_empty() {
        return "no experiments yet; `brewbench run new` submits one\n".to_owned();
    }
    let head = ["id", "name", ">runs"];
    let row = |info: &ExperimentInfo| {
        let ended = format!("{}/{}", info.progress.ended, info.progress.total);
        vec![table::short_id(info.experiment.id.as_str()), cut(&info.experiment.name, 50), ended]
    };
    let rows = table(&head, experiments, row);
    // Results beside them would not fit 80 columns.
    table::with_below(&rows, experiments.iter().map(|info| table::plain(&info.verdict)))
}

/// Connects, and finds the full id of an experiment.
async fn open(common: &Common, id: &str) -> anyhow::Result<(Client, ExperimentId)> {
    let connection = common.connect()?;
    let id = experiment_id(&connection, id).await?;
    Ok((connection.client, id))
}

impl LabelCommand {
    async fn run(self, method: Method) -> anyhow::Result<()> {
        let Self { common, label, id } = self;
        let (client, id) = open(&common, &id).await?;
        let path = format!("api/v1/experiments/{id}/labels/{}", encoded(&label));
        let experiment: ExperimentWithRuns = client.json(client.request(method, &path)).await?;
        common.print(&experiment, |shown| match shown.experiment.labels.as_slice() {
            [] => "no labels\n".to_owned(),
            labels => table::lines(labels.iter().map(String::as_str)),
        })
    }
}

impl Named {
    async fn post(self, action: &str) -> anyhow::Result<()> {
        let Self { common, id } = self;
        let (client, id) = open(&common, &id).await?;
        let experiment: ExperimentWithRuns = client.post(&format!("api/v1/experiments/{id}/{action}"), &()).await?;
        common.print(&experiment, head)
    }
}

async fn add(common: &Common, id: &str, repetitions: u32) -> anyhow::Result<()> {
    let (client, id) = open(common, id).await?;
    let path = format!("api/v1/experiments/{id}/repetitions");
    let experiment: ExperimentWithRuns = client.post(&path, &AddRepetitions { repetitions }).await?;
    common.print(&experiment, head)
}

async fn cancel(named: Named) -> anyhow::Result<()> {
    let (client, id) = open(&named.common, &named.id).await?;
    let experiment: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{id}")).await?;
    let rest = experiment.progress.total - experiment.progress.ended;
    eprint!("Cancel the {rest} unfinished runs of {}? [y/N] ", table::plain(&experiment.experiment.name));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("not confirmed; nothing was cancelled");
    }
    // The one that was confirmed: there may be a newer one by now.
    Named { id: id.to_string(), ..named }.post("cancel").await
}

async fn set_note(common: &Common, id: &str, text: Option<String>) -> anyhow::Result<()> {
    let (client, id) = open(common, id).await?;
    let path = format!("api/v1/experiments/{id}");
    let experiment: ExperimentWithRuns = match text {
        None => client.get(&path).await?,
        Some(text) => {
            let note = files::read_note(text)?;
            client.json(client.request(Method::PUT, &format!("{path}/note")).json(&NoteText { note })).await?
        }
    };
    common.print(&experiment, |shown| table::lines(shown.experiment.note.as_deref().unwrap_or_default().lines()))
}

async fn watch(common: &Common, id: &str) -> anyhow::Result<ExitCode> {
    let (client, id) = open(common, id).await?;
    // Reports an unknown id at once, instead of retrying.
    let found: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{id}")).await?;
    let ended = progress::wait(&client, &found.experiment.id).await?;
    if common.json {
        common.print(&RunList { runs: ended.runs.clone() }, |_| String::new())?;
    } else {
        print!("{}{}", decisions(&ended), table::runs(&ended.runs));
    }
    Ok(judge(&ended))
}

async fn show(common: &Common, id: &str) -> anyhow::Result<()> {
    let (client, id) = open(common, id).await?;
    let experiment: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{id}")).await?;
    if common.json {
        return common.print(&experiment, |_| String::new());
    }
    print!("{}\n{}{}\n", head(&experiment), decisions(&experiment), table::runs(&experiment.runs));
    if experiment.runs.is_empty() {
        return Ok(());
    }
    // The comparison may be refused, e.g. because it is too large: the rest is still useful.
    match compare::fetch(&client, &[("experiments", id.to_string())]).await {
        Ok(comparison) => print!("{}", compare::text(&comparison)),
        Err(fault) => println!("not compared: {fault:#}"),
    }
    Ok(())
}

/// Formats the plan and its progress.
fn head(shown: &ExperimentWithRuns) -> String {
    let ExperimentWithRuns { experiment, progress, url, .. } = shown;
    let left = progress.remaining_s.filter(|left| *left > 0.0);
    let left = left.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
    let name = table::plain(&experiment.name);
    let plan = table::hanging(&table::plain(&describe_plan(&experiment.plan).replace('\u{a0}', " ")), 0);
    let order = experiment.plan.seed.map_or(String::new(), |seed| format!("order shuffled with seed {seed}\n"));
    let paused = match (&experiment.paused_by, progress.state) {
        (Some(name), ExperimentState::Paused) => format!("paused by {}\n", table::plain(name)),
        _ => String::new(),
    };
    format!("{name}\n{plan}\n{order}{} of {} runs ended{left}\n{paused}{url}\n", progress.ended, progress.total)
}

/// Describes retries, the stopping rule and knee searches; empty if there were none.
pub fn decisions(experiment: &ExperimentWithRuns) -> String {
    let mut text = experiment.repeated.as_ref().map_or(String::new(), |sentence| table::plain(sentence) + "\n\n");
    if let Some(narrowing) = &experiment.narrowing {
        text += &(narrowing.describe() + "\n");
        let head = ["target", "size", "load", "metric", "difference", "width", "state"];
        let row = |pair: &Pair| {
            let difference = pair.difference().replace('\u{a0}', " ");
            let words = [&pair.target, &pair.size, &pair.load].map(Clone::clone);
            let figure = pair.metric.name().to_owned();
            [words.to_vec(), vec![figure, difference, pair.width_text(), pair.word().to_owned()]].concat()
        };
        text += &(table(&head, &narrowing.pairs, row) + "\n");
    }
    for search in experiment.searches.iter().flatten() {
        let _ =
            writeln!(text, "{}, {}: {}", table::plain(&search.target), table::plain(&search.size), search.description);
        if let Some(contradiction) = &search.contradiction {
            let _ = writeln!(text, "{}", table::hanging(contradiction, 0));
        }
        let head = [">rate", ">req/s", ">p99 ms", ">failed", "objective"];
        let row = |rung: &RateStep| {
            let failed = table::percent(rung.error_rate);
            vec![rung.rate_text(), table::figure(rung.rps), table::figure(rung.p99_ms), failed, rung.describe()]
        };
        text += &(table(&head, &search.path, row) + "\n");
    }
    text
}
