//! `brewbench fleet …`

use brewbench::fleet::model::{Agent, AgentList, Availability, NewAvailability, NewLabels, NewName};
use clap::Subcommand;
use reqwest::Method;

use super::{
    agent_key::rows,
    table::{plain, with_below},
};
use crate::{common::Common, connection::encoded};

/// Manage agents.
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// List agents
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Only agents with this label
        #[arg(long)]
        label: Option<String>,
    },
    /// Drain an agent: let it finish its run, and assign it no more
    Drain {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Disable an agent: disconnect it and give up its run
    Disable {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Enable an agent: assign it runs again
    Enable {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Rename an idle agent, also in its runs
    Rename {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
        /// The new name
        new: String,
    },
    /// Replace an agent's labels; without labels, remove them all
    Label {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
        /// The new labels
        labels: Vec<String>,
    },
    /// Delete an agent: revoke its key at once, keep its runs
    #[command(alias = "forget")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
}

impl Fleet {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common, label } => {
                let mut list: AgentList = common.connect()?.client.get("api/v1/agents").await?;
                list.agents.retain(|agent| label.as_ref().is_none_or(|label| agent.labels.contains(label)));
                common.print(&list, |list| {
                    if list.agents.is_empty() && label.is_some() {
                        return "no agents with this label\n".to_owned();
                    }
                    with_below(&rows(&list.agents), list.agents.iter().map(below))
                })
            }
            Self::Drain { common, name } => {
                set_availability(
                    &common,
                    &name,
                    Availability::Drained,
                    "is drained: it finishes its run and gets no more",
                )
                .await
            }
            Self::Disable { common, name } => {
                set_availability(&common, &name, Availability::Disabled, "is disabled").await
            }
            Self::Enable { common, name } => {
                set_availability(&common, &name, Availability::Enabled, "is enabled").await
            }
            Self::Rename { common, name, new } => {
                let sentence = format!("is now called {}", plain(&new));
                put(&common, &name, "name", &NewName { name: new }, &sentence).await
            }
            Self::Label { common, name, labels } => {
                put(&common, &name, "labels", &NewLabels { labels }, "has new labels").await
            }
            Self::Delete { common, name } => {
                common.connect()?.client.delete(&path(&name)).await?;
                eprintln!("removed agent {}; its runs are kept", plain(&name));
                Ok(())
            }
        }
    }
}

/// Returns the line below an agent's row: its labels, the errors of its engines, and why it takes no runs.
fn below(agent: &Agent) -> String {
    let faults = agent.about.iter().flat_map(|about| &about.engines).filter_map(|engine| engine.fault.clone());
    let labels = Some(agent.labels.join(", ")).filter(|labels| !labels.is_empty());
    let fault = agent.fault.as_ref().map(|fault| format!("takes no runs: {fault}"));
    plain(&labels.into_iter().chain(faults).chain(fault).collect::<Vec<_>>().join(" · "))
}

fn path(name: &str) -> String {
    format!("api/v1/agents/{}", encoded(name))
}

async fn set_availability(
    common: &Common,
    name: &str,
    availability: Availability,
    sentence: &str,
) -> anyhow::Result<()> {
    put(common, name, "availability", &NewAvailability { availability }, sentence).await
}

/// Replaces a property of an agent. With `--json`, prints the agent.
async fn put(
    common: &Common,
    name: &str,
    what: &str,
    body: &(impl serde::Serialize + Sync),
    sentence: &str,
) -> anyhow::Result<()> {
    let client = common.connect()?.client;
    let path = format!("{}/{what}", path(name));
    let agent: Agent = client.json(client.request(Method::PUT, &path).json(body)).await?;
    eprintln!("{} {sentence}", plain(name));
    common.print(&agent, |_| String::new())
}
