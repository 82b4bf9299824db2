//! A headline: one figure, in words, as pages open with it. Template: `partials/card.html`, variable `card`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::series_style::Mark;

/// One figure and what it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Card {
    /// What it is about, e.g. `Throughput`.
    pub label: String,
    /// The answer, e.g. `+28.3 %` or the name of a target.
    pub value: String,
    /// What belongs to it, e.g. `more requests/s than go-nethttp`.
    pub detail: String,
    /// How it is to be taken.
    pub tone: Tone,
    /// The colour of the target that the value names.
    pub mark: Option<Mark>,
}

/// How something is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Neither.
    Plain,
    /// Better.
    Good,
    /// Worse.
    Bad,
    /// To be looked at.
    Doubtful,
}

impl Tone {
    /// The class in `app.css`.
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Doubtful => "doubtful",
        }
    }
}

impl Card {
    /// A card that names no target.
    pub fn new(label: impl Into<String>, value: impl Into<String>, detail: impl Into<String>, tone: Tone) -> Self {
        Self { label: label.into(), value: value.into(), detail: detail.into(), tone, mark: None }
    }
}
