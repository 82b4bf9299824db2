//! `brewbench run export`

use anyhow::bail;
use clap::Args;
use reqwest::Method;

use crate::{
    app::ids::joined,
    cli::run::which::{Many, full_id},
};

/// `run export`
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    many: Many,
    /// What to print
    #[arg(long, value_enum, default_value_t = ExportAs::Summary)]
    format: ExportAs,
}

/// What `run export` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportAs {
    /// k6's summary of one run, as it was
    Summary,
    /// Figures, labels and notes
    Json,
    /// The same, a line a run
    Csv,
    /// What happened during one run, second by second, as JSON
    Series,
    /// The same, a line a second
    SeriesCsv,
}

impl Export {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { many: Many { common, ids }, format } = self;
        let connection = common.connect()?;
        let mut full = Vec::new();
        for id in &ids {
            full.push(full_id(&connection, id).await?);
        }
        let request = match (format, full.as_slice()) {
            (ExportAs::Summary, [id]) => connection.client.request(Method::GET, &format!("api/v1/runs/{id}/summary")),
            (ExportAs::Series | ExportAs::SeriesCsv, [id]) => {
                let format = if format == ExportAs::SeriesCsv { "csv" } else { "json" };
                let request = connection.client.request(Method::GET, &format!("api/v1/runs/{id}/series"));
                request.query(&[("format", format)])
            }
            (ExportAs::Summary | ExportAs::Series | ExportAs::SeriesCsv, _) => {
                bail!("summary and series are one run's; name one, or give --format csv or json")
            }
            (ExportAs::Json | ExportAs::Csv, ids) => {
                let format = if format == ExportAs::Csv { "csv" } else { "json" };
                let request = connection.client.request(Method::GET, "api/v1/runs/export");
                request.query(&[("runs", joined(ids).as_str()), ("format", format)])
            }
        };
        let bytes = connection.client.send(request).await?.bytes().await?;
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &bytes)?)
    }
}
