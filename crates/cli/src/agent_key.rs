//! `brewbench agent-key …`

use std::path::PathBuf;

use brewbench::{
    app::local_admin,
    auth::users::CreatedSecret,
    fleet::model::{About, Agent, AgentList, NewAgentKey},
};
use clap::Subcommand;
use reqwest::Method;

use super::table::{cut, plain, table};
use crate::{common::Common, connection::encoded};

/// Manage agent keys.
#[derive(Debug, Subcommand)]
pub enum AgentKey {
    /// Create a one-time key for a new agent. It is valid for a week and shown once
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Name of the agent
        name: String,
        /// The data folder of a server on this machine; makes a login unnecessary
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// Rotate an agent's key; the old key works until the agent has used the new one
    Change {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// List agents
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Revoke an agent's key permanently
    #[command(alias = "revoke")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
}

impl AgentKey {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, name, data } => {
                let created: CreatedSecret = match data {
                    Some(data) => local_admin::agent_key(&data, &name).await?,
                    None => common.connect()?.client.post("api/v1/agent-keys", &NewAgentKey { name }).await?,
                };
                common.print(&created, |created| format!("{}\n", created.secret))
            }
            Self::Change { common, name } => {
                let client = common.connect()?.client;
                let path = format!("api/v1/agent-keys/{}/change", encoded(&name));
                let agent: Agent = client.json(client.request(Method::POST, &path)).await?;
                let when = if agent.connected { "now" } else { "the next time it connects" };
                eprintln!("{} rotates its key {when}", plain(&name));
                Ok(())
            }
            Self::List { common } => common.show("api/v1/agents", |list: &AgentList| rows(&list.agents)).await,
            Self::Delete { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/agent-keys/{}", encoded(&name))).await?;
                eprintln!("revoked the key of {}", plain(&name));
                Ok(())
            }
        }
    }
}

/// Formats agents as a table.
pub fn rows(agents: &[Agent]) -> String {
    if agents.is_empty() {
        return "no agents yet; `brewbench agent-key new NAME` creates a key for one\n".to_owned();
    }
    let head = ["name", "state", ">cores", ">memory GiB", "cpu", "memory", "engine"];
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
    table(&head, agents, row)
}
