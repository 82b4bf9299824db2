//! Load sweeps: throughput by load, latency by throughput, and the knee. Pure.
//!
//! The knee of a target is the lowest load at which its throughput is within 5 % of its maximum: more load only adds
//! latency. There is no knee if the load generator was the bottleneck at that load or a higher one, or if throughput
//! still rises at the
//! highest load. It is undecided if all runs at that load or a higher one are suspect.
//!
//! The runs of a knee search have no knee here: the search decides, by an objective.

use brewbench_wire::load::Load;
use serde_json::{Value, json};

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::Subject,
};
use crate::{
    compare::setting::{Setting, only_loads_differ},
    runs::model::{Run, RunSpec},
    web::{
        axis::logarithmic,
        chart::{Chart, Key, ScriptJson, layout, text},
        format,
    },
};

/// Minimum number of loads of a sweep.
const MIN_LOADS: usize = 3;

/// Share below the maximum throughput that still counts as the maximum.
const KNEE: f64 = 0.05;

/// Reasons of a verdict for which the load generator was the bottleneck.
const OF_GENERATOR: [&str; 4] = ["generator_busy", "generator_throttled", "generator_blocked", "iterations_dropped"];

/// A sweep of several targets.
pub struct Sweep<'a> {
    rows: Vec<&'a Row>,
    curves: Vec<Curve<'a>>,
    /// Unit of the load.
    unit: &'static str,
    /// Whether its knees are shown.
    has_knees: bool,
}

/// The curve of one target.
struct Curve<'a> {
    subject: &'a Subject,
    /// By load.
    points: Vec<(u32, &'a Cell)>,
    /// A higher load at which it has no run that counts.
    failed_load: Option<u32>,
}

/// Where more load no longer increases the throughput.
#[derive(Clone, Debug, PartialEq)]
pub enum Knee {
    /// At this load and throughput.
    At {
        /// Virtual users or iterations per second.
        load: u32,
        /// Requests per second.
        rps: f64,
    },
    /// Throughput still rises at the highest load.
    Beyond,
    /// the load generator was the bottleneck before the target was.
    Generator,
    /// All runs at a load that matters are suspect.
    Suspect {
        /// The load.
        load: u32,
        /// The first reason.
        why: String,
    },
}

/// Returns the unit of the loads of all runs; none if they have several units, HTTP versions or scenarios of the
/// script.
fn unit<'a>(rows: &'a [Row]) -> Option<&'static str> {
    let of = |run: &Run| match run.spec.load {
        Some(Load::Closed(_)) => Some("virtual users"),
        Some(Load::Open(_)) => Some("iterations/s"),
        Some(Load::Script) => None,
        // Imports only know the number of virtual users.
        None => run.spec.vus.map(|_| "virtual users"),
    };
    // With another HTTP version or function, a level is another load.
    let what = |run: &'a Run| {
        let RunSpec { http_version, requested_engine, script_scenario, duet, .. } = &run.spec;
        (of(run), http_version, requested_engine, script_scenario, duet)
    };
    let mut units = rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs).map(what);
    let first = units.next()?;
    if units.all(|unit| unit == first) { first.0 } else { None }
}

