//! What an agent is asked to do: one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::RunId;
use super::engine::Capability;
use super::load::Load;

/// One run as the agent gets it. It names a target of the agent's own; it can't bring one along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The run that this job fills.
    pub run: RunId,
    /// Name of a target in the agent's manifests.
    pub target: String,
    /// The machine size that the target gets.
    pub size: Size,
    /// The script and its data files.
    pub scenario: Scenario,
    /// Given to the script as environment (`__ENV`), over the scenario's own defaults.
    pub parameters: BTreeMap<String, String>,
    /// How hard and how long.
    pub load: Load,
    /// How long the script runs before its figures count; 0 for no warm-up.
    pub warm_up_ms: u64,
    /// Until when it goes on at most until the target is steady; nothing where it lasts as long as `warm_up_ms` says.
    #[serde(default)]
    pub warm_up_max_ms: Option<u64>,
    /// What this agent does of it.
    #[serde(default)]
    pub role: Role,
}

impl Job {
    /// What the load generator must be able to do for it.
    pub fn needs(&self) -> Vec<Capability> {
        use Capability::{Pausing, Percentiles, Scripts, Segments, Series};
        let role: &[Capability] = match self.role {
            Role::Host => return Vec::new(),
            Role::Alone => &[],
            // The results of the segments are added up from their histograms.
            Role::Generator(_) => &[Segments, Pausing, Series, Percentiles],
        };
        let script = (self.load == Load::Script).then_some(Scripts);
        // Whether the target is steady shows in the figures of the seconds.
        let warm_up = self.warm_up_max_ms.map(|_| Series);
        role.iter().copied().chain(script).chain(warm_up).collect()
    }
}

/// What one agent does of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Role {
    /// All of it.
    #[default]
    Alone,
    /// It runs the target; others make the load.
    Host,
    /// It makes one part of the load on a target that another agent runs.
    Generator(Segment),
}

/// One of several equal parts of a load, as k6's execution segments split it: VUs and rates of all parts together are
/// exactly those of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Which, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Segment {
    /// `--execution-segment`: `1/3:2/3`.
    pub fn segment(self) -> String {
        format!("{}:{}", self.edge(self.index), self.edge(self.index.saturating_add(1)))
    }

    /// `--execution-segment-sequence`, the same for all parts: `0,1/3,2/3,1`.
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

/// What the target may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// As people call it, e.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores; 0.5 is half of one.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
}

/// Which load generator a scenario is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioKind {
    /// A k6 script.
    #[default]
    K6,
}

/// A script with everything it opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// As people call it.
    pub name: String,
    /// Which load generator runs it.
    #[serde(default)]
    pub kind: ScenarioKind,
    /// The script's text.
    pub script: String,
    /// Files that the script opens, by plain name, next to the script.
    pub files: BTreeMap<String, String>,
    /// Parameters and the values they have unless a submission says otherwise.
    pub defaults: BTreeMap<String, String>,
}

impl Scenario {
    /// SHA-256 in hex over script, files and defaults: the name of this revision.
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

    /// All of a run, with the load of a bundled script.
    pub(crate) fn a_job() -> Job {
        Job {
            run: RunId::now(),
            target: "t".to_owned(),
            size: Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 1 },
            scenario: crate::scenarios::bundled().remove(0),
            parameters: BTreeMap::new(),
            load: Load::Script,
            warm_up_ms: 0,
            warm_up_max_ms: None,
            role: Role::Alone,
        }
    }

    #[test]
    fn segments_are_told_in_k6_s_words() {
        let part = |index, of| Segment { index, of };
        assert_eq!(part(0, 1).segment(), "0:1");
        assert_eq!(part(0, 1).sequence(), "0,1");
        let all: Vec<String> = (0..3).map(|index| part(index, 3).segment()).collect();
        assert_eq!(all, ["0:1/3", "1/3:2/3", "2/3:1"]);
        assert_eq!(part(1, 3).sequence(), "0,1/3,2/3,1");
    }

    #[test]
    fn a_job_that_says_nothing_of_its_role_is_all_of_it() {
        assert_eq!(Role::default(), Role::Alone);
        for role in [Role::Alone, Role::Host, Role::Generator(Segment { index: 1, of: 2 })] {
            let text = serde_json::to_string(&role).expect("written");
            assert_eq!(serde_json::from_str::<Role>(&text).expect("read"), role, "{text}");
        }
    }
}
