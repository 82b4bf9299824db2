//! The result of a gate: each check with its outcome. Pure.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::ExperimentId, compare::metric::Metric, web::card::Tone};

/// The result of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gate {
    /// The worst outcome of its checks: regression, else cannot say, else fine.
    pub outcome: Outcome,
    /// The result in a sentence.
    pub headline: String,
    /// What is compared: targets and versions, and what else distinguishes the sides.
    #[serde(default)]
    pub title: String,
    /// The baseline as named in the request.
    pub baseline: String,
    /// The candidate as named in the request.
    pub candidate: String,
    /// One check for each rule and setting.
    pub checks: Vec<RuleCheck>,
    /// The error rate that this look at the figures may spend: 0.05, or less if repetitions are added between looks.
    pub alpha: f64,
    /// The repetitions to add if the gate cannot say and the plan allows more.
    pub more: Option<MissingRepetitions>,
    /// Where imported runs come from, in a sentence; null if all were measured by agents.
    #[serde(default)]
    pub imported: Option<String>,
    /// Additional notes, a sentence each.
    pub notes: Vec<String>,
    /// URL of the comparison of the same runs.
    pub url: String,
}

/// Repetitions that would help to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingRepetitions {
    /// The experiment to add them to.
    #[schema(value_type = String)]
    pub experiment: ExperimentId,
    /// How many to add before the next look.
    pub repetitions: usize,
}

/// The outcome of a check or of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A change beyond the limit is ruled out.
    Fine,
    /// The difference is significantly beyond the limit.
    Regression,
    /// The runs allow no decision.
    CannotSay,
}

/// One rule in one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleCheck {
    /// The rule, e.g. `rps<-5%`.
    pub rule: String,
    /// The metric of the rule.
    pub metric: Metric,
    /// The target and its setting.
    pub setting: String,
    /// The outcome of the check.
    pub outcome: Outcome,
    /// The baseline's figure: the median of the compared repetitions of both sides, the candidate's without its
    /// difference. For shares the mean. Null if none has the metric.
    pub baseline: Option<f64>,
    /// The candidate's figure: as far from the baseline's as `change` says; null if none has the metric.
    pub candidate: Option<f64>,
    /// How many repetitions of the baseline and of the candidate were compared.
    pub repetitions: [usize; 2],
    /// The relative difference: -0.05 is 5 % less. For shares, such as failed requests, the absolute difference.
    pub change: Option<f64>,
    /// The confidence interval of the difference at level 1 − alpha; null if unknown.
    pub interval: Option<[f64; 2]>,
    /// The p-value of the limit: whether the difference is another one. Corrected for all tests of this gate; null if
    /// nothing was tested.
    pub p: Option<f64>,
    /// Repetitions per side that would probably decide; null if it is decided or more would not help.
    pub needed: Option<usize>,
    /// The reason for the outcome, in a sentence.
    pub reason: String,
    /// Its share of the time that the setting's runs took, seconds; all checks together took the time of all runs.
    #[serde(default)]
    pub measured_s: f64,
}

impl Outcome {
    /// Returns the label of the outcome.
    pub fn label(self) -> &'static str {
        match self {
            Self::Fine => "No regression",
            Self::Regression => "Regression",
            Self::CannotSay => "Cannot say",
        }
    }

    /// Returns the tone of the outcome.
    pub fn tone(self) -> Tone {
        match self {
            Self::Fine => Tone::Plain,
            Self::Regression => Tone::Bad,
            Self::CannotSay => Tone::Doubtful,
        }
    }

    /// Returns the class of a note in `app.css`.
    pub fn class(self) -> &'static str {
        match self {
            Self::Fine => "info",
            Self::Regression => "fault",
            Self::CannotSay => "doubt",
        }
    }

    /// Returns a symbol and a word, for lists.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Fine => "✓ passed",
            Self::Regression => "✗ regression",
            Self::CannotSay => "? cannot say",
        }
    }
}

impl Gate {
    /// Returns the time that the runs took, seconds.
    pub fn measured_s(&self) -> f64 {
        self.checks.iter().map(|check| check.measured_s).sum()
    }

    /// Returns the repetitions per side that would probably decide all that is undecided; none if that is unknown or
    /// more would not help.
    pub fn needed(&self) -> Option<usize> {
        let undecided = self.checks.iter().filter(|check| check.outcome == Outcome::CannotSay);
        undecided.map(|check| check.needed).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Counts the checks with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

impl RuleCheck {
    /// Formats a figure of one side.
    pub fn figure(&self, value: impl Borrow<Option<f64>>) -> String {
        self.metric.figure(*value.borrow()).text().to_owned()
    }

    /// Formats the difference.
    pub fn difference(&self) -> String {
        self.metric.difference(self.change).text().to_owned()
    }
}
