//! The charts of a run, and a table of its time series. Template: `runs/_charts.html`, variable `charts`. Pure.

use brewbench_wire::{reports::summary::Summary, series::Series};

use crate::results::pages::run::charts;
use crate::{
    results::series::{
        model::{SecondBody, SeriesBody, SideBody, SideCores, UsageBody, limit_points},
        table,
    },
    runs::model::Run,
    web::{
        chart::Chart,
        format::{self, Figure},
        series_style::Mark,
    },
};

/// Maximum number of points on the page; longer runs are downsampled. The API returns all points.
const MAX_POINTS: usize = 240;

/// The charts that are open, in their order; the rest is folded.
const OPEN: [&str; 4] = ["run-rate", "run-latency-time", "run-latency", "run-cpu"];

/// The charts of one run.
#[derive(Debug, Default)]
pub struct RunCharts {
    /// Those that are open.
    pub open: Vec<Chart>,
    /// Those in the fold.
    pub more: Vec<Chart>,
    /// The time series as a table.
    pub lines: Vec<TimeSeriesRow>,
}

/// A row of the table: one second, or several of a long run.
#[derive(Debug)]
pub struct TimeSeriesRow {
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// Its end, in seconds since the first request of the run.
    pub at: Figure,
    /// Values in the order of [`RunCharts::HEADS`].
    pub figures: Vec<Figure>,
}

impl RunCharts {
    /// Names and units of the columns.
    pub const HEADS: [(&'static str, &'static str); 13] = [
        ("Requests", "1/s"),
        ("Failed", "1/s"),
        ("p50", "ms"),
        ("p90", "ms"),
        ("p95", "ms"),
        ("p99", "ms"),
        ("max", "ms"),
        ("VUs", ""),
        ("CPU of the target", "cores"),
        ("Throttled", "of the time"),
        ("Memory of the target", ""),
        ("Working set", ""),
        ("CPU of the load generator", "cores"),
    ];

    /// Creates them from what is known of a run; `cell` are all repetitions.
    pub fn new(
        run: &Run,
        mark: Mark,
        cell: &[Run],
        summary: Option<&Summary>,
        series: Option<(Series, SideCores)>,
    ) -> Self {
        let mut all = charts::charts(run, mark, cell, summary, series.as_ref().map(|(series, _)| series));
        let body = series.map(|(series, cores)| SeriesBody::new(&run.id, &limit_points(series, MAX_POINTS), cores));
        let over_time = body.as_ref().map_or_else(Vec::new, |body| charts::over_time(run, mark, body));
        let has_series = !over_time.is_empty();
        all.extend(over_time);
        let place = |chart: &Chart| OPEN.iter().position(|id| *id == chart.id);
        let (mut open, more): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|chart| !has_series || place(chart).is_some());
        open.sort_by_key(|chart| place(chart).unwrap_or(OPEN.len()));
        let body = body.filter(|_| has_series);
        let windows = body.iter().flat_map(|body| [(true, &body.warm_up), (false, &body.measured)]);
        let rows = |(warm_up, window)| {
            Option::iter(window)
                .flat_map(table::rows)
                .map(move |(second, usage)| TimeSeriesRow::new(warm_up, second, usage))
        };
        Self { open, more, lines: windows.flat_map(rows).collect() }
    }

    /// The folded charts in words.
    pub fn titles(&self) -> String {
        let titles: Vec<String> =
            self.more.iter().map(|chart| chart.title.to_lowercase().replace("cpu", "CPU")).collect();
        let table = (!self.lines.is_empty()).then(|| "data table".to_owned());
        titles.into_iter().chain(table).collect::<Vec<_>>().join(", ")
    }
}

