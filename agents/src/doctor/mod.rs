//! Checks whether this machine is fit for an agent: finds what would prevent a run or invalidate its result, and
//! suggests remedies. Leaves nothing behind but the state folder.

mod certificate;
mod host;
mod server;
mod target;

use serde::Serialize;
pub use target::check_target;

use crate::connection::daemon::Options;

/// Severity of a check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// No problem.
    Good,
    /// Runs work, but will be suspect or invalid.
    Doubtful,
    /// No run is possible.
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
pub struct Sign {
    /// What was checked, in a word or two.
    pub what: &'static str,
    /// Severity.
    pub rank: Rank,
    /// The observation.
    pub seen: String,
    /// What to do about it; `None` if there is no problem.
    pub remedy: Option<String>,
}

impl Sign {
    fn good(what: &'static str, seen: impl Into<String>) -> Self {
        Self { what, rank: Rank::Good, seen: seen.into(), remedy: None }
    }

    fn doubtful(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, rank: Rank::Doubtful, seen: seen.into(), remedy: Some(remedy.into()) }
    }

    fn bad(what: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, rank: Rank::Bad, seen: seen.into(), remedy: Some(remedy.into()) }
    }
}

/// Runs all checks for an agent with these options.
pub async fn examine(options: &Options) -> Vec<Sign> {
    let mut signs = vec![host::engine(options).await, host::targets(options)];
    signs.extend(host::machine(options));
    signs.extend(host::load_address(options));
    signs.push(server::disk(&options.state));
    signs.extend(server::server(options).await);
    signs
}

/// Returns the worst severity.
pub fn worst(signs: &[Sign]) -> Rank {
    signs.iter().map(|sign| sign.rank).max().unwrap_or(Rank::Good)
}
