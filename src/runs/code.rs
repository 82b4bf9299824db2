//! Which code a run measured: only runs of the same code are repetitions of each other. Pure.

use brewbench_wire::target::PARTIAL;

pub use crate::catalog::identity::{are_comparable, describe_code};
use crate::runs::model::Run;

/// Returns what identifies the code of a run; none for imports and runs that ended before it was known.
///
/// A partial identity says nothing about another day, so it holds within one experiment only.
pub fn code_of(run: &Run) -> Option<String> {
    let identity = run.target_identity.as_ref()?;
    if !identity.starts_with(PARTIAL) {
        return Some(identity.clone());
    }
    let from = run.experiment.as_ref().map_or_else(|| run.id.to_string(), ToString::to_string);
    Some(format!("{identity} {from}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn a_partial_identity_holds_within_one_experiment() {
        let partial = |experiment: &str| Run {
            target_identity: Some(format!("part:{}", "ab".repeat(32))),
            experiment: Some(experiment.to_owned().into()),
            ..finished("servy", 1)
        };
        assert_eq!(code_of(&partial("monday")), code_of(&partial("monday")));
        assert_ne!(code_of(&partial("monday")), code_of(&partial("tuesday")));
        assert_eq!(describe_code(code_of(&partial("monday")).as_deref()), "code not identified, …monday");
    }
}
