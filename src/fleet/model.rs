//! Types of stored agents and of the API. Pure.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use brewbench_wire::{
    engine::EngineOffer,
    messages::{GeneratorsOffer, Hello},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::AgentId;

/// An agent: its id for what is stored, its name for what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAgent {
    /// Id.
    pub id: AgentId,
    /// Its name now.
    pub name: String,
}

/// Lifetime of a one-time key, ms.
pub const ONE_TIME_LIFE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// An agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Unique name.
    pub name: String,
    /// Whether it is connected now.
    pub connected: bool,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms.
    pub revoked_at_ms: Option<i64>,
    /// Unix ms.
    pub last_seen_at_ms: Option<i64>,
    /// What it reported when it last connected.
    pub about: Option<About>,
    /// Whether it is enabled, drained or disabled.
    #[serde(default)]
    pub availability: Availability,
    /// When the availability changed, unix ms; null if it never did.
    #[serde(default)]
    pub availability_at_ms: Option<i64>,
    /// Who changed the availability.
    #[serde(default)]
    pub availability_by: Option<String>,
    /// Why it takes no runs now, such as a full disk; null if it does.
    #[serde(default)]
    pub fault: Option<String>,
    /// Its labels, in alphabetical order.
    #[serde(default)]
    pub labels: Vec<String>,
    /// When its one-time key expires, unix ms; null once it has its own key.
    #[serde(default)]
    pub one_time_key_expires_at_ms: Option<i64>,
    /// When it got its current key, unix ms.
    #[serde(default)]
    pub key_at_ms: Option<i64>,
    /// When a key rotation was requested that is still pending, unix ms.
    #[serde(default)]
    pub rotation_requested_at_ms: Option<i64>,
}

impl Agent {
    /// Returns its state: `connected`, `drained`, `away`, `never seen`, `disabled` or `revoked`.
    pub fn state(&self) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { availability: Availability::Disabled, .. } => "disabled",
            Self { connected: true, availability: Availability::Drained, .. } => "drained",
            Self { connected: true, .. } => "connected",
            Self { last_seen_at_ms: None, .. } => "never seen",
            _ => "away",
        }
    }
}

/// Returns each label with the names of the agents that have it, without revoked agents.
pub fn labels(agents: &[Agent]) -> BTreeMap<String, Vec<String>> {
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| agent.revoked_at_ms.is_none()) {
        for label in &agent.labels {
            labels.entry(label.clone()).or_default().push(agent.name.clone());
        }
    }
    labels
}

/// Whether an agent gets runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// It gets runs.
    #[default]
    Enabled,
    /// It finishes its run and gets no more.
    Drained,
    /// It may not connect, and its run is aborted.
    Disabled,
}

impl Availability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Enabled, Self::Drained, Self::Disabled];

    /// Returns the text stored in the database and used in JSON and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drained => "drained",
            Self::Disabled => "disabled",
        }
    }
}

impl std::str::FromStr for Availability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|availability| availability.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not an availability, use enabled, drained or disabled"))
    }
}

/// The new availability of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAvailability {
    /// The availability.
    pub availability: Availability,
}

/// The new labels of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLabels {
    /// They replace all labels; at most 40 characters each.
    pub labels: Vec<String>,
}

/// A new name for an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    /// The name.
    pub name: String,
}

/// What an agent reports about itself and its machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct About {
    /// Hostname of its machine.
    pub hostname: String,
    /// Processors that it may use.
    pub cores: u32,
    /// Physical cores of these processors; null if the agent is too old to report it.
    #[serde(default)]
    pub physical_cores: Option<u32>,
    /// The machine's memory.
    pub memory_bytes: u64,
    /// E.g. `Linux 6.12.9`.
    pub kernel: String,
    /// How it limits CPU time: `cgroup2`, `cgroup1` or `none`.
    pub cpu: String,
    /// How it limits memory: `cgroup2`, `cgroup1` or `none`.
    pub memory: String,
    /// Its load generators.
    pub engines: Vec<AgentEngine>,
    /// Version of brewbench.
    pub version: String,
    /// Names of its targets.
    pub targets: Vec<String>,
    /// Whether it runs scripts that are not bundled.
    pub any_scenario: bool,
    /// Its clock minus the server's when it connected, ms.
    pub clock_offset_ms: i64,
    /// Address on which its targets accept load from other agents; null if they do not.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub load_address: Option<IpAddr>,
    /// The load generators that it may start in its cluster; null if it may start none.
    #[serde(default)]
    pub cluster_generators: Option<ClusterGenerators>,
}

/// Load generators that an agent may start as Pods of its cluster.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClusterGenerators {
    /// How many a run may have.
    pub most: u32,
    /// Cores of each.
    pub vcpus: f64,
    /// Memory of each.
    pub memory_bytes: u64,
}

/// A load generator on an agent's machine.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentEngine {
    /// Its kind: `k6`.
    pub name: String,
    /// Its version, e.g. `1.8.1`.
    pub version: String,
    /// Path of the program; null if unknown.
    pub path: Option<String>,
    /// Versions that the agent supports, e.g. `1.x … 2.x`; null if unknown.
    pub supported: Option<String>,
    /// Why the agent cannot use it; null if it can.
    pub fault: Option<String>,
}

impl About {
    /// Returns the number of physical cores if it is less than the number of processors.
    pub fn hyperthreaded(&self) -> Option<u32> {
        self.physical_cores.filter(|physical| *physical < self.cores)
    }

    /// Lists its load generators, e.g. `k6 1.8.1`.
    pub fn engine_list(&self) -> String {
        self.engines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl ClusterGenerators {
    /// Converts the offer in an agent's hello message.
    pub fn from_offer(offer: &GeneratorsOffer) -> Self {
        let GeneratorsOffer { most, vcpus, memory_bytes } = *offer;
        Self { most, vcpus, memory_bytes }
    }
}

impl AgentEngine {
    /// Converts the offer in an agent's hello message.
    pub fn from_offer(offer: &EngineOffer) -> Self {
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

/// Returns why an agent cannot use any of its load generators; `None` if it can use one.
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

/// A new agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewAgentKey {
    /// Name of the agent.
    pub name: String,
}

/// Returns the name of an agent in the audit log.
pub fn audit_name(name: &str) -> String {
    format!("agent {name}")
}
