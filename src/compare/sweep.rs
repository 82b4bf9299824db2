//! Load sweeps: throughput by load, latency by throughput, and the knee, from which on more load only adds latency. Pure.
//!
//! [`knee`](super::knee) places it. The runs of a knee search have no knee here: the search decides, by an objective.

use brewbench_wire::load::Load;
use serde_json::{Value, json};

use super::{
    cell::{Cell, Row},
    knee::{SweepKnee, TargetKnee},
    metric::Metric,
    notes::listed,
    selection::Subject,
};
use crate::{
    compare::{
        comparison_context::ComparisonContext,
        setting::{Setting, only_loads_differ},
    },
    runs::model::{Run, RunSpec},
    web::{
        axis::logarithmic,
        chart::{Chart, Key, ScriptJson, layout, text},
        format,
    },
};

/// Minimum number of loads of a sweep.
const MIN_LOADS: usize = 3;

/// A sweep of several targets.
pub struct Sweep<'a> {
    rows: Vec<&'a Row>,
    curves: Vec<Curve<'a>>,
    /// Unit of the load.
    unit: &'static str,
}

/// The curve of one target.
struct Curve<'a> {
    /// Index of the subject.
    place: usize,
    subject: &'a Subject,
    /// By load.
    points: Vec<(u32, &'a Cell)>,
    /// None for the runs of a knee search.
    knee: Option<SweepKnee>,
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
    pub fn new(subjects: &'a [Subject], rows: &'a [Row], known: &ComparisonContext) -> Option<Self> {
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
            let failed = higher.next().map(|row| row.setting.peak);
            let is_sweep = points.len() >= MIN_LOADS;
            let knee = (is_sweep && !known.is_knee_search).then(|| SweepKnee::place(&points, failed, known));
            is_sweep.then_some(Curve { place, subject, points, knee })
        };
        let curves: Vec<Curve> = subjects.iter().enumerate().filter_map(curve).collect();
        (!curves.is_empty()).then_some(Self { rows, curves, unit })
    }

    /// Returns the charts of throughput by load and latency by throughput.
    pub fn charts(&self) -> Vec<Chart> {
        vec![self.throughput(), self.latency()]
    }

    /// Returns the knee of each target; none for the runs of a knee search.
    pub fn knees(&self) -> Vec<TargetKnee> {
        let knee = |curve: &Curve| {
            Some(TargetKnee { subject: curve.place, unit: self.unit.to_owned(), knee: curve.knee.clone()? })
        };
        self.curves.iter().filter_map(knee).collect()
    }

    /// Describes the knee of each target in one sentence, and which of them differ; none for the runs of a knee search.
    pub fn sentences(&self) -> Vec<String> {
        let known: Vec<(&str, &SweepKnee)> =
            self.curves.iter().filter_map(|curve| Some((curve.subject.label.as_str(), curve.knee.as_ref()?))).collect();
        let mut sentences: Vec<String> =
            known.iter().map(|(name, knee)| format!("{name}: {}.", knee.describe(self.unit))).collect();
        let pairs = known.iter().flat_map(|one| known.iter().map(move |other| (one, other)));
        let before = pairs.filter(|((_, one), (_, other))| one.is_before(other));
        let differ = listed(before.map(|((one, _), (other, _))| format!("{one} before {other}")));
        if !differ.is_empty() {
            sentences.push(format!("The knees differ: {differ}."));
        } else if known.iter().filter(|(_, knee)| knee.range().is_some()).count() > 1 {
            sentences.push("No difference found between the knees.".to_owned());
        }
        sentences
    }

    fn throughput(&self) -> Chart {
        let (mut data, mut legend) = (Vec::new(), Vec::new());
        for curve in &self.curves {
            legend.push(curve.key(data.len()));
            let x: Vec<f64> = curve.points.iter().map(|(load, _)| f64::from(*load)).collect();
            data.push(curve.trace(&x, Metric::Rps));
            data.extend(curve.mark());
        }
        let is_wide = self
            .rows
            .last()
            .zip(self.rows.first())
            .is_some_and(|(last, first)| last.setting.peak > first.setting.peak.saturating_mul(8));
        let has_knees = self.curves.iter().any(|curve| curve.knee.is_some());
        let kind = if is_wide { json!("log") } else { json!("linear") };
        let x = json!({"type": kind, "title": {"text": self.unit, "standoff": 6}, "dtick": if is_wide { json!("D2") } else { json!(null) }});
        let head = (
            "sweep-throughput",
            "Throughput by load",
            format!(
                "requests/s, median · by {}{}",
                self.unit,
                if has_knees { " · rings: where the knee can be" } else { "" }
            ),
            Metric::Rps,
        );
        let label = if has_knees { self.sentences().join(" ") } else { "Throughput by load".to_owned() };
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

    /// Draws rings around the loads that can be the knee.
    fn mark(&self) -> Option<Value> {
        let Some(SweepKnee::Between { from, to }) = self.knee else { return None };
        let rates = self.values(Metric::Rps);
        let own = self.points.iter().zip(rates).filter(|((load, _), _)| (from..=to).contains(load));
        let (x, y): (Vec<u32>, Vec<f64>) = own.map(|((load, _), rate)| (*load, rate)).unzip();
        Some(json!({
            "type": "scatter", "mode": "markers", "x": x, "y": y, "legendgroup": self.subject.key,
            "marker": {"size": 18, "symbol": "circle-open", "color": self.subject.mark.role(), "line": {"width": 2}},
            "hovertemplate": if from == to { "the knee<extra></extra>" } else { "the knee can be here<extra></extra>" },
        }))
    }
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

    fn at(users: u32, rps: f64, repetition: u32) -> Run {
        let id = format!("servy-{users}-{repetition}").into();
        let run = faster(run("servy", repetition), rps / 10_000.0);
        Run { id, spec: run.spec.clone().under(vus(users, 10.0)), ..run }
    }

    /// Six repetitions of each load, within a share of the level.
    fn sweep_of(levels: &[(u32, f64)], noise: f64) -> Vec<Run> {
        let steps = (1..=6).zip([-0.9, 0.2, 1.0, -0.3, 0.5, -0.6]);
        let level = |(users, rps): &(u32, f64)| {
            let (users, rps) = (*users, *rps);
            // The loads of a block scatter differently.
            let turn = f64::from(users.ilog2() % 2) * 2.0 - 1.0;
            steps.clone().map(move |(repetition, step)| at(users, rps * (1.0 + turn * step * noise), repetition))
        };
        levels.iter().flat_map(level).collect()
    }

    const RISING: [(u32, f64); 5] = [(1, 1_000.0), (2, 1_900.0), (4, 3_000.0), (8, 3_050.0), (16, 3_100.0)];

    fn knees(runs: Vec<Run>) -> Vec<SweepKnee> {
        let comparison = Comparison::new(runs, &Marks::default(), None);
        comparison.knees.into_iter().map(|knee| knee.knee).collect()
    }

    fn sentences(runs: Vec<Run>) -> Option<Vec<String>> {
        let comparison = Comparison::new(runs, &Marks::default(), None);
        Sweep::new(&comparison.subjects, &comparison.rows, &ComparisonContext::default()).map(|sweep| sweep.sentences())
    }

    #[test]
    fn the_knee_is_where_throughput_stops_rising() {
        let runs = sweep_of(&RISING, 0.002);
        assert_eq!(sentences(runs.clone()), Some(vec!["servy: knee at 4 virtual users.".to_owned()]));
        let comparison = Comparison::new(runs, &Marks::default(), None);
        let ids: Vec<&str> = comparison.charts.iter().map(|chart| chart.id).collect();
        assert!(ids.contains(&"sweep-throughput") && ids.contains(&"sweep-latency"), "{ids:?}");
    }

    #[test]
    fn noise_makes_the_knee_a_range() {
        assert_eq!(knees(sweep_of(&RISING, 0.06)), [SweepKnee::Between { from: 4, to: 16 }]);
        assert_eq!(
            sentences(sweep_of(&RISING, 0.06)),
            Some(vec!["servy: knee between 4 and 16 virtual users.".to_owned()])
        );
    }

    #[test]
    fn few_repetitions_or_loads_of_other_days_have_no_knee() {
        let few: Vec<Run> = sweep_of(&RISING, 0.002).into_iter().filter(|run| run.repetition <= 3).collect();
        assert_eq!(knees(few.clone()), [SweepKnee::TooFew]);
        let apart = |mut run: Run| {
            run.experiment = Some(format!("night-{}", run.spec.vus.unwrap_or(0)).into());
            run
        };
        assert_eq!(knees(few.into_iter().map(apart).collect()), [SweepKnee::NotInTurn]);
    }

    #[test]
    fn knees_differ_only_if_their_ranges_do_not_overlap() {
        let other = |run: Run| {
            let mut run = run;
            run.id = format!("other-{}", run.id).into();
            run.spec.target = "other".to_owned();
            run
        };
        let with = |levels: &[(u32, f64)], noise: f64| {
            let others = sweep_of(levels, noise).into_iter().map(other);
            let all = sweep_of(&RISING, noise).into_iter().chain(others).collect();
            sentences(all).expect("a sweep").pop().expect("a sentence")
        };
        let later = [(1, 500.0), (2, 1_000.0), (4, 1_900.0), (8, 3_050.0), (16, 3_100.0)];
        assert_eq!(with(&RISING, 0.002), "No difference found between the knees.");
        assert_eq!(with(&later, 0.002), "The knees differ: servy before other.");
        assert_eq!(with(&later, 0.06), "No difference found between the knees.");
    }

    #[test]
    fn loads_with_different_http_versions_are_no_sweep() {
        let mut runs = sweep_of(&RISING, 0.002);
        runs[2].spec.http_version = HttpVersion::Http1;
        assert_eq!(sentences(runs.clone()), None);
        for run in &mut runs {
            run.spec.http_version = HttpVersion::Http1;
        }
        assert!(sentences(runs).is_some());
    }

    #[test]
    fn rising_throughput_or_a_k6_bottleneck_means_no_knee() {
        assert!(sentences(sweep_of(&RISING[..3], 0.002)).expect("a sweep")[0].contains("still rises"));
        let mut runs = sweep_of(&RISING[..4], 0.002);
        let last = runs.len() - 1;
        runs[last] = judged(runs[last].clone(), Verdict::Suspect, "the load generator was the bottleneck");
        runs[last].reasons[0].code = "generator_busy".to_owned();
        assert!(sentences(runs).expect("a sweep")[0].contains("the load generator was the bottleneck"));
    }

    /// Judges the runs at the highest load.
    fn with_last(verdict: Verdict, why: &str) -> Vec<Run> {
        let is_last = |run: &Run| run.spec.vus == Some(8);
        let judge = |run: Run| if is_last(&run) { judged(run, verdict, why) } else { run };
        sweep_of(&RISING[..4], 0.002).into_iter().map(judge).collect()
    }

    #[test]
    fn suspect_runs_have_no_knee() {
        let mut runs = with_last(Verdict::Suspect, "other programs used 1.2 cores");
        for reason in runs.iter_mut().flat_map(|run| &mut run.reasons) {
            reason.code = "host_disturbed".to_owned();
        }
        assert_eq!(
            sentences(runs).expect("a sweep")[0],
            "servy: undecided, all runs at 8 virtual users are suspect: other programs used 1.2 cores."
        );
    }

    #[test]
    fn the_runs_of_a_knee_search_have_no_second_knee() {
        let known = ComparisonContext { is_knee_search: true, ..ComparisonContext::default() };
        let comparison = Comparison::by(sweep_of(&RISING[..4], 0.002), &Marks::default(), &Options::default(), &known);
        assert!(comparison.notes.iter().all(|note| !note.text.contains("knee")), "{:?}", comparison.notes);
        let chart = comparison.charts.iter().find(|chart| chart.id == "sweep-throughput").expect("a chart");
        assert!(!format!("{chart:?}").contains("knee") && comparison.knees.is_empty(), "{chart:?}");
    }

    #[test]
    fn a_load_without_counting_runs_is_named() {
        let runs = with_last(Verdict::Invalid, "all failed");
        assert_eq!(sentences(runs).expect("a sweep")[0], "servy: no knee, no run counts at 8 virtual users.");
    }

    #[test]
    fn staged_virtual_users_are_a_sweep() {
        let stages = |run: Run| {
            let most = run.spec.vus.unwrap_or(1);
            Run { spec: run.spec.under(vus_stages(&format!("1s:{most},9s:{most}"))), ..run }
        };
        let levels = [(10, 1_000.0), (20, 1_900.0), (40, 1_900.0)];
        let runs = sweep_of(&levels, 0.002).into_iter().map(stages).collect();
        assert_eq!(sentences(runs), Some(vec!["servy: knee at 20 virtual users.".to_owned()]));
    }

    #[test]
    fn two_loads_or_other_differences_are_not_a_sweep() {
        let mut runs = sweep_of(&RISING[..2], 0.002);
        assert_eq!(sentences(runs.clone()), None);
        let other = at(4, 3_000.0, 1);
        runs.push(Run { spec: RunSpec { scenario: Some("bytes".to_owned()), ..other.spec.clone() }, ..other });
        assert_eq!(sentences(runs), None);
    }
}
