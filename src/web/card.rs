//! Headline cards: one figure with a label. Template: `partials/card.html`, variable `card`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{metrics::Metric, web::series_style::Mark};

/// One headline figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Card {
    /// The label, e.g. `Throughput`.
    pub label: String,
    /// The value, e.g. `+28.3 %` or the name of a target.
    pub value: String,
    /// A detail, e.g. `more requests/s than go-nethttp`.
    pub detail: String,
    /// Whether the value is good or bad.
    pub tone: Tone,
    /// The colour of the target named by the value.
    pub mark: Option<Mark>,
    /// The metric of the value; null if it has none.
    #[serde(default)]
    pub metric: Option<Metric>,
}

/// Whether something is good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Neutral.
    Plain,
    /// Better.
    Good,
    /// Worse.
    Bad,
    /// Needs attention.
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
    /// Creates a card without a target's colour and without a metric.
    pub fn new(label: impl Into<String>, value: impl Into<String>, detail: impl Into<String>, tone: Tone) -> Self {
        Self { label: label.into(), value: value.into(), detail: detail.into(), tone, mark: None, metric: None }
    }

    /// Names the metric of the value.
    #[must_use]
    pub fn with_metric(self, metric: Metric) -> Self {
        Self { metric: Some(metric), ..self }
    }
}
