//! A job: the request to an agent to execute one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::RunId;
use super::engine::Capability;
use super::load::Load;

/// A run as sent to an agent. It names a target in the agent's manifests and can't include one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The run.
    pub run: RunId,
    /// Its experiment, if it belongs to one.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Name of a target in the agent's manifests.
    pub target: String,
    /// The machine size of the target.
    pub size: Size,
    /// The script and its data files.
    pub scenario: Scenario,
    /// Environment of the script (`__ENV`); overrides the scenario's defaults.
    pub parameters: BTreeMap<String, String>,
    /// Level and duration of the load.
    pub load: Load,
    /// Duration of the warm-up; 0 for none.
    pub warm_up_ms: u64,
    /// Maximum duration of a warm-up that ends when the target is level; `None` for a fixed `warm_up_ms`.
    #[serde(default)]
    pub warm_up_max_ms: Option<u64>,
    /// This agent's part of the run.
    #[serde(default)]
    pub role: Role,
    /// Whether the target is profiled during the measurement.
    #[serde(default)]
    pub profiled: bool,
    /// Number of load generators in the agent's cluster; 0 if the agent itself generates the load.
    #[serde(default)]
    pub cluster_generators: u32,
}

impl Job {
    /// Returns the capabilities that the load generator must have.
    pub fn needs(&self) -> Vec<Capability> {
        use Capability::{Pausing, Percentiles, Scripts, Segments, Series};
        let role: &[Capability] = match self.role {
            Role::Host => return Vec::new(),
            Role::Alone => &[],
            // Results of segments are merged from their histograms.
            Role::Generator(_) => &[Segments, Pausing, Series, Percentiles],
        };
        let script = (self.load == Load::Script).then_some(Scripts);
        // Whether the target is level is decided by per-second data.
        let warm_up = self.warm_up_max_ms.map(|_| Series);
        role.iter().copied().chain(script).chain(warm_up).collect()
    }
}

/// One agent's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    #[default]
    Alone,
    /// Runs the target; others generate the load.
    Host,
    /// Generates one part of the load on a target that another agent runs.
    Generator(Segment),
}

/// One of several equal parts of a load, as split by k6's execution segments: VUs and rates of all parts add up
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Index, from 0.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl Segment {
    /// Returns the value of `--execution-segment`: `1/3:2/3`.
    pub fn segment(self) -> String {
        format!("{}:{}", self.edge(self.index), self.edge(self.index.saturating_add(1)))
    }

    /// Returns the value of `--execution-segment-sequence`, the same for all parts: `0,1/3,2/3,1`.
    pub fn sequence(self) -> String {
        (0..=self.of).map(|at| self.edge(at)).collect::<Vec<_>>().join(",")
    }

    fn edge(self, at: u32) -> String {
        match at {
            0 => "0".to_owned(),
            at if at >= self.of => "1".to_owned(),
            at => format!("{at}/{}", self.of),
        }
    }
}

/// Maximum number of replicas of a target.
pub const MAX_REPLICAS: u32 = 100;

/// Resources available to the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// Display name, e.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores; 0.5 is half of one.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
    /// Number of equal instances that share the load, each with these cores and this memory.
    #[serde(default = "one")]
    pub replicas: u32,
}

const fn one() -> u32 {
    1
}

/// The load generator that a scenario is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioKind {
    /// A k6 script.
    #[default]
    K6,
}

/// A script with its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// Display name.
    pub name: String,
    /// The load generator that runs it.
    #[serde(default)]
    pub kind: ScenarioKind,
    /// Text of the script.
    pub script: String,
    /// Files that the script opens, by name, next to the script.
    pub files: BTreeMap<String, String>,
    /// Parameters and their default values.
    pub defaults: BTreeMap<String, String>,
}

impl Scenario {
    /// Returns the SHA-256 of script, files and defaults in hex, which identifies this revision.
    pub fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        let mut feed = |text: &str| {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        feed(&self.script);
        for part in [&self.files, &self.defaults] {
            feed(&part.len().to_string());
            for (name, text) in part {
                feed(name);
                feed(text);
            }
        }
        hex(&hasher.finalize())
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a job for a complete run, with the load of a bundled script.
    pub(crate) fn a_job() -> Job {
        Job {
            run: RunId::now(),
            experiment: None,
            target: "t".to_owned(),
            size: Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 1, replicas: 1 },
            scenario: crate::scenarios::bundled().remove(0),
            parameters: BTreeMap::new(),
            load: Load::Script,
            warm_up_ms: 0,
            warm_up_max_ms: None,
            role: Role::Alone,
            profiled: false,
            cluster_generators: 0,
        }
    }

    #[test]
    fn segments_are_formatted_for_k6() {
        let part = |index, of| Segment { index, of };
        assert_eq!(part(0, 1).segment(), "0:1");
        assert_eq!(part(0, 1).sequence(), "0,1");
        let all: Vec<String> = (0..3).map(|index| part(index, 3).segment()).collect();
        assert_eq!(all, ["0:1/3", "1/3:2/3", "2/3:1"]);
        assert_eq!(part(1, 3).sequence(), "0,1/3,2/3,1");
    }

    #[test]
    fn a_job_without_a_role_is_the_complete_run() {
        assert_eq!(Role::default(), Role::Alone);
        for role in [Role::Alone, Role::Host, Role::Generator(Segment { index: 1, of: 2 })] {
            let text = serde_json::to_string(&role).expect("written");
            assert_eq!(serde_json::from_str::<Role>(&text).expect("read"), role, "{text}");
        }
    }
}