impl TimeSeriesRow {
    fn new(warm_up: bool, second: &SecondBody, usage: Option<&UsageBody>) -> Self {
        let value = |figure: fn(&UsageBody) -> Option<f64>| format::number(usage.and_then(figure));
        let bytes = |figure: fn(&SideBody) -> Option<u64>| {
            format::bytes(usage.and_then(|usage| figure(&usage.target)).map(|bytes| bytes as f64))
        };
        let latency = &second.succeeded;
        let figures = vec![
            format::number(second.rps),
            format::number(second.failed_rps),
            format::number(latency.p50_ms),
            format::number(latency.p90_ms),
            format::number(latency.p95_ms),
            format::number(latency.p99_ms),
            format::number(latency.max_ms),
            format::count(second.vus),
            value(|usage| usage.target.cores),
            format::percent(usage.and_then(|usage| usage.target.throttled)),
            bytes(|target| target.held_memory_bytes),
            bytes(|target| target.memory_bytes),
            value(|usage| usage.generator.cores),
        ];
        Self { warm_up, at: format::number(Some(second.at_s)), figures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::series::model::tests::rising, runs::testing::finished};

    fn of(series: Series) -> RunCharts {
        RunCharts::new(&finished("servy", 1), Mark(0), &[], None, Some((series, SideCores::default())))
    }

    fn all() -> impl Iterator<Item = Chart> {
        let charts = of(rising());
        charts.open.into_iter().chain(charts.more)
    }

    #[test]
    fn four_charts_are_open_and_each_second_has_a_row() {
        let charts = of(rising());
        let titles = |charts: &[Chart]| charts.iter().map(|chart| chart.title.clone()).collect::<Vec<_>>();
        assert_eq!(titles(&charts.open), ["Throughput over time", "Latency over time", "Latency", "CPU"]);
        assert_eq!(
            titles(&charts.more),
            ["Latency heatmap", "Latency histogram", "Virtual users", "Memory", "CPU of the machine"]
        );
        let lines = &charts.lines;
        assert_eq!(lines.iter().filter(|line| line.warm_up).count(), 2);
        assert!(lines.len() == 12 && lines.iter().all(|line| line.figures.len() == RunCharts::HEADS.len()));
        assert_eq!(lines[11].figures[0].text(), "1,000");
        assert_eq!(lines[11].figures[12].text(), "–", "the CPU usage of k6 is unknown");
    }

    #[test]
    fn the_warm_up_is_marked_on_every_chart_and_not_connected_to_the_measurement() {
        for chart in all().filter(|chart| chart.shares.is_some()) {
            assert_eq!(chart.figure.0["layout"]["shapes"][0]["x1"], 2.5, "{}", chart.title);
            let first = &chart.figure.0["data"][0];
            if first["type"] == "scatter" {
                let gap = first["x"].as_array().expect("a list").iter().position(|x| *x == 2.5).expect("a gap");
                assert!(first["y"][gap].is_null(), "{}", chart.title);
            }
        }
    }

    #[test]
    fn each_curve_names_the_source_of_its_points() {
        for chart in all().filter(|chart| chart.shares.is_some()) {
            for trace in chart.figure.0["data"].as_array().expect("traces") {
                let meta = &trace["meta"];
                assert!(meta["from"] == "seconds" || meta["from"] == "usage", "{}: {meta}", chart.title);
            }
        }
    }

    #[test]
    fn curves_of_one_chart_differ_without_colours() {
        for chart in all() {
            let mut styles: Vec<_> = chart.legend.iter().map(|key| (key.dash, &key.role)).collect();
            let dashes: Vec<_> = chart.legend.iter().map(|key| key.dash).collect();
            styles.dedup();
            assert_eq!(styles.len(), chart.legend.len(), "{}: {dashes:?}", chart.title);
        }
    }

    #[test]
    fn a_run_of_a_load_generator_without_series_shows_the_usage_only() {
        let mut series = rising();
        for window in series.warm_up.iter_mut().chain(&mut series.measured) {
            window.seconds.clear();
        }
        let charts = of(series);
        let ids = |charts: &[Chart]| charts.iter().map(|chart| chart.id).collect::<Vec<_>>();
        assert_eq!(ids(&charts.open), ["run-latency", "run-cpu"]);
        assert_eq!(ids(&charts.more), ["run-memory", "run-machine"]);
    }

    #[test]
    fn a_run_without_points_shows_what_its_summary_has() {
        let charts = of(Series::default());
        assert_eq!(charts.open.iter().map(|chart| chart.id).collect::<Vec<_>>(), ["run-latency"]);
        assert!(charts.more.is_empty() && charts.lines.is_empty());
    }
}
