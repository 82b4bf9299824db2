//! The charts of one run as Plotly figures. Pure.

mod curves;
pub mod latencies;
mod over_time;

use brewbench_wire::{reports::summary::Summary, series::Series};
use serde_json::{Value, json};

use crate::results::pages::run::charts::curves::Points;
use crate::{
    metrics::Metric,
    results::series::model::SeriesBody,
    runs::model::Run,
    web::{
        axis::Scale,
        chart::{Chart, ScriptJson, layout},
        format,
        series_style::Mark,
    },
};

/// Returns two charts: latency, and throughput by repetition or, without repetitions, where the time goes.
pub fn charts(run: &Run, mark: Mark, cell: &[Run], summary: Option<&Summary>, series: Option<&Series>) -> Vec<Chart> {
    let curve = series.filter(|_| run.has_ended()).and_then(|series| latencies::percentiles(series, mark));
    let first = curve.or_else(|| latency(run, mark, summary));
    let second = repetitions(run, mark, cell).or_else(|| summary.and_then(|summary| spent(summary, mark)));
    first.into_iter().chain(second).collect()
}

/// Returns the charts over time; none while there are no points.
pub fn over_time(run: &Run, mark: Mark, body: &SeriesBody) -> Vec<Chart> {
    if body.windows().all(|window| window.seconds.is_empty() && window.usage.is_empty()) {
        return Vec::new();
    }
    let points = Points::new(body);
    // Some load generators report none; those of an unfinished run may still come.
    let has_seconds = !run.has_ended() || body.windows().any(|window| !window.seconds.is_empty());
    let mut charts = Vec::new();
    if has_seconds {
        charts.extend(over_time::load(&points, body, mark));
        charts.extend(latencies::heatmap(&points, body, mark));
        charts.extend(latencies::histogram(body, mark));
        charts.push(over_time::virtual_users(&points, mark));
    }
    charts.extend(over_time::resources(&points, run.spec.size.as_ref(), mark));
    charts
}

const PERCENTILES: [&str; 7] = ["min", "p50", "p90", "p95", "p99", "p99.9", "max"];

/// One value for each of [`PERCENTILES`].
type PercentileValues = [Option<f64>; 7];

fn latency(run: &Run, mark: Mark, summary: Option<&Summary>) -> Option<Chart> {
    let all: PercentileValues = [
        run.figures.min_ms,
        run.figures.p50_ms,
        run.figures.p90_ms,
        run.figures.p95_ms,
        run.figures.p99_ms,
        run.figures.p999_ms,
        run.figures.max_ms,
    ];
    let successful = summary.map(|summary| {
        let ok = summary.figures().ok_latency;
        [ok.min_ms, ok.p50_ms, ok.p90_ms, ok.p95_ms, ok.p99_ms, ok.p999_ms, ok.max_ms]
    });
    // Without failures, both lines are the same.
    let successful = successful
        .filter(|_| run.figures.failed != Some(0))
        .filter(|ok: &PercentileValues| ok.iter().any(Option::is_some));
    let known = || all.iter().chain(successful.iter().flatten()).flatten().copied();
    // All values are zero if the target was never reached.
    known().find(|value| *value > 0.0)?;
    let scale = Scale::choose(known().map(|value| (value, value)));
    let mut data =
        vec![percentiles("all requests", &all, &json!({"color": mark.role(), "symbol": "circle", "size": 8}), "solid")];
    if let Some(ok) = &successful {
        data.push(percentiles(
            "successful",
            ok,
            &json!({"color": mark.role(), "symbol": "circle-open", "size": 9}),
            "dot",
        ));
    }
    let explained =
        if successful.is_some() { "filled: all requests, hollow: successful requests" } else { "all requests" };
    let names: Vec<&str> = known_names(&all, successful.as_ref()).collect();
    let x = json!({"type": "category", "categoryorder": "array", "categoryarray": names, "showgrid": false});
    let spoken: Vec<String> = PERCENTILES
        .iter()
        .zip(all)
        .filter_map(|(name, value)| value.map(|value| format!("{name} {}", format::number(Some(value)).text())))
        .collect();
    Some(Chart {
        id: "run-latency",
        title: "Latency".to_owned(),
        unit: format!("ms, {explained}{}", scale.note()),
        label: format!("Latency of all requests in milliseconds: {}", spoken.join(", ")),
        height: 280,
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": layout(x, scale.axis())})),
        legend: Vec::new(),
        shares: None,
        metric: None,
    })
}

