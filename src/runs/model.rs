//! A stored run, as used by JSON, pages and commands. Pure.

use brewbench_wire::{Phase, target::TargetKind};
pub use brewbench_wire::{
    job::Size as RunSize,
    run_spec::{RunSpec, WARM_UP_FACTOR},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::{Engine, MachineSize},
    metrics::{Figures, Metric},
    runs::verdict::{Reason, Verdict},
    web::format,
};

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
    /// What it measures.
    #[serde(flatten)]
    pub spec: RunSpec,
    /// Version of the target.
    pub version: Option<String>,
    /// Number of the repetition of its cell, from 1; profiled runs are numbered separately.
    pub repetition: u32,
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
    /// How the machine size was enforced.
    pub enforced: Option<RunEnforced>,
    /// The agent; in a distributed run, the host that ran the target.
    pub agent: Option<String>,
    /// The load generator; null if not yet known.
    pub engine: Option<Engine>,
    /// How the target was provided: `process`, `container`, `vm`, `url` or `kubernetes`; null if not yet known.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub target_kind: Option<TargetKind>,
    /// What identifies the target: `code:` and a digest of everything that decides how it behaves, `part:` if something
    /// of that can't be read, the id of an image, or a URL. Runs of older agents have the SHA-256 of the executable.
    /// Runs with different ones are not repetitions of each other.
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

impl From<&MachineSize> for RunSize {
    fn from(size: &MachineSize) -> Self {
        let MachineSize { name, vcpus, memory_bytes, replicas } = size.clone();
        Self { name, vcpus, memory_bytes, replicas }
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

/// A page of the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPage {
    /// The runs, newest first unless sorted.
    pub runs: Vec<Run>,
    /// Value of `after` for the next page; null on the last page.
    #[schema(value_type = Option<String>)]
    pub next: Option<RunId>,
}

/// Runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<Run>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteText {
    /// Markdown; empty for none.
    pub note: String,
}

/// Describes load generators in a cluster.
pub fn in_cluster(count: u32) -> String {
    if count == 1 { "1 Pod".to_owned() } else { format!("{count} Pods") }
}

impl Run {
    /// Returns the cell key, as the column `cell_key` has it.
    pub fn cell_key(&self) -> String {
        self.spec.cell_key(self.engine.as_ref().map(ToString::to_string).as_deref(), self.target_kind)
    }

    /// Describes which machines generated its load; `None` if that was the agent's own.
    pub fn load_from(&self) -> Option<String> {
        let RunSpec { generators, cluster_generators, .. } = &self.spec;
        if *cluster_generators > 0 {
            return Some(in_cluster(*cluster_generators));
        }
        (!generators.is_empty()).then(|| generators.join(", "))
    }

    /// Returns how far a metric may be from the value that was measured, in its unit; 0 if that is negligible or unknown.
    pub fn resolution(&self, metric: Metric) -> f64 {
        self.figures.resolution.get(&metric).copied().unwrap_or(0.0)
    }

    /// Whether the run may be compared: it is finished, not invalid, and was not profiled.
    pub fn counts(&self) -> bool {
        !self.spec.profiled && self.has_result()
    }

    /// Whether other programs or virtual machines used its cores.
    pub fn is_beside_others(&self) -> bool {
        self.reasons.iter().any(|reason| ["host_disturbed", "host_steal"].contains(&reason.code.as_str()))
    }

    /// Whether the run is finished and not invalid.
    pub fn has_result(&self) -> bool {
        self.phase == Phase::Finished && self.verdict.is_some_and(|verdict| verdict != Verdict::Invalid)
    }

    /// Maximum length of the warm-up, seconds.
    pub fn longest_warm_up_s(&self) -> Option<f64> {
        self.spec.warm_up_s.map(|_| self.spec.longest_warm_up().as_secs_f64())
    }

    /// The warm-up in words: its length, or how long the target took to become steady.
    pub fn warm_up_text(&self) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        if !self.spec.warm_up_auto {
            return self.spec.warm_up_s.map(seconds);
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
