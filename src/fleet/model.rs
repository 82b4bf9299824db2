//! Agents as stored and as the API describes them. Pure.

use std::{collections::BTreeMap, net::IpAddr};

use brewbench_agent::{
    engine::{SUPPORTED_BEFORE_PROTOCOL_6, Version},
    wire::messages::Hello,
};
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
    /// Where its k6 is; null where the agent is too old to report it.
    #[serde(default)]
    pub k6_path: Option<String>,
    /// Versions of k6 that it supports, e.g. `1.x … 2.x`; null where nobody knew when it connected last.
    #[serde(default)]
    pub k6_supported: Option<String>,
    /// Why it can't use its k6, and so is not let in: a sentence; null where it can.
    #[serde(default)]
    pub k6_fault: Option<String>,
}

impl About {
    /// How many physical cores it has, where these are fewer than its processors.
    pub fn hyperthreaded(&self) -> Option<u32> {
        self.physical_cores.filter(|physical| *physical < self.cores)
    }

    /// The version of its k6, and whether it is one that the agent does not support.
    pub fn engine(&self) -> String {
        let Self { k6_version, k6_fault, .. } = self;
        if k6_fault.is_some() { format!("{k6_version} (not supported)") } else { k6_version.clone() }
    }
}

/// Why an agent can't use its k6: a sentence. Agents before protocol 6 do not know it themselves.
pub fn k6_fault(hello: &Hello) -> Option<String> {
    if let Some(support) = &hello.engine {
        return support.fault.clone();
    }
    let version = Version::parse(&hello.k6_version)?;
    let Hello { version: program, .. } = hello;
    (!SUPPORTED_BEFORE_PROTOCOL_6.covers(&version)).then(|| {
        format!(
            "this agent's k6 is {version}, and brewbench {program}, which the agent runs, supports \
             {SUPPORTED_BEFORE_PROTOCOL_6} only: upgrade the agent"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_before_protocol_6_are_told_of_a_k6_that_they_do_not_support() {
        let hello = |k6: &str| -> Hello {
            serde_json::from_value(serde_json::json!({
                "protocol": 5, "version": "0.1.0", "now_ms": 0, "k6_version": k6, "targets": [], "any_scenario": false,
                "running": null, "holds": [],
                "machine": {"hostname": "rack", "cores": 2, "memory_bytes": 1, "kernel": "Linux", "cpu_model": "a CPU",
                    "cpu": "none", "memory": "none"},
            }))
            .expect("an introduction")
        };
        assert_eq!(k6_fault(&hello("1.8.1")), None);
        assert_eq!(k6_fault(&hello("unknown")), None);
        let fault = k6_fault(&hello("2.2.0")).expect("a fault");
        assert!(fault.contains("k6 is 2.2.0") && fault.contains("supports 1.x only: upgrade the agent"), "{fault}");
    }
}
