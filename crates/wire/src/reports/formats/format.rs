//! What a format is: how it is recognised and read, and what it lacks.

use std::borrow::Cow;
use std::io::Read;

use crate::reports::input::document::Document;
use crate::reports::input::lines::ReportLine;
use crate::reports::report::Report;
use crate::reports::validate::Fault;

/// The most reports of a file.
pub const REPORTS_MAX: usize = 20_000;

/// A format of results.
pub struct Format {
    /// Its name, which is stored with a run.
    pub name: &'static str,
    /// What a page calls a file of it.
    pub title: &'static str,
    /// The load generator, or the program that collects results.
    pub tool: &'static str,
    /// What it rounds, and what it lacks.
    pub limits: &'static str,
    /// Whether its values are rounded for display.
    pub is_rounded: bool,
    /// After which time the tool gives up a request unless another time was requested, milliseconds.
    pub timeout_ms: Option<f64>,
    /// How it is recognised and read.
    pub reader: Reader,
}

/// How a format is recognised, always by its content, and read.
pub enum Reader {
    /// A JSON document.
    Json {
        /// Whether a document is of this format.
        is: fn(&Document<'_>) -> Recognised,
        /// Reads all reports of one document.
        read: fn(&Document<'_>) -> Result<Vec<Report>, Fault>,
    },
    /// Lines of text among other text.
    Text {
        /// Returns the indices at which a report starts.
        starts: fn(&[ReportLine]) -> Vec<usize>,
        /// Why a text that contains the words is not of this format, if it has no start.
        near: &'static [(&'static str, &'static str)],
        /// Reads the report at the start of these lines; it may be followed by other text.
        read: fn(&[ReportLine]) -> Result<Report, Fault>,
    },
    /// A file of records, which is read as a stream because it may be large.
    Records {
        /// Whether a file with this first part is of this format.
        is: fn(&str) -> Recognised,
        /// Reads all of it.
        read: fn(&mut dyn Read) -> Result<Vec<Report>, Fault>,
    },
}

/// Whether something is of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It nearly is, but can't be read for this reason.
    Near(Cow<'static, str>),
}

impl From<bool> for Recognised {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

/// Returns the indices of the lines that begin a report.
pub(super) fn starts_where(lines: &[ReportLine], is_start: impl Fn(&[ReportLine]) -> bool) -> Vec<usize> {
    (0..lines.len()).filter(|start| lines.get(*start..).is_some_and(&is_start)).collect()
}

/// Returns the words of a line.
pub(super) fn words(line: &ReportLine) -> Vec<&str> {
    line.text.split_whitespace().collect()
}
