//! The colour and shape that a target has on a page: in tables, in legends, in charts.

use std::fmt;

use askama::filters::HtmlSafe;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Legible colours there are; `app.css` defines `--t1` to `--t8`.
const COLOURS: usize = 8;

/// Shapes by which two targets of one colour differ, by Plotly's names.
const SHAPES: [&str; 4] = ["circle", "square", "diamond", "triangle-up"];

/// A target's place in the order of a page, from 0. In a template it draws the coloured dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Mark(pub usize);

impl Mark {
    /// The colour's role in a chart, e.g. `target 1`.
    pub fn role(self) -> String {
        format!("target {}", self.0 % COLOURS + 1)
    }

    /// The shape of its points in a chart.
    pub fn symbol(self) -> &'static str {
        SHAPES[self.0 / COLOURS % SHAPES.len()]
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"<i class="dot t{} {}" aria-hidden="true"></i>"#, self.0 % COLOURS + 1, self.symbol())
    }
}

impl HtmlSafe for Mark {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_target_takes_the_first_colour_with_another_shape() {
        assert_eq!(Mark(8).role(), Mark(0).role());
        assert_ne!(Mark(8).symbol(), Mark(0).symbol());
        assert_eq!(Mark(1).to_string(), r#"<i class="dot t2 circle" aria-hidden="true"></i>"#);
    }
}
