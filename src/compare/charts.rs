//! Charts of a comparison as Plotly figures: the figures as bars, repetitions as points. Pure.

use std::iter;

use serde_json::{Value, json};

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::Subject,
    statistics::{Spread, spread},
};
use crate::{
    compare::setting::{Setting, only_sizes_differ},
    runs::{model::Run, verdict::Verdict},
    web::{
        axis::Scale,
        chart::{Chart, ScriptJson, elided, layout, text},
        format::plural,
    },
};

/// Returns the charts: throughput and latency of one setting, or throughput and p99 by setting.
pub fn charts(subjects: &[Subject], rows: &[Row]) -> Vec<Chart> {
    let with_figures: Vec<&Row> = rows.iter().filter(|row| row.compared_cells().count() > 0).collect();
    match with_figures.as_slice() {
        [] => Vec::new(),
        [row] if rows.len() == 1 => iter::once(throughput(subjects, row)).chain(latency(subjects, row)).collect(),
        many => {
            let both = [("throughput", Metric::Rps), ("latency", Metric::P99Ms)];
            both.into_iter().filter_map(|(id, metric)| by_setting(subjects, many, id, metric)).collect()
        }
    }
}

/// One metric of one cell.
struct Bar<'a> {
    subject: &'a Subject,
    /// The figure that tables show, too.
    value: f64,
    spread: Spread,
    runs: Vec<(&'a Run, f64)>,
}

/// Bars under one name, with a slot per subject.
type Group<'a> = (String, Vec<Option<Bar<'a>>>);

fn bar<'a>(subjects: &'a [Subject], cell: &'a Cell, metric: Metric) -> Option<Bar<'a>> {
    let runs: Vec<_> = cell.counting().filter_map(|run| Some((run, metric.value_in(run)?))).collect();
    let spread = spread(runs.iter().map(|(_, value)| *value))?;
    let value = cell.stat(metric).value?;
    Some(Bar { subject: &subjects[cell.subject], value, spread, runs })
}

