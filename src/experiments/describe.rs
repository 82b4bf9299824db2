//! Describes plans and retried runs as text. Pure.

use std::collections::HashSet;

use brewbench_wire::{Phase, load::Load, run_spec::HttpVersion};

use super::sweep::Sweep;
use crate::{
    app::ids::RunId,
    experiments::{knee::model::Knee, plan::Plan, stopping_rule::StoppingRule},
    runs::{
        load,
        model::{Run, in_cluster},
    },
    web::format,
};

/// Describes a plan in one line.
pub fn describe_plan(plan: &Plan) -> String {
    if plan.scenario.is_empty() {
        return "imported: measured elsewhere".to_owned();
    }
    let mut parts = vec![plan.scenario.clone()];
    parts.extend(plan.parameters.iter().map(|(name, value)| format!("{name}={value}")));
    parts.push(describe_load(plan));
    parts.extend(plan.scale.map(|scale| format!("scaled by {scale}")));
    parts.extend(plan.script_scenario.as_ref().map(|name| format!("scenario {name} of the script")));
    parts.extend(plan.engine.map(|engine| format!("with {}", engine.as_str())));
    parts.extend(
        Some(plan.http_version)
            .filter(|version| *version != HttpVersion::Auto)
            .map(|version| format!("HTTP/{}", version.as_str())),
    );
    parts.push(if plan.warm_up_auto {
        format!("warm-up {}", describe_warm_up(plan))
    } else {
        format!("{} warm-up", describe_warm_up(plan))
    });
    parts.push(cells(plan));
    parts.extend(plan.against.as_ref().map(|name| format!("baseline {name} measured again")));
    parts.extend(plan.stopping_rule.as_ref().map(StoppingRule::describe));
    if plan.profiled_repetitions > 0 {
        let times = usize::try_from(plan.profiled_repetitions).unwrap_or(usize::MAX);
        parts.push(format!("{} profiled", format::plural(times, "more repetition")));
    }
    parts.extend(plan.agent_label.as_ref().map(|label| format!("on agents labelled {label}")));
    if plan.spread {
        parts.push("spread over several machines".to_owned());
    }
    if !plan.generators.is_empty() {
        parts.push(format!("load from {}", plan.generators.join(", ")));
    }
    if plan.cluster_generators > 0 {
        parts.push(format!("load from {}", in_cluster(plan.cluster_generators)));
    }
    parts.join(" · ")
}

/// Describes the duration of the warm-up.
pub fn describe_warm_up(plan: &Plan) -> String {
    let most = seconds(plan.longest_warm_up_s());
    if plan.warm_up_auto { format!("until steady, at most {most}") } else { most }
}

/// Describes the load and its duration.
pub fn describe_load(plan: &Plan) -> String {
    if let Some(Knee { objective, from, to, duration_s, .. }) = &plan.knee {
        let [from, to] = [from, to].map(|rate| format::count(Some(u64::from(*rate))).text().to_owned());
        let each = seconds(*duration_s);
        return format!("knee search for {objective} from {from} to {to}\u{a0}iterations/s, {each} measured");
    }
    let (one, several) = match plan.loads.as_slice() {
        [] => (Some(&Load::Script), None),
        [one] => (Some(one), None),
        several => (several.first(), Sweep::from_loads(several)),
    };
    let words = several.map(|sweep| sweep.describe()).or_else(|| one.map(load::describe)).unwrap_or_default();
    match one.and_then(Load::duration) {
        Some(duration) => format!("{words}, {} measured", seconds(duration.as_secs_f64())),
        None => words,
    }
}

fn seconds(value: f64) -> String {
    format::duration(Some(value)).text().to_owned()
}

/// Describes the cells: `2 targets × 2 sizes × 3 repetitions`, with the number of loads if there are several.
pub fn cells(plan: &Plan) -> String {
    cells_times(plan, &format::plural(usize::try_from(plan.repetitions).unwrap_or(usize::MAX), "repetition"))
}

/// Does the same with the maximum of adaptive repetitions: `2 targets × 1 size × 4 to 20 repetitions`.
pub fn cells_at_most(plan: &Plan) -> String {
    match plan.stopping_rule {
        Some(StoppingRule { at_most, .. }) if at_most > plan.repetitions => {
            cells_times(plan, &format!("{} to {at_most} repetitions", plan.repetitions))
        }
        _ => cells(plan),
    }
}

fn cells_times(plan: &Plan, repetitions: &str) -> String {
    let mut parts = vec![format::plural(plan.targets.len(), "target"), format::plural(plan.sizes.len(), "size")];
    if plan.loads.len() > 1 {
        parts.push(format::plural(plan.loads.len(), "load"));
    }
    parts.push(match plan.knee {
        Some(ref knee) => {
            let runs = knee.rules(plan).confirming();
            format!("at least {} near the knee", format::plural(runs.saturating_mul(2), "run"))
        }
        None => repetitions.to_owned(),
    });
    parts.join(" × ")
}

