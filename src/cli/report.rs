//! `brewbench report`

use std::path::PathBuf;

use clap::Args;
use reqwest::Method;

use super::{
    compare::{How, Which},
    gate::write,
};
use crate::{
    cli::common::Common,
    reports::format::{Format, file_name},
};

/// Writes a comparison as a file.
#[derive(Debug, Args)]
pub struct Report {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
    /// The target that differences are relative to [default: the first by name]
    #[arg(long)]
    baseline: Option<String>,
    #[command(flatten)]
    how: How,
    /// html (one file with all charts, which needs nothing else), markdown (for a pull request), csv or json
    #[arg(long, default_value = "html")]
    format: Format,
    /// Where to write it; `-` is stdout [default: a file here with the name of the comparison; stdout unless it is html]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, which, baseline, how, format, output } = self;
        // `--json` is how every command is asked for JSON.
        let format = if common.json { Format::Json } else { format };
        let connection = common.connect()?;
        let mut query = which.query(&connection, baseline, how).await?;
        query.push(("format", format.as_str().to_owned()));
        let request = connection.client.request(Method::GET, "api/v1/report").query(&query);
        let response = connection.client.send(request).await?;
        let said = response.headers().get(reqwest::header::CONTENT_DISPOSITION).cloned();
        let text = response.text().await?;
        let file = output.unwrap_or_else(|| match format {
            Format::Html => PathBuf::from(name(said.as_ref().and_then(|said| said.to_str().ok()))),
            _ => PathBuf::from("-"),
        });
        write(&file, &text)?;
        if file.as_os_str() != "-" {
            eprintln!("the report is in {}", file.display());
        }
        Ok(())
    }
}

/// The name that the server suggests, made one of a file here whatever it says.
fn name(said: Option<&str>) -> String {
    let suggested =
        said.and_then(|said| said.split_once("filename=\"")).and_then(|(_, rest)| rest.strip_suffix(".html\""));
    file_name(suggested.unwrap_or_default(), Format::Html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_can_not_choose_a_folder() {
        assert_eq!(name(Some("attachment; filename=\"a-against-b.html\"")), "a-against-b.html");
        assert_eq!(name(Some("attachment; filename=\"../../.bashrc.html\"")), "bashrc.html");
        assert_eq!(name(None), "report.html");
    }
}
