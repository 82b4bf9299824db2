//! A stored run as JSON, pages and commands have it. Pure.

use std::collections::BTreeMap;

use brewbench_agent::wire::{Phase, load::Load};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::Engine,
    metrics::Figures,
    runs::{
        load,
        verdict::{Reason, Verdict},
        work::RunWork,
    },
    web::format,
};

/// How many times its shortest time a warm-up until the target is steady may take.
pub const WARM_UP_FACTOR: u32 = 10;

/// One run: one target, one size, one load, once. A figure that is not known is null, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// UUID; sorts by the time of submission.
    #[schema(value_type = String)]
    pub id: RunId,
    /// The experiment that asked for it.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// The run that this one is done in place of: it failed, was lost or is invalid.
    #[schema(value_type = Option<String>)]
    pub retry_of: Option<RunId>,
    /// What people call it, by the alphabet.
    pub labels: Vec<String>,
    /// What people say of it, as Markdown.
    pub note: Option<String>,
    /// `agent` where one of ours measured it, `import` where somebody brought a summary.
    pub origin: Origin,
    /// Whether it was measured in turn with the other runs of its experiment. Runs of agents are; imported runs only if the
    /// index of their folder says so.
    #[serde(default)]
    pub in_turn: bool,
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub version: Option<String>,
    /// The machine size that the target got.
    pub size: Option<RunSize>,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Hash of the scenario's revision.
    pub scenario_sha256: Option<String>,
    /// Parameters of the scenario that the submission set.
    pub parameters: BTreeMap<String, String>,
    /// How hard it was loaded and for how long; null for an import.
    #[serde(with = "load::json_if_any")]
    #[schema(value_type = Option<load::LoadBody>)]
    pub load: Option<Load>,
    /// Virtual users, where they are constant.
    pub vus: Option<u32>,
    /// Which repetition of its cell, from 1.
    pub repetition: u32,
    /// Where it stands.
    #[schema(value_type = String, example = "finished")]
    pub phase: Phase,
    /// What a finished run is worth.
    pub verdict: Option<Verdict>,
    /// Why it is not simply valid.
    pub reasons: Vec<Reason>,
    /// Why it failed, was lost or cancelled.
    pub error: Option<String>,
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
    /// Iterations of the script.
    pub iterations: Option<u64>,
    /// Iterations that k6 could not start in time.
    pub dropped_iterations: Option<u64>,
    /// What its requests were.
    #[serde(default)]
    pub work: RunWork,
    /// Checks that held.
    pub checks_passed: Option<u64>,
    /// Checks that did not hold.
    pub checks_failed: Option<u64>,
    /// Thresholds of the script.
    pub thresholds: Option<u32>,
    /// Thresholds that were crossed; null where there are some of which that is not known, as there may be where several
    /// agents made the load.
    pub thresholds_failed: Option<u32>,
    /// Warm-up before the measured phase, seconds; of one that ends by itself, the shortest.
    pub warm_up_s: Option<f64>,
    /// Whether the warm-up lasts until the target is steady.
    #[serde(default)]
    pub warm_up_auto: bool,
    /// How long such a warm-up took, seconds.
    #[serde(default)]
    pub warmed_up_s: Option<f64>,
    /// Whether the target was steady at its end; false where it was not after the longest time.
    #[serde(default)]
    pub warm_up_steady: Option<bool>,
    /// How long the load lasts, seconds; null when the script's own options decide.
    pub duration_s: Option<f64>,
    /// What held the target to its size.
    pub enforced: Option<RunEnforced>,
    /// The agent that did it; of several the one that ran the target.
    pub agent: Option<String>,
    /// The agents that made the load, where they were others than the target's own. Percentiles then come from the added
    /// histograms of all of them.
    #[serde(default)]
    pub generators: Vec<String>,
    /// The load generator; null where it is not known, as of a run that has none yet.
    pub engine: Option<Engine>,
    /// SHA-256 of the target's executable.
    pub target_sha256: Option<String>,
    /// Who submitted it.
    pub created_by: String,
    /// When it was submitted, unix ms.
    pub queued_at_ms: i64,
    /// When it entered its phase, unix ms.
    pub phase_at_ms: i64,
    /// When an agent took it, unix ms.
    pub started_at_ms: Option<i64>,
    /// When it ended, unix ms.
    pub finished_at_ms: Option<i64>,
}

/// Where a run's figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by an agent.
    Agent,
    /// Brought by somebody: k6's summary or text report, or wrk's output.
    Import,
}

/// A machine size as a run got it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSize {
    /// E.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
}

/// What held a target to its size: `cgroup2`, `cgroup1` or `none`.
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

/// What people say of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Markdown; empty for none.
    pub note: String,
}

impl Run {
    /// Whether its figures may stand in a comparison: it ended with results that are worth something.
    pub fn counts(&self) -> bool {
        self.phase == Phase::Finished && self.verdict.is_some_and(|verdict| verdict != Verdict::Invalid)
    }

    /// How long its warm-up takes at most, seconds.
    pub fn longest_warm_up_s(&self) -> Option<f64> {
        let factor = if self.warm_up_auto { WARM_UP_FACTOR } else { 1 };
        self.warm_up_s.map(|seconds| seconds * f64::from(factor))
    }

    /// Its warm-up in words: as long as was asked for, or what it took until the target was steady.
    pub fn warm_up_text(&self) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        if !self.warm_up_auto {
            return self.warm_up_s.map(seconds);
        }
        Some(match (self.warmed_up_s.map(seconds), self.warm_up_steady) {
            (Some(took), Some(true)) => format!("{took}, until the target was steady"),
            (Some(took), _) => format!("{took}, and the target was not steady then"),
            (None, _) => "until the target is steady".to_owned(),
        })
    }

    /// The first of the reasons that weigh most: why it is not valid, or else what is noted of it.
    pub fn because(&self) -> Option<&Reason> {
        let most = self.reasons.iter().map(|reason| reason.verdict).max()?;
        self.reasons.iter().find(|reason| reason.verdict == most)
    }

    /// Whether its phase is a final one.
    pub fn has_ended(&self) -> bool {
        self.phase.is_final()
    }
}
