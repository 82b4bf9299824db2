//! `brewbench run show`

use std::{collections::BTreeMap, fmt::Write};

use brewbench::{
    distributed::shares::{GeneratorList, GeneratorShare},
    metrics::{counters, work::mix},
    results::evidence::WholeThreshold,
    runs::{
        load,
        model::{Run as RunData, RunList},
        verdict::Verdict,
    },
};
use serde::Serialize;

use crate::{
    run::which::{OneRun, full_id},
    table,
};

/// A run and, for a distributed run, the share of each generator.
#[derive(Serialize)]
struct RunWithShares {
    #[serde(flatten)]
    runs: RunList,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    generators: Vec<GeneratorShare>,
    /// The script's thresholds, merged over all generators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thresholds: Vec<WholeThreshold>,
}

impl OneRun {
    /// Shows the run.
    pub async fn show(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let runs: RunList = connection.client.get(&format!("api/v1/runs/{id}")).await?;
        let mut shown = RunWithShares { runs, generators: Vec::new(), thresholds: Vec::new() };
        if shown.runs.runs.iter().any(|run| run.load_from().is_some()) {
            let list: GeneratorList = connection.client.get(&format!("api/v1/runs/{id}/generators")).await?;
            (shown.generators, shown.thresholds) = (list.generators, list.thresholds);
        }
        self.common.print(&shown, |shown| shown.runs.runs.iter().map(|run| details(run, shown)).collect())
    }
}

/// Width of the names on the left.
const WIDTH: usize = 16;

fn details(run: &RunData, RunWithShares { generators, thresholds, .. }: &RunWithShares) -> String {
    use table::{figure, thousands};
    let count = |value: Option<u64>| value.map_or("–".to_owned(), |value| thousands(value as f64));
    let mut lines = vec![
        ("id", run.id.to_string()),
        ("target", format!("{} {}", run.spec.target, run.version.as_deref().unwrap_or(""))),
        ("size", run.spec.size.as_ref().map_or("–".to_owned(), |size| size.name.clone())),
        ("scenario", run.spec.scenario.clone().unwrap_or_else(|| "–".to_owned())),
        (
            "load",
            load::describe_with(&run.spec, load::with_max_vus).unwrap_or_else(|| "–".to_owned()).replace('\u{a0}', " "),
        ),
        ("repetition", run.repetition.to_string()),
        ("phase", run.phase.describe()),
        ("verdict", run.verdict.map_or("–", Verdict::as_str).to_owned()),
    ];
    // A failure of the target is both a reason and the error: show it once.
    let reasons = run.reasons.iter().filter(|reason| run.error.as_deref() != Some(&reason.text));
    lines.extend(reasons.map(|reason| {
        let figures = reason.figures().map_or_else(String::new, |figures| format!(" ({figures})"));
        (if reason.is_note() { "remark" } else { "reason" }, format!("{}{figures}", reason.text))
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
        ("memory MiB", mib(run.figures.held_memory_bytes)),
        ("file cache MiB", mib(run.figures.file_cache_bytes)),
        ("working set MiB", mib(run.figures.target_memory_bytes)),
        ("counters", counters::describe(&run.figures).map_or("–".to_owned(), |text| text.replace('\u{a0}', " "))),
        ("warm-up", run.warm_up_text().unwrap_or_else(|| "–".to_owned()).replace('\u{a0}', " ")),
        ("measured s", figure(run.figures.measured_s)),
        ("requests/iter.", figure(run.figures.work.requests_per_iteration)),
        ("bytes/request", figure(run.figures.work.bytes_per_request)),
        ("sent/request", figure(run.figures.work.sent_bytes_per_request)),
        ("new connections", connections(run)),
        ("statuses", counts(run.figures.work.statuses.as_ref())),
        ("protocols", counts(run.figures.work.protocols.as_ref())),
        ("kind", run.target_kind.map_or_else(|| "–".to_owned(), |kind| kind.to_string())),
        ("agent", run.agent.clone().unwrap_or_else(|| "–".to_owned())),
    ]);
    lines.extend(generators.iter().map(|one| ("generator", share(one))));
    lines.extend(thresholds.iter().map(|one| ("threshold", threshold(one, &run.spec.generators))));
    lines.extend([("engine", run.engine.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string))]);
    lines.extend(run.labels.iter().map(|label| ("label", label.clone())));
    lines.extend(run.note.iter().flat_map(|note| note.lines()).map(|line| ("note", line.to_owned())));
    lines.into_iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<WIDTH$}{}", table::hanging(&table::plain(value.trim()), WIDTH));
        text
    })
}

/// Formats an amount of memory.
fn mib(bytes: Option<u64>) -> String {
    table::figure(bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)))
}

/// Formats the number of new connections, or its bounds.
fn connections(run: &RunData) -> String {
    use table::thousands;
    match (run.figures.work.min_new_connections, run.figures.work.max_new_connections) {
        (Some(least), Some(most)) if least == most => thousands(least as f64),
        (Some(least), Some(most)) => format!("{} to {}", thousands(least as f64), thousands(most as f64)),
        _ => "–".to_owned(),
    }
}

/// Formats counts by kind.
fn counts(counts: Option<&BTreeMap<String, u64>>) -> String {
    counts.map_or_else(|| "–".to_owned(), mix).replace('\u{a0}', " ")
}

/// Summarizes a generator's share in a line.
fn share(one: &GeneratorShare) -> String {
    use table::{figure, thousands};
    let mut parts = vec![format!("{}, segment {}", one.agent, one.segment)];
    if let Some(requests) = one.requests {
        parts.push(format!("{} requests, {}/s", thousands(requests as f64), figure(one.rps)));
        parts.push(format!("{} failed", one.failed.map_or("–".to_owned(), |failed| thousands(failed as f64))));
        parts.push(format!("own p99 {} ms", figure(one.p99_ms)));
    } else if one.delivered {
        parts.push("delivered".to_owned());
    }
    if let Some(used) = one.used_cores {
        let of = one.cores.map_or_else(String::new, |cores| format!(" of {cores}"));
        parts.push(format!("k6 used {used:.2}{of} cores"));
    }
    parts.extend(one.after_first_ms.map(|ms| format!("started +{ms} ms")));
    if let Some((offset, error)) = one.clock_offset_ms.zip(one.clock_error_ms) {
        parts.push(format!("clock {offset:+.1} ± {error:.1} ms"));
    }
    parts.extend(
        one.thresholds_failed
            .filter(|crossed| *crossed > 0)
            .map(|crossed| format!("crossed {crossed} of {} thresholds", one.thresholds.unwrap_or(crossed))),
    );
    parts.join(", ")
}

/// Formats a merged threshold with the result of each generator.
fn threshold(one: &WholeThreshold, generators: &[String]) -> String {
    let word =
        |passed: Option<bool>, unknown| passed.map_or(unknown, |passed| if passed { "passed" } else { "crossed" });
    let WholeThreshold { metric, expression, passed, basis, own } = one;
    let own = generators.iter().zip(own).map(|(agent, passed)| format!(", {agent} {}", word(*passed, "–")));
    format!("{metric} {expression}: {} ({}){}", word(*passed, "unknown"), basis.describe(), own.collect::<String>())
}
