//! What the tools answer: figures only with their ranges, differences only with their intervals. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    catalog::model::{ScenarioList, SizeList, Target, TargetList},
    compare::{
        answer::Headline,
        cell::Row,
        note::{Level, Note},
        stat::Stat,
        view::Comparison,
    },
    experiments::model::ExperimentWithRuns,
    fleet::model::{Agent, AgentList},
    runs::model::Run,
};

/// What an experiment can be made of.
pub fn catalog(targets: &TargetList, sizes: &SizeList, scenarios: &ScenarioList, agents: &AgentList) -> Value {
    let target = |Target { name, version, kind, description, .. }: &Target| json!({"name": name, "version": version, "kind": kind, "description": description});
    let agent = |Agent { name, connected, labels, fault, .. }: &Agent| json!({"name": name, "connected": connected, "labels": labels, "fault": fault});
    json!({
        "targets": targets.targets.iter().map(target).collect::<Value>(),
        "more_targets": targets.next.is_some(),
        "sizes": sizes.sizes.iter().map(|size| &*size.name).collect::<Value>(),
        "scenarios": scenarios.scenarios.iter().map(|scenario| &*scenario.name).collect::<Value>(),
        "agents": agents.agents.iter().map(agent).collect::<Value>(),
    })
}

/// A run without its figures.
pub fn run(run: &Run, page: &str) -> Value {
    let reasons = run.reasons.iter().map(|reason| json!({"verdict": reason.verdict, "text": reason.text}));
    json!({
        "id": run.id,
        "experiment": run.experiment,
        "target": run.spec.target,
        "version": run.version,
        "size": run.spec.size.as_ref().map(|size| &size.name),
        "scenario": run.spec.scenario,
        "repetition": run.repetition,
        "phase": run.phase,
        "verdict": run.verdict,
        "reasons": reasons.collect::<Value>(),
        "error": run.error,
        "page": page,
    })
}

/// A run with everything known about it.
pub fn explained(run: &Run, page: &str) -> Value {
    json!({
        "page": page,
        "note": "one run: its figures have no interval",
        "run": run,
    })
}

/// How far an experiment is.
pub fn progress(experiment: &ExperimentWithRuns, page: &str) -> Value {
    let progress = &experiment.progress;
    json!({
        "experiment": experiment.experiment.id,
        "name": experiment.experiment.name,
        "state": progress.state,
        "runs_ended": progress.ended,
        "runs": progress.total,
        "runs_without_results": progress.without_results,
        "remaining_s": progress.remaining_s,
        "now": progress.now,
        "page": page,
    })
}

/// A comparison.
pub fn comparison(comparison: &Comparison, page: &str) -> Value {
    let result = |headline: &Headline| json!({"sentence": headline.line(), "details": headline.details});
    let note = |note: &&Note| format!("{} {}", note.title, note.text);
    let excluded = comparison.excluded.iter().map(
        |run| json!({"target": run.subject, "repetition": run.repetition, "state": run.state, "reason": run.reason}),
    );
    let trust = &comparison.answer.trust;
    json!({
        "title": comparison.title,
        "page": page,
        "result": comparison.answer.headlines.iter().map(result).collect::<Value>(),
        "trust": format!("{}: {}", trust.level.title(), trust.text),
        "warnings": comparison.notes_of(&Level::Doubt).iter().map(note).collect::<Value>(),
        "shared": comparison.shared,
        "settings": comparison.rows.iter().map(|row| setting(comparison, row)).collect::<Value>(),
        "excluded": excluded.collect::<Value>(),
    })
}

fn setting(comparison: &Comparison, row: &Row) -> Value {
    let targets = row.cells.iter().filter_map(|cell| {
        let subject = comparison.subjects.get(cell.subject)?;
        let is_baseline = comparison.is_baseline(subject);
        let figures = cell.stats.iter().filter_map(|stat| figure(stat, is_baseline));
        Some(json!({
            "target": subject.label,
            "is_baseline": is_baseline,
            "runs": format!("{} of {} count", cell.counts.counting(), cell.runs.len()),
            "figures": figures.collect::<Value>(),
        }))
    });
    let confounders: BTreeSet<String> =
        row.confounders.iter().map(|it| format!("{}: {}", it.what.title(), it.values.join(" and "))).collect();
    json!({
        "setting": row.setting.label,
        "confounders": confounders,
        "targets": targets.collect::<Value>(),
    })
}

/// A figure with its range over the repetitions, and its difference from the baseline with the interval. None if no run
/// has it.
fn figure(stat: &Stat, is_baseline: bool) -> Option<Value> {
    let spread = stat.spread.as_ref()?;
    let text = |value: f64| stat.metric.figure(Some(value)).text().to_owned();
    let mut figure = json!({
        "metric": stat.metric.head(),
        "value": stat.figure().text(),
        "range": format!("{} to {} in {} runs", text(spread.min), text(spread.max), spread.count),
    });
    if !is_baseline {
        let interval = stat.interval();
        let difference = (!interval.is_empty()).then(|| format!("{} ({interval})", stat.change().text()));
        figure["difference_and_95_percent_interval"] = json!(difference);
        figure["decision"] = json!(stat.meaning());
    }
    Some(figure)
}
