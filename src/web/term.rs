//! The name of a metric as a button that opens its unit and definition, which the registry of metrics has.
//!
//! The button needs no script: it opens a popover of `partials/terms.html`, which each page with terms includes once.
//! Template: `partials/term.html`.

use askama::{Template, filters::HtmlSafe};

use crate::metrics::Metric;

/// The name of a metric in a heading; renders itself in a template.
#[derive(Debug, Template)]
#[template(path = "partials/term.html")]
pub struct Term<'a> {
    metric: Metric,
    /// The text of the button; none for an icon.
    text: Option<&'a str>,
}

/// The template escapes the text.
impl HtmlSafe for Term<'_> {}

impl Metric {
    /// Its name in the head of a column, with the unit where the cells have none.
    pub fn term(&self) -> Term<'static> {
        Term { metric: *self, text: Some(self.def().head) }
    }

    /// Another text for it, such as the title of a chart.
    pub fn term_as<'a>(&self, text: &'a str) -> Term<'a> {
        Term { metric: *self, text: Some(text) }
    }

    /// An icon, for names that are links.
    pub fn term_icon(&self) -> Term<'static> {
        Term { metric: *self, text: None }
    }
}
