//! What a check found. Pure.

use serde::Serialize;

/// Severity of a check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// No problem.
    Good,
    /// It works, but not as well as it should: runs will be suspect or invalid, or data are at risk.
    Doubtful,
    /// It does not work.
    Bad,
}

impl Rank {
    /// Returns the name for lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub check: &'static str,
    /// Severity.
    pub rank: Rank,
    /// The observation.
    pub observed: String,
    /// What to do about it; `None` if there is no problem.
    pub remedy: Option<String>,
}

impl Finding {
    /// Nothing to do.
    pub fn good(check: &'static str, observed: impl Into<String>) -> Self {
        Self { check, rank: Rank::Good, observed: observed.into(), remedy: None }
    }

    /// Something to improve.
    pub fn doubtful(check: &'static str, observed: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, rank: Rank::Doubtful, observed: observed.into(), remedy: Some(remedy.into()) }
    }

    /// Something that does not work.
    pub fn bad(check: &'static str, observed: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, rank: Rank::Bad, observed: observed.into(), remedy: Some(remedy.into()) }
    }
}
