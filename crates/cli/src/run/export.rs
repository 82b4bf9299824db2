//! `brewbench run export`

use anyhow::bail;
use brewbench::app::ids::joined;
use clap::{Args, ValueEnum};
use reqwest::Method;

use crate::run::which::{ManyRuns, full_id};

/// Export runs.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    many: ManyRuns,
    /// Data and format to print
    #[arg(long, value_enum, default_value_t = ExportAs::Summary)]
    format: ExportAs,
}

/// The output of `run export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportAs {
    /// The unmodified k6 summary of one run
    Summary,
    /// Metrics, labels and notes as JSON
    Json,
    /// Metrics, labels and notes as CSV, one line per run
    Csv,
    /// The figures of one run in the form of k6's --summary-export
    K6,
    /// Bencher Metric Format: medians and ranges of targets
    Bencher,
    /// CSV for Apache Otava, oldest run first
    Otava,
    /// The text format of Prometheus
    Prometheus,
    /// Time series of one run as JSON
    Series,
    /// Time series of one run as CSV, one line per second
    SeriesCsv,
}

impl Export {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { many: ManyRuns { common, ids }, format } = self;
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
                bail!("summaries and series are exported one run at a time; give one run, or --format csv or json")
            }
            (_, ids) => {
                let name = format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
                let request = connection.client.request(Method::GET, "api/v1/runs/export");
                request.query(&[("runs", joined(ids)), ("format", name)])
            }
        };
        let bytes = connection.client.send(request).await?.bytes().await?;
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &bytes)?)
    }
}
