//! Checks whether this machine is fit for an agent: finds what would prevent a run or invalidate its result, and
//! suggests remedies. Leaves nothing behind but the state folder.

mod certificate;
mod cluster;
mod host;
mod profiler;
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
    fn good(check: &'static str, observed: impl Into<String>) -> Self {
        Self { check, rank: Rank::Good, observed: observed.into(), remedy: None }
    }

    fn doubtful(check: &'static str, observed: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, rank: Rank::Doubtful, observed: observed.into(), remedy: Some(remedy.into()) }
    }

    fn bad(check: &'static str, observed: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, rank: Rank::Bad, observed: observed.into(), remedy: Some(remedy.into()) }
    }
}

/// Runs all checks for an agent with these options.
pub async fn examine(options: &Options) -> Vec<Finding> {
    let mut findings = vec![host::engine(options).await, host::targets(options)];
    findings.push(host::container_engine(options).await);
    findings.push(host::kvm().await);
    findings.extend(cluster::check(options).await);
    findings.extend(host::profilers(options));
    findings.extend(host::machine(options));
    findings.extend(host::load_address(options));
    findings.push(server::disk(&options.state));
    findings.extend(server::server(options).await);
    findings
}

/// Returns the worst severity.
pub fn worst(findings: &[Finding]) -> Rank {
    findings.iter().map(|finding| finding.rank).max().unwrap_or(Rank::Good)
}
