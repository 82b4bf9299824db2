//! One HTML file with everything in it: style, charts and the library that draws them.

use std::fmt;

use askama::{Template, filters::HtmlSafe};
use brewbench_agent::wire::now_ms;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    compare::view::Comparison,
    web::assets,
};

/// The file.
#[derive(Debug, Template)]
#[template(path = "reports/report.html")]
struct Report {
    comparison: Comparison,
    made_at_ms: i64,
    /// What a script must name to run: text that became markup by a fault of ours does not know it.
    nonce: String,
    /// Whether there is anything to draw.
    drawn: bool,
    style: Ours,
    /// Draws charts.
    plotly: Ours,
    /// Finds them and follows the colour scheme.
    charts: Ours,
    /// Copies tables.
    copy: Ours,
}

/// A file of our own, which may stand in a page as it is.
#[derive(Debug)]
struct Ours(String);

impl fmt::Display for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Ours {}

/// Writes it.
pub async fn text(state: &AppState, comparison: Comparison) -> Result<String> {
    let drawn = !comparison.charts.is_empty() || comparison.told.is_some();
    let report = Report {
        made_at_ms: now_ms(),
        nonce: format!("{:032x}", rand::random::<u128>()),
        style: Ours(assets::text(state, "app.css").await?),
        // Without a chart the library would be all there is to the file.
        plotly: if drawn { script(state, "plotly.js").await? } else { Ours(String::new()) },
        charts: if drawn { script(state, "charts.js").await? } else { Ours(String::new()) },
        copy: script(state, "copy.js").await?,
        drawn,
        comparison,
    };
    report.render().map_err(Error::internal)
}

/// A script that can't end the element that it stands in.
async fn script(state: &AppState, name: &str) -> Result<Ours> {
    let text = assets::text(state, name).await?;
    Ok(Ours(text.replace("</script", "<\\/script").replace("<!--", "<\\!--")))
}
