//! Why a run failed: a sentence and a cause.

use brewbench_wire::outcome::{Cause, Ended};

/// A run without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What failed and, if known, what helps.
    pub reason: String,
    /// The cause.
    pub cause: Cause,
}

impl Failure {
    /// Returns a function that turns sentences into failures with this cause.
    pub fn by(cause: Cause) -> impl Fn(String) -> Self + Copy {
        move |reason| Self { reason, cause }
    }
}

impl From<Failure> for Ended {
    fn from(Failure { reason, cause }: Failure) -> Self {
        Self::Failed { reason, cause }
    }
}
