//! The columns of a list of runs: keys, titles, values and sort orders. Pure.

use crate::{
    metrics::{METRICS, Metric, definition::Better},
    runs::model::Run,
    web::format::{self, Figure},
};

/// A column. The target is always shown first and is not one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The machine size.
    Size,
    /// Scenario, parameters and load.
    Load,
    /// Number of the repetition.
    Repetition,
    /// The agent.
    Agent,
    /// The user who submitted the run.
    CreatedBy,
    /// Phase or verdict.
    State,
    /// A metric.
    Figure(Metric),
    /// Time of submission.
    Submitted,
    /// Time of the end.
    Ended,
}

/// Returns all columns in the order of a table.
pub fn all() -> impl Iterator<Item = Column> {
    let before = [Column::Size, Column::Load, Column::Repetition, Column::Agent, Column::CreatedBy, Column::State];
    let figures = METRICS.iter().filter(|def| def.list_key.is_some()).map(|def| Column::Figure(def.metric));
    before.into_iter().chain(figures).chain([Column::Submitted, Column::Ended])
}

/// The columns shown by default.
pub const DEFAULT: [Column; 10] = [
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
    /// Returns the column with this key.
    pub fn from_key(key: &str) -> Option<Self> {
        all().find(|column| column.key() == key)
    }

    /// Its name in addresses and commands.
    pub fn key(self) -> &'static str {
        self.definition().0
    }

    /// Its heading, with the unit.
    pub fn title(self) -> &'static str {
        self.definition().1
    }

    /// The SQL expression over the table `run` to sort by; none if the column is not sortable.
    pub fn sql(self) -> Option<&'static str> {
        self.definition().2
    }

    /// Key, title, SQL.
    fn definition(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Size => ("size", "Size", None),
            Self::Load => ("load", "Load", None),
            Self::Repetition => ("repetition", "Repetition", None),
            Self::Agent => ("agent", "Agent", None),
            Self::CreatedBy => ("created_by", "Submitted by", None),
            Self::State => ("state", "State", None),
            Self::Figure(metric) => {
                let def = metric.def();
                (def.list_key.unwrap_or(def.key), def.head, Some(def.sql))
            }
            Self::Submitted => ("submitted", "Submitted", Some("seq")),
            Self::Ended => ("ended", "Ended", Some("finished_at")),
        }
    }

    /// Its value for a run, if the column is numeric.
    pub fn figure(self, run: &Run) -> Option<Figure> {
        match self {
            Self::Figure(metric) => Some(metric.figure((metric.def().get)(&run.figures))),
            Self::Repetition => Some(format::count(Some(u64::from(run.repetition)))),
            Self::Size | Self::Load | Self::Agent | Self::CreatedBy | Self::State | Self::Submitted | Self::Ended => {
                None
            }
        }
    }

    /// Whether the column is aligned like numbers.
    pub fn is_right(self) -> bool {
        !matches!(self, Self::Size | Self::Load | Self::Agent | Self::CreatedBy | Self::State)
    }

    /// The order selected by the first click on its heading: lowest first if lower is better.
    pub fn order(self) -> Option<Order> {
        self.sql()?;
        let lower_first = matches!(self, Self::Figure(metric) if metric.def().better == Some(Better::Lower));
        Some(Order { column: self, first: if lower_first { SortOrder::Least } else { SortOrder::Greatest } })
    }

    /// Names of its descending and ascending order.
    pub fn orders(self) -> [&'static str; 2] {
        match self {
            Self::Submitted | Self::Ended => ["newest first", "oldest first"],
            _ => ["highest first", "lowest first"],
        }
    }
}

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// Highest or newest first.
    Greatest,
    /// Lowest or oldest first.
    Least,
}

impl SortOrder {
    /// The value of `aria-sort`.
    pub fn aria(self) -> &'static str {
        match self {
            Self::Greatest => "descending",
            Self::Least => "ascending",
        }
    }
}

/// The order of a list. Runs without the metric always come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The column, which must be sortable.
    pub column: Column,
    /// The direction.
    pub first: SortOrder,
}

impl Default for Order {
    fn default() -> Self {
        Self { column: Column::Submitted, first: SortOrder::Greatest }
    }
}

impl Order {
    /// Parses an order from an address: `p99` for lowest first, `-p99` for highest first.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (first, key) = match text.strip_prefix('-') {
            Some(key) => (SortOrder::Greatest, key),
            None => (SortOrder::Least, text),
        };
        match Column::from_key(key).filter(|column| column.sql().is_some()) {
            Some(column) => Ok(Self { column, first }),
            None => Err(format!("sort: can't sort by {key:?}; use one of {}", sortable().join(", "))),
        }
    }

    /// The order as written in an address.
    pub fn key(self) -> String {
        match self.first {
            SortOrder::Greatest => format!("-{}", self.column.key()),
            SortOrder::Least => self.column.key().to_owned(),
        }
    }

    /// Returns the opposite order.
    #[must_use]
    pub fn reversed(self) -> Self {
        let first = if self.first == SortOrder::Greatest { SortOrder::Least } else { SortOrder::Greatest };
        Self { first, ..self }
    }

    /// The order in words: `p99 ms, lowest first`.
    pub fn describe(self) -> String {
        let [descending, ascending] = self.column.orders();
        format!("{}, {}", self.column.title(), if self.first == SortOrder::Greatest { descending } else { ascending })
    }
}

/// Returns the keys of all sortable columns.
pub fn sortable() -> Vec<&'static str> {
    all().filter(|column| column.sql().is_some()).map(Column::key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::finished;

    #[test]
    fn every_column_and_every_order_is_found_by_its_key() {
        for column in all() {
            assert_eq!(Column::from_key(column.key()), Some(column));
        }
        for key in sortable() {
            for text in [key.to_owned(), format!("-{key}")] {
                assert_eq!(Order::parse(&text).map(Order::key), Ok(text));
            }
        }
        let p99 = Order::parse("-p99").expect("an order");
        assert_eq!(p99.describe(), "p99 ms, highest first");
        assert_eq!(p99.reversed().key(), "p99");
    }

    #[test]
    fn unsortable_columns_and_unknown_keys_are_refused() {
        for text in ["size", "-", "", "seq; drop table run", "--p99", "p99_ms"] {
            assert!(Order::parse(text).is_err_and(|error| error.contains("p999")), "{text}");
        }
    }

    #[test]
    fn an_unknown_value_is_a_dash() {
        let mut run = finished("servy", 1);
        assert_eq!(Column::Figure(Metric::Rps).figure(&run).expect("a figure").text(), "10,000");
        run.figures.rps = None;
        assert_eq!(Column::Figure(Metric::Rps).figure(&run).expect("a figure").text(), "–");
        assert_eq!(Column::State.figure(&run), None);
    }
}
