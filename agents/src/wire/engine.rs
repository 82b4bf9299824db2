//! Load generators as they cross the wire: which one an agent has, and what it can do.

use serde::{Deserialize, Serialize};

/// A load generator and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct EngineVersion {
    /// Its kind, e.g. `k6`.
    pub name: String,
    /// E.g. `1.8.1`.
    pub version: String,
}

/// Up to protocol 6 the only engine was k6, and only its version was sent. Outcomes of that time may still wait on disk.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Both { name: String, version: String },
    VersionOfK6(String),
}

impl From<Written> for EngineVersion {
    fn from(written: Written) -> Self {
        match written {
            Written::Both { name, version } => Self { name, version },
            Written::VersionOfK6(version) => Self { name: "k6".to_owned(), version },
        }
    }
}

impl std::fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Something that only some load generators can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Generate the load that a script describes in its own options.
    Scripts,
    /// Generate one segment of a load.
    Segments,
    /// Start, then wait for the signal to begin.
    Pausing,
    /// Report figures every second.
    Series,
    /// Report latencies from which any percentile follows.
    Percentiles,
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scripts => "run a script's own load",
            Self::Segments => "generate a segment of a load",
            Self::Pausing => "wait for the other generators",
            Self::Series => "report figures every second",
            Self::Percentiles => "report all percentiles",
        })
    }
}

/// A load generator on an agent's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOffer {
    /// Its kind, e.g. `k6`.
    pub name: String,
    /// E.g. `1.8.1`.
    pub version: String,
    /// The program's file.
    pub path: String,
    /// The versions that the agent supports, e.g. `1.x … 2.x`.
    pub supported: String,
    /// Why the agent can't use it: a sentence; absent where it can.
    pub fault: Option<String>,
    /// What it can do.
    pub capabilities: Vec<Capability>,
}

impl EngineOffer {
    /// Its kind and version.
    pub fn version(&self) -> EngineVersion {
        EngineVersion { name: self.name.clone(), version: self.version.clone() }
    }

    /// The first of these capabilities that it does not have.
    pub fn lacks(&self, needed: &[Capability]) -> Option<Capability> {
        needed.iter().copied().find(|capability| !self.capabilities.contains(capability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_version_of_protocol_6_is_one_of_k6() {
        let read = |text: &str| serde_json::from_str::<EngineVersion>(text).expect("an engine").to_string();
        assert_eq!(read(r#""1.8.1""#), "k6 1.8.1");
        assert_eq!(read(r#"{"name": "wrk", "version": "4.2"}"#), "wrk 4.2");
        assert!(serde_json::from_str::<EngineVersion>("7").is_err());
    }
}
