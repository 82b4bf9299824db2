//! The latency distribution of a run: heatmap, percentile curve and histogram. Pure.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::{histogram::Histogram, series::Series};
use serde_json::{Value, json};

use crate::results::pages::run::charts::curves::{Points, TIME};
use crate::{
    results::series::model::{LatencyBody, SeriesBody, latencies},
    web::{
        axis::logarithmic,
        chart::{Chart, Key, ScriptJson, layout},
        format,
        series_style::Mark,
    },
};

/// Bands per doubling: wide enough for a phone, and each covers a whole number of k6's buckets.
const PER_DOUBLING: f64 = 4.0;

/// Lower limit of the bands, ms.
const MIN_LATENCY_MS: f64 = 0.001;

/// Returns the band of a bucket from its upper bound: band n ends at 2^(n ÷ 4) seconds.
#[expect(clippy::cast_possible_truncation, reason = "logarithms of milliseconds are small")]
fn band(upto_ms: f64) -> i64 {
    // A bucket's bound is a band's bound, except for rounding.
    (band_position(upto_ms) - 0.01).ceil() as i64
}

/// The position of a latency among the bands.
fn band_position(ms: f64) -> f64 {
    PER_DOUBLING * (ms.max(MIN_LATENCY_MS) / 1e3).log2()
}

/// The range of a band in words.
fn range(band: i64) -> String {
    let edge = |band: i64| format::latency(Some(2_f64.powf(band as f64 / PER_DOUBLING) * 1e3)).text().to_owned();
    format!("{} to {}", edge(band - 1), edge(band))
}

/// Counts observations per band, from buckets with their upper bound in ms.
pub fn by_band(buckets: impl IntoIterator<Item = (f64, u64)>) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for (upto_ms, count) in buckets {
        *counts.entry(band(upto_ms)).or_default() += count;
    }
    counts
}

/// An axis over bands, labelled with latencies in ms.
pub fn axis(bands: impl Iterator<Item = i64> + Clone) -> Value {
    let (first, last) = (bands.clone().min().unwrap_or(0), bands.max().unwrap_or(0));
    let ticks = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5].into_iter();
    let fine = last - first < 24;
    let steps: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all: Vec<f64> = ticks.flat_map(|power| steps.iter().map(move |step| power * step)).collect();
    // A band is centred on its number; its upper bound is half a step above.
    let places: Vec<f64> = all.iter().map(|ms| band_position(*ms) + 0.5).collect();
    let names: Vec<String> = all.iter().map(|ms| format!("{}", (ms * 1e4).round() / 1e4)).collect();
    json!({
        "tickvals": places, "ticktext": names, "rangemode": "normal", "zeroline": false,
        "range": [first as f64 - 0.5, last as f64 + 0.5],
    })
}

/// A column of the heatmap: its time, and requests by band.
type Column = (f64, BTreeMap<i64, u64>);

fn columns(series: &SeriesBody) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for window in series.windows() {
        columns.extend(pause(&columns, window.from_s));
        let counts = window.seconds.iter().map(|one| (one.at_s, by_band(one.succeeded.buckets.iter().copied())));
        columns.extend(counts);
    }
    columns
}

/// Empty columns at both ends of the time until the next window, if it is longer than a second. Without them, Plotly
/// would extend the columns beside it.
fn pause(before: &[Column], until_s: f64) -> Vec<Column> {
    let Some((last_s, _)) = before.last() else { return Vec::new() };
    let begin_s = last_s + 1.0;
    let ends = if begin_s < until_s { vec![begin_s, until_s] } else { Vec::new() };
    ends.into_iter().map(|at_s| (at_s, BTreeMap::new())).collect()
}

