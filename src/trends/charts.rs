//! A trend as a Plotly figure: large points for experiments, small ones for runs, lines for medians of versions,
//! vertical lines for changes. Pure.

use serde_json::{Value, json};

use crate::{
    runs::verdict::Verdict,
    trends::model::{Change, ChangeStatus, Point, RunPoint, Span, Trend},
    web::{
        axis::Scale,
        chart::{Chart, ScriptJson, elided, layout, text},
        format::{self, plural},
        series_style::Mark,
        time_ago,
    },
};

/// The maximum number of axis labels that do not overlap.
const MAX_LABELS: usize = 8;

/// The runs of an experiment are spread over this much of the distance between two points.
const SPREAD: f64 = 0.5;

/// Returns the chart; none without runs.
pub fn chart(trend: &Trend, mark: Mark) -> Option<Chart> {
    if trend.points.is_empty() {
        return None;
    }
    let runs = || trend.points.iter().flat_map(|point| &point.runs);
    let scale = Scale::choose(runs().map(|run| (run.value, run.value)));
    let mut data: Vec<Value> = trend.spans.iter().map(|span| median(trend, span, mark)).collect();
    data.push(single_runs(trend, mark));
    data.push(points(trend, mark));
    let (ticks, names): (Vec<usize>, Vec<String>) = labels(&trend.spans).into_iter().unzip();
    let range = [-0.7, trend.points.len() as f64 - 0.3];
    let x = json!({"tickvals": ticks, "ticktext": names, "range": range, "showgrid": false, "zeroline": false, "rangemode": "normal", "tickangle": 0});
    let mut layout = layout(x, scale.axis());
    layout["shapes"] = trend.changes.iter().flat_map(lines).collect();
    let figure = |value| trend.metric.figure(Some(value)).text().to_owned();
    let (first, last) = (trend.spans.first()?, trend.spans.last()?);
    let suspect = runs().any(|run| run.verdict == Verdict::Suspect);
    let hint = if suspect { " · hollow: suspect" } else { "" };
    let way = match trend.metric.better() {
        Some(crate::compare::statistics::Better::Higher) => ", higher is better",
        Some(crate::compare::statistics::Better::Lower) => ", lower is better",
        None => "",
    };
    Some(Chart {
        id: "trend",
        title: format!("{} over versions and time", format::capitalize(trend.metric.name())),
        unit: format!("{}{way}{}{hint}", trend.metric.head(), scale.note()),
        label: format!(
            "{} at {} points with {} runs: first median {}, last median {}. The tables below have all figures.",
            trend.metric.name(),
            trend.points.len(),
            runs().count(),
            figure(first.median),
            figure(last.median)
        ),
        height: 340,
        min_width: 600,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: Vec::new(),
        shares: None,
        metric: Some(trend.metric),
    })
}

/// Draws the median of a version with its confidence interval.
fn median(trend: &Trend, span: &Span, mark: Mark) -> Value {
    let figure = |value| trend.metric.figure(Some(value)).text().to_owned();
    let version = span.version.as_deref().map_or_else(|| "unknown version".to_owned(), text);
    let interval = span
        .low
        .zip(span.high)
        .map_or(String::new(), |(low, high)| format!("<br>95 % interval {} to {}", figure(low), figure(high)));
    let hint = format!("{version}<br>median of {}: {}{interval}", plural(span.points, "point"), figure(span.median));
    let (from, to) = (span.first as f64 - 0.4, (span.first + span.points) as f64 - 0.6);
    let error = span.low.zip(span.high).map(|(low, high)| {
        json!({"type": "data", "symmetric": false, "array": [high - span.median], "arrayminus": [span.median - low],
            "color": mark.role(), "thickness": 1.5, "width": 5})
    });
    let middle = f64::midpoint(from, to);
    json!({
        "type": "scatter", "mode": "lines", "x": [from, middle, to], "y": [span.median, span.median, span.median],
        "line": {"color": mark.role(), "width": 3}, "opacity": 0.5, "text": [hint, hint, hint],
        "hovertemplate": "%{text}<extra></extra>",
        "error_y": error.map_or(Value::Null, |mut error| {
            // One whisker, in the middle.
            for side in ["array", "arrayminus"] {
                let length = error[side][0].clone();
                error[side] = json!([0, length, 0]);
            }
            error
        }),
    })
}

