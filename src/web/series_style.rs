//! The colour and shape of a target, the same on every page: in tables, legends and charts.

use std::{collections::BTreeMap, fmt};

use askama::filters::HtmlSafe;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Number of colours; `app.css` defines them as `--t1` to `--t8`.
const COLOURS: usize = 8;

/// Shapes that distinguish targets of one colour, by Plotly's names; `app.css` draws them as `.dot.NAME`.
const SHAPES: [&str; 8] =
    ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "cross", "hourglass"];

/// Hatches of bars, by Plotly's names, in the order of [`SHAPES`].
const HATCHES: [&str; 8] = ["", "/", "\\", "x", "-", "|", "+", "."];

/// Dashes of lines, by Plotly's names, in the order of [`SHAPES`].
const DASHES: [&str; 8] = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "8px,2px", "2px,6px"];

/// Number of distinct marks.
const MARKS: usize = COLOURS * SHAPES.len();

/// A target's slot, from 0; slots of one colour are 8 apart. Renders as a coloured dot in a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Mark(pub usize);

impl Mark {
    /// The colour's role in a chart, e.g. `target 1`.
    pub fn role(self) -> String {
        format!("target {}", self.0 % COLOURS + 1)
    }

    /// The class of the colour in `app.css`, e.g. `t1`.
    pub fn colour(self) -> String {
        format!("t{}", self.0 % COLOURS + 1)
    }

    /// The shape of its points in a chart.
    pub fn symbol(self) -> &'static str {
        SHAPES[self.variant()]
    }

    /// The hatch of its bars.
    pub fn hatch(self) -> &'static str {
        HATCHES[self.variant()]
    }

    /// The dashes of its lines.
    pub fn dash(self) -> &'static str {
        DASHES[self.variant()]
    }

    fn variant(self) -> usize {
        self.0 / COLOURS % SHAPES.len()
    }

    /// Returns a mark that differs from the others: this one or, if taken, the next free shape of its colour.
    ///
    /// Needed for two versions of a target, which have the same slot, and for targets whose slots are 64 apart. If all
    /// shapes are taken, the next colour is used. Beyond 64 marks, only the names distinguish the targets.
    #[must_use]
    pub fn beside(self, others: &[Self]) -> Self {
        let same = |one: Self, other: Self| one.0 % MARKS == other.0 % MARKS;
        let shapes_first = (0..COLOURS).flat_map(|colour| (0..SHAPES.len()).map(move |shape| colour + shape * COLOURS));
        let mut all = shapes_first.map(|step| Self((self.0 + step) % MARKS));
        if others.iter().any(|other| same(self, *other)) {
            all.find(|mark| !others.iter().any(|other| same(*mark, *other))).unwrap_or(self)
        } else {
            self
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"<i class="dot t{} {}" aria-hidden="true"></i>"#, self.0 % COLOURS + 1, self.symbol())
    }
}

impl HtmlSafe for Mark {}

/// The marks of several targets, as stored in the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<String, Mark>);

impl Marks {
    /// Returns the mark of a target.
    pub fn of(&self, target: &str) -> Mark {
        self.0.get(target).copied().unwrap_or_default()
    }
}

impl FromIterator<(String, Mark)> for Marks {
    fn from_iter<T: IntoIterator<Item = (String, Mark)>>(marks: T) -> Self {
        Self(marks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_target_takes_the_first_colour_with_another_shape() {
        assert_eq!(Mark(8).role(), Mark(0).role());
        assert_ne!(Mark(8).symbol(), Mark(0).symbol());
        assert_eq!(Mark(1).to_string(), r#"<i class="dot t2 circle" aria-hidden="true"></i>"#);
    }

    #[test]
    fn equal_marks_keep_their_colour_and_get_another_shape() {
        let mut marks: Vec<Mark> = Vec::new();
        for slot in [3, 3, 5, 3 + MARKS] {
            marks.push(Mark(slot).beside(&marks));
        }
        assert_eq!(marks, [Mark(3), Mark(11), Mark(5), Mark(19)]);
    }

    #[test]
    fn up_to_the_number_of_marks_all_look_different() {
        let mut marks: Vec<Mark> = Vec::new();
        for _ in 0..MARKS {
            marks.push(Mark(7).beside(&marks));
        }
        let styles: std::collections::BTreeSet<_> = marks.iter().map(|mark| (mark.role(), mark.symbol())).collect();
        assert_eq!(styles.len(), MARKS);
        assert_eq!(Mark(7).beside(&marks), Mark(7));
    }
}
