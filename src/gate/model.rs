//! The result of a gate: each check with its outcome. Pure.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::ExperimentId, compare::metric::Metric, web::card::Tone};

/// The answer of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gate {
    /// The worst of its checks: a regression, else what can't be said.
    pub outcome: Outcome,
    /// In a sentence.
    pub headline: String,
    /// What the baseline is, as it was named.
    pub baseline: String,
    /// What the candidate is, as it was named.
    pub candidate: String,
    /// One for each rule and setting.
    pub checks: Vec<Check>,
    /// The error rate that this look at the figures may spend: 0.05, or less where repetitions are added between looks.
    pub alpha: f64,
    /// Where the gate cannot say and may ask for more repetitions: which.
    pub more: Option<More>,
    /// What else is worth knowing, a sentence each.
    pub notes: Vec<String>,
    /// The comparison of the same runs.
    pub url: String,
}

/// Repetitions that would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct More {
    /// Of this experiment.
    #[schema(value_type = String)]
    pub experiment: ExperimentId,
    /// How many to add before the next look.
    pub repetitions: usize,
}

/// What came of a check, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A change beyond the limit is ruled out.
    Fine,
    /// A significant difference beyond the limit.
    Regression,
    /// The runs don't allow an answer.
    CannotSay,
}

/// One rule in one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// The rule, e.g. `rps<-5%`.
    pub rule: String,
    /// What it is about.
    pub metric: Metric,
    /// Which target, under what.
    pub setting: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Median of the baseline's repetitions; null when none has the figure.
    pub baseline: Option<f64>,
    /// Median of the candidate's repetitions; null when none has the figure.
    pub candidate: Option<f64>,
    /// How many repetitions of the baseline and of the candidate have the figure.
    pub repetitions: [usize; 2],
    /// The difference: -0.05 is 5 % less. Of shares, such as that of failed requests, it is the difference itself.
    pub change: Option<f64>,
    /// Where the difference lies, with a confidence of 1 − alpha; null where that is not known.
    pub interval: Option<[f64; 2]>,
    /// The p-value of the difference, corrected for all questions of this gate; null where nothing was tested.
    pub p: Option<f64>,
    /// Repetitions a side that would probably decide; null where it is decided, or where more would not help.
    pub needed: Option<usize>,
    /// Why, in a sentence.
    pub reason: String,
}

impl Outcome {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fine => "No regression",
            Self::Regression => "Regression",
            Self::CannotSay => "Cannot say",
        }
    }

    /// How it is to be taken.
    pub fn tone(self) -> Tone {
        match self {
            Self::Fine => Tone::Plain,
            Self::Regression => Tone::Bad,
            Self::CannotSay => Tone::Doubtful,
        }
    }

    /// The class of a note in `app.css`.
    pub fn class(self) -> &'static str {
        match self {
            Self::Fine => "info",
            Self::Regression => "fault",
            Self::CannotSay => "doubt",
        }
    }

    /// For lists: a sign and a word.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Fine => "✓ passed",
            Self::Regression => "✗ regression",
            Self::CannotSay => "? cannot say",
        }
    }
}

impl Gate {
    /// How many checks came to this.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

impl Check {
    /// A figure of one side, in words.
    pub fn figure(&self, value: impl Borrow<Option<f64>>) -> String {
        self.metric.figure(*value.borrow()).text().to_owned()
    }

    /// The difference, in words.
    pub fn difference(&self) -> String {
        self.metric.difference(self.change).text().to_owned()
    }
}
