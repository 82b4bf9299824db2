//! The gate: whether a candidate is a regression against a baseline, by rules such as `rps<-5%`.
//!
//! It closes only on a difference that is real, by the same statistics as the compare page, and beyond a rule's limit.
//! Where it can't say, it says why: too few repetitions, invalid runs, unlike surroundings. [`rule`] reads the rules,
//! [`cells`] finds what can be held against what, [`unlike`] what forbids it, [`decide`] decides; [`markdown`] and
//! [`junit`] tell. All of that is pure; [`mod@api`] reads and answers, [`mod@pages`] shows.

pub mod api;
pub mod cells;
pub mod decide;
pub mod junit;
pub mod markdown;
pub mod pages;
pub mod rule;
pub mod unlike;

use std::borrow::Borrow;

use axum::Router;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{compare::metric::Metric, state::AppState, web::card::Tone};

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
    /// What else is worth knowing, a sentence each.
    pub notes: Vec<String>,
    /// The comparison of the same runs.
    pub url: String,
}

/// What came of a check, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not a difference that is both real and beyond the limit.
    Fine,
    /// A real difference beyond the limit.
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
    /// Where the difference lies with 95 % confidence; null where that is not known.
    pub interval: Option<[f64; 2]>,
    /// How often chance alone would make such a difference somewhere in this gate; null where nothing was asked.
    pub p: Option<f64>,
    /// Why, in a sentence.
    pub told: String,
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
            Self::Fine => "✓ fine",
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

/// The page.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::gate))
}
