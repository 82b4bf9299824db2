//! What an agent saw of a run besides its summary, as stored. Pure.

use std::collections::BTreeMap;

use brewbench_agent::wire::outcome::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::results::{
    conditions::{Conditions, Cores, Observed},
    generator_record::GeneratorSeen,
};

/// What an agent saw of a run besides its summary; stored as one blob, shown on the run's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The target's last output.
    pub target_log: String,
    /// The load generator's last output; where others generated the load, each of them has its own.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// What the sandbox counted.
    pub observed: Option<Observed>,
    /// Where both sides ran.
    pub cores: Cores,
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// What speaks for or against the circumstances.
    #[serde(default)]
    pub conditions: Conditions,
    /// Those who made the load, where it was not the target's agent, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorSeen>,
    /// The script's thresholds for the load of all of these together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<WholeThreshold>,
    /// Why the target's agent failed, too, where another agent had ended the run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_later: Option<String>,
}

impl Evidence {
    /// Of a result, without what others saw.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        Self {
            target_log: outcome.target_log.clone(),
            generator_log: outcome.generator_log.clone(),
            observed: outcome.observed.map(Observed::from),
            cores: outcome.cores.clone().into(),
            environment: outcome.environment.clone(),
            conditions: outcome.conditions.clone().into(),
            generators: Vec::new(),
            thresholds: Vec::new(),
            said_later: None,
        }
    }
}

/// How many processors the agent said it may use; older agents called it otherwise.
pub fn usable(environment: &BTreeMap<String, String>) -> Option<f64> {
    let said = ["cpu.usable", "cores"].into_iter().find_map(|name| environment.get(name))?;
    said.parse().ok().filter(|cores: &f64| cores.is_finite())
}

/// A threshold of the script in a run whose load several made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WholeThreshold {
    /// Of which metric.
    pub metric: String,
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether all of them together kept to it; null where that can't be told.
    pub passed: Option<bool>,
    /// How that is known, or why it is not.
    pub basis: Basis,
    /// Whether each generator's own part kept to it, as its k6 says, in the order of their segments; null where its k6 says
    /// nothing of it.
    pub own: Vec<Option<bool>>,
}

/// How it is known whether a threshold was kept to, or why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// By a figure that is exact for the whole.
    Added,
    /// By the added histograms.
    Histogram,
    /// All parts say the same, and so does the whole.
    Unanimous,
    /// Not known: the limit lies within the bucket of the histograms that the percentile is in.
    WithinBucket,
    /// Not known: the parts have nothing that could be added up, and what they say does not settle it.
    Parts,
    /// Not known: there were no values.
    Nothing,
    /// Not known: the condition is none that is understood here.
    Unread,
}

impl Basis {
    /// In words, after whether it was kept to.
    pub fn words(self) -> &'static str {
        match self {
            Self::Added => "by the figures of all, added",
            Self::Histogram => "by the added histograms",
            Self::Unanimous => "as each generator’s part",
            Self::WithinBucket => "the limit is within the bucket of the histograms that the percentile is in",
            Self::Parts => "this can’t be added up, and the parts don’t settle it",
            Self::Nothing => "there were no values",
            Self::Unread => "a condition that is not understood here",
        }
    }
}