/// The heatmap: time × latency, with the number of requests as colour.
pub fn heatmap(points: &Points, series: &SeriesBody, mark: Mark) -> Option<Chart> {
    let (times, columns): (Vec<f64>, Vec<BTreeMap<i64, u64>>) = columns(series).into_iter().unzip();
    let bands: BTreeSet<i64> = columns.iter().flat_map(BTreeMap::keys).copied().collect();
    let rows = *bands.first()?..=*bands.last()?;
    let count = |row: i64, column: &BTreeMap<i64, u64>| column.get(&row).copied();
    let counts: Vec<Vec<Option<u64>>> =
        rows.clone().map(|row| columns.iter().map(|column| count(row, column)).collect()).collect();
    let colours: Vec<Vec<Option<f64>>> =
        counts.iter().map(|row| row.iter().map(|count| count.map(shade)).collect()).collect();
    let names: Vec<Vec<String>> = rows.clone().map(|row| vec![range(row)]).collect();
    let trace = json!({
        "type": "heatmap", "x": times, "y": rows.clone().collect::<Vec<_>>(), "z": colours, "customdata": counts, "text": names,
        "colorscale": [[0, "faint"], [1, mark.role()]], "showscale": false, "hoverongaps": false, "zmin": 0,
        "hovertemplate": "%{x:.0f} s<br>%{customdata:,} requests<extra></extra>",
        "meta": {"from": "seconds", "buckets": "succeeded.buckets", "per_doubling": PER_DOUBLING},
    });
    let mut layout = points.layout(axis(rows));
    layout["hovermode"] = json!("closest");
    let median = series.measured.as_ref().and_then(|measured| measured.succeeded.p50_ms);
    Some(Chart {
        id: "run-heat",
        title: "Latency heatmap".to_owned(),
        unit: "ms, successful requests · logarithmic axis · stronger colour: more requests".to_owned(),
        label: format!("Number of requests by latency in each second; median {}", format::latency(median).text()),
        height: 260,
        min_width: 280,
        figure: ScriptJson(json!({"data": [trace], "layout": layout})),
        legend: Vec::new(),
        shares: Some(TIME),
        metric: None,
    })
}

/// The colour value of a count; logarithmic, so that few requests are visible beside many.
fn shade(count: u64) -> f64 {
    ((1.0 + count as f64).log10() * 1e3).round() / 1e3
}

/// The percentile curves.
pub fn percentiles(series: &Series, mark: Mark) -> Option<Chart> {
    let (succeeded, failed) = latencies(series.measured.as_ref()?);
    let mut data = Vec::new();
    let mut legend = Vec::new();
    for (name, role, dash, histogram) in
        [("successful", mark.role(), "solid", &succeeded), ("failed", "bad".to_owned(), "dot", &failed)]
    {
        if histogram.total() > 0 {
            legend.push(Key { trace: data.len(), name: name.to_owned(), role: role.clone(), dash });
            data.push(percentile_curve(name, &role, dash, histogram));
        }
    }
    let all = if succeeded.total() > 0 { &succeeded } else { &failed };
    let spoken: Vec<String> = [0.5, 0.9, 0.99, 0.999]
        .into_iter()
        .filter_map(|q| Some(format!("{} % took less than {}", q * 100.0, text_ms(all.quantile(q)?.estimate))))
        .collect();
    let layout = percentile_layout(logarithmic());
    (!data.is_empty()).then(|| Chart {
        id: "run-latency",
        title: "Latency".to_owned(),
        unit: "ms by share of the requests · logarithmic axes".to_owned(),
        label: format!("Latency by percentile: {}", spoken.join(", ")),
        height: 280,
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: if legend.len() > 1 { legend } else { Vec::new() },
        shares: None,
        metric: None,
    })
}

/// The layout of a chart over percentiles; the axis is logarithmic in nines.
pub fn percentile_layout(y: Value) -> Value {
    let x = json!({
        "tickvals": [0.0, 0.301, 1, 2, 3, 4, 5, 6], "zeroline": false,
        "ticktext": ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"],
        "title": {"text": "% of the requests", "standoff": 6},
    });
    let mut layout = layout(x, y);
    layout["margin"]["b"] = json!(44);
    layout
}

/// The points of a percentile curve, in nines, up to the resolution of the number of requests.
pub fn nines(requests: u64) -> impl Iterator<Item = f64> {
    const STEP: f64 = 0.05;
    let most = (requests as f64).log10();
    std::iter::successors(Some(0.0), |nines| Some(nines + STEP)).take_while(move |reached| *reached <= most)
}