/// The names of the known percentiles, in order.
fn known_names<'a>(
    all: &'a PercentileValues,
    successful: Option<&'a PercentileValues>,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let known = move |place: usize| all[place].is_some() || successful.is_some_and(|ok| ok[place].is_some());
    PERCENTILES.into_iter().enumerate().filter(move |(place, _)| known(*place)).map(|(_, name)| name)
}

fn percentiles(what: &str, values: &PercentileValues, marker: &Value, dash: &str) -> Value {
    let known: Vec<(&str, f64)> =
        PERCENTILES.into_iter().zip(values).filter_map(|(name, value)| Some((name, (*value)?))).collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let figures: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let hints: Vec<String> = known
        .iter()
        .map(|(name, value)| format!("{what}<br>{name} {}", format::latency(Some(*value)).text()))
        .collect();
    let line = json!({"color": marker["color"], "width": 2, "dash": dash});
    json!({
        "type": "scatter", "mode": "lines+markers", "x": names, "y": figures, "text": hints, "marker": marker, "line": line,
        "hovertemplate": "%{text}<extra></extra>", "cliponaxis": false,
    })
}

/// The throughput of every repetition of the cell, with this run marked.
fn repetitions(run: &Run, mark: Mark, cell: &[Run]) -> Option<Chart> {
    let mut shown: Vec<(&Run, f64)> = cell
        .iter()
        .filter(|other| other.counts() || other.id == run.id)
        .filter_map(|other| Some((other, other.figures.rps?)))
        .collect();
    shown.sort_by_key(|(other, _)| other.repetition);
    if shown.len() < 2 || !shown.iter().any(|(other, _)| other.id == run.id) {
        return None;
    }
    let numbers: Vec<u32> = shown.iter().map(|(other, _)| other.repetition).collect();
    let figures: Vec<f64> = shown.iter().map(|(_, rps)| *rps).collect();
    let opacity: Vec<f64> = shown.iter().map(|(other, _)| if other.id == run.id { 0.85 } else { 0.28 }).collect();
    let hints: Vec<String> = shown
        .iter()
        .map(|(other, rps)| {
            let this = if other.id == run.id { ", this run" } else { "" };
            format!("repetition {}{this}<br>{} requests/s", other.repetition, format::number(Some(*rps)).text())
        })
        .collect();
    let data = json!([{
        "type": "bar", "x": numbers, "y": figures, "width": 0.62, "text": hints, "textposition": "none",
        "marker": {"color": mark.role(), "opacity": opacity}, "hovertemplate": "%{text}<extra></extra>",
    }]);
    let title = json!({"text": "repetition", "standoff": 8});
    let last = cell.iter().map(|other| other.repetition).max().unwrap_or(1);
    // Only whole numbers, and not more than fit.
    let step = last.div_ceil(12);
    let x = json!({
        "range": [0.5, f64::from(last) + 0.5], "dtick": step, "tick0": 1, "showgrid": false, "zeroline": false, "title": title,
    });
    let mut layout = layout(x, json!({"nticks": 6}));
    layout["margin"]["b"] = json!(48);
    let spoken: Vec<String> = shown
        .iter()
        .take(10)
        .map(|(other, rps)| format!("repetition {} {}", other.repetition, format::number(Some(*rps)).text()))
        .collect();
    Some(Chart {
        id: "run-repetitions",
        title: "Throughput by repetition".to_owned(),
        unit: "requests/s, higher is better · this run is the solid bar".to_owned(),
        label: format!("Throughput in requests per second: {}", spoken.join(", ")),
        height: 280,
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: Vec::new(),
        shares: None,
        metric: Some(Metric::Rps),
    })
}

const PARTS: [(&str, &str); 6] = [
    ("http_req_blocked", "waiting for a connection"),
    ("http_req_connecting", "connecting"),
    ("http_req_tls_handshaking", "TLS handshake"),
    ("http_req_sending", "sending"),
    ("http_req_waiting", "waiting for the response"),
    ("http_req_receiving", "receiving"),
];

