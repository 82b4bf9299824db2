//! A comparison as one self-contained HTML file with style, charts and the chart library.

use std::fmt;

use askama::{Template, filters::HtmlSafe};
use brewbench_wire::now_ms;

use crate::{
    app::error::{Error, Result},
    compare::view::Comparison,
    reports::profiles::Profiled,
    web::assets,
};

/// The template of the file.
#[derive(Debug, Template)]
#[template(path = "reports/report.html")]
struct Report {
    comparison: Comparison,
    profiles: Vec<Profiled>,
    made_at_ms: i64,
    /// The nonce of the scripts: markup that was injected through a bug cannot know it.
    nonce: String,
    /// Whether there are charts.
    drawn: bool,
    style: Trusted,
    /// The chart library.
    plotly: Trusted,
    /// Draws the charts and follows the colour scheme.
    charts: Trusted,
    /// Copies tables.
    copy: Trusted,
}

/// A bundled file, which is trusted and embedded without escaping.
#[derive(Debug)]
pub(super) struct Trusted(String);

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Trusted {}

/// Renders the file.
pub fn text(comparison: Comparison, profiles: Vec<Profiled>) -> Result<String> {
    let drawn = comparison.differences.is_some() || !comparison.charts.is_empty() || comparison.timeseries.is_some();
    let report = Report {
        made_at_ms: now_ms(),
        nonce: format!("{:032x}", rand::random::<u128>()),
        style: style()?,
        // Without charts the library would be most of the file.
        plotly: if drawn { script("plotly.js")? } else { Trusted(String::new()) },
        charts: if drawn { script("charts.js")? } else { Trusted(String::new()) },
        copy: script("copy.js")?,
        drawn,
        comparison,
        profiles,
    };
    report.render().map_err(Error::internal)
}

/// Returns the style of all pages.
pub(super) fn style() -> Result<Trusted> {
    Ok(Trusted(assets::text("app.css")?.to_owned()))
}

/// Returns a script that can't close the element that contains it.
fn script(name: &str) -> Result<Trusted> {
    let text = assets::text(name)?;
    Ok(Trusted(text.replace("</script", "<\\/script").replace("<!--", "<\\!--")))
}
