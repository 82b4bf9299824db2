//! `brewbench agent-key …`

use std::path::PathBuf;

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, plain, table};
use crate::{
    app::local_admin,
    auth::people::MadeSecret,
    cli::{common::Common, connection::encoded},
    fleet::model::{About, Agent, AgentList, NewAgentKey},
};

/// Commands about the keys of agents.
#[derive(Debug, Subcommand)]
pub enum AgentKey {
    /// Make the one-time key of a new agent, good for a week; it is shown once
    New {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// What to call the agent
        name: String,
        /// The server's data folder: its owner needs no login
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// Have an agent make itself another key; the one before works until the new one was used
    Change {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// List the agents
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// End an agent's key for good
    Revoke {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
}

impl AgentKey {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, name, data } => {
                let made: MadeSecret = match data {
                    Some(data) => local_admin::agent_key(&data, &name).await?,
                    None => common.connect()?.client.post("api/v1/agent-keys", &NewAgentKey { name }).await?,
                };
                common.print(&made, |made| format!("{}\n", made.secret))
            }
            Self::Change { common, name } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/agent-keys/{}/change", encoded(&name));
                let agent: Agent = client.json(client.request(Method::POST, &path)).await?;
                let when = if agent.connected { "now" } else { "when it connects next" };
                eprintln!("{} makes itself another key {when}", plain(&name));
                Ok(())
            }
            Self::List { common } => {
                let list: AgentList = common.connect()?.client.get("api/v1/agents").await?;
                common.print(&list, |list| rows(&list.agents))
            }
            Self::Revoke { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/agent-keys/{}", encoded(&name))).await?;
                eprintln!("the key of {name} is revoked");
                Ok(())
            }
        }
    }
}

/// Agents as a table.
pub fn rows(agents: &[Agent]) -> String {
    if agents.is_empty() {
        return "no agents yet; `brewbench agent-key new NAME` makes the key of one\n".to_owned();
    }
    let head = [
        ("name", Align::Left),
        ("state", Align::Left),
        ("cores", Align::Right),
        ("memory GiB", Align::Right),
        ("cpu", Align::Left),
        ("memory", Align::Left),
        ("engine", Align::Left),
    ];
    let row = |agent: &Agent| {
        let about = agent.about.as_ref();
        let text = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        vec![
            cut(&agent.name, 24),
            agent.state().to_owned(),
            text(about.map(|about| about.cores.to_string())),
            text(about.map(|about| format!("{:.1}", about.memory_bytes as f64 / f64::from(1 << 30)))),
            text(about.map(|about| about.cpu.clone())),
            text(about.map(|about| about.memory.clone())),
            text(about.map(About::engine_list)),
        ]
    };
    table(&head, &agents.iter().map(row).collect::<Vec<_>>())
}
