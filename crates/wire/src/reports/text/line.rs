//! A line of a text.

use crate::reports::validate::{Fault, Place};

/// A trimmed line without colours, numbered from 1.
#[derive(Clone, Debug)]
pub(super) struct ReportLine {
    pub(super) number: usize,
    pub(super) text: String,
}

impl ReportLine {
    pub(super) fn fault(&self, what: impl std::fmt::Display) -> Fault {
        Place::root(&format!("line {}", self.number)).fault(what)
    }
}
