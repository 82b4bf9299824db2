//! A difference with its confidence interval as a word-sized SVG. Pure.

use std::fmt;

use askama::filters::HtmlSafe;

use super::card::Tone;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 20.0;
const MARGIN: f64 = 6.0;

/// Differences near this share are drawn linearly, larger ones logarithmically.
const LINEAR: f64 = 0.02;
/// The share at the ends of the axis.
const END: f64 = 1.0;

/// A difference relative to a baseline; zero is in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalPlot {
    /// The estimate: 0.28 is 28 % more.
    pub change: f64,
    /// The interval; none with too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// The colour; plain differences are hollow.
    pub tone: Tone,
    /// The width that the interval should have: drawn as a band around the estimate.
    pub wanted: Option<f64>,
}

/// The horizontal place of a difference.
fn position(change: f64) -> f64 {
    let scale = |share: f64| (1.0 + share / LINEAR).ln();
    let share = scale(change.abs().min(END)) / scale(END);
    WIDTH / 2.0 + share.copysign(change) * (WIDTH / 2.0 - MARGIN)
}

impl fmt::Display for IntervalPlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, interval, tone, wanted } = self;
        let middle = HEIGHT / 2.0;
        let class = tone.class();
        write!(f, r#"<svg class="interval {class}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">"#)?;
        if let Some(wanted) = wanted {
            let (low, high) = (position(change - wanted / 2.0), position(change + wanted / 2.0));
            write!(f, r#"<rect x="{low:.1}" width="{:.1}" y="1" height="{}"/>"#, high - low, HEIGHT - 2.0)?;
        }
        write!(f, r#"<line class="zero" x1="{0}" x2="{0}" y1="2" y2="{1}"/>"#, WIDTH / 2.0, HEIGHT - 2.0)?;
        if let Some((low, high)) = interval {
            write!(f, r#"<line x1="{:.1}" x2="{:.1}" y1="{middle}" y2="{middle}"/>"#, position(*low), position(*high))?;
        }
        write!(f, r#"<circle cx="{:.1}" cy="{middle}" r="3.5"/></svg>"#, position(*change))
    }
}

/// Consists only of numbers and words of this file.
impl HtmlSafe for IntervalPlot {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_in_the_middle_and_large_differences_stay_inside() {
        assert!((position(0.0) - WIDTH / 2.0).abs() < 1e-9);
        assert!(position(0.1) > position(0.02) && position(-0.1) < position(-0.02));
        assert!((position(5.0) - (WIDTH - MARGIN)).abs() < 1e-9 && (position(-5.0) - MARGIN).abs() < 1e-9);
    }

    #[test]
    fn an_unknown_interval_has_no_line() {
        let plot = IntervalPlot { change: 0.1, interval: None, tone: Tone::Plain, wanted: None };
        assert_eq!((plot.to_string().matches("<line").count(), plot.to_string().contains("<rect")), (1, false));
        assert!(IntervalPlot { wanted: Some(0.02), ..plot }.to_string().contains("<rect"));
    }
}
