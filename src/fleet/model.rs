//! Agents as stored and as the API describes them. Pure.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use brewbench_agent::wire::{engine::EngineOffer, messages::Hello};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// Processors that it may use.
    pub cores: u32,
    /// Physical cores that these are on; null where the agent is too old to report it.
    #[serde(default)]
    pub physical_cores: Option<u32>,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// E.g. `Linux 6.12.9`.
    pub kernel: String,
    /// What it limits CPU time with: `cgroup2`, `cgroup1`, `none`.
    pub cpu: String,
    /// What it limits memory with.
    pub memory: String,
    /// Its load generators.
    pub engines: Vec<AgentEngine>,
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

/// A load generator on an agent's machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentEngine {
    /// Its kind: `k6`.
    pub name: String,
    /// Its version, e.g. `1.8.1`.
    pub version: String,
    /// Where it is; null where that is not known.
    pub path: Option<String>,
    /// The versions that the agent supports, e.g. `1.x … 2.x`; null where that is not known.
    pub supported: Option<String>,
    /// Why the agent can't use it, and so is refused: a sentence; null where it can.
    pub fault: Option<String>,
}

impl About {
    /// How many physical cores it has, where these are fewer than its processors.
    pub fn hyperthreaded(&self) -> Option<u32> {
        self.physical_cores.filter(|physical| *physical < self.cores)
    }

    /// Its load generators, e.g. `k6 1.8.1`.
    pub fn engine_list(&self) -> String {
        self.engines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl AgentEngine {
    /// From an agent's introduction.
    pub fn of(offer: &EngineOffer) -> Self {
        let EngineOffer { name, version, path, supported, fault, capabilities: _ } = offer.clone();
        Self { name, version, path: Some(path), supported: Some(supported), fault }
    }
}

impl fmt::Display for AgentEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version, fault, .. } = self;
        write!(f, "{name} {version}{}", if fault.is_some() { " (not supported)" } else { "" })
    }
}

/// Why an agent can't use its load generators: a sentence; none where it can use one.
pub fn engine_fault(hello: &Hello) -> Option<String> {
    let mut faults = hello.engines.iter().map(|engine| engine.fault.clone());
    let first = faults.next().unwrap_or_else(|| Some("this agent has no load generator".to_owned()))?;
    faults.all(|fault| fault.is_some()).then_some(first)
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
