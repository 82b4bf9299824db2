//! How a metric is found in the registry, named and formatted. Pure.

use crate::{
    metrics::{
        METRICS, Metric,
        definition::{MetricDef, Unit},
    },
    web::format::{self, Figure},
};

impl Metric {
    /// Returns its definition.
    pub fn def(self) -> &'static MetricDef {
        &METRICS[self as usize]
    }

    /// Returns its name in JSON, URLs and commands.
    pub fn key(self) -> &'static str {
        self.def().key
    }

    /// Returns its name in rules and options: the key without the unit.
    pub fn short_key(self) -> &'static str {
        self.key().strip_suffix("_ms").unwrap_or(self.key())
    }

    /// Formats a value for a table cell.
    pub fn figure(self, value: Option<f64>) -> Figure {
        match self.def().unit {
            Unit::Share => format::percent(value),
            Unit::Bytes => format::bytes(value),
            Unit::BytesPerS => format::rate(value),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is an integer in SQLite")]
            Unit::Count => format::count(value.map(|count| count as u64)),
            Unit::RequestsPerS | Unit::Ms | Unit::Seconds | Unit::PerRequest => format::number(value),
        }
    }
}