/// Draws the medians of experiments, and runs without an experiment.
fn points(trend: &Trend, mark: Mark) -> Value {
    let places: Vec<usize> = (0..trend.points.len()).collect();
    let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
    let hints: Vec<String> = trend.points.iter().map(|point| hint(trend, point)).collect();
    let symbols: Vec<&str> = trend.points.iter().map(|point| symbol(&point.runs)).collect();
    json!({
        "type": "scatter", "mode": "markers", "x": places, "y": values, "text": hints,
        "hovertemplate": "%{text}<extra></extra>", "cliponaxis": false,
        "marker": {"color": mark.role(), "size": 9, "symbol": symbols, "line": {"width": 1.5, "color": mark.role()}},
    })
}

/// Draws the runs of each experiment that has more than one.
fn single_runs(trend: &Trend, mark: Mark) -> Value {
    let (mut places, mut values, mut hints, mut symbols) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (place, point) in trend.points.iter().enumerate().filter(|(_, point)| point.runs.len() > 1) {
        let step = SPREAD / (point.runs.len() - 1) as f64;
        for (number, run) in point.runs.iter().enumerate() {
            places.push(place as f64 - SPREAD / 2.0 + step * number as f64);
            values.push(run.value);
            hints.push(run_hint(trend, point, run));
            symbols.push(symbol(std::slice::from_ref(run)));
        }
    }
    json!({
        "type": "scatter", "mode": "markers", "x": places, "y": values, "text": hints,
        "hovertemplate": "%{text}<extra></extra>", "cliponaxis": false,
        "marker": {"color": mark.role(), "size": 4, "opacity": 0.5, "symbol": symbols,
            "line": {"width": 1, "color": mark.role()}},
    })
}

fn hint(trend: &Trend, point: &Point) -> String {
    match point.runs.as_slice() {
        [run] => run_hint(trend, point, run),
        runs => {
            let median = trend.metric.figure(Some(point.value));
            let began = time_ago::exact(Some(point.at_ms));
            format!("{}median of {}: {}<br>{began}", version(point), plural(runs.len(), "run"), median.text())
        }
    }
}

fn run_hint(trend: &Trend, point: &Point, run: &RunPoint) -> String {
    let figure = trend.metric.figure(Some(run.value));
    let began = time_ago::exact(Some(run.at_ms));
    format!("{}{}, {}<br>{began}", version(point), figure.text(), run.verdict.as_str())
}

fn version(point: &Point) -> String {
    point.version.as_deref().map_or_else(String::new, |version| format!("{}<br>", text(version)))
}

/// Returns a hollow symbol if all runs are suspect.
fn symbol(runs: &[RunPoint]) -> &'static str {
    if runs.iter().all(|run| run.verdict == Verdict::Suspect) { "circle-open" } else { "circle" }
}

/// Draws vertical lines between the last point before a change and the first after it, and at the end of an episode.
/// New changes have dotted lines, open ones dashed lines, and dismissed or lost ones none.
fn lines(change: &Change) -> Vec<Value> {
    let status = change.annotation.as_ref().map(|annotation| annotation.status);
    let is_shown = status != Some(ChangeStatus::Dismissed) && !change.is_lost();
    let Some(at) = change.at.filter(|_| is_shown) else { return Vec::new() };
    let dash = match status {
        Some(_) => "solid",
        None if change.is_new() => "dot",
        None => "dash",
    };
    let line = |at: usize, improved: Option<bool>| {
        let color = match improved {
            Some(true) => "good",
            Some(false) => "bad",
            None => "soft ink",
        };
        let x = at as f64 - 0.5;
        json!({"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
            "line": {"color": color, "width": 1.5, "dash": dash}})
    };
    let back = change.returned.as_ref().map(|back| line(back.at, change.improved.map(|improved| !improved)));
    [line(at, change.improved)].into_iter().chain(back).collect()
}

