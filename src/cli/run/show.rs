//! `brewbench run show`

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;

use crate::{
    cli::{
        run::which::{One, full_id},
        table,
    },
    distributed::shares::{GeneratorList, GeneratorShare},
    results::evidence::WholeThreshold,
    runs::{
        load,
        model::{Run as RunData, RunList},
        verdict::Verdict,
        work::mix,
    },
};

/// A run, and what each of its generators has done where others than its agent make the load.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    runs: RunList,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    generators: Vec<GeneratorShare>,
    /// The script's thresholds for the load of all of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thresholds: Vec<WholeThreshold>,
}

impl One {
    /// Shows it.
    pub async fn show(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let runs: RunList = connection.client.get(&format!("api/v1/runs/{id}")).await?;
        let mut shown = Shown { runs, generators: Vec::new(), thresholds: Vec::new() };
        if shown.runs.runs.iter().any(|run| !run.generators.is_empty()) {
            let list: GeneratorList = connection.client.get(&format!("api/v1/runs/{id}/generators")).await?;
            (shown.generators, shown.thresholds) = (list.generators, list.thresholds);
        }
        self.common.print(&shown, |shown| shown.runs.runs.iter().map(|run| details(run, shown)).collect())
    }
}

/// Of the names at the left.
const WIDTH: usize = 16;

fn details(run: &RunData, Shown { generators, thresholds, .. }: &Shown) -> String {
    use table::{figure, thousands};
    let count = |value: Option<u64>| value.map_or("–".to_owned(), |value| thousands(value as f64));
    let mut lines = vec![
        ("id", run.id.to_string()),
        ("target", format!("{} {}", run.target, run.version.as_deref().unwrap_or(""))),
        ("size", run.size.as_ref().map_or("–".to_owned(), |size| size.name.clone())),
        ("scenario", run.scenario.clone().unwrap_or_else(|| "–".to_owned())),
        ("load", run.load.as_ref().map_or("–".to_owned(), load::whole).replace('\u{a0}', " ")),
        ("repetition", run.repetition.to_string()),
        ("phase", run.phase.words()),
        ("verdict", run.verdict.map_or("–", Verdict::as_str).to_owned()),
    ];
    // What a target failed at is a reason and the error.
    let reasons = run.reasons.iter().filter(|reason| run.error.as_deref() != Some(&reason.text));
    lines.extend(reasons.map(|reason| {
        let figures = reason.figures().map_or_else(String::new, |figures| format!(" ({figures})"));
        (if reason.is_note() { "remark" } else { "because" }, format!("{}{figures}", reason.text))
    }));
    lines.extend(run.error.iter().map(|error| ("error", error.clone())));
    lines.extend([
        ("requests", count(run.figures.requests)),
        ("failed", count(run.figures.failed)),
        ("requests/s", figure(run.figures.rps)),
        ("avg ms", figure(run.figures.avg_ms)),
        ("min ms", figure(run.figures.min_ms)),
        ("p50 ms", figure(run.figures.p50_ms)),
        ("p90 ms", figure(run.figures.p90_ms)),
        ("p95 ms", figure(run.figures.p95_ms)),
        ("p99 ms", figure(run.figures.p99_ms)),
        ("p99.9 ms", figure(run.figures.p999_ms)),
        ("max ms", figure(run.figures.max_ms)),
        ("CPU ms/request", figure(run.figures.cpu_ms_per_request)),
        ("memory MiB", figure(run.figures.target_memory_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)))),
        ("warm-up", run.warm_up_text().unwrap_or_else(|| "–".to_owned()).replace('\u{a0}', " ")),
        ("measured s", figure(run.figures.measured_s)),
        ("requests/iter.", figure(run.work.requests_per_iteration)),
        ("bytes/request", figure(run.work.bytes_per_request)),
        ("new connections", connections(run)),
        ("statuses", counts(run.work.statuses.as_ref())),
        ("protocols", counts(run.work.protocols.as_ref())),
        ("agent", run.agent.clone().unwrap_or_else(|| "–".to_owned())),
    ]);
    lines.extend(generators.iter().map(|one| ("load from", share(one))));
    lines.extend(thresholds.iter().map(|one| ("threshold", threshold(one, &run.generators))));
    lines.extend([("engine", run.engine.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string))]);
    lines.extend(run.labels.iter().map(|label| ("label", label.clone())));
    lines.extend(run.note.iter().flat_map(|note| note.lines()).map(|line| ("note", line.to_owned())));
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<WIDTH$}{}", table::hanging(&table::plain(value.trim()), WIDTH));
        text
    })
}

/// How many there were, or within which bounds.
fn connections(run: &RunData) -> String {
    use table::thousands;
    match (run.work.least_new_connections, run.work.most_new_connections) {
        (Some(least), Some(most)) if least == most => thousands(least as f64),
        (Some(least), Some(most)) => format!("{} to {}", thousands(least as f64), thousands(most as f64)),
        _ => "–".to_owned(),
    }
}

/// Requests by what they were.
fn counts(counts: Option<&BTreeMap<String, u64>>) -> String {
    counts.map_or_else(|| "–".to_owned(), mix).replace('\u{a0}', " ")
}

/// What a generator has done, in a line.
fn share(one: &GeneratorShare) -> String {
    use table::{figure, thousands};
    let mut told = vec![format!("{}, segment {}", one.agent, one.segment)];
    if let Some(requests) = one.requests {
        told.push(format!("{} requests, {}/s", thousands(requests as f64), figure(one.rps)));
        told.push(format!("{} failed", one.failed.map_or("–".to_owned(), |failed| thousands(failed as f64))));
        told.push(format!("p99 {} ms of its own", figure(one.p99_ms)));
    } else if one.delivered {
        told.push("is done".to_owned());
    }
    if let Some(used) = one.used_cores {
        let of = one.cores.map_or_else(String::new, |cores| format!(" of {cores}"));
        told.push(format!("k6 used {used:.2}{of} cores"));
    }
    told.extend(one.after_first_ms.map(|ms| format!("began +{ms} ms")));
    if let Some((offset, error)) = one.clock_offset_ms.zip(one.clock_error_ms) {
        told.push(format!("clock {offset:+.1} ± {error:.1} ms"));
    }
    told.extend(
        one.thresholds_failed
            .filter(|crossed| *crossed > 0)
            .map(|crossed| format!("crossed {crossed} of {} thresholds", one.thresholds.unwrap_or(crossed))),
    );
    told.join(", ")
}

/// A threshold of the script for all generators together, and what each one's k6 says of its part.
fn threshold(one: &WholeThreshold, generators: &[String]) -> String {
    let word = |passed: Option<bool>, unknown| passed.map_or(unknown, |passed| if passed { "held" } else { "crossed" });
    let WholeThreshold { metric, expression, passed, basis, own } = one;
    let own = generators.iter().zip(own).map(|(agent, said)| format!(", {agent} {}", word(*said, "–")));
    format!("{metric} {expression}: {} ({}){}", word(*passed, "not known"), basis.words(), own.collect::<String>())
}
