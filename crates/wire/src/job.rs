//! A job: the request to an agent to execute one run.

use serde::{Deserialize, Serialize};

use super::RunId;
use super::engine::Capability;
use super::run_spec::RunSpec;
use super::scenario::Scenario;

/// A run as sent to an agent. It names a target in the agent's manifests and can't include one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The run.
    pub run: RunId,
    /// Its experiment, if it belongs to one.
    #[serde(default)]
    pub experiment: Option<String>,
    /// All targets of that experiment, so that those that the agent builds are built under the same packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// What it measures.
    pub spec: RunSpec,
    /// The script and its files.
    pub scenario: Scenario,
    /// This agent's part of the run.
    #[serde(default)]
    pub role: Role,
    /// The other run of a duet, which starts and ends with this one.
    #[serde(default)]
    pub partner: Option<Partner>,
}

/// The other run of a duet. Everything but its target is alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    /// The run.
    pub run: RunId,
    /// Name of its target.
    pub target: String,
}

impl Job {
    /// Explains why an agent must not execute it: a server is not trusted with more than a run may need.
    pub fn fault(&self) -> Option<String> {
        let Self { spec, scenario, .. } = self;
        let named = spec.parameters.len() + scenario.defaults.len();
        let too_many = || format!("a scenario has at most {MAX_PARAMETERS} parameters");
        let pair = || match &self.partner {
            Some(partner) if partner.run == self.run => Some("a run can't be its own partner".to_owned()),
            partner if partner.is_some() != spec.duet => Some("a duet has two runs".to_owned()),
            _ => None,
        };
        spec.fault().or_else(|| (named > MAX_PARAMETERS).then(too_many)).or_else(pair)
    }

    /// Returns the job of the other run of a duet.
    pub fn of_partner(&self) -> Option<Self> {
        let Partner { run, target } = self.partner.clone()?;
        let partner = Some(Partner { run: self.run, target: self.spec.target.clone() });
        Some(Self { run, spec: RunSpec { target, ..self.spec.clone() }, partner, ..self.clone() })
    }

    /// Returns the capabilities that the load generator must have.
    pub fn needs(&self) -> Vec<Capability> {
        use Capability::{Pausing, Percentiles, Segments, Series};
        let role: &[Capability] = match self.role {
            Role::Host => return Vec::new(),
            Role::Alone => &[],
            // Results of segments are merged from their histograms.
            Role::Generator(_) => &[Segments, Pausing, Series, Percentiles],
        };
        role.iter().copied().chain(self.spec.needs().into_iter().map(|(_, capability)| capability)).collect()
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
#[serde(try_from = "Unchecked")]
pub struct Segment {
    /// Index, from 0.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

/// A segment as sent, of any number of parts.
#[derive(Deserialize)]
struct Unchecked {
    index: u32,
    of: u32,
}

impl TryFrom<Unchecked> for Segment {
    type Error = String;

    fn try_from(Unchecked { index, of }: Unchecked) -> Result<Self, Self::Error> {
        if (1..=MAX_GENERATORS).contains(&of) && index < of {
            return Ok(Self { index, of });
        }
        Err(format!("there is no part {index} of {of}: a load has 1 to {MAX_GENERATORS} parts, from 0"))
    }
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

/// Maximum number of load generators of a run.
pub const MAX_GENERATORS: u32 = 1_000;

/// Maximum number of those that one agent starts in a cluster: it merges their series.
pub const MAX_CLUSTER_GENERATORS: u32 = 100;

/// Maximum number of parameters and defaults together.
const MAX_PARAMETERS: usize = 10_000;

/// Maximum number of replicas of a target.
pub const MAX_REPLICAS: u32 = 100;

/// A machine size: what the target gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = RunSize)]
pub struct Size {
    /// E.g. `2 vCPU / 4 GiB`.
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

impl Size {
    /// Returns the cores of all replicas.
    pub fn total_vcpus(&self) -> f64 {
        self.vcpus * f64::from(self.replicas)
    }

    /// Returns the memory of all replicas.
    pub fn total_memory_bytes(&self) -> u64 {
        self.memory_bytes.saturating_mul(self.replicas.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::MAX_DURATION;
    use crate::samples::a_job;

    #[test]
    fn more_parts_than_a_run_has_are_refused() {
        let read = |index: u32, of: u32| {
            serde_json::from_value::<Segment>(serde_json::json!({"index": index, "of": of})).is_ok()
        };
        assert!(read(0, 1) && read(999, 1_000));
        assert!(!read(0, 300_000_000) && !read(0, 0) && !read(1, 1));
        assert_eq!(a_job().fault(), None);
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

    proptest::proptest! {
        #[test]
        fn whatever_a_server_sends_costs_little(index: u32, of: u32, warm_up_s: f64, auto: bool, vcpus: f64, pods: u32) {
            let sent = serde_json::json!({"index": index, "of": of});
            if let Ok(segment) = serde_json::from_value::<Segment>(sent) {
                let text = segment.sequence().len() + segment.segment().len();
                proptest::prop_assert!(text <= 16 * MAX_GENERATORS as usize, "{} bytes", text);
            }
            let mut job = a_job();
            job.spec.size = job.spec.size.map(|size| Size { vcpus, ..size });
            job.spec = RunSpec { warm_up_s: Some(warm_up_s), warm_up_auto: auto, cluster_generators: pods, ..job.spec };
            if job.fault().is_none() {
                proptest::prop_assert!(job.spec.longest_warm_up() <= MAX_DURATION && pods <= MAX_GENERATORS);
                proptest::prop_assert!(vcpus > 0.0 && vcpus.is_finite());
            }
        }
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
