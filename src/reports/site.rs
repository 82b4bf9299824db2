//! The first page of a website of reports. Pure.

use askama::Template;

use super::html::{Trusted, style};
use crate::{
    app::error::{Error, Result},
    compare::view::Comparison,
};

/// The page.
#[derive(Template)]
#[template(path = "reports/site.html")]
struct Site<'a> {
    title: &'a str,
    reports: &'a [(String, Comparison)],
    style: Trusted,
}

/// Renders a list of reports, each with the name of its file.
pub fn index(title: &str, reports: &[(String, Comparison)]) -> Result<String> {
    Site { title, reports, style: style()? }.render().map_err(Error::internal)
}
