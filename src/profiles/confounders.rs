//! What differs between the runs of two profiles besides the target. Pure.

use brewbench_wire::profile::ProfileSource;

use crate::{
    compare::{
        comparability::{Circumstance, Confounder, Environments, confounders as confounders_of},
        selection::By,
    },
    runs::{load, model::Run},
};

/// Everything but the target that profiled runs of one cell share, in words.
pub fn setting(run: &Run) -> [(&'static str, String); 7] {
    let parameters = run.spec.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    [
        ("Machine sizes", run.spec.size.as_ref().map(|size| size.name.clone()).unwrap_or_default()),
        ("Scenarios", run.spec.scenario.clone().unwrap_or_default()),
        (
            "Scenario revisions",
            run.spec.scenario_sha256.as_ref().map(|hash| hash.chars().take(12).collect()).unwrap_or_default(),
        ),
        ("Parameters", parameters.join(", ")),
        ("Loads", load::describe_with(&run.spec, load::describe).unwrap_or_default()),
        ("Agents", run.agent.clone().unwrap_or_default()),
        ("Kinds of targets", run.target_kind.map(|kind| kind.to_string()).unwrap_or_default()),
    ]
}

/// Describes what differs, e.g. `Machine sizes differ: 1 vCPU and 2 vCPU`. Each side is a run and its profiler.
pub fn confounders(baseline: (&Run, ProfileSource), candidate: (&Run, ProfileSource)) -> Vec<String> {
    // A runtime's own profiler sees no kernel, and perf does.
    let all = |(run, source): (&Run, ProfileSource)| -> Vec<_> {
        setting(run).into_iter().chain([("Profilers", source.to_string())]).collect()
    };
    let (one, other) = (all(baseline), all(candidate));
    let named = |text: &str| if text.is_empty() { "none" } else { text }.to_owned();
    // What the compare page decides, too.
    let is_setting = |what: &str| Circumstance::ALL.iter().all(|one| one.title() != what);
    let setting = one.iter().zip(&other).filter(|((what, one), (_, other))| one != other && is_setting(what));
    let setting =
        setting.map(|((what, one), (_, other))| format!("{what} differ: {} and {}", named(one), named(other)));
    let circumstances = confounders_of(&[vec![baseline.0], vec![candidate.0]], By::Target, &Environments::new());
    let circumstances = circumstances.into_iter().map(|Confounder { what, sides: [one, other], .. }| {
        format!("{} differ: {} and {}", what.title(), one.join(", "), other.join(", "))
    });
    setting.chain(circumstances).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn only_what_differs_besides_the_target_is_named() {
        let (one, mut other) = (finished("gosherve", 1), finished("servy", 2));
        let perf = ProfileSource::Perf;
        assert_eq!(confounders((&one, perf), (&other, perf)), Vec::<String>::new());
        let sources = confounders((&one, perf), (&other, ProfileSource::Pprof));
        assert_eq!(sources, ["Profilers differ: perf and pprof"]);
        other.agent = Some("rack-2".to_owned());
        other.spec.parameters.insert("SIZE".to_owned(), "9".to_owned());
        let found = confounders((&one, perf), (&other, perf));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], "Parameters differ: none and SIZE=9");
    }
}
