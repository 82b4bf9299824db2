//! `brewbench run label` and `run note`

use brewbench::runs::model::{NoteText, RunList};
use clap::{Args, Subcommand};
use reqwest::Method;

use crate::{
    connection::encoded,
    files,
    run::which::{ManyRuns, OneRun, full_id},
    table,
};

/// Subcommands of `run label`.
#[derive(Debug, Subcommand)]
pub enum Label {
    /// Add a label to runs
    Add(LabelCommand),
    /// Remove a label from runs
    Remove(LabelCommand),
}

/// Arguments of `run label`.
#[derive(Debug, Args)]
pub struct LabelCommand {
    /// The label
    label: String,
    #[command(flatten)]
    many: ManyRuns,
}

/// Print, write or remove the note of a run.
#[derive(Debug, Args)]
pub struct NoteCommand {
    #[command(flatten)]
    one: OneRun,
    /// The note as Markdown; `-` reads standard input, "" removes the note [default: print the note]
    text: Option<String>,
}

impl LabelCommand {
    /// Runs the command.
    pub async fn run(self, method: &Method) -> anyhow::Result<()> {
        let Self { label, many: ManyRuns { common, ids } } = self;
        let connection = common.connect()?;
        let mut runs = Vec::new();
        for id in &ids {
            let id = full_id(&connection, id).await?;
            let path = format!("api/v1/runs/{id}/labels/{}", encoded(&label));
            let list: RunList = connection.client.json(connection.client.request(method.clone(), &path)).await?;
            runs.extend(list.runs);
        }
        common.print(&RunList { runs }, |list| table::labels(&list.runs))
    }
}

impl NoteCommand {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { one: OneRun { common, id }, text } = self;
        let connection = common.connect()?;
        let path = format!("api/v1/runs/{}", full_id(&connection, &id).await?);
        let list: RunList = match text {
            None => connection.client.get(&path).await?,
            Some(text) => {
                let note = files::read_note(text)?;
                let request = connection.client.request(Method::PUT, &format!("{path}/note"));
                connection.client.json(request.json(&NoteText { note })).await?
            }
        };
        common.print(&list, |list| {
            table::lines(list.runs.iter().filter_map(|run| run.note.as_deref()).flat_map(str::lines))
        })
    }
}
