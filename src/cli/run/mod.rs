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
    remarks::{Label, NoteOf},
};
use crate::cli::run::which::{Many, One};

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
