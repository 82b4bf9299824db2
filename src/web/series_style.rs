//! The colour and shape that a target has on every page: in tables, in legends, in charts.

use std::{collections::BTreeMap, fmt};

use askama::filters::HtmlSafe;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Legible colours there are; `app.css` defines `--t1` to `--t8`.
const COLOURS: usize = 8;

/// Shapes by which two of one colour differ, by Plotly's names; `app.css` draws them as `.dot.NAME`.
const SHAPES: [&str; 8] =
    ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "cross", "hourglass"];

/// How bars of one colour are hatched, by Plotly's names: in the order of [`SHAPES`].
const HATCHES: [&str; 8] = ["", "/", "\\", "x", "-", "|", "+", "."];

/// How lines of one colour are drawn, by Plotly's names: in the order of [`SHAPES`].
const DASHES: [&str; 8] = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "8px,2px", "2px,6px"];

/// So many marks look different.
const MARKS: usize = COLOURS * SHAPES.len();

/// A target's slot, from 0: those of one colour are 8 apart. In a template it draws the coloured dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Mark(pub usize);

impl Mark {
    /// The colour's role in a chart, e.g. `target 1`.
    pub fn role(self) -> String {
        format!("target {}", self.0 % COLOURS + 1)
    }

    /// The shape of its points in a chart.
    pub fn symbol(self) -> &'static str {
        SHAPES[self.variant()]
    }

    /// How its bars are hatched.
    pub fn hatch(self) -> &'static str {
        HATCHES[self.variant()]
    }

    /// How its lines are drawn.
    pub fn dash(self) -> &'static str {
        DASHES[self.variant()]
    }

    fn variant(self) -> usize {
        self.0 / COLOURS % SHAPES.len()
    }

    /// The mark that this one becomes beside others: itself, or if it would look like one of them, the next shape of its
    /// colour that is free. Two versions of a target have one slot and always come here, as do targets whose slots are
    /// 64 apart. Only where all shapes are taken another colour is; beyond 64 of them the names must do.
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

/// The marks of some targets, as the catalog keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<String, Mark>);

impl Marks {
    /// A target's.
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
    fn those_that_would_look_alike_keep_their_colour_and_take_another_shape() {
        let mut marks: Vec<Mark> = Vec::new();
        for slot in [3, 3, 5, 3 + MARKS] {
            marks.push(Mark(slot).beside(&marks));
        }
        assert_eq!(marks, [Mark(3), Mark(11), Mark(5), Mark(19)]);
    }

    #[test]
    fn as_many_as_there_are_marks_all_look_different() {
        let mut marks: Vec<Mark> = Vec::new();
        for _ in 0..MARKS {
            marks.push(Mark(7).beside(&marks));
        }
        let looks: std::collections::BTreeSet<_> = marks.iter().map(|mark| (mark.role(), mark.symbol())).collect();
        assert_eq!(looks.len(), MARKS);
        assert_eq!(Mark(7).beside(&marks), Mark(7));
    }
}
