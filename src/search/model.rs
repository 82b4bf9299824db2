//! Results of a search. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::series_style::Mark;

/// What a hit leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// A target.
    Target,
    /// An experiment.
    Experiment,
    /// A run.
    Run,
    /// A page of the site.
    Page,
    /// A section of the documentation.
    Documentation,
}

impl HitKind {
    /// Returns the name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Experiment => "experiment",
            Self::Run => "run",
            Self::Page => "page",
            Self::Documentation => "documentation",
        }
    }

    /// Returns the heading above hits of this kind.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Target => "Targets",
            Self::Experiment => "Experiments",
            Self::Run => "Runs",
            Self::Page => "Pages",
            Self::Documentation => "Documentation",
        }
    }
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// What it leads to.
    pub kind: HitKind,
    /// Its name or id.
    pub title: String,
    /// What describes it further.
    pub detail: Option<String>,
    /// The URL of its page.
    pub url: String,
    /// The colour of the target that it is about.
    pub mark: Option<Mark>,
}

/// The results of a search, grouped by kind; the group with the best hit first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchResults {
    /// What was searched for, without surrounding blanks.
    pub query: String,
    /// The hits. Hits of one kind are next to each other.
    pub hits: Vec<Hit>,
}
