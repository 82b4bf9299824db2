//! Whether this machine is fit for an agent: what would be in the way of a run or of figures that count, and what to do
//! about it. It leaves nothing behind but the state folder.

mod certificate;
mod host;
mod server;

use serde::Serialize;

use crate::connection::daemon::Options;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// As it should be.
    Good,
    /// Runs can be done, but something will speak against them.
    Doubtful,
    /// No run can be done.
    Bad,
}

impl Rank {
    /// The word for lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sign {
    /// The thing, in a word or two.
    pub what: &'static str,
    /// How bad it is.
    pub rank: Rank,
    /// What was seen.
    pub seen: String,
    /// What to do about it; nothing where it is as it should be.
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

/// Looks at everything that an agent with these options would need.
pub async fn examine(options: &Options) -> Vec<Sign> {
    let mut signs = vec![host::engine(options).await, host::targets(options)];
    signs.extend(host::machine(options));
    signs.extend(host::load_address(options));
    signs.push(server::disk(&options.state));
    signs.extend(server::server(options).await);
    signs
}

/// The worst of all.
pub fn worst(signs: &[Sign]) -> Rank {
    signs.iter().map(|sign| sign.rank).max().unwrap_or(Rank::Good)
}
