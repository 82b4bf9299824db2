//! `brewbench fleet …`

use clap::Subcommand;
use reqwest::Method;

use super::{
    agent_key::rows,
    table::{plain, with_below},
};
use crate::{
    cli::{common::Common, connection::encoded},
    fleet::model::{Agent, AgentList, NewLabels, NewName, NewStanding, Standing},
};

/// Commands about agents.
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// List the agents
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Only agents with this label
        #[arg(long)]
        label: Option<String>,
    },
    /// Let an agent finish what it does, and give it nothing more
    Drain {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Cut an agent off and give up what it does, until it is enabled
    Disable {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Give an agent runs again
    Enable {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
    /// Give an agent another name, in its runs as well; it must not be at work
    Rename {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
        /// The new one
        new: String,
    },
    /// Label an agent, in place of the labels that it had; without any it has none
    Label {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
        /// The labels
        labels: Vec<String>,
    },
    /// Forget an agent: its key ends at once, its runs stay
    Forget {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The agent's name
        name: String,
    },
}

impl Fleet {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common, label } => {
                let mut list: AgentList = common.connect()?.client.get("api/v1/agents").await?;
                list.agents.retain(|agent| label.as_ref().is_none_or(|label| agent.labels.contains(label)));
                common.print(&list, |list| {
                    if list.agents.is_empty() && label.is_some() {
                        return "no agent has this label\n".to_owned();
                    }
                    with_below(&rows(&list.agents), list.agents.iter().map(below))
                })
            }
            Self::Drain { common, name } => {
                stand(&common, &name, Standing::Drained, "finishes what it does and gets nothing more").await
            }
            Self::Disable { common, name } => stand(&common, &name, Standing::Disabled, "is cut off").await,
            Self::Enable { common, name } => stand(&common, &name, Standing::Enabled, "gets runs again").await,
            Self::Rename { common, name, new } => {
                let sentence = format!("is called {} from now on", plain(&new));
                put(&common, &name, "name", &NewName { name: new }, &sentence).await
            }
            Self::Label { common, name, labels } => {
                put(&common, &name, "labels", &NewLabels { labels }, "has these labels from now on").await
            }
            Self::Forget { common, name } => {
                common.connect()?.client.delete(&path(&name)).await?;
                eprintln!("{} is forgotten; its runs stay", plain(&name));
                Ok(())
            }
        }
    }
}

/// What stands below an agent's row: its labels, and why it can't work.
fn below(agent: &Agent) -> String {
    let faults = agent.about.iter().flat_map(|about| &about.engines).filter_map(|engine| engine.fault.clone());
    let labels = Some(agent.labels.join(", ")).filter(|labels| !labels.is_empty());
    plain(&labels.into_iter().chain(faults).collect::<Vec<_>>().join(" · "))
}

fn path(name: &str) -> String {
    format!("api/v1/agents/{}", encoded(name))
}

async fn stand(common: &Common, name: &str, standing: Standing, sentence: &str) -> anyhow::Result<()> {
    put(common, name, "standing", &NewStanding { standing }, sentence).await
}

/// Puts something in the place of what an agent had; the agent goes to stdout where JSON is wanted.
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
