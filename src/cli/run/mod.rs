//! `brewbench run …`: one file a command.

pub mod delete;
pub mod environment;
pub mod export;
pub mod import;
pub mod list;
pub mod logs;
pub mod new;
pub mod rejudge;
pub mod remarks;
pub mod show;
pub mod watch;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use reqwest::Method;

use self::{
    delete::Delete,
    environment::Environment,
    export::Export,
    import::Import,
    list::List,
    logs::Logs,
    new::New,
    rejudge::Rejudge,
    remarks::{Label, NoteOf},
};
use super::{Common, NOT_ALL_WELL, table};
use crate::{
    experiments::{
        ExperimentWithRuns,
        knee::{Search, path::State},
        progress::counted,
    },
    runs::{Run as RunData, RunList, Verdict},
};

/// Commands about runs.
#[derive(Debug, Subcommand)]
pub enum Run {
    /// Submit runs: targets × sizes × loads × repetitions of a scenario
    New(Box<New>),
    /// List runs, newest first unless sorted otherwise
    List(Box<List>),
    /// Show a run
    Show(One),
    /// Show under what a run was measured, or in what that differs from another run's
    Environment(Environment),
    /// Print the last output of a run's target and load generators
    Logs(Logs),
    /// Show a run second by second until its end; `experiment watch` shows a whole experiment
    ///
    /// With --json each point is a line as soon as it is known (kind `second` or `usage`), and the run the last one. A
    /// second whose beginning (`at_s` - `length_s`) is that of the one before takes its place.
    Watch(One),
    /// Cancel runs that wait or run
    Cancel(Many),
    /// Delete runs that have ended, with all their figures; for 10 minutes `undelete` brings them back
    Delete(Delete),
    /// Bring back runs that were deleted within the last 10 minutes
    Undelete(Many),
    /// Labels of runs
    #[command(subcommand)]
    Label(Label),
    /// Write, print or remove the note of a run
    Note(NoteOf),
    /// Import what k6 or wrk wrote elsewhere: JSON, text reports, or a folder with an index
    Import(Import),
    /// Judge runs anew by today's rules and limits, from what is stored of them
    Rejudge(Rejudge),
    /// Print the k6 summary or the series of a run, or the figures of several as CSV or JSON
    Export(Export),
}

impl Run {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::New(new) => return new.run().await,
            Self::Watch(one) => return one.watch().await,
            Self::List(list) => list.run().await?,
            Self::Show(one) => one.show().await?,
            Self::Environment(environment) => environment.run().await?,
            Self::Logs(logs) => logs.run().await?,
            Self::Cancel(many) => many.cancel().await?,
            Self::Delete(delete) => delete.run().await?,
            Self::Import(import) => import.run().await?,
            Self::Export(export) => export.run().await?,
            Self::Rejudge(rejudge) => rejudge.run().await?,
            Self::Undelete(many) => many.undelete().await?,
            Self::Label(Label::Add(labelled)) => labelled.run(&Method::PUT).await?,
            Self::Label(Label::Remove(labelled)) => labelled.run(&Method::DELETE).await?,
            Self::Note(note) => note.run().await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A command about one run.
#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    pub(super) common: Common,
    /// The run's id, or the end of it
    pub(super) id: String,
}

/// A command about several runs.
#[derive(Debug, Args)]
pub struct Many {
    #[command(flatten)]
    pub(super) common: Common,
    /// Ids of runs, or the ends of them
    #[arg(required = true)]
    pub(super) ids: Vec<String>,
}

/// The full id of a run from its end, as lists show it.
pub async fn full_id(connection: &super::Connection, id: &str) -> anyhow::Result<String> {
    if id.len() == 36 {
        return Ok(id.to_owned());
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    let mut found = list.runs.into_iter().filter(|run| run.id.ends_with(id)).map(|run| run.id);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("no run of the last 1000 has an id that ends with {id:?}"),
        (Some(_), Some(_)) => bail!("several runs have ids that end with {id:?}; give more of it"),
    }
}

/// How a command that waited for an experiment ends: well, if each repetition has figures that count. A search for the
/// knee has what it needs once it has come to an end of its own: that runs fail above the knee is what it looks for.
pub fn judge(whole: &ExperimentWithRuns) -> ExitCode {
    let Some(searches) = &whole.searches else { return judge_runs(&whole.runs) };
    let vain = |search: &&Search| matches!(search.state, State::NoFigures | State::Unsteady | State::Cancelled);
    let bad: Vec<_> = searches.iter().filter(vain).collect();
    for Search { target, size, told, .. } in &bad {
        eprintln!("{target}, {size}: {}", table::plain(told));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_WELL) }
}

/// The same for runs of which no more is known.
pub fn judge_runs(runs: &[RunData]) -> ExitCode {
    let bad: Vec<_> = counted(runs).filter(|run| !run.counts()).collect();
    for run in &bad {
        let why = run.error.clone().or_else(|| run.because().map(|reason| reason.text.clone()));
        let word = if run.phase == "finished" { run.verdict.map_or("finished", Verdict::as_str) } else { &run.phase };
        eprintln!("{} (repetition {}) {word}: {}", run.target, run.repetition, table::plain(&why.unwrap_or_default()));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_WELL) }
}