impl<'a> Sweep<'a> {
    /// Returns the sweep; none unless the rows differ only in the load and all loads have one unit. Runs of a knee
    /// search have no other knee than the one that was searched.
    pub fn new(subjects: &'a [Subject], rows: &'a [Row], is_knee_search: bool) -> Option<Self> {
        let settings: Vec<&Setting> = rows.iter().map(|row| &row.setting).collect();
        if rows.len() < MIN_LOADS || !only_loads_differ(&settings) || settings.iter().any(|setting| setting.peak == 0) {
            return None;
        }
        let unit = unit(rows)?;
        let mut rows: Vec<&Row> = rows.iter().collect();
        rows.sort_by_key(|row| row.setting.peak);
        let curve = |(place, subject)| {
            let of = |row: &&'a Row| {
                let cell = row.compared_cells().find(|cell| cell.subject == place)?;
                cell.stat(Metric::Rps).spread.as_ref()?;
                Some((row.setting.peak, cell))
            };
            let points: Vec<(u32, &Cell)> = rows.iter().filter_map(of).collect();
            let highest = points.last().map_or(0, |(load, _)| *load);
            let is_tried = |row: &&&Row| row.cells.iter().any(|cell| cell.subject == place && cell.has_ended());
            let mut higher = rows.iter().filter(|row| row.setting.peak > highest).filter(is_tried);
            Curve { subject, points, failed_load: higher.next().map(|row| row.setting.peak) }
        };
        let curves: Vec<Curve> =
            subjects.iter().enumerate().map(curve).filter(|curve| curve.points.len() >= MIN_LOADS).collect();
        (!curves.is_empty()).then_some(Self { rows, curves, unit, has_knees: !is_knee_search })
    }

    /// Returns the charts of throughput by load and latency by throughput.
    pub fn charts(&self) -> Vec<Chart> {
        vec![self.throughput(), self.latency()]
    }

    /// Describes the knee of each target in one sentence; none for the runs of a knee search.
    pub fn sentences(&self) -> Vec<String> {
        if !self.has_knees {
            return Vec::new();
        }
        let number = |value: f64| format::number(Some(value)).text().to_owned();
        let sentence = |curve: &Curve| {
            let name = &curve.subject.label;
            match curve.knee() {
                Knee::At { load, rps } => {
                    let load = format::count(Some(u64::from(load)));
                    format!("{name}: knee at {} {}, {} requests/s.", load.text(), self.unit, number(rps))
                }
                Knee::Beyond => match curve.failed_load {
                    Some(load) => {
                        let load = format::count(Some(u64::from(load)));
                        format!("{name}: no knee, no run counts at {} {}.", load.text(), self.unit)
                    }
                    None => format!("{name}: no knee, throughput still rises at the highest load."),
                },
                Knee::Generator => format!("{name}: no knee, the load generator was the bottleneck before the target."),
                Knee::Suspect { load, why } => {
                    let load = format::count(Some(u64::from(load)));
                    format!("{name}: undecided, all runs at {} {} are suspect: {why}.", load.text(), self.unit)
                }
            }
        };
        self.curves.iter().map(sentence).collect()
    }

    fn throughput(&self) -> Chart {
        let (mut data, mut legend) = (Vec::new(), Vec::new());
        for curve in &self.curves {
            legend.push(curve.key(data.len()));
            let x: Vec<f64> = curve.points.iter().map(|(load, _)| f64::from(*load)).collect();
            data.push(curve.trace(&x, Metric::Rps));
            if self.has_knees
                && let Knee::At { load, rps } = curve.knee()
            {
                data.push(curve.mark(load, rps));
            }
        }
        let is_wide = self
            .rows
            .last()
            .zip(self.rows.first())
            .is_some_and(|(last, first)| last.setting.peak > first.setting.peak.saturating_mul(8));
        let kind = if is_wide { json!("log") } else { json!("linear") };
        let x = json!({"type": kind, "title": {"text": self.unit, "standoff": 6}, "dtick": if is_wide { json!("D2") } else { json!(null) }});
        let head = (
            "sweep-throughput",
            "Throughput by load",
            format!("requests/s, median · by {}{}", self.unit, if self.has_knees { " · rings: the knee" } else { "" }),
            Metric::Rps,
        );
        let label = if self.has_knees { self.sentences().join(" ") } else { "Throughput by load".to_owned() };
        chart(head, label, &data, &under(x, json!({"nticks": 6})), legend)
    }

    fn latency(&self) -> Chart {
        let (mut data, mut legend) = (Vec::new(), Vec::new());
        for curve in &self.curves {
            legend.push(curve.key(data.len()));
            data.push(curve.trace(&curve.values(Metric::Rps), Metric::P99Ms));
        }
        let x = json!({"title": {"text": "requests/s", "standoff": 6}, "nticks": 6});
        let y = logarithmic();
        let head = ("sweep-latency", "Latency by throughput", "p99 in ms, logarithmic axis".to_owned(), Metric::P99Ms);
        let label = "Latency p99 by the throughput at each load".to_owned();
        chart(head, label, &data, &under(x, y), legend)
    }
}

