//! Links to the sections of a long page, shown beside it in wide windows. Template: `partials/contents.html`.

use askama::{Template, filters::HtmlSafe};

/// The table of contents of a page; renders itself in a template. Its root is `#contents`.
#[derive(Clone, Debug, Template)]
#[template(path = "partials/contents.html")]
pub struct Contents {
    /// The id and title of each section.
    sections: Vec<(&'static str, &'static str)>,
}

/// The template escapes titles.
impl HtmlSafe for Contents {}

impl Contents {
    /// Lists these sections, each an id and a title.
    pub fn new(sections: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        Self { sections: sections.into_iter().collect() }
    }
}
