//! A small chart of a load over time, with a text description. Pure.

use std::fmt;

use askama::filters::HtmlSafe;
use brewbench_wire::load::Load;

use crate::{runs::load::exact, web::format};

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 56.0;
/// Space for the stroke.
const MARGIN: f64 = 2.0;

/// The sketch of a load. It renders as an SVG in the current text colour.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSketch {
    corners: Vec<(f64, f64)>,
    description: String,
}

impl LoadSketch {
    /// Creates a sketch; `None` if the script defines the load.
    pub fn new(load: &Load) -> Option<Self> {
        let shape = load.shape()?;
        let (duration_ms, peak) = (shape.duration().as_millis() as f64, f64::from(shape.peak()));
        let corner = |(at, level): (u64, u32)| {
            let (across, up) = (at as f64 / duration_ms, f64::from(level) / peak);
            (MARGIN + across * (WIDTH - 2.0 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2.0 * MARGIN))
        };
        let seconds = format::duration(Some(duration_ms / 1_000.0));
        Some(Self {
            corners: shape.points().into_iter().map(corner).collect(),
            description: format!("{}, {}", exact(load), seconds.text()),
        })
    }

    /// Returns the text description.
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl fmt::Display for LoadSketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line: Vec<String> = self.corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let line = line.join(" ");
        let (bottom, right) = (HEIGHT - MARGIN, WIDTH - MARGIN);
        let size = format!(r#"viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none""#);
        write!(f, r#"<svg class="shape" {size} role="img" aria-label="{}">"#, self.description)?;
        write!(f, r#"<polygon points="{MARGIN:.1},{bottom:.1} {line} {right:.1},{bottom:.1}"/>"#)?;
        write!(f, r#"<polyline points="{line}"/></svg>"#)
    }
}

// Numbers and descriptions have no characters that HTML needs escaped.
impl HtmlSafe for LoadSketch {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::load::tests::{rate, vus_stages};

    #[test]
    fn a_sketch_is_drawn_from_zero_to_the_peak_and_described() {
        let ramp = LoadSketch::new(&vus_stages("10s:50,10s:100,20s:0")).expect("a sketch");
        let svg = ramp.to_string();
        assert!(svg.contains(r#"<polyline points="2.0,54.0 61.0,28.0 120.0,2.0 238.0,54.0"/>"#), "{svg}");
        let words = "0 → 100 → 0 VUs in 3 stages (10s:50,10s:100,20s:0), 40 s";
        assert_eq!(ramp.description().replace('\u{a0}', " "), words);
        assert!(svg.contains(r#"role="img" aria-label="0 → 100"#), "{svg}");
        let flat = LoadSketch::new(&rate(2_000, 10.0)).expect("a sketch");
        assert!(flat.to_string().contains(r#"<polyline points="2.0,2.0 238.0,2.0"/>"#), "{flat}");
        assert_eq!(LoadSketch::new(&Load::Script), None);
    }
}