impl Curve<'_> {
    fn key(&self, trace: usize) -> Key {
        let Subject { label, mark, .. } = self.subject;
        Key { trace, name: label.clone(), role: mark.role(), dash: mark.dash() }
    }

    fn values(&self, metric: Metric) -> Vec<f64> {
        self.points.iter().map(|(_, cell)| cell.stat(metric).value.unwrap_or(f64::NAN)).collect()
    }

    fn trace(&self, x: &[f64], metric: Metric) -> Value {
        let (name, mark) = (text(&self.subject.label), self.subject.mark);
        let y: Vec<Option<f64>> =
            self.values(metric).into_iter().map(|value| Some(value).filter(|value| value.is_finite())).collect();
        let hints: Vec<String> = self
            .points
            .iter()
            .map(|(load, cell)| {
                let figure = |metric: Metric| cell.stat(metric).figure().text().to_owned();
                let (load, suspect) =
                    (format::count(Some(u64::from(*load))), if cell.counts.suspect > 0 { ", suspect" } else { "" });
                format!(
                    "{name} at {}{suspect}<br>{} requests/s, p99 {} ms",
                    load.text(),
                    figure(Metric::Rps),
                    figure(Metric::P99Ms)
                )
            })
            .collect();
        let symbols: Vec<String> = self
            .points
            .iter()
            .map(
                |(_, cell)| {
                    if cell.counts.suspect > 0 { format!("{}-open", mark.symbol()) } else { mark.symbol().to_owned() }
                },
            )
            .collect();
        json!({
            "type": "scatter", "mode": "lines+markers", "name": name, "x": x, "y": y, "text": hints,
            "line": {"color": mark.role(), "width": 2, "dash": mark.dash()}, "legendgroup": self.subject.key,
            "marker": {"color": mark.role(), "size": 8, "symbol": symbols, "line": {"width": 1.5, "color": mark.role()}},
            "hovertemplate": "%{text}<extra></extra>",
        })
    }

    fn mark(&self, load: u32, rps: f64) -> Value {
        json!({
            "type": "scatter", "mode": "markers", "x": [load], "y": [rps], "legendgroup": self.subject.key,
            "marker": {"size": 18, "symbol": "circle-open", "color": self.subject.mark.role(), "line": {"width": 2}},
            "hovertemplate": "the knee<extra></extra>",
        })
    }

    fn knee(&self) -> Knee {
        let rates = self.values(Metric::Rps);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let Some(place) = rates.iter().position(|rate| *rate >= most * (1.0 - KNEE)) else { return Knee::Beyond };
        if self.points[place..].iter().any(|(_, cell)| is_generator_bound(cell)) {
            Knee::Generator
        } else if let Some((load, why)) =
            self.points[place..].iter().find_map(|(load, cell)| Some((*load, suspect(cell)?)))
        {
            Knee::Suspect { load, why }
        } else if place + 1 == rates.len() {
            Knee::Beyond
        } else {
            Knee::At { load: self.points[place].0, rps: rates[place] }
        }
    }
}

/// Whether the load generator was the bottleneck in any repetition.
fn is_generator_bound(cell: &Cell) -> bool {
    cell.runs.iter().flat_map(|run| &run.reasons).any(|reason| OF_GENERATOR.contains(&reason.code.as_str()))
}

/// Returns why all runs of a cell that count are suspect; none if any is valid.
fn suspect(cell: &Cell) -> Option<String> {
    let first = cell.counting().next().filter(|_| cell.counts.valid == 0)?;
    first.because().map(|reason| reason.text.clone())
}

fn under(x: Value, y: Value) -> Value {
    let mut layout = layout(x, y);
    layout["margin"]["b"] = json!(44);
    layout
}

