//! An experiment in other words than it was asked for. Pure.

use std::collections::BTreeMap;

use super::Plan;
use crate::{
    runs::{Run, load},
    web::format,
};

/// A run that has not ended does not know the version of its target yet. Others of the same target do: within one
/// experiment it is one target, with one colour and one column.
pub fn with_versions(mut runs: Vec<Run>) -> Vec<Run> {
    let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
    for run in &runs {
        let Some(version) = &run.version else { continue };
        known
            .entry(run.target.clone())
            .and_modify(|other| *other = other.take().filter(|other| other == version))
            .or_insert_with(|| Some(version.clone()));
    }
    for run in runs.iter_mut().filter(|run| run.version.is_none()) {
        run.version = known.get(&run.target).cloned().flatten();
    }
    runs
}

/// What was asked for, in one line.
pub fn asked(plan: &Plan) -> String {
    let mut parts = vec![plan.scenario.clone()];
    parts.extend(plan.parameters.iter().map(|(name, value)| format!("{name}={value}")));
    let seconds = |value| format::duration(Some(value)).text().to_owned();
    parts.push(match plan.load.duration() {
        Some(duration) => format!("{}, {} measured", load::words(&plan.load), seconds(duration.as_secs_f64())),
        None => load::words(&plan.load),
    });
    parts.push(format!("{} warm-up", seconds(plan.warm_up_s)));
    let repetitions = usize::try_from(plan.repetitions).unwrap_or(usize::MAX);
    let cells = [
        format::plural(plan.targets.len(), "target"),
        format::plural(plan.sizes.len(), "size"),
        format::plural(repetitions, "repetition"),
    ];
    parts.push(cells.join(" × "));
    parts.join(" · ")
}

#[cfg(test)]
pub(crate) mod tests {
    use brewbench_agent::wire::load::Load;

    use super::*;
    use crate::runs::{
        load::tests::{rate, vus},
        made_up::{finished, measuring},
    };

    pub fn plan() -> Plan {
        Plan {
            name: None,
            targets: vec!["gosherve".to_owned(), "servy".to_owned()],
            sizes: vec!["2/4GiB".to_owned()],
            scenario: "hash".to_owned(),
            parameters: BTreeMap::new(),
            load: vus(10, 10.0),
            warm_up_s: 2.0,
            repetitions: 3,
            agent: None,
        }
    }

    pub fn queued(target: &str) -> Run {
        Run { version: None, phase: "queued".to_owned(), agent: None, started_at_ms: None, ..measuring(target) }
    }

    #[test]
    fn what_was_asked_for_is_one_line() {
        let text = asked(&plan()).replace('\u{a0}', " ");
        assert_eq!(text, "hash · 10 VUs, 10 s measured · 2 s warm-up · 2 targets × 1 size × 3 repetitions");
        let script = asked(&Plan { load: Load::Script, ..plan() });
        assert!(script.contains("load of the script"), "{script}");
        let open = asked(&Plan { load: rate(2_000, 5.0), ..plan() }).replace('\u{a0}', " ");
        assert!(open.contains("2,000 iterations/s, 5 s measured"), "{open}");
    }

    #[test]
    fn a_run_that_waits_belongs_to_the_version_that_ran() {
        let runs = with_versions(vec![finished("servy", 1), queued("servy"), queued("gosherve")]);
        let versions: Vec<_> = runs.iter().map(|run| run.version.as_deref()).collect();
        assert_eq!(versions, [Some("1.0"), Some("1.0"), None]);
        let other = Run { version: Some("2.0".to_owned()), ..finished("servy", 2) };
        assert_eq!(with_versions(vec![finished("servy", 1), other, queued("servy")])[2].version, None);
    }
}
