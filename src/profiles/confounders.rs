//! What differs between the runs of two profiles besides the target. Pure.

use crate::runs::{load, model::Run};

/// Everything but the target that profiled runs of one cell share, in words.
pub fn setting(run: &Run) -> [(&'static str, String); 7] {
    let parameters = run.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    [
        ("Machine sizes", run.size.as_ref().map(|size| size.name.clone()).unwrap_or_default()),
        ("Scenarios", run.scenario.clone().unwrap_or_default()),
        (
            "Scenario revisions",
            run.scenario_sha256.as_ref().map(|hash| hash.chars().take(12).collect()).unwrap_or_default(),
        ),
        ("Parameters", parameters.join(", ")),
        ("Loads", run.load.as_ref().map(load::words).unwrap_or_default()),
        ("Agents", run.agent.clone().unwrap_or_default()),
        ("Kinds of targets", run.target_kind.map(|kind| kind.to_string()).unwrap_or_default()),
    ]
}

/// Describes what differs, e.g. `Machine sizes differ: 1 vCPU and 2 vCPU`.
pub fn confounders(baseline: &Run, candidate: &Run) -> Vec<String> {
    let (one, other) = (setting(baseline), setting(candidate));
    let named = |text: &str| if text.is_empty() { "none" } else { text }.to_owned();
    one.iter()
        .zip(&other)
        .filter(|((_, one), (_, other))| one != other)
        .map(|((what, one), (_, other))| format!("{what} differ: {} and {}", named(one), named(other)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn only_what_differs_besides_the_target_is_named() {
        let (one, mut other) = (finished("gosherve", 1), finished("servy", 2));
        assert_eq!(confounders(&one, &other), Vec::<String>::new());
        other.agent = Some("rack-2".to_owned());
        other.parameters.insert("SIZE".to_owned(), "9".to_owned());
        let found = confounders(&one, &other);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "Parameters differ: none and SIZE=9");
    }
}
