//! Why a run has no result: a sentence, and what it is about.

use crate::wire::outcome::{Cause, Ended};

/// Nothing came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For the user: what failed and, where known, what helps.
    pub reason: String,
    /// What that is about.
    pub cause: Cause,
}

impl Failure {
    /// Makes failures of sentences that are about one thing.
    pub fn by(cause: Cause) -> impl Fn(String) -> Self {
        move |reason| Self { reason, cause }
    }
}

impl From<Failure> for Ended {
    fn from(Failure { reason, cause }: Failure) -> Self {
        Self::Failed { reason, cause }
    }
}
