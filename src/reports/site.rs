//! The first page of a website of reports.

use askama::Template;
use brewbench_wire::now_ms;

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
    made_at_ms: i64,
    style: Trusted,
}

/// Renders a list of reports, each with the name of its file.
pub fn index(title: &str, reports: &[(String, Comparison)]) -> Result<String> {
    Site { title, reports, made_at_ms: now_ms(), style: style()? }.render().map_err(Error::internal)
}
