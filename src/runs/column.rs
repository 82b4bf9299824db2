//! The columns of a list of runs: what they are called, what they show, what a list can be ordered by. Pure.

use crate::{
    metrics::{METRICS, Metric, definition::Better},
    runs::model::Run,
    web::format::{self, Figure},
};

/// A column. The target always stands first and is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The machine size.
    Size,
    /// Scenario, parameters and load.
    Load,
    /// Which repetition.
    Repetition,
    /// Who did it.
    Agent,
    /// Who submitted it.
    Person,
    /// Phase or verdict.
    State,
    /// A figure.
    Figure(Metric),
    /// When it was submitted.
    Submitted,
    /// When it ended.
    Ended,
}

/// What there is, in the order in which it stands in a table.
pub fn all() -> impl Iterator<Item = Column> {
    let before = [Column::Size, Column::Load, Column::Repetition, Column::Agent, Column::Person, Column::State];
    let figures = METRICS.iter().filter(|def| def.list_key.is_some()).map(|def| Column::Figure(def.metric));
    before.into_iter().chain(figures).chain([Column::Submitted, Column::Ended])
}

/// What is shown unless somebody chose.
pub const USUAL: [Column; 10] = [
    Column::Size,
    Column::Load,
    Column::Repetition,
    Column::Agent,
    Column::State,
    Column::Figure(Metric::Rps),
    Column::Figure(Metric::P50Ms),
    Column::Figure(Metric::P99Ms),
    Column::Figure(Metric::ErrorRate),
    Column::Ended,
];

impl Column {
    /// The column of a key.
    pub fn of(key: &str) -> Option<Self> {
        all().find(|column| column.key() == key)
    }

    /// How addresses and commands name it.
    pub fn key(self) -> &'static str {
        self.words().0
    }

    /// Its head, with the unit.
    pub fn title(self) -> &'static str {
        self.words().1
    }

    /// What a list is ordered by, as SQL over the table `run`; none if it can't be.
    pub fn stored(self) -> Option<&'static str> {
        self.words().2
    }

    /// Key, title, SQL.
    fn words(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Size => ("size", "Size", None),
            Self::Load => ("load", "Load", None),
            Self::Repetition => ("repetition", "Repetition", None),
            Self::Agent => ("agent", "Agent", None),
            Self::Person => ("person", "Submitted by", None),
            Self::State => ("state", "State", None),
            Self::Figure(metric) => {
                let def = metric.def();
                (def.list_key.unwrap_or(def.key), def.head, Some(def.sql))
            }
            Self::Submitted => ("submitted", "Submitted", Some("seq")),
            Self::Ended => ("ended", "Ended", Some("finished_at")),
        }
    }

    /// What it shows of a run, where that is a figure.
    pub fn figure(self, run: &Run) -> Option<Figure> {
        match self {
            Self::Figure(metric) => Some(metric.figure((metric.def().get)(&run.figures))),
            Self::Repetition => Some(format::count(Some(u64::from(run.repetition)))),
            Self::Size | Self::Load | Self::Agent | Self::Person | Self::State | Self::Submitted | Self::Ended => None,
        }
    }

    /// Whether it is set like figures are.
    pub fn is_right(self) -> bool {
        !matches!(self, Self::Size | Self::Load | Self::Agent | Self::Person | Self::State)
    }

    /// The order that its head leads to first: of latencies and failures the least is what people look for.
    pub fn order(self) -> Option<Order> {
        self.stored()?;
        let least = matches!(self, Self::Figure(metric) if metric.def().better == Some(Better::Lower));
        Some(Order { column: self, first: if least { First::Least } else { First::Greatest } })
    }

    /// What its two orders are called, from the greatest and from the least.
    pub fn orders(self) -> [&'static str; 2] {
        match self {
            Self::Submitted | Self::Ended => ["newest first", "oldest first"],
            _ => ["greatest first", "least first"],
        }
    }
}

/// Which end of a column comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The greatest, the newest.
    Greatest,
    /// The least, the oldest.
    Least,
}

impl First {
    /// For `aria-sort`.
    pub fn aria(self) -> &'static str {
        match self {
            Self::Greatest => "descending",
            Self::Least => "ascending",
        }
    }
}

/// How a list is ordered. What lacks the figure comes last either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// By what; a column that is stored.
    pub column: Column,
    /// Which end first.
    pub first: First,
}

impl Default for Order {
    fn default() -> Self {
        Self { column: Column::Submitted, first: First::Greatest }
    }
}

impl Order {
    /// From how an address says it: `p99` for the least first, `-p99` for the greatest.
    pub fn of(text: &str) -> Result<Self, String> {
        let (first, key) = match text.strip_prefix('-') {
            Some(key) => (First::Greatest, key),
            None => (First::Least, text),
        };
        match Column::of(key).filter(|column| column.stored().is_some()) {
            Some(column) => Ok(Self { column, first }),
            None => Err(format!("sort: {key:?} can't be sorted by; these can: {}", sortable().join(", "))),
        }
    }

    /// As an address says it.
    pub fn key(self) -> String {
        match self.first {
            First::Greatest => format!("-{}", self.column.key()),
            First::Least => self.column.key().to_owned(),
        }
    }

    /// The other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        let first = if self.first == First::Greatest { First::Least } else { First::Greatest };
        Self { first, ..self }
    }

    /// In words: `p99 ms, least first`.
    pub fn words(self) -> String {
        let [greatest, least] = self.column.orders();
        format!("{}, {}", self.column.title(), if self.first == First::Greatest { greatest } else { least })
    }
}

/// The keys of what a list can be ordered by.
pub fn sortable() -> Vec<&'static str> {
    all().filter(|column| column.stored().is_some()).map(Column::key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn every_column_is_found_by_its_key_and_every_order_by_its_words() {
        for column in all() {
            assert_eq!(Column::of(column.key()), Some(column));
        }
        for key in sortable() {
            for text in [key.to_owned(), format!("-{key}")] {
                assert_eq!(Order::of(&text).map(Order::key), Ok(text));
            }
        }
        let p99 = Order::of("-p99").expect("an order");
        assert_eq!(p99.words(), "p99 ms, greatest first");
        assert_eq!(p99.reversed().key(), "p99");
    }

    #[test]
    fn what_is_no_figure_orders_nothing() {
        for text in ["size", "-", "", "seq; drop table run", "--p99", "p99_ms"] {
            assert!(Order::of(text).is_err_and(|sentence| sentence.contains("p999")), "{text}");
        }
    }

    #[test]
    fn a_figure_that_is_not_known_is_a_dash() {
        let mut run = finished("servy", 1);
        assert_eq!(Column::Figure(Metric::Rps).figure(&run).expect("a figure").text(), "10,000");
        run.figures.rps = None;
        assert_eq!(Column::Figure(Metric::Rps).figure(&run).expect("a figure").text(), "–");
        assert_eq!(Column::State.figure(&run), None);
    }
}