fn text_ms(ms: f64) -> String {
    format::latency(Some(ms)).text().to_owned()
}

/// A Plotly trace of latency by percentile. The name must be escaped for Plotly.
pub fn percentile_curve(name: &str, role: &str, dash: &str, histogram: &Histogram) -> Value {
    let points: Vec<(f64, f64, String)> = nines(histogram.total())
        .filter_map(|nines| {
            let q = 1.0 - 10_f64.powf(-nines);
            let ms = histogram.quantile(q)?.estimate;
            let share = format::number(Some(q * 100.0)).text().to_owned();
            (ms > 0.0).then(|| ((nines * 1e3).round() / 1e3, (ms * 1e4).round() / 1e4, share))
        })
        .collect();
    let x: Vec<f64> = points.iter().map(|(nines, ..)| *nines).collect();
    let y: Vec<f64> = points.iter().map(|(_, ms, _)| *ms).collect();
    let shares: Vec<&str> = points.iter().map(|(.., share)| share.as_str()).collect();
    json!({
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "text": shares,
        "line": {"color": role, "width": 2, "dash": dash},
        "hovertemplate": format!("{name}: %{{text}} % took<br>less than %{{y:,.4~g}} ms<extra></extra>"),
    })
}

/// The histogram.
pub fn histogram(series: &SeriesBody, mark: Mark) -> Option<Chart> {
    let measured = series.measured.as_ref()?;
    let bands = |latency: &LatencyBody| by_band(latency.buckets.iter().copied());
    let (succeeded, failed) = (bands(&measured.succeeded), bands(&measured.failed));
    let bands: BTreeSet<i64> = succeeded.keys().chain(failed.keys()).copied().collect();
    bands.first()?;
    let mut data = Vec::new();
    let mut legend = Vec::new();
    for (name, role, pattern, counts) in
        [("successful", mark.role(), "", &succeeded), ("failed", "bad".to_owned(), "/", &failed)]
    {
        if !counts.is_empty() {
            legend.push(Key { trace: data.len(), name: name.to_owned(), role: role.clone(), dash: "solid" });
            data.push(json!({
                "type": "bar", "name": name, "x": counts.keys().collect::<Vec<_>>(), "y": counts.values().collect::<Vec<_>>(),
                "text": counts.keys().map(|band| range(*band)).collect::<Vec<_>>(), "textposition": "none",
                "marker": {"color": role, "opacity": 0.7, "pattern": {"shape": pattern, "fgcolor": role}},
                "hovertemplate": format!("%{{text}}<br>%{{y:,}} {name} requests<extra></extra>"),
            }));
        }
    }
    let mut x = axis(bands.iter().copied());
    x["title"] = json!({"text": "latency, ms", "standoff": 6});
    x["showgrid"] = json!(false);
    let mut layout = layout(x, json!({"nticks": 6}));
    layout["margin"]["b"] = json!(44);
    layout["bargap"] = json!(0.08);
    layout["barmode"] = json!("stack");
    let common = succeeded.iter().chain(&failed).max_by_key(|(_, count)| **count).map(|(band, _)| range(*band));
    Some(Chart {
        id: "run-histogram",
        title: "Latency histogram".to_owned(),
        unit: "requests · logarithmic latency".to_owned(),
        label: format!("Number of requests by latency; most frequent: {}", common.unwrap_or_default()),
        height: 260,
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": layout})),
        legend: if legend.len() > 1 { legend } else { Vec::new() },
        shares: None,
        metric: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_before_the_measurement_is_empty() {
        let before: [Column; 2] = [(1.0, BTreeMap::new()), (2.1, BTreeMap::new())];
        let times = |until_s| pause(&before, until_s).into_iter().map(|(at_s, _)| at_s).collect::<Vec<_>>();
        assert_eq!(times(7.25), [3.1, 7.25]);
        assert!(times(2.1).is_empty() && times(3.0).is_empty());
        assert!(pause(&[], 5.0).is_empty());
    }
}
