//! Load generators in the protocol: kind, version and capabilities.

use serde::{Deserialize, Serialize};

/// A kind of load generator that a run can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// k6, which executes scripts.
    #[default]
    K6,
    /// brewbench's own, which sends the requests of a list.
    Native,
    /// wrk, which sends one request by constant connections, and reports totals only.
    Wrk,
}

impl EngineKind {
    /// The names, in the order of the variants.
    pub const NAMES: [&str; 3] = ["k6", "native", "wrk"];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the one that writes the results of a tool; k6 for tools that are none.
    pub fn of_tool(tool: &str) -> Self {
        tool.parse().unwrap_or_default()
    }

    /// Returns its capabilities.
    pub fn capabilities(self) -> &'static [Capability] {
        use Capability::{Http1, Http2, Pausing, Percentiles, Pods, RatesAndStages, Scripts, Segments, Series, Turns};
        match self {
            Self::K6 => &[Scripts, RatesAndStages, Segments, Pausing, Series, Percentiles, Pods, Http1],
            Self::Native => &[RatesAndStages, Segments, Pausing, Series, Percentiles, Turns, Http1, Http2],
            Self::Wrk => &[Http1],
        }
    }
}

impl std::str::FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::K6, Self::Native, Self::Wrk].into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("must be one of {}", Self::NAMES.join(", ")))
    }
}

/// A load generator and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct EngineVersion {
    /// Its kind, e.g. `k6`.
    pub name: String,
    /// E.g. `1.8.1`.
    pub version: String,
}

/// Up to protocol 6 the only engine was k6, and only its version was sent. Such outcomes may still wait on disk.
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

/// A capability that only some load generators have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Generate the load in a script's options.
    Scripts,
    /// Generate a load other than a constant number of virtual users.
    RatesAndStages,
    /// Generate one segment of a load.
    Segments,
    /// Start paused and wait for a signal.
    Pausing,
    /// Report metrics every second.
    Series,
    /// Report latencies from which any percentile can be computed.
    Percentiles,
    /// Run in Pods of a cluster.
    Pods,
    /// Take turns with another load.
    Turns,
    /// Send all requests with HTTP/1.1.
    Http1,
    /// Send all requests with HTTP/2, also without TLS.
    Http2,
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scripts => "run a script's own load",
            Self::RatesAndStages => "send requests at a rate or in stages",
            Self::Segments => "generate a segment of a load",
            Self::Pausing => "wait for the other generators",
            Self::Series => "report metrics every second",
            Self::Percentiles => "report all percentiles",
            Self::Pods => "run in Pods",
            Self::Turns => "take turns with another load",
            Self::Http1 => "force HTTP/1.1",
            Self::Http2 => "force HTTP/2 (auto uses it if the target offers it with TLS)",
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
    /// Path of the program.
    pub path: String,
    /// Versions that the agent supports, e.g. `1.x … 2.x`.
    pub supported: String,
    /// Why the agent can't use it, as a sentence; absent if it can.
    pub fault: Option<String>,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
}

impl EngineOffer {
    /// Returns its kind and version.
    pub fn version(&self) -> EngineVersion {
        EngineVersion { name: self.name.clone(), version: self.version.clone() }
    }

    /// Returns the first of these capabilities that it lacks.
    pub fn first_missing(&self, needed: &[Capability]) -> Option<Capability> {
        needed.iter().copied().find(|capability| !self.capabilities.contains(capability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_version_of_protocol_6_is_that_of_k6() {
        let read = |text: &str| serde_json::from_str::<EngineVersion>(text).expect("an engine").to_string();
        assert_eq!(read(r#""1.8.1""#), "k6 1.8.1");
        assert_eq!(read(r#"{"name": "wrk", "version": "4.2"}"#), "wrk 4.2");
        assert!(serde_json::from_str::<EngineVersion>("7").is_err());
    }
}
