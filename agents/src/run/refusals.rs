//! Finds a target that refuses every request of a scenario, so that nothing is measured in vain.

use brewbench_wire::work_done::WorkDone;

/// Client errors that may pass: a timeout, a request that came too early, or a limited rate.
const PASSING: [u16; 3] = [408, 425, 429];

/// Describes the refusals if the target refused all requests of a warm-up of at least one iteration; the measurement
/// would repeat the same iterations.
pub fn find(work: &WorkDone, iterations: u64) -> Option<String> {
    let (statuses, unexpected) = (work.statuses.as_ref()?, work.failures.as_ref()?);
    let all: u64 = statuses.values().sum();
    let is_refused = iterations > 0 && unexpected.count == all && statuses.keys().all(|status| refuses(status));
    let commonest = unexpected.first().filter(|_| is_refused)?;
    let (what, text) = (if commonest.count == all { "" } else { "a client error, most often " }, &commonest.text);
    Some(format!("every response of the warm-up was {what}{text}"))
}

fn refuses(status: &str) -> bool {
    status.parse().is_ok_and(|status: u16| (400..500).contains(&status) && !PASSING.contains(&status))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_wire::load_record::Messages;

    use super::*;

    fn work(statuses: &[(&str, u64)], unexpected: &[(&str, u64)]) -> WorkDone {
        let statuses: BTreeMap<_, _> = statuses.iter().map(|(status, count)| ((*status).to_owned(), *count)).collect();
        let unexpected = unexpected.iter().map(|(text, count)| ((*text).to_owned(), *count));
        WorkDone { statuses: Some(statuses), failures: Some(Messages::from_counts(unexpected)), ..WorkDone::default() }
    }

    #[test]
    fn only_refusals_that_would_repeat_count() {
        let alone = work(&[("404", 7)], &[("404 (GET /hash)", 7)]);
        assert_eq!(find(&alone, 7).as_deref(), Some("every response of the warm-up was 404 (GET /hash)"));
        let mixed = work(&[("401", 1), ("404", 2)], &[("401 (POST /a)", 1), ("404 (GET /b)", 2)]);
        let text = "every response of the warm-up was a client error, most often 404 (GET /b)";
        assert_eq!(find(&mixed, 1).as_deref(), Some(text));
        let others = [
            (work(&[("404", 7)], &[("404 (GET /hash)", 7)]), 0),
            (work(&[("200", 1), ("404", 7)], &[("404 (GET /hash)", 7)]), 7),
            (work(&[("404", 8)], &[("404 (GET /hash)", 7)]), 7),
            (work(&[("429", 7)], &[("429 (GET /)", 7)]), 7),
            (work(&[("503", 7)], &[("503 (GET /)", 7)]), 7),
            (work(&[("0", 7)], &[("no response (GET /)", 7)]), 7),
            (work(&[], &[]), 0),
            (WorkDone::default(), 7),
        ];
        for (other, iterations) in others {
            assert_eq!(find(&other, iterations), None, "{other:?}");
        }
    }
}
