//! Removes secrets from what an outcome says. Pure.

use std::collections::BTreeMap;

use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::variables::is_secret;

/// Shorter values are also parts of other words.
const MIN_LETTERS: usize = 4;

/// What stands for a secret.
const MASK: &str = "•••";

/// Masks the secrets of a run in the logs of target and load generator, and in the reason of a failure.
#[must_use]
pub fn masked(mut outcome: Outcome, parameters: &BTreeMap<String, String>) -> Outcome {
    let secrets = parameters.iter().filter(|(name, value)| is_secret(name) && value.len() >= MIN_LETTERS);
    for (_, secret) in secrets {
        let mask = |text: &mut String| {
            if text.contains(secret) {
                *text = text.replace(secret, MASK);
            }
        };
        mask(&mut outcome.generator_log);
        mask(&mut outcome.target_log);
        if let Ended::Failed { reason, .. } = &mut outcome.ended {
            mask(reason);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use brewbench_wire::outcome::Cause;
    use brewbench_wire::samples::an_outcome;

    use super::*;

    #[test]
    fn only_values_of_secrets_are_masked() {
        let parameters = [("API_TOKEN", "hunter22"), ("ROUTE", "/path"), ("PASSWORD", "abc")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut outcome = an_outcome();
        outcome.generator_log = "token hunter22 at /path, abc".to_owned();
        outcome.ended = Ended::Failed { reason: "401 for hunter22".to_owned(), cause: Cause::default() };
        let masked = masked(outcome, &parameters);
        assert_eq!(masked.generator_log, "token ••• at /path, abc");
        assert!(matches!(masked.ended, Ended::Failed { reason, .. } if reason == "401 for •••"));
    }
}
