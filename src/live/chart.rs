//! A small chart of a run in progress as SVG, with a text alternative. It has the same size without values. Pure.

use std::fmt::{self, Write};

use askama::filters::HtmlSafe;

use crate::{
    live::series_buffer::LiveSecond,
    runs::model::Run,
    web::{format, series_style::Mark},
};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 56.0;
/// Space for the stroke.
const MARGIN: f64 = 2.0;
/// The shortest time axis, seconds.
const MIN_SPAN_S: f64 = 10.0;

/// One figure of each second of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveChart {
    title: &'static str,
    unit: &'static str,
    mark: Option<Mark>,
    /// Times in seconds and values; none in seconds without one.
    points: Vec<(f64, Option<f64>)>,
    /// End of the warm-up, seconds.
    warm_up_until: Option<f64>,
    /// The time axis, seconds.
    span: (f64, f64),
}

/// Draws throughput and latency of a run in progress from its last seconds.
pub fn charts(run: &Run, mark: Mark, seconds: &[LiveSecond]) -> [LiveChart; 2] {
    let planned = run.spec.duration_s.zip(run.longest_warm_up_s()).map(|(duration, warm_up)| duration + warm_up);
    [
        LiveChart::new("Throughput", "requests/s", mark, seconds, planned, |second| second.rps),
        LiveChart::new("p99", "ms", mark, seconds, planned, |second| second.p99_ms),
    ]
}

/// Returns the charts that reserve the space while no run is in progress.
pub fn empty_charts() -> [LiveChart; 2] {
    [LiveChart::empty("Throughput", "requests/s"), LiveChart::empty("p99", "ms")]
}

impl LiveChart {
    /// Draws a figure of seconds, on an axis that already has space for a run of this length.
    fn new(
        title: &'static str,
        unit: &'static str,
        mark: Mark,
        seconds: &[LiveSecond],
        planned_s: Option<f64>,
        value: impl Fn(&LiveSecond) -> Option<f64>,
    ) -> Self {
        let points: Vec<_> = seconds.iter().map(|second| (second.at_s, value(second))).collect();
        let warm_up_until = seconds.iter().rev().find(|second| second.is_warm_up).map(|second| second.at_s);
        let first = points.first().map_or(0.0, |(at, _)| (at - 1.0).max(0.0));
        let last = points.last().map_or(0.0, |(at, _)| *at);
        // Of a long run only the last seconds are shown.
        let planned = planned_s.filter(|_| first < 1.0).unwrap_or(0.0);
        Self {
            title,
            unit,
            mark: Some(mark),
            points,
            warm_up_until,
            span: (first, last.max(planned).max(first + MIN_SPAN_S)),
        }
    }

    /// Reserves the space of a chart.
    fn empty(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, mark: None, points: Vec::new(), warm_up_until: None, span: (0.0, MIN_SPAN_S) }
    }

    /// Returns the title.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Returns the last value with its unit; a dash without one.
    pub fn last(&self) -> String {
        match self.points.last().and_then(|(_, value)| *value) {
            Some(value) => format!("{}\u{a0}{}", format::number(Some(value)).text(), self.unit),
            None => "–".to_owned(),
        }
    }

    /// The text alternative: `requests/s of 20 seconds, last 1,000`.
    fn describe(&self) -> String {
        match self.points.len() {
            0 => format!("{}: no values", self.title),
            count => format!("{} of {}, last {}", self.title, format::plural(count, "second"), self.last()),
        }
    }

    fn x(&self, at: f64) -> f64 {
        let (from, to) = self.span;
        ((at - from) / (to - from) * WIDTH).clamp(0.0, WIDTH)
    }

    /// One line for each stretch of seconds with values. The axis starts at zero.
    fn lines(&self) -> Vec<String> {
        let most = self.points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
        let y = |value: f64| {
            if most > 0.0 { HEIGHT - MARGIN - value / most * (HEIGHT - 2.0 * MARGIN) } else { HEIGHT - MARGIN }
        };
        let stretches = self.points.split(|(_, value)| value.is_none());
        let line = |stretch: &[(f64, Option<f64>)]| {
            stretch.iter().filter_map(|(at, value)| Some((*at, (*value)?))).fold(
                String::new(),
                |mut line, (at, value)| {
                    let _ = write!(line, "{:.1},{:.1} ", self.x(at), y(value));
                    line
                },
            )
        };
        stretches.filter(|stretch| !stretch.is_empty()).map(line).collect()
    }
}

impl fmt::Display for LiveChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colour = self.mark.map(Mark::colour).unwrap_or_default();
        write!(
            f,
            r#"<svg class="live-chart {colour}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" "#
        )?;
        write!(f, r#"aria-label="{}">"#, self.describe())?;
        if let Some(until) = self.warm_up_until {
            let (from, to) = (self.x(self.span.0), self.x(until));
            write!(f, r#"<rect class="warm-up" x="{from:.1}" y="0" width="{:.1}" height="{HEIGHT}"/>"#, to - from)?;
        }
        write!(f, r#"<line x1="0" x2="{WIDTH}" y1="{0}" y2="{0}"/>"#, HEIGHT - 0.5)?;
        for line in self.lines() {
            write!(f, r#"<polyline points="{}"/>"#, line.trim_end())?;
        }
        f.write_str("</svg>")
    }
}

/// Consists only of figures and words of the program.
impl HtmlSafe for LiveChart {}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at_s: f64, rps: Option<f64>) -> LiveSecond {
        LiveSecond { at_s, is_warm_up: at_s < 3.0, rps, p99_ms: None }
    }

    fn chart(seconds: &[LiveSecond], planned_s: Option<f64>) -> LiveChart {
        LiveChart::new("requests/s", "requests/s", Mark(1), seconds, planned_s, |second| second.rps)
    }

    #[test]
    fn the_line_grows_into_the_planned_time_and_breaks_at_gaps() {
        let seconds = [second(1.0, Some(50.0)), second(2.0, Some(100.0)), second(3.0, None), second(4.0, Some(100.0))];
        let svg = chart(&seconds, Some(20.0)).to_string();
        assert!(svg.contains(r#"<polyline points="15.0,28.0 30.0,2.0"/><polyline points="60.0,2.0"/>"#), "{svg}");
        assert!(svg.contains(r#"class="warm-up" x="0.0" y="0" width="30.0""#), "{svg}");
        assert!(svg.contains(r#"class="live-chart t2""#) && svg.contains("of 4 seconds, last 100.0"), "{svg}");
    }

    #[test]
    fn a_chart_without_values_has_the_same_size() {
        let size =
            |svg: &str| svg.split("viewBox=").nth(1).and_then(|rest| rest.split("role").next()).map(str::to_owned);
        let (empty, none) = (LiveChart::empty("p99", "ms").to_string(), chart(&[], None).to_string());
        assert_eq!(size(&empty), size(&none));
        assert!(empty.contains("p99: no values") && !empty.contains("NaN") && !none.contains("NaN"), "{empty} {none}");
        assert_eq!(LiveChart::empty("p99", "ms").last(), "–");
    }

    #[test]
    fn of_a_long_run_the_last_seconds_fill_the_axis() {
        let seconds: Vec<_> = (700..1_000).map(|at| second(f64::from(at), Some(1.0))).collect();
        let chart = chart(&seconds, Some(3_600.0));
        assert_eq!(chart.span, (699.0, 999.0));
    }
}
