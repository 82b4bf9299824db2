//! Agents: their keys, who is connected, what each can do.

pub mod api;
pub mod inspection;
pub mod presence;
pub mod queries;

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
}

impl Agent {
    /// Where it is: `connected`, `away`, `never seen` or `revoked`.
    pub fn state(&self) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { connected: true, .. } => "connected",
            Self { last_seen_at_ms: None, .. } => "never seen",
            _ => "away",
        }
    }
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
        .routes(routes!(inspection::add_scenario))
        .routes(routes!(inspection::check_scenario))
}
