//! `brewbench experiment …`

use std::{fmt::Write, process::ExitCode};

use anyhow::bail;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    compare, duration, files, progress,
    table::{self, Align, cut, table},
};
use crate::{
    cli::{common::Common, connection::encoded, exit_code::judge},
    experiments::{
        describe::asked,
        knee::history::Rung,
        model::{ExperimentInfo, ExperimentList, ExperimentWithRuns, More},
        progress::Standing,
        stopping_rule::Pair,
    },
    runs::model::{Note, RunList},
};

/// Commands about experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// List experiments, newest first, each with its verdict in one line
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Only experiments submitted before this one
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        /// Only experiments with this label
        #[arg(long)]
        label: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// Show an experiment: its progress, its runs and their comparison
    Show {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
    },
    /// Show the progress of an experiment until it is over
    Watch {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
    },
    /// Begin none of its runs until it is resumed; a run that is being done goes on to its end
    Pause(Named),
    /// Go on with an experiment that was paused
    Resume(Named),
    /// Add repetitions to an experiment, also to one that is over
    Add {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
        /// So many of every cell
        #[arg(long, value_name = "N")]
        repeat: u32,
    },
    /// Cancel all of its runs that have not ended; it gets no more
    Cancel {
        /// Which experiment
        #[command(flatten)]
        named: Named,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Labels of experiments
    #[command(subcommand)]
    Label(Label),
    /// Write, print or remove the note of an experiment
    Note {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
        /// The note, as Markdown; `-` reads it from standard files, an empty one removes it [default: print the note]
        text: Option<String>,
    },
}

/// A command about one experiment.
#[derive(Debug, Args)]
pub struct Named {
    #[command(flatten)]
    common: Common,
    /// The experiment's id
    id: String,
}

/// `experiment label …`
#[derive(Debug, Subcommand)]
pub enum Label {
    /// Give an experiment a label
    Add(Labelled),
    /// Take a label from an experiment
    Remove(Labelled),
}

/// A label and an experiment.
#[derive(Debug, Args)]
pub struct Labelled {
    #[command(flatten)]
    common: Common,
    /// The label
    label: String,
    /// The experiment's id
    id: String,
}

impl Experiment {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List { common, before, label, limit } => list(&common, before, label, limit).await?,
            Self::Show { common, id } => show(&common, &id).await?,
            Self::Watch { common, id } => return watch(&common, &id).await,
            Self::Pause(named) => named.post("pause").await?,
            Self::Resume(named) => named.post("resume").await?,
            Self::Add { common, id, repeat } => add(&common, &id, repeat).await?,
            Self::Cancel { named, yes: true } => named.post("cancel").await?,
            Self::Cancel { named, yes: false } => cancel(named).await?,
            Self::Label(Label::Add(labelled)) => labelled.run(Method::PUT).await?,
            Self::Label(Label::Remove(labelled)) => labelled.run(Method::DELETE).await?,
            Self::Note { common, id, text } => note(&common, &id, text).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn list(common: &Common, before: Option<String>, label: Option<String>, limit: u32) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let mut query = vec![("limit", limit.to_string())];
    query.extend(before.map(|id| ("before", id)));
    query.extend(label.map(|label| ("label", label)));
    let request = connection.client.request(Method::GET, "api/v1/experiments").query(&query);
    let list: ExperimentList = connection.client.json(request).await?;
    common.print(&list, |list| rows(&list.experiments))
}

fn rows(experiments: &[ExperimentInfo]) -> String {
    if experiments.is_empty() {
        return "no experiments yet; `brewbench run new` submits one\n".to_owned();
    }
    let head = [("id", Align::Left), ("name", Align::Left), ("runs", Align::Right)];
    let row = |info: &ExperimentInfo| {
        let ended = format!("{}/{}", info.progress.ended, info.progress.total);
        vec![info.experiment.id.to_string(), cut(&info.experiment.name, 30), ended]
    };
    let rows = table(&head, &experiments.iter().map(row).collect::<Vec<_>>());
    // Ids are long: a verdict beside them would not fit 80 columns.
    table::with_below(&rows, experiments.iter().map(|info| table::plain(&info.verdict)))
}

impl Labelled {
    async fn run(self, method: Method) -> anyhow::Result<()> {
        let Self { common, label, id } = self;
        let client = common.connect()?.client;
        let path = format!("api/v1/experiments/{id}/labels/{}", encoded(&label));
        let whole: ExperimentWithRuns = client.json(client.request(method, &path)).await?;
        common.print(&whole, |whole| match whole.experiment.labels.as_slice() {
            [] => "no labels\n".to_owned(),
            labels => table::lines(labels.iter().map(String::as_str)),
        })
    }
}

impl Named {
    async fn post(self, deed: &str) -> anyhow::Result<()> {
        let Self { common, id } = self;
        let client = common.connect()?.client;
        let whole: ExperimentWithRuns = client.post(&format!("api/v1/experiments/{id}/{deed}"), &()).await?;
        common.print(&whole, head)
    }
}

