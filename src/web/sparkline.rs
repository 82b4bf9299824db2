//! Sparklines: a word-sized chart of values over time as SVG, with a text alternative. Pure.

use std::fmt;

use askama::filters::HtmlSafe;

use super::format;

/// Space for the stroke and the last point.
const MARGIN: f64 = 3.0;

/// Values in chronological order; renders itself in the surrounding text's colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Spark {
    values: Vec<f64>,
    unit: &'static str,
    shape: Shape,
}

/// The size of a sparkline and the meaning of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    class: &'static str,
    width: f64,
    height: f64,
    /// What each value is.
    noun: &'static str,
    /// The first values are shaded.
    shaded: usize,
    /// The axis has room for at least so many values.
    room: usize,
}

/// A word-sized sparkline.
const SMALL: Shape = Shape { class: "spark", width: 120.0, height: 28.0, noun: "result", shaded: 0, room: 2 };

impl Spark {
    /// Creates a sparkline from values in chronological order and their unit.
    pub fn new(values: Vec<f64>, unit: &'static str) -> Self {
        Self { values: values.into_iter().filter(|value| value.is_finite()).collect(), unit, shape: SMALL }
    }

    /// The seconds of a run in progress, as wide as its card; the first `shaded` belong to the warm-up.
    #[must_use]
    pub fn of_seconds(self, shaded: usize) -> Self {
        let shape = Shape { class: "spark wide", width: 360.0, height: 56.0, noun: "second", shaded, room: 20 };
        Self { shape, ..self }
    }

    /// The text alternative: `4 results, from 9,500 to 10,200 requests/s, last 10,100`.
    pub fn words(&self) -> String {
        let text = |value: f64| format::number(Some(value)).text().to_owned();
        let (least, most) = self.ends();
        match self.values.as_slice() {
            [] => format!("no {}s", self.shape.noun),
            [one] => format!("1 {}, {} {}", self.shape.noun, text(*one), self.unit),
            [.., newest] => format!(
                "{}, from {} to {} {}, last {}",
                format::plural(self.values.len(), self.shape.noun),
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
        let (step, bottom) = (self.step(), self.shape.height - MARGIN);
        let height = |value: f64| if most > 0.0 { value / most * (bottom - MARGIN) } else { 0.0 };
        let place = |(index, value): (usize, &f64)| (MARGIN + index as f64 * step, bottom - height(*value));
        self.values.iter().enumerate().map(place).collect()
    }

    /// The distance between two values.
    fn step(&self) -> f64 {
        (self.shape.width - 2.0 * MARGIN) / (self.values.len().max(self.shape.room) - 1) as f64
    }
}

impl fmt::Display for Spark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.points();
        let Some((x, y)) = points.last() else { return Ok(()) };
        let Shape { class, width, height, shaded, .. } = self.shape;
        write!(f, r#"<svg class="{class}" viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#, self.words())?;
        if shaded > 0 {
            let until = MARGIN + (shaded.min(points.len()) as f64 - 0.5) * self.step();
            write!(f, r#"<rect width="{until:.1}" height="{height}"/>"#)?;
        }
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

    #[test]
    fn seconds_of_a_run_have_room_to_grow_and_a_shaded_warm_up() {
        let spark = Spark::new(vec![50.0, 100.0, 100.0], "requests/s").of_seconds(2);
        assert_eq!(spark.words(), "3 seconds, from 50.00 to 100.0 requests/s, last 100.0");
        let svg = spark.to_string();
        assert!(svg.contains(r#"viewBox="0 0 360 56""#) && svg.contains(r#"<rect width="30.9""#), "{svg}");
        let last: f64 =
            svg.split("cx=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("x").parse().expect("x");
        assert!(last < 60.0, "{svg}");
    }
}
