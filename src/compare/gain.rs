//! How many times better a figure is than another, and the logarithmic axis of such ratios. Pure.
//!
//! Twice and half as good are equally far from "same", and better is right for every metric.

use std::fmt;

use askama::filters::HtmlSafe;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{metric::Metric, stat::Stat, statistics::Better};
use crate::web::card::Tone;

/// Ratios that may be ticks, on both sides of "same".
pub const TICKS: [f64; 12] = [1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0, 100.0, 1_000.0, 10_000.0];

/// The part of a strip's width on each side of its axis, percent: room for the marks at its ends.
const MARGIN: f64 = 4.0;

/// How many times better a figure is than another, with its 95 % interval: above 1 is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gain {
    /// The estimate.
    pub ratio: f64,
    /// The worse end of the interval.
    pub low: f64,
    /// The better end of the interval.
    pub high: f64,
}

impl Gain {
    /// Returns the gain of a figure over the baseline's; none without an interval, or if the axis has no place for it.
    pub fn new(stat: &Stat) -> Option<Self> {
        let effect = stat.effect?;
        let end = |change| times_better(stat.metric, change);
        let (one, other) = effect.interval()?;
        let (one, other) = (end(one)?, end(other)?);
        Some(Self { ratio: end(effect.change())?, low: one.min(other), high: one.max(other) })
    }
}

impl fmt::Display for Gain {
    /// The interval: `1.184× to 1.721× as good`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}× to {:.3}× as good", self.low, self.high)
    }
}

/// Returns how many times better a change is; none if it is no positive number.
pub fn times_better(metric: Metric, change: f64) -> Option<f64> {
    let ratio = match metric.better() {
        Some(Better::Lower) => 1.0 / (1.0 + change),
        Some(Better::Higher) | None => 1.0 + change,
    };
    (ratio > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// An axis that several gains share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GainAxis {
    /// The ratio at its ends.
    end: f64,
}

impl GainAxis {
    /// Returns the axis on which all these fit; none if there are none.
    pub fn over(gains: impl IntoIterator<Item = Gain>) -> Option<Self> {
        let furthest = |gain: Gain| gain.high.max(1.0 / gain.low);
        let most = gains.into_iter().map(furthest).reduce(f64::max)?;
        Some(Self { end: TICKS.into_iter().find(|tick| *tick >= most).unwrap_or(most) })
    }

    /// Returns the words at its left end, in its middle and at its right end.
    pub fn labels(self) -> [String; 3] {
        [format!("{}× worse", self.end), "same".to_owned(), format!("{}× better", self.end)]
    }

    /// Draws a gain on the axis. A plain one is hollow.
    pub fn strip(self, gain: Gain, tone: Tone) -> Strip {
        Strip { axis: self, gain, tone }
    }

    /// Returns the place of a ratio, percent of the width.
    fn place(self, ratio: f64) -> f64 {
        let share = (ratio.ln() / self.end.ln()).clamp(-1.0, 1.0);
        50.0 + share * (50.0 - MARGIN)
    }
}

/// A gain on an axis as a small SVG of any width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip {
    axis: GainAxis,
    gain: Gain,
    tone: Tone,
}

impl fmt::Display for Strip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { axis, gain, tone } = self;
        let [ratio, low, high] = [gain.ratio, gain.low, gain.high].map(|ratio| axis.place(ratio));
        write!(f, r#"<svg class="interval {}" aria-hidden="true">"#, tone.class())?;
        for (class, place) in [("end", MARGIN), ("zero", 50.0), ("end", 100.0 - MARGIN)] {
            write!(f, r#"<line class="{class}" x1="{place}%" x2="{place}%" y1="2" y2="18"/>"#)?;
        }
        write!(
            f,
            r#"<line x1="{low:.1}%" x2="{high:.1}%" y1="10" y2="10"/><circle cx="{ratio:.1}%" cy="10" r="4"/></svg>"#
        )
    }
}

/// Consists only of numbers and words of this file.
impl HtmlSafe for Strip {}

#[cfg(test)]
mod tests {
    use super::*;

    const GAIN: Gain = Gain { ratio: 1.48, low: 1.18, high: 1.72 };

    #[test]
    fn an_axis_ends_at_the_tick_beyond_all_its_intervals() {
        let slower = Gain { ratio: 0.5, low: 0.3, high: 0.6 };
        assert_eq!(
            GainAxis::over([GAIN]).map(GainAxis::labels),
            Some(["2× worse", "same", "2× better"].map(str::to_owned))
        );
        assert_eq!(GainAxis::over([GAIN, slower]), Some(GainAxis { end: 5.0 }), "0.3 is 3.3 times worse");
        assert_eq!(GainAxis::over([]), None);
    }

    #[test]
    fn half_and_twice_as_good_are_equally_far_from_the_same() {
        let axis = GainAxis { end: 5.0 };
        assert!((axis.place(1.0) - 50.0).abs() < 1e-9);
        assert!((axis.place(2.0) - 50.0 - (50.0 - axis.place(0.5))).abs() < 1e-9);
        assert!((axis.place(9.0) - (100.0 - MARGIN)).abs() < 1e-9, "what is beyond the end stays inside");
    }

    #[test]
    fn lower_is_better_for_latency() {
        assert_eq!(times_better(Metric::P99Ms, -0.5), Some(2.0));
        assert_eq!(times_better(Metric::Rps, -0.5), Some(0.5));
        assert_eq!(times_better(Metric::P99Ms, -1.0), None, "no ratio has a place");
    }
}