/// Horizontal bars, so that long names fit.
fn throughput(subjects: &[Subject], row: &Row) -> Chart {
    const NAME: usize = 20;
    let bars: Vec<_> = row.compared_cells().filter_map(|cell| bar(subjects, cell, Metric::Rps)).collect();
    let mut data = Vec::new();
    for (place, bar) in bars.iter().enumerate() {
        let place = place as f64;
        data.push(json!({
            "type": "bar", "orientation": "h", "y": [place], "x": [bar.value], "width": 0.62,
            "marker": fill(bar.subject), "text": [bar_text(bar, Metric::Rps)], "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
        }));
        let at: Vec<f64> = scattered(bar.runs.len(), 0.34).map(|shift| place + shift).collect();
        let values: Vec<f64> = bar.runs.iter().map(|(_, value)| *value).collect();
        data.push(points(bar, Metric::Rps, &values, &at));
    }
    let names: Vec<String> = bars.iter().map(|bar| elided(&bar.subject.label, NAME)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(NAME);
    let ticks: Vec<usize> = (0..names.len()).collect();
    let x = json!({"nticks": 6});
    let y = json!({"tickvals": ticks, "ticktext": names, "range": [names.len() as f64 - 0.5, -0.5], "showgrid": false, "zeroline": false});
    let mut layout = layout(x, y);
    layout["margin"]["l"] = json!(16 + 7 * widest);
    Chart {
        id: "throughput",
        title: "Throughput".to_owned(),
        unit: format!("requests/s, higher is better{}", suspect_hint(&[row])),
        label: describe_bars("Throughput in requests per second", bars.iter().map(|bar| (bar, Metric::Rps))),
        height: if bars.len() > 4 { 60 + 44 * bars.len() } else { 280 },
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: Vec::new(),
        shares: None,
        metric: Some(Metric::Rps),
    }
}

/// Returns the latency chart of all metrics that a summary has; none if there are none.
fn latency(subjects: &[Subject], row: &Row) -> Option<Chart> {
    let (metrics, groups): (Vec<Metric>, Vec<Group>) = Metric::LATENCY
        .into_iter()
        .map(|metric| (metric, row.compared_cells().map(|cell| bar(subjects, cell, metric)).collect()))
        .filter(|(_, bars): &(_, Vec<Option<Bar>>)| bars.iter().any(Option::is_some))
        .map(|(metric, bars)| (metric, (metric.name().to_owned(), bars)))
        .unzip();
    if groups.is_empty() {
        return None;
    }
    let heads = groups.iter().zip(metrics.iter().copied());
    let spoken_bars = heads.flat_map(|((_, bars), metric)| bars.iter().flatten().map(move |bar| (bar, metric)));
    let label = describe_bars("Latency of all requests in milliseconds", spoken_bars);
    let scale = scale_of(&groups);
    let unit = format!("ms, lower is better{}{}", scale.note(), suspect_hint(&[row]));
    let (figure, min_width) = grouped(&groups, &metrics, &scale);
    Some(Chart {
        id: "latency",
        title: "Latency".to_owned(),
        unit,
        label,
        height: 280,
        min_width,
        figure,
        legend: Vec::new(),
        shares: None,
        metric: None,
    })
}

/// Returns the chart of a metric by setting; none if no summary has it.
fn by_setting(subjects: &[Subject], rows: &[&Row], id: &'static str, metric: Metric) -> Option<Chart> {
    let present: Vec<usize> = (0..subjects.len())
        .filter(|place| rows.iter().any(|row| row.compared_cells().any(|cell| cell.subject == *place)))
        .collect();
    let groups: Vec<Group> = rows
        .iter()
        .map(|row| {
            let slot = |place: &usize| bar(subjects, row.compared_cells().find(|cell| cell.subject == *place)?, metric);
            (elided(&row.setting.label, 22), present.iter().map(slot).collect())
        })
        .collect();
    if groups.iter().all(|(_, bars)| bars.iter().all(Option::is_none)) {
        return None;
    }
    let scale = scale_of(&groups);
    let settings: Vec<&Setting> = rows.iter().map(|row| &row.setting).collect();
    let kind = if only_sizes_differ(&settings) { "machine size" } else { "setting" };
    let (what, unit) = match metric {
        Metric::Rps => ("Throughput by", "requests/s, higher is better"),
        _ => ("Latency p99 by", "ms, lower is better"),
    };
    let title = format!("{what} {kind}");
    let label =
        describe_bars(&title, groups.iter().flat_map(|(_, bars)| bars.iter().flatten().map(|bar| (bar, metric))));
    let (figure, min_width) = grouped(&groups, &vec![metric; groups.len()], &scale);
    let unit = format!("{unit}{}{}", scale.note(), suspect_hint(rows));
    Some(Chart {
        id,
        title,
        unit,
        label,
        height: 300,
        min_width,
        figure,
        legend: Vec::new(),
        shares: None,
        metric: Some(metric),
    })
}

fn scale_of(groups: &[Group]) -> Scale {
    let bars = groups.iter().flat_map(|(_, bars)| bars.iter().flatten());
    Scale::choose(bars.map(|bar| (bar.spread.min, bar.spread.max)))
}

/// Draws groups along the horizontal axis, each with a slot per subject.
fn grouped(groups: &[Group], metrics: &[Metric], scale: &Scale) -> (ScriptJson, usize) {
    let places = groups.iter().map(|(_, bars)| bars.len()).max().unwrap_or(1).max(1);
    let width = 0.8 / places as f64;
    let mut data = Vec::new();
    for (group, ((_, bars), metric)) in groups.iter().zip(metrics).enumerate() {
        for (place, bar) in bars.iter().enumerate() {
            let Some(bar) = bar else { continue };
            let middle = group as f64 + (place as f64 - (places - 1) as f64 / 2.0) * width;
            data.push(level(bar, *metric, middle, width, scale));
            let at: Vec<f64> = scattered(bar.runs.len(), width * 0.4).map(|shift| middle + shift).collect();
            let values: Vec<f64> = bar.runs.iter().map(|(_, value)| *value).collect();
            data.push(points(bar, *metric, &at, &values));
        }
    }
    let ticks: Vec<usize> = (0..groups.len()).collect();
    let names: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
    let range = [-0.5, groups.len() as f64 - 0.5];
    let x = json!({"tickvals": ticks, "ticktext": names, "range": range, "showgrid": false, "zeroline": false, "tickangle": 0});
    let letters = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let min_width = 80 + groups.len() * (places * 14).max(letters * 7 + 8).max(30);
    (ScriptJson(json!({"data": data, "layout": layout(x, scale.axis())})), min_width)
}

/// Draws the figure as a bar from zero, or as a line on a logarithmic axis, which has no zero.
fn level(bar: &Bar, metric: Metric, middle: f64, width: f64, scale: &Scale) -> Value {
    let text = bar_text(bar, metric);
    match scale {
        Scale::Linear => json!({
            "type": "bar", "x": [middle], "y": [bar.value], "width": width * 0.92, "marker": fill(bar.subject),
            "text": [text], "textposition": "none", "hovertemplate": "%{text}<extra></extra>",
        }),
        Scale::Logarithmic(..) => json!({
            "type": "scatter", "mode": "lines", "x": [middle - width * 0.42, middle + width * 0.42],
            "y": [bar.value, bar.value], "line": {"color": bar.subject.mark.role(), "width": 3, "dash": bar.subject.mark.dash()},
            "opacity": 0.55, "text": [text, text], "hovertemplate": "%{text}<extra></extra>",
        }),
    }
}

fn fill(subject: &Subject) -> Value {
    let (color, hatch) = (subject.mark.role(), subject.mark.hatch());
    json!({"color": color, "opacity": 0.28, "pattern": {"shape": hatch, "size": 7, "solidity": 0.25, "fillmode": "overlay"}})
}

fn bar_text(bar: &Bar, metric: Metric) -> String {
    let figure = metric.figure(Some(bar.value));
    let name = text(&bar.subject.label);
    format!("{name}<br>{} {}, {}", metric.name(), figure.text(), plural(bar.runs.len(), "run"))
}

fn points(bar: &Bar, metric: Metric, x: &[f64], y: &[f64]) -> Value {
    let name = text(&bar.subject.label);
    let hints: Vec<String> = bar
        .runs
        .iter()
        .map(|(run, value)| {
            let verdict = run.verdict.map_or("", Verdict::as_str);
            let figure = metric.figure(Some(*value));
            format!("{name}<br>{} {}, repetition {}, {verdict}", metric.name(), figure.text(), run.repetition)
        })
        .collect();
    let symbol = bar.subject.mark.symbol();
    let symbols: Vec<String> = bar
        .runs
        .iter()
        .map(|(run, _)| if is_suspect(run) { format!("{symbol}-open") } else { symbol.to_owned() })
        .collect();
    json!({
        "type": "scatter", "mode": "markers", "x": x, "y": y, "text": hints,
        "hovertemplate": "%{text}<extra></extra>", "cliponaxis": false,
        "marker": {"color": bar.subject.mark.role(), "size": 8, "opacity": 0.9, "symbol": symbols, "line": {"width": 1.5, "color": bar.subject.mark.role()}},
    })
}

/// Returns offsets that keep points from overlapping.
fn scattered(count: usize, room: f64) -> impl Iterator<Item = f64> {
    let step = if count > 1 { room / (count - 1) as f64 } else { 0.0 };
    (0..count).map(move |place| if count > 1 { place as f64 * step - room / 2.0 } else { 0.0 })
}

fn is_suspect(run: &Run) -> bool {
    run.verdict == Some(Verdict::Suspect)
}

fn suspect_hint(rows: &[&Row]) -> &'static str {
    let any = rows.iter().flat_map(|row| &row.cells).any(|cell| cell.counts.suspect > 0);
    if any { " · hollow points are suspect" } else { "" }
}

/// Describes the first figures for screen readers.
fn describe_bars<'a, 'b: 'a>(what: &str, bars: impl Iterator<Item = (&'a Bar<'b>, Metric)>) -> String {
    const MAX_SPOKEN: usize = 8;
    let texts: Vec<String> = bars
        .take(MAX_SPOKEN)
        .map(|(bar, metric)| {
            format!("{} {} {}", bar.subject.label, metric.name(), metric.figure(Some(bar.value)).text())
        })
        .collect();
    format!("{what}: {}. The table below has all figures.", texts.join(", "))
}

#[cfg(test)]
mod tests;
