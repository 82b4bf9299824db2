//! `brewbench report`

use std::path::PathBuf;

use brewbench::reports::format::{ReportFormat, file_name};
use clap::Args;
use reqwest::Method;

use super::{
    compare::{CompareFlags, RunSelection},
    gate::write,
};
use crate::common::Common;

/// Export a comparison as a file.
#[derive(Debug, Args)]
pub struct Report {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: RunSelection,
    /// Target that differences are relative to [default: the first by name]
    #[arg(long)]
    baseline: Option<String>,
    #[command(flatten)]
    how: CompareFlags,
    /// Format: html (one self-contained file with charts), markdown (for a pull request), csv or json
    #[arg(long, default_value = "html")]
    format: ReportFormat,
    /// Output file; `-` is stdout [default: html: a file named after the comparison; other formats: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, which, baseline, how, format, output } = self;
        // `--json` works as in every other command.
        let format = if common.json { ReportFormat::Json } else { format };
        let connection = common.connect()?;
        let mut query = which.query(&connection, baseline, how).await?;
        query.push(("format", format.as_str().to_owned()));
        let request = connection.client.request(Method::GET, "api/v1/report").query(&query);
        let response = connection.client.send(request).await?;
        let disposition = response.headers().get(reqwest::header::CONTENT_DISPOSITION).cloned();
        let text = response.text().await?;
        let file = output.unwrap_or_else(|| match format {
            ReportFormat::Html => PathBuf::from(name(disposition.as_ref().and_then(|value| value.to_str().ok()))),
            _ => PathBuf::from("-"),
        });
        write(&file, &text)?;
        if file.as_os_str() != "-" {
            eprintln!("wrote {}", file.display());
        }
        Ok(())
    }
}

/// Turns the name suggested by the server into that of a file in the current folder.
fn name(disposition: Option<&str>) -> String {
    let suggested = disposition
        .and_then(|value| value.split_once("filename=\""))
        .and_then(|(_, rest)| rest.strip_suffix(".html\""));
    file_name(suggested.unwrap_or_default(), ReportFormat::Html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_choose_the_folder() {
        assert_eq!(name(Some("attachment; filename=\"a-against-b.html\"")), "a-against-b.html");
        assert_eq!(name(Some("attachment; filename=\"../../.bashrc.html\"")), "bashrc.html");
        assert_eq!(name(None), "report.html");
    }
}
