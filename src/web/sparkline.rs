//! Sparklines: a word-sized chart of values over time as SVG, with a text alternative. Pure.

use std::fmt;

use askama::filters::HtmlSafe;

use super::format;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;
/// Space for the stroke and the last point.
const MARGIN: f64 = 3.0;

/// Values in chronological order; renders itself in the surrounding text's colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Spark {
    values: Vec<f64>,
    unit: &'static str,
}

impl Spark {
    /// Creates a sparkline from values in chronological order and their unit.
    pub fn new(values: Vec<f64>, unit: &'static str) -> Self {
        Self { values: values.into_iter().filter(|value| value.is_finite()).collect(), unit }
    }

    /// The text alternative: `4 results, from 9,500 to 10,200 requests/s, last 10,100`.
    pub fn words(&self) -> String {
        let text = |value: f64| format::number(Some(value)).text().to_owned();
        let (least, most) = self.ends();
        match self.values.as_slice() {
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
        }
    }

    fn ends(&self) -> (f64, f64) {
        self.values.iter().fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
    }

    /// The axis starts at zero, so that a change of 0.1 % does not look steep.
    fn points(&self) -> Vec<(f64, f64)> {
        let most = self.ends().1;
        let step = (WIDTH - 2.0 * MARGIN) / (self.values.len().max(2) - 1) as f64;
        let height = |value: f64| if most > 0.0 { value / most * (HEIGHT - 2.0 * MARGIN) } else { 0.0 };
        let place = |(index, value): (usize, &f64)| (MARGIN + index as f64 * step, HEIGHT - MARGIN - height(*value));
        self.values.iter().enumerate().map(place).collect()
    }
}

impl fmt::Display for Spark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points();
        let Some((x, y)) = points.last() else { return Ok(()) };
        write!(f, r#"<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#, self.words())?;
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        write!(f, r#"<polyline points="{}"/><circle cx="{x:.1}" cy="{y:.1}" r="2"/></svg>"#, line.join(" "))
    }
}

/// Consists only of figures and words of this file.
impl HtmlSafe for Spark {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_describes_the_line() {
        let spark = Spark::new(vec![9_500.0, 10_200.0, 10_100.0], "requests/s");
        assert_eq!(spark.words(), "3 results, from 9,500 to 10,200 requests/s, last 10,100");
        let svg = spark.to_string();
        assert!(svg.contains(r#"points="3.0,4.5 60.0,3.0 117.0,3.2""#), "{svg}");
    }

    #[test]
    fn no_values_one_value_and_zeros_can_be_drawn() {
        assert_eq!(Spark::new(vec![f64::NAN], "x").to_string(), "");
        assert!(Spark::new(vec![5.0], "x").to_string().contains("1 result, 5.00 x"));
        assert!(!Spark::new(vec![0.0, 0.0], "x").to_string().contains("NaN"));
    }
}
