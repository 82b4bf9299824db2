//! `brewbench queue` and `brewbench queue next`

use brewbench::{
    catalog::model::short_size,
    dispatch::queue::model::{QueueEntry, QueueList},
};
use brewbench_io::client::Fault;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    duration,
    table::{cut, plain, short_id, table, with_below},
};
use crate::{common::Common, connection::encoded, run::which::full_id};

/// List queued runs; `queue next` moves runs to the front.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Queue {
    #[command(subcommand)]
    command: Option<QueueCommand>,
    #[command(flatten)]
    common: Common,
}

/// Subcommands of `queue`.
#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Move runs, or all runs of an experiment, to the front of the queue
    Next {
        #[command(flatten)]
        common: Common,
        /// Ids of runs (or their last characters) or of experiments; the first goes to the very front
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

impl Queue {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { command, common } = self;
        let Some(QueueCommand::Next { common, ids }) = command else {
            let list: QueueList = common.connect()?.client.get("api/v1/queue").await?;
            return common.print(&list, rows);
        };
        let connection = common.connect()?;
        let client = &connection.client;
        let mut list = None;
        for id in ids.iter().rev() {
            let id = encoded(full_id(&connection, id).await?.as_str());
            let run = client.request(Method::POST, &format!("api/v1/runs/{id}/next"));
            list = Some(match client.json::<QueueList>(run).await {
                Err(Fault::Refused { status, .. }) if status.as_u16() == 404 => {
                    client.json(client.request(Method::POST, &format!("api/v1/experiments/{id}/next"))).await?
                }
                answer => answer?,
            });
        }
        list.map_or(Ok(()), |list| common.print(&list, rows))
    }
}

fn rows(list: &QueueList) -> String {
    if list.waiting.is_empty() {
        return "no queued runs\n".to_owned();
    }
    let head = [">#", "run", "target", "size", "agent", ">starts in"];
    let row = |waiting: &QueueEntry| {
        let size = waiting.run.spec.size.as_ref().map(|size| short_size(size.vcpus, size.memory_bytes, size.replicas));
        let any = || waiting.agent_label.as_ref().map_or("any".to_owned(), |label| format!("any {label}"));
        let agent = waiting.required_agent.clone().unwrap_or_else(any);
        let starts = waiting.starts_in_s.map_or("–".to_owned(), duration::text);
        vec![
            waiting.position.to_string(),
            short_id(waiting.run.id.as_str()),
            cut(&waiting.run.spec.target, 16),
            size.unwrap_or_else(|| "–".to_owned()),
            cut(&agent, 12),
            starts,
        ]
    };
    let lines = table(&head, &list.waiting, row);
    let text = with_below(&lines, list.waiting.iter().map(|waiting| plain(&waiting.message)));
    let more = list.total.saturating_sub(list.waiting.len());
    if more == 0 { text } else { format!("{text}and {more} more\n") }
}