async fn add(common: &Common, id: &str, repetitions: u32) -> anyhow::Result<()> {
    let client = common.connect()?.client;
    let path = format!("api/v1/experiments/{id}/repetitions");
    let whole: ExperimentWithRuns = client.post(&path, &More { repetitions }).await?;
    common.print(&whole, head)
}

async fn cancel(named: Named) -> anyhow::Result<()> {
    let client = named.common.connect()?.client;
    let whole: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{}", named.id)).await?;
    let rest = whole.progress.total - whole.progress.ended;
    eprint!("Cancel the {rest} runs of {} that have not ended? [y/N] ", table::plain(&whole.experiment.name));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was cancelled");
    }
    named.post("cancel").await
}

async fn note(common: &Common, id: &str, text: Option<String>) -> anyhow::Result<()> {
    let client = common.connect()?.client;
    let path = format!("api/v1/experiments/{id}");
    let whole: ExperimentWithRuns = match text {
        None => client.get(&path).await?,
        Some(text) => {
            let note = files::note(text)?;
            client.json(client.request(Method::PUT, &format!("{path}/note")).json(&Note { note })).await?
        }
    };
    common.print(&whole, |whole| table::lines(whole.experiment.note.as_deref().unwrap_or_default().lines()))
}

async fn watch(common: &Common, id: &str) -> anyhow::Result<ExitCode> {
    let client = common.connect()?.client;
    // One that is not there is no reason for patience.
    let found: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{id}")).await?;
    let whole = progress::wait(&client, &found.experiment.id).await?;
    if common.json {
        common.print(&RunList { runs: whole.runs.clone() }, |_| String::new())?;
    } else {
        print!("{}{}", told(&whole), table::runs(&whole.runs));
    }
    Ok(judge(&whole))
}

async fn show(common: &Common, id: &str) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let whole: ExperimentWithRuns = connection.client.get(&format!("api/v1/experiments/{id}")).await?;
    if common.json {
        return common.print(&whole, |_| String::new());
    }
    print!("{}\n{}{}\n", head(&whole), told(&whole), table::runs(&whole.runs));
    if whole.runs.is_empty() {
        return Ok(());
    }
    // What cannot be compared, because it is too much, is no reason to be silent about the rest.
    match compare::ask(&connection.client, &[("experiments", id.to_owned())]).await {
        Ok(comparison) => print!("{}", compare::text(&comparison)),
        Err(fault) => println!("not compared: {fault:#}"),
    }
    Ok(())
}

/// What was asked for, and how far it is.
fn head(whole: &ExperimentWithRuns) -> String {
    let ExperimentWithRuns { experiment, progress, url, .. } = whole;
    let left = progress.left_s.filter(|left| *left > 0.0);
    let left = left.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
    let name = table::plain(&experiment.name);
    let asked = table::plain(&asked(&experiment.plan).replace('\u{a0}', " "));
    let order = experiment.plan.seed.map_or(String::new(), |seed| format!("order shuffled by seed {seed}\n"));
    let paused = match (&experiment.paused_by, progress.standing) {
        (Some(name), Standing::Paused) => format!("paused by {}\n", table::plain(name)),
        _ => String::new(),
    };
    format!("{name}\n{asked}\n{order}{} of {} runs ended{left}\n{paused}{url}\n", progress.ended, progress.total)
}

/// What it decided by itself, and which runs were done again; nothing where there is nothing of that.
pub fn told(whole: &ExperimentWithRuns) -> String {
    let mut text = whole.repeated.as_ref().map_or(String::new(), |sentence| table::plain(sentence) + "\n\n");
    if let Some(narrowing) = &whole.narrowing {
        text += &(narrowing.told() + "\n");
        let head =
            ["target", "size", "load", "figure", "difference", "width", "state"].map(|title| (title, Align::Left));
        let row = |pair: &Pair| {
            let difference = pair.difference().replace('\u{a0}', " ");
            let words = [&pair.target, &pair.size, &pair.load].map(Clone::clone);
            let figure = pair.metric.name().to_owned();
            [words.to_vec(), vec![figure, difference, pair.width_text(), pair.word().to_owned()]].concat()
        };
        text += &(table(&head, &narrowing.pairs.iter().map(row).collect::<Vec<_>>()) + "\n");
    }
    for search in whole.searches.iter().flatten() {
        let _ = writeln!(text, "{}, {}: {}", table::plain(&search.target), table::plain(&search.size), search.told);
        let head = [
            ("rate", Align::Right),
            ("req/s", Align::Right),
            ("p99 ms", Align::Right),
            ("failed", Align::Right),
            ("objective", Align::Left),
        ];
        let row = |rung: &Rung| {
            let failed = table::percent(rung.error_rate);
            vec![rung.rate_text(), table::figure(rung.rps), table::figure(rung.p99_ms), failed, rung.words()]
        };
        text += &(table(&head, &search.path.iter().map(row).collect::<Vec<_>>()) + "\n");
    }
    text
}
