//! `brewbench experiment …`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    Common, compare, duration, progress,
    run::judge,
    scenario::encoded,
    table::{self, Align, cut, table},
};
use crate::{
    experiments::{ExperimentInfo, ExperimentList, ExperimentWithRuns, told::asked},
    runs::{Note, RunList},
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
    /// Show the progress of an experiment until all its runs have ended
    Watch {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
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
        /// The note, as Markdown; `-` reads it from standard input, an empty one removes it [default: print the note]
        text: Option<String>,
    },
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
        vec![info.experiment.id.clone(), cut(&info.experiment.name, 30), ended]
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

async fn note(common: &Common, id: &str, text: Option<String>) -> anyhow::Result<()> {
    let client = common.connect()?.client;
    let path = format!("api/v1/experiments/{id}");
    let whole: ExperimentWithRuns = match text {
        None => client.get(&path).await?,
        Some(text) => {
            let note = if text == "-" { std::io::read_to_string(std::io::stdin())? } else { text };
            client.json(client.request(Method::PUT, &format!("{path}/note")).json(&Note { note })).await?
        }
    };
    common.print(&whole, |whole| table::lines(whole.experiment.note.as_deref().unwrap_or_default().lines()))
}

async fn watch(common: &Common, id: &str) -> anyhow::Result<ExitCode> {
    let client = common.connect()?.client;
    // One that is not there is no reason for patience.
    let _: ExperimentWithRuns = client.get(&format!("api/v1/experiments/{id}")).await?;
    let runs = progress::wait(&client, id).await?.runs;
    let list = RunList { runs };
    common.print(&list, |list| table::runs(&list.runs))?;
    Ok(judge(&list.runs))
}

async fn show(common: &Common, id: &str) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let whole: ExperimentWithRuns = connection.client.get(&format!("api/v1/experiments/{id}")).await?;
    let ids: Vec<_> = whole.runs.iter().map(|run| run.id.clone()).collect();
    let comparison = compare::fetch(&connection.client, &ids).await?;
    common.print(&whole, |whole| {
        let progress = &whole.progress;
        let left = progress.left_s.filter(|left| *left > 0.0);
        let left = left.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
        let name = table::plain(&whole.experiment.name);
        let asked = table::plain(&asked(&whole.experiment.plan).replace('\u{a0}', " "));
        let head =
            format!("{name}\n{asked}\n{} of {} runs ended{left}\n{}\n\n", progress.ended, progress.total, whole.url);
        format!("{head}{}\n{}", table::runs(&whole.runs), compare::text(&comparison))
    })
}
