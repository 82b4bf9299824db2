//! A stored run, as used by JSON, pages and commands. Pure.

use std::collections::BTreeMap;

use brewbench_agent::wire::{Phase, load::Load, target::TargetKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::{Engine, MachineSize, one_replica},
    metrics::Figures,
    runs::{
        load,
        verdict::{Reason, Verdict},
    },
    web::format,
};

/// Maximum length of an automatic warm-up, as a multiple of its minimum.
pub const WARM_UP_FACTOR: u32 = 10;

/// One run: a single measurement of one target with one size and one load. Unknown values are null, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// UUID; ids sort by time of submission.
    #[schema(value_type = String)]
    pub id: RunId,
    /// The experiment that the run belongs to.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// The failed, lost or invalid run that this run replaces.
    #[schema(value_type = Option<String>)]
    pub retry_of: Option<RunId>,
    /// Labels, sorted alphabetically.
    pub labels: Vec<String>,
    /// Note, as Markdown.
    pub note: Option<String>,
    /// `agent` if measured by an agent, `import` if imported from a summary.
    pub origin: Origin,
    /// Whether the run was interleaved with the other runs of its experiment.
    /// True for runs of agents; for imported runs only if the index of their folder says so.
    #[serde(default)]
    pub interleaved: bool,
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub version: Option<String>,
    /// Machine size of the target.
    pub size: Option<RunSize>,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Hash of the scenario's revision.
    pub scenario_sha256: Option<String>,
    /// Parameters of the scenario that were set in the submission.
    pub parameters: BTreeMap<String, String>,
    /// The load; null for an import.
    #[serde(with = "load::json_if_any")]
    #[schema(value_type = Option<load::LoadBody>)]
    pub load: Option<Load>,
    /// Number of virtual users, if constant.
    pub vus: Option<u32>,
    /// Number of the repetition of its cell, from 1; profiled runs are numbered separately.
    pub repetition: u32,
    /// Whether the target was profiled. Such a run is no measurement: it enters no comparison, trend or gate.
    #[serde(default)]
    pub profiled: bool,
    /// Phase.
    #[schema(value_type = String, example = "finished")]
    pub phase: Phase,
    /// Verdict on a finished run.
    pub verdict: Option<Verdict>,
    /// Reasons for the verdict, and notes.
    pub reasons: Vec<Reason>,
    /// Why the run failed, was lost or was cancelled.
    pub error: Option<String>,
    /// Metrics.
    #[serde(flatten)]
    pub figures: Figures,
    /// Warm-up before the measurement, seconds; the minimum if the warm-up is automatic.
    pub warm_up_s: Option<f64>,
    /// Whether the warm-up is automatic: it lasts until the target is steady.
    #[serde(default)]
    pub warm_up_auto: bool,
    /// Duration of the load, seconds; null if the script's own options set it.
    pub duration_s: Option<f64>,
    /// How the machine size was enforced.
    pub enforced: Option<RunEnforced>,
    /// The agent; in a distributed run, the host that ran the target.
    pub agent: Option<String>,
    /// Agents that generated the load of a distributed run. Percentiles then come from their merged histograms.
    #[serde(default)]
    pub generators: Vec<String>,
    /// Number of load generators in the cluster of the agent; 0 if the load came from agents.
    #[serde(default)]
    pub cluster_generators: u32,
    /// The load generator; null if not yet known.
    pub engine: Option<Engine>,
    /// How the target was provided: `process` or `url`; null if not yet known.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub target_kind: Option<TargetKind>,
    /// What identifies the target: `code:` and a digest of everything that decides how it behaves, `part:` if something of
    /// that can't be read, the id of an image, or a URL. Runs of older agents have the SHA-256 of the executable. Runs with
    /// different ones are not repetitions of each other.
    pub target_identity: Option<String>,
    /// Who submitted it.
    pub created_by: String,
    /// When the run was submitted, unix ms.
    pub queued_at_ms: i64,
    /// When the run entered its phase, unix ms.
    pub phase_at_ms: i64,
    /// When an agent leased the run, unix ms.
    pub started_at_ms: Option<i64>,
    /// When the run ended, unix ms.
    pub finished_at_ms: Option<i64>,
}

/// Where the results of a run come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by an agent.
    Agent,
    /// Imported: k6's summary or text report, or wrk's output.
    Import,
}

/// Machine size of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSize {
    /// E.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
    /// Number of instances that shared the load, each with these cores and this memory.
    #[serde(default = "one_replica")]
    pub replicas: u32,
}

impl From<&MachineSize> for RunSize {
    fn from(size: &MachineSize) -> Self {
        let MachineSize { name, vcpus, memory_bytes, replicas } = size.clone();
        Self { name, vcpus, memory_bytes, replicas }
    }
}

impl RunSize {
    /// Returns the cores of all replicas.
    pub fn total_vcpus(&self) -> f64 {
        self.vcpus * f64::from(self.replicas)
    }

    /// Returns the memory of all replicas.
    pub fn total_memory_bytes(&self) -> u64 {
        self.memory_bytes.saturating_mul(self.replicas.into())
    }
}

/// How a machine size was enforced: `cgroup2`, `cgroup1`, `guest` or `none`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunEnforced {
    /// For CPU time.
    pub cpu: String,
    /// For memory.
    pub memory: String,
}

/// A list of runs, as `run list --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<Run>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Markdown; empty for none.
    pub note: String,
}

/// Describes load generators in a cluster.
pub fn in_cluster(count: u32) -> String {
    if count == 1 { "1 Pod".to_owned() } else { format!("{count} Pods") }
}

impl Run {
    /// Describes which machines generated its load; `None` if that was the agent's own.
    pub fn load_from(&self) -> Option<String> {
        if self.cluster_generators > 0 {
            return Some(in_cluster(self.cluster_generators));
        }
        (!self.generators.is_empty()).then(|| self.generators.join(", "))
    }

    /// Whether the run may be compared: it is finished, not invalid, and was not profiled.
    pub fn counts(&self) -> bool {
        !self.profiled && self.has_result()
    }

    /// Whether the run is finished and not invalid.
    pub fn has_result(&self) -> bool {
        self.phase == Phase::Finished && self.verdict.is_some_and(|verdict| verdict != Verdict::Invalid)
    }

    /// Maximum length of the warm-up, seconds.
    pub fn longest_warm_up_s(&self) -> Option<f64> {
        let factor = if self.warm_up_auto { WARM_UP_FACTOR } else { 1 };
        self.warm_up_s.map(|seconds| seconds * f64::from(factor))
    }

    /// The warm-up in words: its length, or how long the target took to become steady.
    pub fn warm_up_text(&self) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        if !self.warm_up_auto {
            return self.warm_up_s.map(seconds);
        }
        Some(match (self.figures.warmed_up_s.map(seconds), self.figures.warm_up_steady) {
            (Some(took), Some(true)) => format!("{took} until the target was steady"),
            (Some(took), _) => format!("{took}, without reaching a steady state"),
            (None, _) => "until the target is steady".to_owned(),
        })
    }

    /// The first of the most severe reasons; a note if the run is valid.
    pub fn because(&self) -> Option<&Reason> {
        let worst = self.reasons.iter().map(|reason| reason.verdict).max()?;
        self.reasons.iter().find(|reason| reason.verdict == worst)
    }

    /// Whether the run is in a final phase.
    pub fn has_ended(&self) -> bool {
        self.phase.is_final()
    }
}
