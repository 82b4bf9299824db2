//! A comparison with the HTML of its page, rendered once for all users.

use std::{ops::Deref, sync::OnceLock};

use askama::Template;

use crate::compare::view::Comparison;

/// A final comparison with its cached HTML.
#[derive(Debug, PartialEq)]
pub struct Rendered {
    comparison: Comparison,
    html: OnceLock<String>,
}

#[derive(Template)]
#[template(path = "compare/_comparison.html")]
struct ComparisonHtml<'a> {
    comparison: &'a Comparison,
}

impl From<Comparison> for Rendered {
    fn from(comparison: Comparison) -> Self {
        Self { comparison, html: OnceLock::new() }
    }
}

impl Deref for Rendered {
    type Target = Comparison;

    fn deref(&self) -> &Comparison {
        &self.comparison
    }
}

impl Rendered {
    /// Returns the part of the page that is the same for all users.
    pub fn html(&self) -> askama::Result<&str> {
        if let Some(html) = self.html.get() {
            return Ok(html);
        }
        let part = ComparisonHtml { comparison: &self.comparison }.render()?;
        Ok(self.html.get_or_init(|| part))
    }
}
