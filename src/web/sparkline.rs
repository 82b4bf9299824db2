//! Sparklines: a word-sized chart of values over time as SVG, with a text alternative. Pure.

use std::fmt;

use askama::filters::HtmlSafe;

use super::{card::Tone, format, series_style::Mark};

/// Width and height of a word-sized chart.
const WORD: (f64, f64) = (120.0, 28.0);
/// Width and height of a chart with change points.
const WIDE: (f64, f64) = (240.0, 44.0);
/// The shortest axis of such a chart, as a share of the largest value: smaller changes look flat.
const MIN_SPAN: f64 = 0.3;
/// Space for the stroke and the last point.
const MARGIN: f64 = 3.0;
/// Half the width of a change point's diamond.
const DIAMOND: f64 = 4.5;

/// Values in chronological order; renders itself in the surrounding text's colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparkline {
    values: Vec<f64>,
    unit: &'static str,
    changes: Option<Changes>,
}

/// Change points, and the target whose colour the line has.
#[derive(Clone, Debug, PartialEq)]
struct Changes {
    mark: Mark,
    points: Vec<ChangePoint>,
}

/// A change in a sparkline; renders as a diamond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value after it.
    pub at: usize,
    /// After ÷ before − 1.
    pub change: f64,
    /// Whether it is good or bad.
    pub tone: Tone,
}

impl Sparkline {
    /// Creates a sparkline from values in chronological order and their unit.
    pub fn new(values: Vec<f64>, unit: &'static str) -> Self {
        Self { values: values.into_iter().filter(|value| value.is_finite()).collect(), unit, changes: None }
    }

    /// Creates a larger one with change points, in the colour of a target.
    pub fn with_changes(values: Vec<f64>, unit: &'static str, mark: Mark, points: Vec<ChangePoint>) -> Self {
        let spark = Self::new(values, unit);
        let points = points.into_iter().filter(|point| point.at < spark.values.len()).collect();
        Self { changes: Some(Changes { mark, points }), ..spark }
    }

    /// The text alternative: `4 results, from 9,500 to 10,200 requests/s, last 10,100`.
    pub fn describe(&self) -> String {
        let text = |value: f64| format::number(Some(value)).text().to_owned();
        let (least, most) = self.ends();
        let values = match self.values.as_slice() {
            [] => "no results".to_owned(),
            [one] => format!("1 result, {} {}", text(*one), self.unit),
            [.., newest] => format!(
                "{}, from {} to {} {}, last {}",
                format::plural(self.values.len(), "result"),
                text(least),
                text(most),
                self.unit,
                text(*newest)
            ),
        };
        let changes = self.changes.iter().flat_map(|changes| &changes.points);
        let words = |point: &ChangePoint| {
            format!("; change point at result {}: {}", point.at + 1, format::change(Some(point.change)).text())
        };
        values + &changes.map(words).collect::<String>()
    }

    fn ends(&self) -> (f64, f64) {
        self.values.iter().fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
    }

    fn size(&self) -> (f64, f64) {
        if self.changes.is_some() { WIDE } else { WORD }
    }

    /// Returns the ends of the axis. A word-sized chart starts at zero, so that a change of 0.1 % does not look steep.
    /// A larger one shows the values in the middle of at least [`MIN_SPAN`].
    fn axis(&self) -> (f64, f64) {
        let (least, most) = self.ends();
        if self.changes.is_none() || self.values.is_empty() {
            return (0.0, most);
        }
        let (middle, half) = (f64::midpoint(least, most), ((most - least) / 2.0).max(most * MIN_SPAN / 2.0));
        (middle - half, middle + half)
    }

