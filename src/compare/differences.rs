//! Chart of the differences from the baseline, with intervals as whiskers and repetitions as points. Pure.
//!
//! Its axis is a ratio on a logarithmic scale: twice and half as good are equally far from "same", and better is right
//! for every metric.

use serde_json::{Value, json};

use super::{
    cell::{Cell, Row},
    gain::{Gain, TICKS, times_better},
    metric::Metric,
    selection::Subject,
    statistics::Decision,
};
use crate::{
    runs::model::Run,
    web::chart::{Chart, Key, ScriptJson, elided, layout, text},
};

/// Metrics shown for one setting. Failures are missing as they have no ratio.
const METRICS: [Metric; 5] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs, Metric::Memory];

/// Maximum number of lines in the chart.
const MAX_LINES: usize = 40;

/// Maximum number of ticks on a side.
const MAX_TICKS: usize = 2;

/// Minimum distance of two ticks, as a share of the axis: what the words take on a phone.
const MIN_DISTANCE: f64 = 0.2;

/// One difference.
struct DifferenceRow<'a> {
    name: String,
    subject: &'a Subject,
    metric: Metric,
    cell: &'a Cell,
    baseline: &'a Cell,
}

/// Charts all metrics of one setting, or the throughput of several. None without intervals.
pub fn chart(subjects: &[Subject], base: usize, rows: &[Row]) -> Option<Chart> {
    let lines: Vec<DifferenceRow> = match rows {
        [row] => METRICS.into_iter().flat_map(|metric| lines(subjects, base, row, metric, metric.name())).collect(),
        rows => rows.iter().flat_map(|row| lines(subjects, base, row, Metric::Rps, &row.setting.label)).collect(),
    };
    let lines: Vec<DifferenceRow> = lines.into_iter().filter(|line| line.gain().is_some()).take(MAX_LINES).collect();
    if lines.is_empty() {
        return None;
    }
    let others: Vec<&Subject> = subjects
        .iter()
        .enumerate()
        .filter(|(place, subject)| *place != base && lines.iter().any(|line| line.subject.key == subject.key))
        .map(|(_, subject)| subject)
        .collect();
    let (mut data, mut legend) = (Vec::new(), Vec::new());
    for subject in &others {
        let own: Vec<(usize, &DifferenceRow)> =
            lines.iter().enumerate().filter(|(_, line)| line.subject.key == subject.key).collect();
        let Subject { label, mark, .. } = subject;
        legend.push(Key { trace: data.len(), name: label.clone(), role: mark.role(), dash: "solid" });
        data.push(whiskers(subject, &own));
        data.push(repetitions(subject, &own));
    }
    let base = &subjects[base].label;
    let what = if rows.len() == 1 { "Differences" } else { "Throughput differences" };
    let spoken: Vec<String> = lines.iter().take(8).map(DifferenceRow::describe).collect();
    Some(Chart {
        id: "differences",
        title: format!("{what} from {base}"),
        unit: "right is better · whiskers: 95\u{a0}% interval · dots: repetitions · hollow: no difference found"
            .to_owned(),
        label: format!("{what} from {base}: {}", spoken.join("; ")),
        height: 90 + 38 * lines.len(),
        min_width: 320,
        figure: ScriptJson(json!({"data": data, "layout": axes(&lines, others.len() > 1)})),
        legend: if others.len() > 1 { legend } else { Vec::new() },
        shares: None,
        metric: None,
    })
}

fn lines<'a>(subjects: &'a [Subject], base: usize, row: &'a Row, metric: Metric, name: &str) -> Vec<DifferenceRow<'a>> {
    let Some(baseline) = row.cells.iter().find(|cell| cell.subject == base) else { return Vec::new() };
    let line = |cell: &'a Cell| DifferenceRow {
        name: name.to_owned(),
        subject: &subjects[cell.subject],
        metric,
        cell,
        baseline,
    };
    row.compared_cells().filter(|cell| cell.subject != base).map(line).collect()
}

