//! `brewbench run …`: one file per command.

pub mod delete;
pub mod environment;
pub mod export;
mod field_flags;
pub mod import;
pub mod list;
mod load_flags;
pub mod logs;
pub mod new;
mod preview;
pub mod rejudge;
pub mod remarks;
pub mod show;
pub mod watch;
pub mod which;

use std::process::ExitCode;

use clap::Subcommand;
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
    remarks::{Label, NoteCommand},
};
use crate::run::which::{ManyRuns, OneRun};

/// Manage runs.
#[derive(Debug, Subcommand)]
pub enum Run {
    /// Submit runs: targets × sizes × loads × repetitions of a scenario
    New(Box<New>),
    /// List runs, newest first unless sorted otherwise
    List(Box<List>),
    /// Show a run
    Show(OneRun),
    /// Show the environment of a run, or how it differs from that of another run
    Environment(Environment),
    /// Print the last output of a run's target and load generators
    Logs(Logs),
    /// Follow a run second by second until it ends; `experiment watch` follows an experiment
    ///
    /// With --json, prints each sample as a line (kind `second` or `usage`), then the run. A second with the same start
    /// (`at_s` - `length_s`) as the previous one replaces it.
    Watch(OneRun),
    /// Cancel queued or active runs
    Cancel(ManyRuns),
    /// Delete finished runs and their results; `undelete` restores them within 10 minutes
    Delete(Delete),
    /// Restore runs deleted in the last 10 minutes
    Undelete(ManyRuns),
    /// Add or remove a label of runs
    #[command(subcommand)]
    Label(Label),
    /// Print, write or remove the note of a run
    Note(NoteCommand),
    /// Import results measured elsewhere, of k6, wrk and 20 other tools
    Import(Import),
    /// Re-judge stored runs with the current rules and limits
    Rejudge(Rejudge),
    /// Print the k6 summary or time series of a run, or the metrics of several runs as CSV or JSON
    Export(Export),
}

impl Run {
    /// Runs the command.
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