    fn points(&self) -> Vec<(f64, f64)> {
        let ((width, height), (low, high)) = (self.size(), self.axis());
        let margin = if self.changes.is_some() { MARGIN + DIAMOND } else { MARGIN };
        let step = (width - 2.0 * margin) / (self.values.len().max(2) - 1) as f64;
        let rise = |value: f64| if high > low { (value - low) / (high - low) * (height - 2.0 * margin) } else { 0.0 };
        let place = |(index, value): (usize, &f64)| (margin + index as f64 * step, height - margin - rise(*value));
        self.values.iter().enumerate().map(place).collect()
    }
}

impl fmt::Display for Sparkline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points();
        let Some((x, y)) = points.last() else { return Ok(()) };
        let (width, height) = self.size();
        let class =
            self.changes.as_ref().map_or_else(String::new, |changes| format!(" wide {}", changes.mark.colour()));
        write!(
            f,
            r#"<svg class="spark{class}" viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#,
            self.describe()
        )?;
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        write!(f, r#"<polyline points="{}"/><circle cx="{x:.1}" cy="{y:.1}" r="2"/>"#, line.join(" "))?;
        for ChangePoint { at, tone, .. } in self.changes.iter().flat_map(|changes| &changes.points) {
            if let Some((x, y)) = points.get(*at) {
                let (x, y) = (x - DIAMOND, *y);
                write!(f, r#"<path class="{}" d="M{x:.1} {y:.1}l4.5 -4.5 4.5 4.5 -4.5 4.5z"/>"#, tone.class())?;
            }
        }
        f.write_str("</svg>")
    }
}

/// Consists only of figures and words of this file.
impl HtmlSafe for Sparkline {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_describes_the_line() {
        let spark = Sparkline::new(vec![9_500.0, 10_200.0, 10_100.0], "requests/s");
        assert_eq!(spark.describe(), "3 results, from 9,500 to 10,200 requests/s, last 10,100");
        let svg = spark.to_string();
        assert!(svg.contains(r#"points="3.0,4.5 60.0,3.0 117.0,3.2""#), "{svg}");
    }

    #[test]
    fn no_values_one_value_and_zeros_can_be_drawn() {
        assert_eq!(Sparkline::new(vec![f64::NAN], "x").to_string(), "");
        assert!(Sparkline::new(vec![5.0], "x").to_string().contains("1 result, 5.00 x"));
        assert!(!Sparkline::new(vec![0.0, 0.0], "x").to_string().contains("NaN"));
    }

    #[test]
    fn change_points_are_diamonds_on_the_line_and_part_of_the_text() {
        let point = |at, change| ChangePoint { at, change, tone: Tone::Bad };
        let values = vec![100.0, 100.0, 90.0, 90.0];
        let spark = Sparkline::with_changes(values, "requests/s", Mark(9), vec![point(2, -0.1), point(9, 0.5)]);
        let svg = spark.to_string();
        assert_eq!(svg.matches("<path").count(), 1, "the other is beyond the line: {svg}");
        assert!(svg.contains(r#"class="spark wide t2""#) && svg.contains(r#"<path class="bad""#), "{svg}");
        let words = spark.describe().replace('\u{a0}', " ");
        assert!(words.contains("last 90.00; change point at result 3: −10.0 %"), "{words}");
    }

    #[test]
    fn a_small_change_looks_flat_and_a_large_one_fills_the_height() {
        let heights = |values: Vec<f64>| {
            let points = Sparkline::with_changes(values, "x", Mark(0), Vec::new()).points();
            points.into_iter().map(|(_, y)| y).collect::<Vec<_>>()
        };
        let [one, other] = heights(vec![1_000.0, 1_001.0])[..] else { panic!("two points") };
        assert!((one - other).abs() < 0.2 && (one - WIDE.1 / 2.0).abs() < 0.2, "{one} {other}");
        let [low, high] = heights(vec![500.0, 1_000.0])[..] else { panic!("two points") };
        assert!(low - high > WIDE.1 / 2.0, "{low} {high}");
        assert!(heights(vec![0.0, 0.0]).iter().all(|y| y.is_finite()));
    }
}