impl DifferenceRow<'_> {
    fn gain(&self) -> Option<Gain> {
        Gain::new(self.cell.stat(self.metric))
    }

    /// Returns each repetition relative to the baseline's figure; in a duet to that of its partner, whose noise it shares.
    fn repetitions(&self) -> Vec<f64> {
        let usual = self.baseline.stat(self.metric).value;
        let of_partner = |run: &Run| {
            let place = |run: &Run| (run.experiment.clone(), run.repetition);
            self.baseline
                .counting()
                .find(|other| place(other) == place(run))
                .and_then(|other| self.metric.value_in(other))
        };
        let ratio = |run: &Run| {
            let base = if run.spec.duet { of_partner(run) } else { usual };
            let base = base.filter(|base| *base > 0.0)?;
            times_better(self.metric, self.metric.value_in(run)? / base - 1.0)
        };
        self.cell.counting().filter_map(ratio).collect()
    }

    fn is_found(&self) -> bool {
        self.cell.stat(self.metric).decision.is_some_and(Decision::is_difference)
    }

    fn describe(&self) -> String {
        let stat = self.cell.stat(self.metric);
        format!("{} {} {}, {}", self.subject.label, self.name, stat.change().text(), stat.interval())
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn whiskers(subject: &Subject, own: &[(usize, &DifferenceRow)]) -> Value {
    let ends: Vec<(f64, f64, f64)> = own
        .iter()
        .filter_map(|(_, line)| {
            let Gain { ratio, low, high } = line.gain()?;
            Some((rounded(ratio), rounded(high - ratio), rounded(ratio - low)))
        })
        .collect();
    let symbol = subject.mark.symbol();
    let symbols: Vec<String> = own
        .iter()
        .map(|(_, line)| if line.is_found() { symbol.to_owned() } else { format!("{symbol}-open") })
        .collect();
    let hints: Vec<String> = own.iter().map(|(_, line)| text(&line.describe())).collect();
    let role = subject.mark.role();
    json!({
        "type": "scatter", "mode": "markers", "name": text(&subject.label), "legendgroup": subject.key,
        "x": ends.iter().map(|(estimate, ..)| *estimate).collect::<Vec<_>>(),
        "y": own.iter().map(|(place, _)| *place).collect::<Vec<_>>(),
        "error_x": {
            "type": "data", "symmetric": false, "color": role, "thickness": 2, "width": 5,
            "array": ends.iter().map(|(_, above, _)| *above).collect::<Vec<_>>(),
            "arrayminus": ends.iter().map(|(.., below)| *below).collect::<Vec<_>>(),
        },
        "marker": {"color": role, "size": 11, "symbol": symbols, "line": {"color": role, "width": 2}},
        "text": hints, "hovertemplate": "%{text}<extra></extra>",
    })
}

/// Draws each repetition.
fn repetitions(subject: &Subject, own: &[(usize, &DifferenceRow)]) -> Value {
    let points: Vec<(f64, f64)> = own
        .iter()
        .flat_map(|(place, line)| line.repetitions().into_iter().map(|ratio| (rounded(ratio), *place as f64 + 0.28)))
        .collect();
    json!({
        "type": "scatter", "mode": "markers", "name": text(&subject.label), "legendgroup": subject.key, "hoverinfo": "skip",
        "x": points.iter().map(|(x, _)| *x).collect::<Vec<_>>(), "y": points.iter().map(|(_, y)| *y).collect::<Vec<_>>(),
        "marker": {"color": subject.mark.role(), "size": 5, "opacity": 0.6, "symbol": subject.mark.symbol()},
    })
}

fn axes(lines: &[DifferenceRow], with_subjects: bool) -> Value {
    const NAME: usize = 26;
    let names: Vec<String> = lines
        .iter()
        .map(|line| {
            let name = if with_subjects { format!("{}, {}", line.name, line.subject.label) } else { line.name.clone() };
            elided(&name, NAME)
        })
        .collect();
    let places: Vec<usize> = (0..lines.len()).collect();
    let all = lines.iter().flat_map(|line| {
        line.repetitions().into_iter().chain(line.gain().map_or([1.0; 2], |gain| [gain.low, gain.high]))
    });
    let (least, most) = all.fold((1.0_f64, 1.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    let (ticks, words) = ticks(least, most);
    let room = 0.06 * (most / least).log10().max(0.01);
    let x = json!({
        "type": "log", "range": [least.log10() - room, most.log10() + room], "tickvals": ticks, "ticktext": words,
    });
    let y = json!({
        "tickvals": places, "ticktext": names, "range": [lines.len() as f64 - 0.5, -0.5], "showgrid": false, "zeroline": false,
    });
    layout(x, y)
}

/// Returns the places and the words of the ticks between two ratios: `10× worse`, `2×`, `same`, `2×`, `10× better`.
fn ticks(least: f64, most: f64) -> (Vec<f64>, Vec<String>) {
    let room = MIN_DISTANCE * (most / least).ln();
    // From the outermost one inwards.
    let side = |end: f64, word: &str| {
        let mut kept: Vec<f64> = Vec::new();
        for ratio in TICKS.into_iter().rev().filter(|ratio| *ratio <= end && ratio.ln() >= room) {
            if kept.len() < MAX_TICKS && kept.last().is_none_or(|last| (last / ratio).ln() >= room) {
                kept.push(ratio);
            }
        }
        let words = [format!("<br>{word}"), String::new()];
        kept.into_iter().zip(words).map(|(ratio, word)| (ratio, format!("{ratio}×{word}"))).collect::<Vec<_>>()
    };
    let worse = side(1.0 / least, "worse").into_iter().map(|(ratio, name)| (1.0 / ratio, name));
    worse.chain([(1.0, "same".to_owned())]).chain(side(most, "better").into_iter().rev()).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            testing::{faster, repeated, run, sized},
            view::Comparison,
        },
        runs::model::Run,
        web::series_style::Marks,
    };

    fn chart_of(runs: Vec<Run>) -> Option<Chart> {
        Comparison::new(runs, &Marks::default(), None).differences
    }

    fn two(factor: f64) -> Vec<Run> {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), factor)));
        runs
    }

    #[test]
    fn each_metric_has_whiskers_and_repetitions() {
        let chart = chart_of(two(1.25)).expect("a chart");
        let data = &chart.figure.0["data"];
        assert_eq!(data[0]["x"], json!([1.25, 1.25, 1.25, 1.0, 1.0]), "better is right for every metric");
        assert_eq!(data[1]["x"].as_array().map(Vec::len), Some(5 * 6));
        let symbols = data[0]["marker"]["symbol"].as_array().expect("symbols");
        let hollow: Vec<bool> =
            symbols.iter().map(|name| name.as_str().is_some_and(|name| name.ends_with("-open"))).collect();
        assert_eq!(hollow, [false, false, false, true, true], "a difference that was not found is hollow");
        let above = data[0]["error_x"]["array"][0].as_f64().expect("a whisker");
        assert!((0.003..0.01).contains(&above), "{above}");
    }

    #[test]
    fn half_and_twice_as_good_are_equally_far_from_the_same() {
        let (places, words) = ticks(0.013, 350.0);
        assert_eq!(words, ["10×<br>worse", "same", "10×", "100×<br>better"]);
        assert!((places[0] * places[2] - 1.0).abs() < 1e-12);
        assert_eq!(ticks(0.97, 1.04).1, ["1.02×<br>worse", "same", "1.02×<br>better"]);
        assert_eq!(ticks(0.77, 4.6).1, ["same", "2×<br>better"], "words need room");
        assert_eq!(ticks(1.0, 1.0).1, ["same"]);
    }

    #[test]
    fn several_settings_are_lines_of_one_chart() {
        let mut runs = repeated(|n| sized("gosherve", n, 1.0));
        runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
        runs.extend(repeated(|n| faster(sized("servy", n, 4.0), 1.1)));
        runs.extend(repeated(|n| faster(sized("servy", n, 1.0), 1.2)));
        let chart = chart_of(runs).expect("a chart");
        assert_eq!(chart.title, "Throughput differences from gosherve");
        assert_eq!(chart.figure.0["data"][0]["x"], json!([1.2, 1.1]));
    }

    #[test]
    fn without_an_interval_there_is_no_chart() {
        assert!(chart_of(vec![run("gosherve", 1), run("servy", 1)]).is_none());
        assert!(chart_of(repeated(|n| run("gosherve", n))).is_none());
    }
}
