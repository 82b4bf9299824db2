//! A comparison with what its page shows of it, rendered once for everybody who looks at it.

use std::{ops::Deref, sync::OnceLock};

use askama::Template;

use crate::compare::view::Comparison;

/// A comparison that does not change any more.
#[derive(Debug, PartialEq)]
pub struct Made {
    comparison: Comparison,
    html: OnceLock<String>,
}

#[derive(Template)]
#[template(path = "compare/_comparison.html")]
struct Part<'a> {
    comparison: &'a Comparison,
    told_in_title: bool,
}

impl From<Comparison> for Made {
    fn from(comparison: Comparison) -> Self {
        Self { comparison, html: OnceLock::new() }
    }
}

impl Deref for Made {
    type Target = Comparison;

    fn deref(&self) -> &Comparison {
        &self.comparison
    }
}

impl Made {
    /// The part of its page that is the same for everybody.
    pub fn html(&self) -> askama::Result<&str> {
        if let Some(known) = self.html.get() {
            return Ok(known);
        }
        let part = Part { comparison: &self.comparison, told_in_title: self.comparison.pair().is_some() }.render()?;
        Ok(self.html.get_or_init(|| part))
    }
}