/// Describes which runs were retried and why, if any were.
pub fn describe_retries(runs: &[Run]) -> Option<String> {
    let ids: HashSet<&RunId> = runs.iter().filter_map(|run| run.retry_of.as_ref()).collect();
    let retried: Vec<&Run> = runs.iter().filter(|run| ids.contains(&run.id)).collect();
    let first = retried.first()?;
    let why = first.error.as_deref().or_else(|| first.because().map(|reason| reason.text.as_str()));
    let what = if first.phase == Phase::Finished { "is invalid" } else { first.phase.as_str() };
    let why = why.and_then(|why| why.lines().next()).map_or_else(String::new, |why| format!(" ({why})"));
    Some(match retried.len() {
        1 => format!("1 run was retried: {}, repetition {} {what}{why}", first.spec.target, first.repetition),
        count => format!(
            "{count} runs were retried; the first: {}, repetition {} {what}{why}",
            first.spec.target, first.repetition
        ),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        compare::selection::with_versions,
        experiments::{knee::model::tests::knee, model::Experiment},
        runs::{
            load::tests::{rate, vus},
            testing::{failed, finished, measuring},
        },
    };

    pub fn plan() -> Plan {
        Plan {
            targets: vec!["gosherve".to_owned(), "servy".to_owned()],
            sizes: vec!["2/4GiB".to_owned()],
            scenario: "hash".to_owned(),
            loads: vec![vus(10, 10.0)],
            warm_up_s: Some(2.0),
            repetitions: 3,
            retries: 1,
            ..Plan::default()
        }
    }

    pub fn experiment(name: &str, plan: Plan) -> Experiment {
        Experiment {
            id: "0199".to_owned().into(),
            name: name.to_owned(),
            plan,
            created_by: "ada".to_owned(),
            created_at_ms: 1_772_626_394_000,
            labels: Vec::new(),
            note: None,
            is_open: false,
            paused_at_ms: None,
            paused_by: None,
        }
    }

    pub fn queued(target: &str) -> Run {
        Run { version: None, phase: Phase::Queued, agent: None, started_at_ms: None, ..measuring(target) }
    }

    #[test]
    fn a_plan_is_described_in_one_line() {
        let text = describe_plan(&plan()).replace('\u{a0}', " ");
        assert_eq!(text, "hash · 10 VUs, 10 s measured · 2 s warm-up · 2 targets × 1 size × 3 repetitions");
        let describe = |plan| describe_plan(&plan).replace('\u{a0}', " ");
        let script = describe(Plan { loads: vec![Load::Script], ..plan() });
        assert!(script.contains("load of the script"), "{script}");
        let open = describe(Plan { loads: vec![rate(2_000, 5.0)], ..plan() });
        assert!(open.contains("2,000 iterations/s, 5 s measured"), "{open}");
        let sweep = describe(Plan { loads: vec![vus(1, 10.0), vus(8, 10.0)], ..plan() });
        assert!(sweep.contains("1, 8 VUs, 10 s measured") && sweep.contains("1 size × 2 loads × 3"), "{sweep}");
        let until = Some(StoppingRule { narrower_than: 0.02, at_most: 20 });
        let until = describe(Plan { stopping_rule: until, ..plan() });
        assert!(
            until.ends_with("3 repetitions · until intervals are narrower than 2%, at most 20 repetitions"),
            "{until}"
        );
        let knee = describe(Plan { loads: Vec::new(), knee: Some(knee()), ..plan() });
        let expected = "knee search for p99<50ms, failures<0.1% from 1,000 to 20,000 iterations/s, 10 s measured";
        assert!(knee.contains(expected) && knee.ends_with("× at least 6 runs near the knee"), "{knee}");
    }

    #[test]
    fn retried_runs_are_described_with_the_reason_of_the_first() {
        assert_eq!(describe_retries(&[finished("servy", 1)]), None);
        let lost = failed("servy", "failed", "the port was taken\nby another process");
        let again = Run { id: "b".to_owned().into(), retry_of: Some(lost.id.clone()), ..finished("servy", 1) };
        let text = describe_retries(&[lost.clone(), again.clone()]).expect("a sentence");
        assert_eq!(text, "1 run was retried: servy, repetition 1 failed (the port was taken)");
        let twice = Run { id: "c".to_owned().into(), retry_of: Some("b".to_owned().into()), ..finished("servy", 1) };
        let text = describe_retries(&[lost, again, twice]).expect("a sentence");
        assert!(text.starts_with("2 runs were retried; the first: servy"), "{text}");
    }

    #[test]
    fn a_waiting_run_belongs_to_the_version_that_ran() {
        let runs = with_versions(vec![finished("servy", 1), queued("servy"), queued("gosherve")]);
        let versions: Vec<_> = runs.iter().map(|run| run.version.as_deref()).collect();
        assert_eq!(versions, [Some("1.0"), Some("1.0"), None]);
        let other = Run { version: Some("2.0".to_owned()), ..finished("servy", 2) };
        assert_eq!(with_versions(vec![finished("servy", 1), other, queued("servy")])[2].version, None);
    }
}
