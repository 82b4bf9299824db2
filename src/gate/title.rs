//! What a gate compares, in words: names of targets and versions, never ids. Pure.

use std::collections::BTreeSet;

use brewbench_wire::manifest::source::split_target;

use crate::{
    baselines::resolve::{Kind, Resolved},
    runs::{
        code::{code_of, describe_code},
        model::Run,
    },
};

/// Targets of a side that are named; more are counted.
const MAX_TARGETS: usize = 3;

/// Returns the title of a gate; the runs are those of the chosen targets.
pub fn title((base, base_runs): (&Resolved, &[&Run]), (new, new_runs): (&Resolved, &[&Run])) -> String {
    let [mut candidate, mut baseline] = [new_runs, base_runs].map(targets);
    let agent = |run: &Run| run.agent.as_ref().map(|agent| format!(" on {agent}"));
    let size = |run: &Run| run.spec.size.as_ref().map(|size| format!(", {}", size.name));
    for [own, other] in [only(agent, new_runs, base_runs), only(size, new_runs, base_runs)] {
        candidate.push_str(&own);
        baseline.push_str(&other);
    }
    for (text, side) in [(&mut candidate, new), (&mut baseline, base)] {
        let names = side.parts.iter().filter(|(kind, _)| *kind == Kind::Baseline).map(|(_, name)| name.as_str());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            *text = format!("{text} of {}", names.join(", "));
        }
    }
    if candidate == baseline {
        let code = |run: &Run| code_of(run).map(|code| format!(", {}", describe_code(Some(&code))));
        let [mut own, mut other] = only(code, new_runs, base_runs);
        if own == other {
            [own, other] = only(submitted, new_runs, base_runs);
        }
        candidate.push_str(&own);
        baseline.push_str(&other);
    }
    format!("{candidate} against {baseline}")
}

/// Returns what all runs of a side have, for both sides, if that is not the same; else empty texts.
fn only(value: impl Fn(&Run) -> Option<String>, one: &[&Run], other: &[&Run]) -> [String; 2] {
    let all = |runs: &[&Run]| runs.iter().filter_map(|run| value(run)).collect::<BTreeSet<_>>();
    let (one, other) = (all(one), all(other));
    if one == other {
        return [String::new(), String::new()];
    }
    [one, other].map(|values| if values.len() == 1 { values.into_iter().collect() } else { String::new() })
}

fn submitted(run: &Run) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(run.queued_at_ms).ok()?;
    Some(format!(", {}", at.strftime("%F %H:%M UTC")))
}

fn targets(runs: &[&Run]) -> String {
    let names: BTreeSet<String> = runs
        .iter()
        .filter(|run| run.version.is_some() || runs.iter().all(|run| run.version.is_none()))
        .map(|run| name(run))
        .collect();
    match names.len() {
        0 => "nothing".to_owned(),
        1..=MAX_TARGETS => names.into_iter().collect::<Vec<_>>().join(" and "),
        count => format!("{count} targets"),
    }
}

/// Returns the name and version of a target; of one that is named by its commit, the commit once.
fn name(run: &Run) -> String {
    let target = &run.spec.target;
    let Some(version) = &run.version else { return target.clone() };
    match split_target(target) {
        (name, Some(revision)) if revision.starts_with(version) || version.starts_with(revision) => {
            format!("{name}@{version}")
        }
        _ => format!("{target} ({version})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::run;

    fn resolved(kind: Kind, name: &str) -> Resolved {
        Resolved { text: name.to_owned(), parts: vec![(kind, name.to_owned())], runs: Vec::new(), gone: 0 }
    }

    fn of(base: &(&Resolved, Run), new: &(&Resolved, Run)) -> String {
        title((base.0, &[&base.1]), (new.0, &[&new.1]))
    }

    #[test]
    fn targets_and_versions_are_named_and_what_else_differs() {
        let experiment = resolved(Kind::Experiment, "01a214a2-0000-7000-8000-000000000000");
        let version = |target: &str, version: &str| Run { version: Some(version.to_owned()), ..run(target, 1) };
        let (main, pr) = (version("svc-main", "v1"), version("svc-pr", "v2"));
        assert_eq!(of(&(&experiment, main.clone()), &(&experiment, pr.clone())), "svc-pr (v2) against svc-main (v1)");
        let commit = "8f2c1d0a9b7c";
        let (old, new) = (version("svc@main", "0123456789ab"), version(&format!("svc@{commit}ddee"), commit));
        let expected = "svc@8f2c1d0a9b7c against svc@main (0123456789ab)";
        assert_eq!(of(&(&experiment, old), &(&experiment, new)), expected);
        let elsewhere = Run { agent: Some("laptop".to_owned()), ..pr };
        let expected = "svc-pr (v2) on laptop against svc-main (v1) on bench-01";
        assert_eq!(of(&(&experiment, main.clone()), &(&experiment, elsewhere)), expected);
        let named = resolved(Kind::Baseline, "release");
        assert_eq!(
            of(&(&named, main.clone()), &(&experiment, main.clone())),
            "svc-main (v1) against svc-main (v1) of release"
        );
        let other = Run { target_identity: Some(format!("code:{}", "ab".repeat(32))), ..main.clone() };
        let known = Run { target_identity: Some(format!("code:{}", "cd".repeat(32))), ..main.clone() };
        let expected = "svc-main (v1), code abababab against svc-main (v1), code cdcdcdcd";
        assert_eq!(of(&(&experiment, known.clone()), &(&experiment, other)), expected);
        let later = Run { queued_at_ms: known.queued_at_ms + 60_000, ..known.clone() };
        let text = of(&(&experiment, known), &(&experiment, later));
        assert!(text.matches(" UTC").count() == 2 && !text.contains("01a214a2"), "{text}");
    }
}
