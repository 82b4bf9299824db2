//! What an agent observed about a run besides its summary, as stored. Pure.

use std::collections::BTreeMap;

use brewbench_wire::outcome::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::results::{
    conditions::{Conditions, Cores, Observed},
    generator_record::GeneratorRecord,
};

/// What an agent observed about a run besides its summary; stored as one blob.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The target's last output.
    pub target_log: String,
    /// The load generator's last output; in a distributed run each generator has its own.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// What the sandbox counted.
    pub observed: Option<Observed>,
    /// Processors of target and load generator.
    pub cores: Cores,
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// Conditions of the measurement.
    #[serde(default)]
    pub conditions: Conditions,
    /// Generators of a distributed run, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorRecord>,
    /// The script's thresholds, evaluated for the load of all generators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<WholeThreshold>,
    /// Why the target's agent failed, if another agent had already ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "said_later")]
    pub reported_later: Option<String>,
    /// Why a profile of the target is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile_faults: Vec<String>,
}

impl Evidence {
    /// Returns the evidence of one agent, without that of other participants.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            target_log: outcome.target_log.clone(),
            generator_log: outcome.generator_log.clone(),
            observed: outcome.observed.map(Observed::from),
            cores: outcome.cores.clone().into(),
            environment: outcome.environment.clone(),
            conditions: outcome.conditions.clone().into(),
            generators: Vec::new(),
            thresholds: Vec::new(),
            reported_later: None,
            profile_faults: profile_faults(outcome),
        }
    }
}

/// The most sentences about missing profiles, and characters of each; an agent sends far less.
const MAX_FAULTS: usize = 10;
const MAX_FAULT: usize = 1_000;

fn profile_faults(outcome: &Outcome) -> Vec<String> {
    let reported = outcome.profiled.iter().flat_map(|profiled| &profiled.faults);
    reported.take(MAX_FAULTS).map(|fault| fault.chars().take(MAX_FAULT).collect()).collect()
}

/// A threshold of the script in a distributed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WholeThreshold {
    /// Its metric.
    pub metric: String,
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether the run as a whole passed it; null if that is unknown.
    pub passed: Option<bool>,
    /// How that was determined, or why it is unknown.
    pub basis: Basis,
    /// Whether each generator's part passed it, as its k6 reports, in the order of their segments; null if its k6 does
    /// not report it.
    pub own: Vec<Option<bool>>,
}

/// How it was determined whether a threshold passed, or why that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From metrics that add up exactly.
    Added,
    /// From the merged histograms.
    Histogram,
    /// All parts agree.
    Unanimous,
    /// Unknown: the limit is within the histogram bucket of the percentile.
    WithinBucket,
    /// Unknown: the metric can't be merged, and the parts disagree.
    Parts,
    /// Unknown: there were no values.
    Nothing,
    /// Unknown: the expression is not supported.
    Unread,
}

impl Basis {
    /// Describes the basis; shown after the result.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Added => "from the summed metrics",
            Self::Histogram => "from the merged histograms",
            Self::Unanimous => "all generators agree",
            Self::WithinBucket => "the limit is within the histogram bucket of the percentile",
            Self::Parts => "the metric can’t be merged, and the generators disagree",
            Self::Nothing => "no data",
            Self::Unread => "the expression is not supported",
        }
    }
}
