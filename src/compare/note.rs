//! A note on a comparison, and how much it weighs. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::RunId;

/// Something to know before believing a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// How much it weighs.
    pub level: Level,
    /// In a few words.
    pub title: String,
    /// In a sentence.
    pub text: String,
    /// Ids of two runs whose environments, held against each other, tell more.
    #[serde(default)]
    #[schema(value_type = Option<[String; 2]>)]
    pub environments: Option<[RunId; 2]>,
}

/// How much a note weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It may change the answer.
    Doubt,
    /// It explains what is shown.
    Info,
}

impl Level {
    /// The heavier first.
    pub const ALL: [Self; 2] = [Self::Doubt, Self::Info];

    /// The class in `app.css`.
    pub fn class(self) -> &'static str {
        match self {
            Self::Doubt => "doubt",
            Self::Info => "info",
        }
    }
}
