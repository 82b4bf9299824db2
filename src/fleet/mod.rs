//! Agents: their keys, who is connected, what each can do and may take.

pub mod admin;
pub mod api;
pub mod enrolment;
pub mod inspection;
pub mod presence;
pub mod queries;

use std::{collections::BTreeMap, net::IpAddr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use presence::{Connected, Presence};

use crate::state::AppState;

/// An agent as lists show it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The name that the server's owner gave it.
    pub name: String,
    /// Whether it is connected now.
    pub connected: bool,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms.
    pub revoked_at_ms: Option<i64>,
    /// Unix ms.
    pub last_seen_at_ms: Option<i64>,
    /// What it said of itself when it connected last.
    pub about: Option<About>,
    /// What it may take.
    #[serde(default)]
    pub standing: Standing,
    /// Since when, unix ms; null where nobody has ever changed it.
    #[serde(default)]
    pub standing_at_ms: Option<i64>,
    /// Who said so.
    #[serde(default)]
    pub standing_by: Option<String>,
    /// What people call it, by the alphabet.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Until when its one-time key can be exchanged, unix ms; null once it has a key of its own.
    #[serde(default)]
    pub enrols_until_ms: Option<i64>,
    /// Since when it has its present key, unix ms.
    #[serde(default)]
    pub key_at_ms: Option<i64>,
    /// Since when it is to make itself another key and has not, unix ms.
    #[serde(default)]
    pub key_change_asked_at_ms: Option<i64>,
}

impl Agent {
    /// Where it is: `connected`, `drained`, `away`, `never seen`, `disabled` or `revoked`.
    pub fn state(&self) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { standing: Standing::Disabled, .. } => "disabled",
            Self { connected: true, standing: Standing::Drained, .. } => "drained",
            Self { connected: true, .. } => "connected",
            Self { last_seen_at_ms: None, .. } => "never seen",
            _ => "away",
        }
    }
}

/// What people call agents whose keys go on: each label with the names of those that have it.
pub fn labels(agents: &[Agent]) -> BTreeMap<String, Vec<String>> {
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| agent.revoked_at_ms.is_none()) {
        for label in &agent.labels {
            labels.entry(label.clone()).or_default().push(agent.name.clone());
        }
    }
    labels
}

/// What an agent may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Whatever it can do.
    #[default]
    Enabled,
    /// Nothing new: it finishes what it does.
    Drained,
    /// Nothing: it is not let in, and what it does is given up.
    Disabled,
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Enabled, Self::Drained, Self::Disabled];

    /// The word for columns, JSON and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drained => "drained",
            Self::Disabled => "disabled",
        }
    }
}

impl std::str::FromStr for Standing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|standing| standing.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is none of enabled, drained, disabled"))
    }
}

/// What an agent is to take from now on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStanding {
    /// What it may take.
    pub standing: Standing,
}

/// What people are to call an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLabels {
    /// In place of those that it had; at most 40 characters each.
    pub labels: Vec<String>,
}

/// Another name for an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    /// The name.
    pub name: String,
}

/// What an agent said of itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct About {
    /// Its machine's name on the network.
    pub hostname: String,
    /// Cores that it may use.
    pub cores: u32,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// E.g. `Linux 6.12.9`.
    pub kernel: String,
    /// What it limits CPU time with: `cgroup2`, `cgroup1`, `none`.
    pub cpu: String,
    /// What it limits memory with.
    pub memory: String,
    /// Of its k6.
    pub k6_version: String,
    /// Of its program.
    pub version: String,
    /// Names of its targets.
    pub targets: Vec<String>,
    /// Whether it runs scripts that did not come with it.
    pub any_scenario: bool,
    /// Its clock minus the server's when it connected, ms.
    pub clock_offset_ms: i64,
    /// Where its targets listen for load from other agents; null where they don't.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub load_address: Option<IpAddr>,
}

/// All agents.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<Agent>,
}

/// A key to be made for an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewAgentKey {
    /// What the agent is to be called.
    pub name: String,
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::agents))
        .routes(routes!(api::new_key))
        .routes(routes!(api::revoke_key))
        .routes(routes!(admin::set_standing))
        .routes(routes!(admin::set_labels))
        .routes(routes!(admin::ask_key_change))
        .routes(routes!(admin::forget_agent))
        .routes(routes!(enrolment::enrol))
        .routes(routes!(enrolment::change_key))
        .routes(routes!(enrolment::whoami))
        .routes(routes!(inspection::add_scenario))
        .routes(routes!(inspection::check_scenario))
}
