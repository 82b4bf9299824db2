//! Runs in the formats of other tools. Unknown figures are left out, never zero. Pure.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Map, Value, json};

use crate::{
    metrics::{METRICS, definition::MetricDef},
    runs::{csv, load, model::Run, verdict::Verdict},
};

/// Runs as Bencher Metric Format: a benchmark for each target and setting, with the medians of its runs and their range.
///
/// Format: <https://bencher.dev/docs/reference/bencher-metric-format>.
pub fn bencher(runs: &[Run]) -> Value {
    let mut benchmarks: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.counts()) {
        benchmarks.entry(name(run)).or_default().push(run);
    }
    let measures = |runs: Vec<&Run>| -> Map<String, Value> {
        METRICS.iter().filter_map(|def| Some((def.key.to_owned(), measure(def, &runs)?))).collect()
    };
    benchmarks.into_iter().map(|(name, runs)| (name, Value::Object(measures(runs)))).collect()
}

/// Returns the median of a metric and its range; none if no run has it.
fn measure(def: &MetricDef, runs: &[&Run]) -> Option<Value> {
    let mut values: Vec<f64> = runs.iter().filter_map(|run| (def.get)(&run.figures)).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let [below, above] = [(values.len() - 1) / 2, values.len() / 2].map(|place| values[place]);
    Some(json!({"value": f64::midpoint(below, above), "lower_value": low, "upper_value": high}))
}

/// Returns the name of what a run measured: target, size, scenario and load.
fn name(run: &Run) -> String {
    let load = load::describe_with(&run.spec, load::exact).map(|load| load.replace('\u{a0}', " "));
    let size = run.spec.size.as_ref().map(|size| size.name.clone());
    [Some(run.spec.target.clone()), size, run.spec.scenario.clone(), load]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Runs as CSV for Apache Otava, oldest first: `time`, `version`, `run` and a column for each metric.
///
/// Its configuration names them: `time_column: time`, `attributes: [version, run]`.
pub fn otava(runs: &[Run]) -> String {
    let mut runs: Vec<&Run> = runs.iter().filter(|run| run.counts()).collect();
    runs.sort_by_key(|run| (at_ms(run), run.id.clone()));
    let mut text = csv::line(["time", "version", "run"].into_iter().chain(METRICS.iter().map(|def| def.key)));
    for run in runs {
        let time = jiff::Timestamp::from_millisecond(at_ms(run)).map_or_else(|_| String::new(), |at| at.to_string());
        let known = [time, run.version.clone().unwrap_or_default(), run.id.to_string()];
        let figures =
            METRICS.iter().map(|def| (def.get)(&run.figures).map_or_else(String::new, |value| value.to_string()));
        let cells: Vec<String> = known.into_iter().chain(figures).collect();
        text += &csv::line(cells.iter().map(String::as_str));
    }
    text
}

fn at_ms(run: &Run) -> i64 {
    run.started_at_ms.unwrap_or(run.queued_at_ms)
}

/// Runs in the text format of Prometheus: a gauge for each metric, `brewbench_run_p99_ms`.
///
/// Format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
pub fn prometheus(runs: &[Run]) -> String {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.counts()).collect();
    let mut text = String::new();
    for def in &METRICS {
        let values: Vec<_> = runs.iter().filter_map(|run| Some((run, (def.get)(&run.figures)?))).collect();
        if values.is_empty() {
            continue;
        }
        let name = format!("brewbench_run_{}", def.key);
        let _ = writeln!(text, "# HELP {name} {}: {}.\n# TYPE {name} gauge", def.title, def.head);
        for (run, value) in values {
            let _ = writeln!(text, "{name}{{{}}} {value}", labels(run));
        }
    }
    text
}

