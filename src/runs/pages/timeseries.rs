//! What happened during a run, second by second: charts and the table with the same figures. Template:
//! `runs/_story.html`, variable `story`. Pure.

use brewbench_agent::wire::series::Series;

use super::charts;
use crate::{
    results::series::{
        model::{SecondBody, SeriesBody, SideCores, UsageBody, thinned},
        table,
    },
    runs::model::Run,
    web::{
        chart::Chart,
        format::{self, Figure},
        series_style::Mark,
    },
};

/// So many points fit a screen; a longer run is told in larger steps, and whole by the API.
const MOST_POINTS: usize = 240;

/// The story of one run.
#[derive(Debug)]
pub struct Story {
    /// What to look at.
    pub charts: Vec<Chart>,
    /// The same in figures.
    pub lines: Vec<Line>,
}

/// A line of the table: a second, or a larger step of a long run.
#[derive(Debug)]
pub struct Line {
    /// Whether it does not count.
    pub warm_up: bool,
    /// When it ended, seconds since the run's first request.
    pub at: Figure,
    /// In the order of [`Story::HEADS`].
    pub figures: Vec<Figure>,
}

impl Story {
    /// What the columns are, and in which unit.
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

    /// Nothing where not one point is known.
    pub fn new(run: &Run, mark: Mark, series: Series, cores: SideCores) -> Option<Self> {
        let body = SeriesBody::new(&run.id, &thinned(series, MOST_POINTS), cores);
        let charts = charts::over_time(run, mark, &body);
        let stretches = [(true, &body.warm_up), (false, &body.measured)];
        let rows = |(warm_up, stretch)| {
            Option::iter(stretch).flat_map(table::rows).map(move |(second, usage)| Line::new(warm_up, second, usage))
        };
        (!charts.is_empty()).then(|| Self { charts, lines: stretches.into_iter().flat_map(rows).collect() })
    }
}

impl Line {
    fn new(warm_up: bool, second: &SecondBody, usage: Option<&UsageBody>) -> Self {
        let of = |figure: fn(&UsageBody) -> Option<f64>| format::number(usage.and_then(figure));
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
            of(|usage| usage.target.cores),
            format::percent(usage.and_then(|usage| usage.target.throttled)),
            format::bytes(usage.and_then(|usage| usage.target.memory_bytes).map(|bytes| bytes as f64)),
            of(|usage| usage.generator.cores),
        ];
        Self { warm_up, at: format::number(Some(second.at_s)), figures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::series::model::tests::rising, runs::testing::finished};

    fn story() -> Story {
        Story::new(&finished("servy", 1), Mark(0), rising(), SideCores::default()).expect("it has points")
    }

    #[test]
    fn a_story_has_its_charts_and_a_line_for_every_second() {
        let story = story();
        let titles: Vec<&str> = story.charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Throughput over time",
                "Latency over time",
                "Latencies over time",
                "How many requests took how long",
                "CPU",
                "Memory",
                "Virtual users",
                "The whole machine",
            ]
        );
        assert_eq!(story.lines.iter().filter(|line| line.warm_up).count(), 2);
        assert!(story.lines.len() == 12 && story.lines.iter().all(|line| line.figures.len() == Story::HEADS.len()));
        assert_eq!(story.lines[11].figures[0].text(), "1,000");
        assert_eq!(story.lines[11].figures[11].text(), "–", "nobody said what k6 used");
    }

    #[test]
    fn the_warm_up_is_marked_on_every_chart_over_time_and_no_line_leads_out_of_it() {
        for chart in story().charts.iter().filter(|chart| chart.shares.is_some()) {
            assert_eq!(chart.figure.0["layout"]["shapes"][0]["x1"], 2.5, "{}", chart.title);
            let first = &chart.figure.0["data"][0];
            if first["type"] == "scatter" {
                let gap = first["x"].as_array().expect("a list").iter().position(|x| *x == 2.5).expect("a gap");
                assert!(first["y"][gap].is_null(), "{}", chart.title);
            }
        }
    }

    #[test]
    fn each_curve_says_where_its_next_points_are() {
        for chart in story().charts.iter().filter(|chart| chart.shares.is_some()) {
            for trace in chart.figure.0["data"].as_array().expect("traces") {
                let meta = &trace["meta"];
                assert!(meta["from"] == "seconds" || meta["from"] == "usage", "{}: {meta}", chart.title);
            }
        }
    }

    #[test]
    fn every_curve_of_a_chart_with_several_can_be_told_apart_without_colours() {
        for chart in story().charts {
            let mut looks: Vec<_> = chart.legend.iter().map(|key| (key.dash, &key.role)).collect();
            let dashes: Vec<_> = chart.legend.iter().map(|key| key.dash).collect();
            looks.dedup();
            assert_eq!(looks.len(), chart.legend.len(), "{}: {dashes:?}", chart.title);
        }
    }

    #[test]
    fn a_run_that_nothing_is_known_of_has_no_story() {
        assert!(Story::new(&finished("servy", 1), Mark(0), Series::default(), SideCores::default()).is_none());
    }
}
