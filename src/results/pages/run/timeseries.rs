//! The time series of a run: charts, and a table with the same data. Template: `runs/_timeseries.html`, variable
//! `time_series`. Pure.

use brewbench_wire::series::Series;

use crate::results::pages::run::charts;
use crate::{
    results::series::{
        model::{SecondBody, SeriesBody, SideCores, UsageBody, limit_points},
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

/// The time series of one run.
#[derive(Debug)]
pub struct TimeSeries {
    /// The charts.
    pub charts: Vec<Chart>,
    /// The same data as a table.
    pub lines: Vec<TimeSeriesRow>,
}

/// A row of the table: one second, or several of a long run.
#[derive(Debug)]
pub struct TimeSeriesRow {
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// Its end, in seconds since the first request of the run.
    pub at: Figure,
    /// Values in the order of [`TimeSeries::HEADS`].
    pub figures: Vec<Figure>,
}

impl TimeSeries {
    /// Names and units of the columns.
    pub const HEADS: [(&'static str, &'static str); 12] = [
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
        ("CPU of k6", "cores"),
    ];

    /// Creates it from a series; none if the series has no points.
    pub fn new(run: &Run, mark: Mark, series: Series, cores: SideCores) -> Option<Self> {
        let body = SeriesBody::new(&run.id, &limit_points(series, MAX_POINTS), cores);
        let charts = charts::over_time(run, mark, &body);
        let windows = [(true, &body.warm_up), (false, &body.measured)];
        let rows = |(warm_up, window)| {
            Option::iter(window)
                .flat_map(table::rows)
                .map(move |(second, usage)| TimeSeriesRow::new(warm_up, second, usage))
        };
        (!charts.is_empty()).then(|| Self { charts, lines: windows.into_iter().flat_map(rows).collect() })
    }
}

impl TimeSeriesRow {
    fn new(warm_up: bool, second: &SecondBody, usage: Option<&UsageBody>) -> Self {
        let value = |figure: fn(&UsageBody) -> Option<f64>| format::number(usage.and_then(figure));
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
            format::bytes(usage.and_then(|usage| usage.target.memory_bytes).map(|bytes| bytes as f64)),
            value(|usage| usage.generator.cores),
        ];
        Self { warm_up, at: format::number(Some(second.at_s)), figures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::series::model::tests::rising, runs::testing::finished};

    fn time_series() -> TimeSeries {
        TimeSeries::new(&finished("servy", 1), Mark(0), rising(), SideCores::default()).expect("it has points")
    }

    #[test]
    fn a_time_series_has_charts_and_a_row_per_second() {
        let time_series = time_series();
        let titles: Vec<&str> = time_series.charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Throughput over time",
                "Latency over time",
                "Latency heatmap",
                "Latency histogram",
                "CPU",
                "Memory",
                "Virtual users",
                "CPU of the machine",
            ]
        );
        assert_eq!(time_series.lines.iter().filter(|line| line.warm_up).count(), 2);
        assert!(
            time_series.lines.len() == 12
                && time_series.lines.iter().all(|line| line.figures.len() == TimeSeries::HEADS.len())
        );
        assert_eq!(time_series.lines[11].figures[0].text(), "1,000");
        assert_eq!(time_series.lines[11].figures[11].text(), "–", "the CPU usage of k6 is unknown");
    }

    #[test]
    fn the_warm_up_is_marked_on_every_chart_and_not_connected_to_the_measurement() {
        for chart in time_series().charts.iter().filter(|chart| chart.shares.is_some()) {
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
        for chart in time_series().charts.iter().filter(|chart| chart.shares.is_some()) {
            for trace in chart.figure.0["data"].as_array().expect("traces") {
                let meta = &trace["meta"];
                assert!(meta["from"] == "seconds" || meta["from"] == "usage", "{}: {meta}", chart.title);
            }
        }
    }

    #[test]
    fn curves_of_one_chart_differ_without_colours() {
        for chart in time_series().charts {
            let mut styles: Vec<_> = chart.legend.iter().map(|key| (key.dash, &key.role)).collect();
            let dashes: Vec<_> = chart.legend.iter().map(|key| key.dash).collect();
            styles.dedup();
            assert_eq!(styles.len(), chart.legend.len(), "{}: {dashes:?}", chart.title);
        }
    }

    #[test]
    fn a_run_without_points_has_no_time_series() {
        assert!(TimeSeries::new(&finished("servy", 1), Mark(0), Series::default(), SideCores::default()).is_none());
    }
}