fn chart(
    (id, title, unit, metric): (&'static str, &str, String, Metric),
    label: String,
    data: &[Value],
    layout: &Value,
    legend: Vec<Key>,
) -> Chart {
    let figure = ScriptJson(json!({"data": data, "layout": layout}));
    let (title, metric) = (title.to_owned(), Some(metric));
    Chart { id, title, unit, label, height: 320, min_width: 320, figure, legend, shares: None, metric }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::run_spec::HttpVersion;

    use super::*;
    use crate::{
        compare::{
            chosen::Options,
            comparison_context::ComparisonContext,
            testing::{faster, judged, run},
            view::Comparison,
        },
        runs::{
            load::tests::{vus, vus_stages},
            model::RunSpec,
            verdict::Verdict,
        },
        web::series_style::Marks,
    };

    fn at(users: u32, rps: f64) -> Run {
        let id = format!("servy-{users}").into();
        let run = faster(run("servy", 1), rps / 10_000.0);
        Run { id, spec: run.spec.clone().under(vus(users, 10.0)), ..run }
    }

    fn sentences(runs: Vec<Run>) -> Option<Vec<String>> {
        let comparison = Comparison::new(runs, &Marks::default(), None);
        Sweep::new(&comparison.subjects, &comparison.rows, false).map(|sweep| sweep.sentences())
    }

    #[test]
    fn the_knee_is_where_throughput_stops_rising() {
        let runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0), (8, 3_050.0), (16, 3_100.0)].map(|(n, rps)| at(n, rps));
        assert_eq!(
            sentences(runs.to_vec()),
            Some(vec!["servy: knee at 4 virtual users, 3,000 requests/s.".to_owned()])
        );
        let comparison = Comparison::new(runs.to_vec(), &Marks::default(), None);
        let ids: Vec<&str> = comparison.charts.iter().map(|chart| chart.id).collect();
        assert!(ids.contains(&"sweep-throughput") && ids.contains(&"sweep-latency"), "{ids:?}");
    }

    #[test]
    fn loads_with_different_http_versions_are_no_sweep() {
        let mut runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0)].map(|(n, rps)| at(n, rps)).to_vec();
        runs[2].spec.http_version = HttpVersion::Http1;
        assert_eq!(sentences(runs.clone()), None);
        for run in &mut runs {
            run.spec.http_version = HttpVersion::Http1;
        }
        assert!(sentences(runs).is_some());
    }

    #[test]
    fn rising_throughput_or_a_k6_bottleneck_means_no_knee() {
        let mut runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0)].map(|(n, rps)| at(n, rps)).to_vec();
        assert!(sentences(runs.clone()).expect("a sweep")[0].contains("still rises"));
        runs.push(at(8, 3_010.0));
        runs[3] = judged(runs[3].clone(), Verdict::Suspect, "the load generator was the bottleneck");
        runs[3].reasons[0].code = "generator_busy".to_owned();
        assert!(sentences(runs).expect("a sweep")[0].contains("the load generator was the bottleneck"));
    }

    #[test]
    fn suspect_runs_have_no_knee() {
        let mut runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0), (8, 3_050.0)].map(|(n, rps)| at(n, rps)).to_vec();
        runs[3] = judged(runs[3].clone(), Verdict::Suspect, "other programs used 1.2 cores");
        runs[3].reasons[0].code = "host_disturbed".to_owned();
        assert_eq!(
            sentences(runs).expect("a sweep")[0],
            "servy: undecided, all runs at 8 virtual users are suspect: other programs used 1.2 cores."
        );
    }

    #[test]
    fn the_runs_of_a_knee_search_have_no_second_knee() {
        let runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0), (8, 3_050.0)].map(|(n, rps)| at(n, rps));
        let known = ComparisonContext { is_knee_search: true, ..ComparisonContext::default() };
        let comparison = Comparison::by(runs.to_vec(), &Marks::default(), &Options::default(), &known);
        assert!(comparison.notes.iter().all(|note| !note.text.contains("knee")), "{:?}", comparison.notes);
        let chart = comparison.charts.iter().find(|chart| chart.id == "sweep-throughput").expect("a chart");
        assert!(!format!("{chart:?}").contains("knee"), "{chart:?}");
    }

    #[test]
    fn a_load_without_counting_runs_is_named() {
        let mut runs = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0), (8, 3_000.0)].map(|(n, rps)| at(n, rps)).to_vec();
        runs[3] = judged(runs[3].clone(), Verdict::Invalid, "all failed");
        assert_eq!(sentences(runs).expect("a sweep")[0], "servy: no knee, no run counts at 8 virtual users.");
    }

    #[test]
    fn staged_virtual_users_are_a_sweep() {
        let stages = |most: u32, rps: f64| Run {
            spec: at(most, rps).spec.under(vus_stages(&format!("1s:{most},9s:{most}"))),
            ..at(most, rps)
        };
        let runs = [(10, 1_000.0), (20, 1_900.0), (40, 1_900.0)].map(|(n, rps)| stages(n, rps)).to_vec();
        assert_eq!(sentences(runs), Some(vec!["servy: knee at 20 virtual users, 1,900 requests/s.".to_owned()]));
    }

    #[test]
    fn two_loads_or_other_differences_are_not_a_sweep() {
        let mut runs = [(1, 1_000.0), (2, 1_900.0)].map(|(n, rps)| at(n, rps)).to_vec();
        assert_eq!(sentences(runs.clone()), None);
        runs.push(Run {
            spec: RunSpec { scenario: Some("bytes".to_owned()), ..at(4, 3_000.0).spec },
            ..at(4, 3_000.0)
        });
        assert_eq!(sentences(runs), None);
    }
}
