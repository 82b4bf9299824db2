//! A note on a comparison. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::RunId;

/// A note that helps to interpret a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// Severity.
    pub level: Level,
    /// Short title.
    pub title: String,
    /// Explanation in a sentence.
    pub text: String,
    /// Ids of two runs whose environments show the difference.
    #[serde(default)]
    #[schema(value_type = Option<[String; 2]>)]
    pub environments: Option<[RunId; 2]>,
}

/// Severity of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It may change the result.
    Doubt,
    /// It explains what is shown.
    Info,
}

impl Level {
    /// All levels, the most severe first.
    pub const ALL: [Self; 2] = [Self::Doubt, Self::Info];

    /// The class in `app.css`.
    pub fn class(self) -> &'static str {
        match self {
            Self::Doubt => "doubt",
            Self::Info => "info",
        }
    }
}