/// Labels the first points of versions, but at most [`MAX_LABELS`] of them.
fn labels(spans: &[Span]) -> Vec<(usize, String)> {
    let step = spans.len().div_ceil(MAX_LABELS).max(1);
    let name = |span: &Span| {
        let day = time_ago::exact(Some(span.from_ms)).chars().take(10).collect::<String>();
        span.version.as_deref().map_or(day, |version| elided(version, 14))
    };
    spans.iter().step_by(step).map(|span| (span.first, name(span))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::metric::Metric,
        runs::{
            model::Run,
            testing::{figured, finished},
        },
        trends::{cell::TrendCell, history},
    };

    /// A trend with an experiment of two runs for each figure.
    fn trend(figures: &[(&str, f64)]) -> Trend {
        let run = |(place, (version, rps)): (usize, &(&str, f64))| Run {
            id: format!("{place:03}").into(),
            experiment: Some(format!("{}", place / 2).into()),
            version: Some((*version).to_owned()),
            queued_at_ms: i64::try_from(place).expect("few"),
            started_at_ms: None,
            ..figured(finished("servy", 1), |figures| figures.rps = Some(*rps))
        };
        let runs: Vec<Run> = figures.iter().flat_map(|figure| [figure; 2]).enumerate().map(run).collect();
        let points = history::points(&runs, Metric::Rps);
        let cell = TrendCell {
            id: "00".to_owned(),
            target: "servy".to_owned(),
            size: None,
            scenario: None,
            scenario_sha256: None,
            parameters: std::collections::BTreeMap::default(),
            load: None,
            engine: None,
            kind: None,
            agent: None,
            earlier_id: "00".to_owned(),
        };
        let (spans, changes) = (history::spans(&points), history::changes(&points, Metric::Rps, &[]));
        Trend { cell, metric: Metric::Rps, url: String::new(), points, spans, changes }
    }

    #[test]
    fn versions_are_lines_runs_are_points_and_changes_are_between_them() {
        let mut figures = vec![("1.0", 100.0); 12];
        figures.extend([("<b>2.0</b>", 90.0); 12]);
        for (place, figure) in figures.iter_mut().enumerate() {
            figure.1 += (place % 5) as f64 * 0.1;
        }
        let chart = chart(&trend(&figures), Mark(1)).expect("a chart");
        let data = chart.figure.0["data"].as_array().expect("traces");
        let points = |place: usize| data[place]["x"].as_array().map(Vec::len);
        assert_eq!((data.len(), points(2), points(3)), (4, Some(48), Some(24)));
        assert_eq!((&data[2]["x"][2], &data[2]["x"][3], &data[3]["x"][1]), (&json!(0.75), &json!(1.25), &json!(1)));
        let shapes = chart.figure.0["layout"]["shapes"].as_array().expect("lines");
        assert_eq!((shapes.len(), &shapes[0]["x0"], &shapes[0]["line"]["color"]), (1, &json!(11.5), &json!("bad")));
        assert!(!chart.figure.to_string().contains('<'));
        assert_eq!(chart.figure.0["layout"]["xaxis"]["ticktext"], json!(["1.0", "&lt;b&gt;2.0&lt;/b&gt;"]));
    }

    #[test]
    fn an_episode_has_two_lines() {
        let levels = [("1.0", 100.0), ("1.1", 90.0), ("1.0", 100.0)];
        let mut figures: Vec<_> =
            levels.into_iter().zip([12, 5, 12]).flat_map(|(level, count)| vec![level; count]).collect();
        for (place, figure) in figures.iter_mut().enumerate() {
            figure.1 += (place % 5) as f64 * 0.1;
        }
        let trend = trend(&figures);
        let chart = chart(&trend, Mark(1)).expect("a chart");
        let shapes = chart.figure.0["layout"]["shapes"].as_array().expect("lines");
        let lines: Vec<_> = shapes.iter().map(|line| (&line["x0"], &line["line"]["color"])).collect();
        assert_eq!(trend.changes.len(), 1);
        assert_eq!(lines, [(&json!(11.5), &json!("bad")), (&json!(16.5), &json!("good"))]);
    }

    #[test]
    fn an_empty_trend_has_no_chart() {
        assert_eq!(chart(&trend(&[]), Mark(0)), None);
    }
}