/// The average time per part of a request.
fn spent(summary: &Summary, mark: Mark) -> Option<Chart> {
    let known: Vec<(&str, f64)> = PARTS
        .into_iter()
        .filter_map(|(metric, name)| Some((name, *summary.metrics.get(metric)?.values.get("avg")?)))
        .collect();
    if known.iter().all(|(_, value)| *value <= 0.0) {
        return None;
    }
    let places: Vec<usize> = (0..known.len()).collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let figures: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let texts: Vec<String> =
        known.iter().map(|(name, value)| format!("{name} {}", format::latency(Some(*value)).text())).collect();
    let data = json!([{
        "type": "bar", "orientation": "h", "x": figures, "y": places, "width": 0.62, "text": texts, "textposition": "none",
        "marker": {"color": mark.role(), "opacity": 0.28}, "hovertemplate": "%{text}<extra></extra>",
    }]);
    let range = [known.len() as f64 - 0.5, -0.5];
    let y = json!({"tickvals": places, "ticktext": names, "range": range, "showgrid": false});
    let mut layout = layout(json!({"nticks": 5}), y);
    layout["margin"]["l"] = json!(160);
    Some(Chart {
        id: "run-spent",
        title: "Where the time goes".to_owned(),
        unit: "ms of an average request".to_owned(),
        label: format!("Average time per part of a request: {}", texts.join(", ")),
        height: 280,
        min_width: 320,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: Vec::new(),
        shares: None,
        metric: None,
    })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::reports::read::parse;

    use super::*;
    use crate::runs::{
        testing::{failed, finished, judged},
        verdict::Verdict,
    };

    fn real() -> Summary {
        let path = format!("{}/tests/fixtures/k6/handle-summary-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
    }

    fn titles(charts: &[Chart]) -> Vec<&str> {
        charts.iter().map(|chart| chart.title.as_str()).collect()
    }

    #[test]
    fn the_second_chart_shows_repetitions_or_where_the_time_goes() {
        let run = finished("servy", 2);
        let cell = [finished("servy", 1), run.clone(), finished("servy", 3)];
        let among = charts(&run, Mark(0), &cell, Some(&real()), None);
        assert_eq!(titles(&among), ["Latency", "Throughput by repetition"]);
        assert_eq!(among[1].figure.0["data"][0]["marker"]["opacity"], json!([0.28, 0.85, 0.28]));
        assert_eq!(
            titles(&charts(&run, Mark(0), &cell[1..2], Some(&real()), None)),
            ["Latency", "Where the time goes"]
        );
    }

    #[test]
    fn repetitions_that_do_not_count_are_excluded_except_the_run_itself() {
        let run = judged(finished("servy", 1), Verdict::Invalid, "why");
        let bad = judged(finished("servy", 2), Verdict::Invalid, "why");
        let cell = [run.clone(), bad, finished("servy", 3)];
        let chart = repetitions(&run, Mark(0), &cell).expect("two are left");
        assert_eq!(chart.figure.0["data"][0]["x"], json!([1, 3]));
    }

    #[test]
    fn successful_requests_have_their_own_line_only_if_some_failed() {
        let mut run = finished("servy", 1);
        let lines = |run: &Run| {
            let chart = latency(run, Mark(0), Some(&real())).expect("it has figures");
            (chart.figure.0["data"].as_array().map_or(0, Vec::len), chart.unit.contains("hollow"))
        };
        assert_eq!(lines(&run), (1, false));
        run.figures.failed = Some(3);
        assert_eq!(lines(&run), (2, true));
    }

    #[test]
    fn unknown_percentiles_are_left_out_and_a_run_without_figures_has_no_chart() {
        let mut run = finished("servy", 1);
        run.figures.p99_ms = None;
        let chart = latency(&run, Mark(0), None).expect("the rest is known");
        let names = chart.figure.0["layout"]["xaxis"]["categoryarray"].as_array().expect("a list").clone();
        assert!(!names.contains(&json!("p99")) && names.contains(&json!("p99.9")), "{names:?}");
        assert!(charts(&failed("servy", "failed", "why"), Mark(0), &[], None, None).is_empty());
    }
}
