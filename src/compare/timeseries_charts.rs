//! Time-series charts of a row: latency by percentile and its difference, throughput, latency and resources over time,
//! and heatmaps with a common colour scale. Pure.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::histogram::Histogram;
use serde_json::{Value, json};

use super::selection::Subject;
use crate::{
    compare::timeseries::{CellTimeseries, Point, RowTimeseries},
    metrics::Metric,
    results::{
        pages::run::charts::latencies::{self, by_band},
        series::model::buckets_ms,
    },
    web::{
        axis::logarithmic,
        chart::{Chart, Key, ScriptJson, layout, text},
        format,
    },
};

const MIB: f64 = 1_048_576.0;

/// Maximum number of heatmaps; more are too many to compare.
const MAX_HEATMAPS: usize = 4;

/// Name of the horizontal axis that all charts over time share.
const TIME: &str = "time";

/// Returns all charts; `base` is the index of the baseline.
pub fn charts(subjects: &[Subject], base: usize, series: &RowTimeseries) -> Vec<Chart> {
    let sides: Vec<SubjectCell> =
        series.cells.iter().map(|cell| SubjectCell { subject: &subjects[cell.subject], cell }).collect();
    let mut charts = vec![percentiles(&sides)];
    charts.extend(difference(&sides, base));
    charts.push(over_time(&sides, &RATE));
    charts.push(latency(&sides));
    charts.extend(heatmaps(&sides));
    let known = [CPU, MEMORY]
        .into_iter()
        .filter(|figure| sides.iter().flat_map(|side| &side.cell.moments).any(|moment| (figure.of)(moment).is_some()));
    charts.extend(known.map(|figure| over_time(&sides, &figure)));
    charts
}

/// A cell with its subject.
struct SubjectCell<'a> {
    subject: &'a Subject,
    cell: &'a CellTimeseries,
}

impl SubjectCell<'_> {
    fn line(&self) -> Value {
        json!({"color": self.subject.mark.role(), "width": 2, "dash": self.subject.mark.dash()})
    }

    fn key(&self, trace: usize) -> Key {
        let Subject { label, mark, .. } = self.subject;
        Key { trace, name: label.clone(), role: mark.role(), dash: mark.dash() }
    }
}

/// A figure over time.
struct Figure {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    metric: Option<Metric>,
    of: fn(&Point) -> Option<f64>,
}

const RATE: Figure = Figure {
    id: "story-rate",
    title: "Throughput over time",
    unit: "requests/s, mean of the repetitions",
    metric: Some(Metric::Rps),
    of: Point::rps,
};

const CPU: Figure = Figure {
    id: "story-cpu",
    title: "CPU of the target",
    unit: "cores, mean of the repetitions",
    metric: None,
    of: Point::cores,
};

const MEMORY: Figure = Figure {
    id: "story-memory",
    title: "Memory of the target",
    unit: "MiB, mean of the repetitions",
    metric: None,
    of: |moment| moment.memory_bytes().map(|bytes| bytes / MIB),
};

fn chart(id: &'static str, title: &str, unit: &str, label: String, figure: Value, legend: Vec<Key>) -> Chart {
    Chart {
        id,
        title: title.to_owned(),
        unit: unit.to_owned(),
        label,
        height: 280,
        min_width: 280,
        figure: ScriptJson(figure),
        legend,
        shares: None,
        metric: None,
    }
}

fn percentiles(sides: &[SubjectCell]) -> Chart {
    let (mut data, mut legend) = (Vec::new(), Vec::new());
    for side in sides {
        legend.push(side.key(data.len()));
        let name = text(&side.subject.label);
        let (role, dash) = (side.subject.mark.role(), side.subject.mark.dash());
        data.push(latencies::percentile_curve(&name, &role, dash, &side.cell.latencies));
    }
    let quantile =
        |histogram: &Histogram, q| format::latency(histogram.quantile(q).map(|found| found.estimate)).text().to_owned();
    let spoken: Vec<String> = sides
        .iter()
        .map(|SubjectCell { subject, cell }| {
            format!("{} p50 {}, p99 {}", subject.label, quantile(&cell.latencies, 0.5), quantile(&cell.latencies, 0.99))
        })
        .collect();
    let figure = json!({"data": data, "layout": latencies::percentile_layout(logarithmic())});
    let unit = "ms by share of the successful requests of all repetitions · logarithmic axes";
    chart("story-percentiles", "Latency by percentile", unit, spoken.join("; "), figure, legend)
}