fn labels(run: &Run) -> String {
    let spec = &run.spec;
    let all = [
        ("run", Some(run.id.to_string())),
        ("experiment", run.experiment.as_ref().map(ToString::to_string)),
        ("target", Some(spec.target.clone())),
        ("version", run.version.clone()),
        ("size", spec.size.as_ref().map(|size| size.name.clone())),
        ("scenario", spec.scenario.clone()),
        ("load", load::describe_with(spec, load::exact).map(|load| load.replace('\u{a0}', " "))),
        ("agent", run.agent.clone()),
        ("verdict", run.verdict.map(|verdict| Verdict::as_str(verdict).to_owned())),
    ];
    let escaped = |value: String| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let known = all.into_iter().filter_map(|(name, value)| Some(format!("{name}=\"{}\"", escaped(value?))));
    known.collect::<Vec<_>>().join(",")
}

/// A run as the file that `k6 run --summary-export` writes, as far as its figures go; times are in milliseconds.
///
/// `http_req_failed` counts failures in `passes`, as k6 does.
pub fn k6(run: &Run) -> Value {
    let figures = &run.figures;
    let known = |values: &[(&str, Option<f64>)]| -> Map<String, Value> {
        values.iter().filter_map(|(name, value)| Some(((*name).to_owned(), json!((*value)?)))).collect()
    };
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let passed = figures.requests.zip(figures.failed).map(|(all, failed)| all.saturating_sub(failed));
    let metrics = [
        ("http_reqs", known(&[("count", count(figures.requests)), ("rate", figures.rps)])),
        (
            "http_req_duration",
            known(&[
                ("avg", figures.avg_ms),
                ("min", figures.min_ms),
                ("med", figures.p50_ms),
                ("max", figures.max_ms),
                ("p(90)", figures.p90_ms),
                ("p(95)", figures.p95_ms),
                ("p(99)", figures.p99_ms),
                ("p(99.9)", figures.p999_ms),
            ]),
        ),
        (
            "http_req_failed",
            known(&[("value", figures.error_rate), ("passes", count(figures.failed)), ("fails", count(passed))]),
        ),
        ("iterations", known(&[("count", count(figures.iterations))])),
    ];
    let metrics = metrics.into_iter().filter(|(_, values)| !values.is_empty());
    let metrics: Map<String, Value> = metrics.map(|(name, values)| (name.to_owned(), values.into())).collect();
    json!({"metrics": metrics})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Figures;
    use crate::runs::testing::{failed, finished};

    fn runs() -> Vec<Run> {
        let mut slow = finished("servy", 2);
        slow.figures.rps = Some(8_000.0);
        vec![finished("servy", 1), slow, failed("servy", "failed", "it died")]
    }

    #[test]
    fn bencher_gets_the_median_of_the_repetitions_and_their_range() {
        let all = bencher(&runs());
        let benchmarks = all.as_object().expect("benchmarks");
        let (name, measures) = benchmarks.iter().next().expect("one");
        assert!(benchmarks.len() == 1 && name.starts_with("servy · "), "{all}");
        assert_eq!(measures["rps"], json!({"value": 9_000.0, "lower_value": 8_000.0, "upper_value": 10_000.0}));
    }

    #[test]
    fn otava_gets_a_line_for_each_run_that_counts_with_its_time() {
        let text = otava(&runs());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.len() == 3 && lines[0][..4] == ["time", "version", "run", "rps"], "{text}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()) && lines[1][0].ends_with('Z'), "{text}");
    }

    #[test]
    fn prometheus_gets_escaped_labels_and_no_unknown_figure() {
        let mut run = finished("a \"b\"\n", 1);
        run.figures.p999_ms = None;
        let text = prometheus(&[run]);
        assert!(text.contains("target=\"a \\\"b\\\"\\n\"") && !text.contains("p999"), "{text}");
        assert!(text.lines().all(|line| line.starts_with('#') || line.starts_with("brewbench_run_")), "{text}");
    }

    #[test]
    fn an_exported_run_is_one_that_this_site_reads_again() {
        let run = finished("servy", 1);
        let text = k6(&run).to_string();
        let read = brewbench_wire::reports::read::parse(text.as_bytes()).expect("a summary").figures();
        let Figures { rps, p99_ms, requests, failed, .. } = run.figures;
        assert_eq!(
            (Some(read.rps), read.latency.p99_ms, Some(read.requests), read.failed),
            (rps, p99_ms, requests, failed),
            "{text}"
        );
    }
}
