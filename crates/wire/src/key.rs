//! The keys of agents: their prefixes, and how an agent registers its own. Pure.

use serde::{Deserialize, Serialize};

/// Prefix of one-time keys.
pub const ONE_TIME: &str = "bbo_";
/// Prefix of agents' own keys.
pub const AGENT: &str = "bba_";

/// Registers a key that an agent created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewKey {
    /// SHA-256 of the key, in hex.
    pub key_sha256: String,
}

/// The agent that a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// Its name, assigned on the server.
    pub name: String,
}