/// Shows each percentile of the other sides relative to the baseline.
fn difference(sides: &[SubjectCell], base: usize) -> Option<Chart> {
    let baseline = sides.iter().find(|side| side.cell.subject == base)?;
    let (mut data, mut legend) = (Vec::new(), Vec::new());
    for side in sides.iter().filter(|side| side.cell.subject != base) {
        let points: Vec<(f64, f64, String)> =
            latencies::nines(side.cell.latencies.total().min(baseline.cell.latencies.total()))
                .filter_map(|nines| {
                    let q = 1.0 - 10_f64.powf(-nines);
                    let of =
                        |side: &SubjectCell| Some(side.cell.latencies.quantile(q)?.estimate).filter(|ms| *ms > 0.0);
                    let percent = (of(side)? / of(baseline)? - 1.0) * 100.0;
                    let share = format::number(Some(q * 100.0)).text().to_owned();
                    Some(((nines * 1e3).round() / 1e3, (percent * 10.0).round() / 10.0, share))
                })
                .collect();
        legend.push(side.key(data.len()));
        let name = text(&side.subject.label);
        data.push(json!({
            "type": "scatter", "mode": "lines", "name": name, "line": side.line(),
            "x": points.iter().map(|(x, ..)| *x).collect::<Vec<_>>(), "y": points.iter().map(|(_, y, _)| *y).collect::<Vec<_>>(),
            "text": points.iter().map(|(.., share)| share.as_str()).collect::<Vec<_>>(),
            "hovertemplate": format!("{name}: p%{{text}} %{{y:+.1f}} %<extra></extra>"),
        }));
    }
    if data.is_empty() {
        return None;
    }
    let layout =
        latencies::percentile_layout(json!({"rangemode": "normal", "zeroline": true, "nticks": 6, "ticksuffix": " %"}));
    let name = &baseline.subject.label;
    let unit = format!("% of {name}'s latency, below zero is faster");
    let label = format!("Latency difference from {name} at each percentile");
    Some(chart(
        "story-difference",
        "Difference by percentile",
        &unit,
        label,
        json!({"data": data, "layout": layout}),
        legend,
    ))
}

fn time_layout(y: Value) -> Value {
    let title = json!({"text": "seconds of the measured phase", "standoff": 6});
    let x = json!({
        "showgrid": false, "title": title, "nticks": 8, "showspikes": false, "unifiedhovertitle": {"text": "%{x:.0f} s"},
    });
    let mut layout = layout(x, y);
    layout["margin"]["b"] = json!(44);
    layout["hovermode"] = json!("x unified");
    // The nearest second, however far: a short run has few points.
    layout["hoverdistance"] = json!(-1);
    layout
}

fn curve(side: &SubjectCell, name: &str, line: &Value, of: impl Fn(&Point) -> Option<f64>) -> Value {
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    json!({
        "type": "scatter", "mode": "lines", "name": name, "line": line, "hovertemplate": "%{y:,.4~g}",
        "x": side.cell.moments.iter().map(|moment| moment.at_s).collect::<Vec<_>>(),
        "y": side.cell.moments.iter().map(|moment| of(moment).map(rounded)).collect::<Vec<_>>(),
    })
}

fn over_time(sides: &[SubjectCell], figure: &Figure) -> Chart {
    let data: Vec<Value> =
        sides.iter().map(|side| curve(side, &text(&side.subject.label), &side.line(), figure.of)).collect();
    let legend = sides.iter().enumerate().map(|(trace, side)| side.key(trace)).collect();
    let spoken: Vec<String> =
        sides.iter().map(|side| format!("{} {}", side.subject.label, range(side, figure.of))).collect();
    let label = format!("{}, {}: {}", figure.title, figure.unit, spoken.join("; "));
    let body = json!({"data": data, "layout": time_layout(json!({"nticks": 6}))});
    Chart {
        shares: Some(TIME),
        metric: figure.metric,
        ..chart(figure.id, figure.title, figure.unit, label, body, legend)
    }
}

/// Describes the range of a figure.
fn range(side: &SubjectCell, of: fn(&Point) -> Option<f64>) -> String {
    let known = side.cell.moments.iter().filter_map(of);
    let (least, most) =
        known.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    let words = |value: f64| format::number(Some(value)).text().to_owned();
    if least > most { "unknown".to_owned() } else { format!("between {} and {}", words(least), words(most)) }
}

/// Shows the median as a thick line and p99 as a thin one.
fn latency(sides: &[SubjectCell]) -> Chart {
    let (mut data, mut legend) = (Vec::new(), Vec::new());
    for side in sides {
        for (name, q, width) in [("p50", 0.5, 2.0), ("p99", 0.99, 1.0)] {
            let mut line = side.line();
            line["width"] = json!(width);
            let title = format!("{} {name}", side.subject.label);
            legend.push(Key { name: title.clone(), ..side.key(data.len()) });
            data.push(curve(side, &text(&title), &line, |moment| {
                moment.latencies.quantile(q).map(|found| found.estimate)
            }));
        }
    }
    let spoken: Vec<String> = sides
        .iter()
        .map(|side| {
            format!(
                "{} p50 {}",
                side.subject.label,
                range(side, |moment| Some(moment.latencies.quantile(0.5)?.estimate))
            )
        })
        .collect();
    let label = format!("Latency over time in milliseconds: {}", spoken.join("; "));
    let unit = "ms, successful requests of all repetitions, p99 thin · logarithmic axis";
    let y = logarithmic();
    let figure = json!({"data": data, "layout": time_layout(y)});
    Chart { shares: Some(TIME), ..chart("story-latency", "Latency over time", unit, label, figure, legend) }
}

/// Returns one heatmap per side, all with the same axes and colour scale.
fn heatmaps(sides: &[SubjectCell]) -> Vec<Chart> {
    const IDS: [&str; MAX_HEATMAPS] = ["story-heat-1", "story-heat-2", "story-heat-3", "story-heat-4"];
    if sides.len() > MAX_HEATMAPS {
        return Vec::new();
    }
    let columns: Vec<Vec<BTreeMap<i64, f64>>> =
        sides.iter().map(|side| side.cell.moments.iter().map(|moment| shares(&moment.latencies)).collect()).collect();
    let bands: BTreeSet<i64> = columns.iter().flatten().flat_map(BTreeMap::keys).copied().collect();
    let (Some(first), Some(last)) = (bands.first(), bands.last()) else { return Vec::new() };
    sides
        .iter()
        .zip(&columns)
        .zip(IDS)
        .map(|((side, columns), id)| {
            let rows = |cell: fn(f64) -> f64| -> Vec<Vec<Option<f64>>> {
                let row = |band: i64| columns.iter().map(|column| column.get(&band).copied().map(cell)).collect();
                (*first..=*last).map(row).collect()
            };
            let (z, shares) = (rows(shade), rows(|share| (share * 1e3).round() / 10.0));
            let trace = json!({
                "type": "heatmap", "x": side.cell.moments.iter().map(|moment| moment.at_s).collect::<Vec<_>>(),
                "y": (*first..=*last).collect::<Vec<_>>(), "z": z, "customdata": shares, "showscale": false,
                "colorscale": [[0, "faint"], [1, side.subject.mark.role()]], "zmin": 0, "zmax": 3, "hoverongaps": false,
                "hovertemplate": "%{x:.0f} s<br>%{customdata} % of the requests<extra></extra>",
            });
            let mut layout = time_layout(latencies::axis(*first..=*last));
            layout["hovermode"] = json!("closest");
            let title = format!("Latencies of {}", side.subject.label);
            let median = format::latency(side.cell.latencies.quantile(0.5).map(|found| found.estimate));
            let label = format!("{title} over time; half of all requests took less than {}", median.text());
            let unit = "ms, share of the successful requests of all repetitions · stronger colour is more";
            let figure = json!({"data": [trace], "layout": layout});
            Chart { shares: Some(TIME), ..chart(id, &title, unit, label, figure, Vec::new()) }
        })
        .collect()
}

/// Returns the share of the requests in each band, so that a faster target is not darker.
fn shares(second: &Histogram) -> BTreeMap<i64, f64> {
    let bands = by_band(buckets_ms(second));
    let all: u64 = bands.values().sum();
    bands.into_iter().map(|(band, count)| (band, count as f64 / all as f64)).collect()
}

/// Maps a share to a logarithmic shade from 0 (0.1 %) to 3 (all), so that few requests stay visible.
fn shade(share: f64) -> f64 {
    (((share * 1e3).max(1.0)).log10() * 1e2).round() / 1e2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::timeseries::tests::{first_row, two};

    fn both() -> Vec<Chart> {
        let (comparison, recorded) = two();
        let series = first_row(&comparison, &recorded).expect("a time series");
        charts(&comparison.subjects, 0, &series)
    }

    #[test]
    fn a_row_has_all_charts_and_they_share_the_time_axis() {
        let charts = both();
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Latency by percentile",
                "Difference by percentile",
                "Throughput over time",
                "Latency over time",
                "Latencies of gosherve",
                "Latencies of servy",
                "CPU of the target",
                "Memory of the target",
            ]
        );
        assert_eq!(charts.iter().filter(|chart| chart.shares == Some(TIME)).count(), 6);
        assert!(charts.iter().all(|chart| !chart.label.is_empty()));
    }

    #[test]
    fn equal_distributions_do_not_differ_and_heatmaps_share_a_scale() {
        let charts = both();
        let difference = charts[1].figure.0["data"][0]["y"].as_array().expect("figures");
        assert!(!difference.is_empty() && difference.iter().all(|value| value.as_f64() == Some(0.0)), "{difference:?}");
        let heat = |place: usize| &charts[place].figure.0["data"][0];
        assert_eq!((&heat(4)["zmax"], &heat(4)["y"]), (&heat(5)["zmax"], &heat(5)["y"]));
        assert_ne!(heat(4)["z"], json!([]));
    }

    #[test]
    fn names_are_escaped() {
        let (mut comparison, recorded) = two();
        comparison.subjects[0].label = "<img src=x>".to_owned();
        let series = first_row(&comparison, &recorded).expect("a time series");
        for chart in charts(&comparison.subjects, 0, &series) {
            assert!(!chart.figure.0["data"].to_string().contains("<img"), "{}", chart.title);
        }
    }
}
