//! `brewbench search …`

use brewbench::search::model::{Hit, SearchResults};
use clap::Args;
use reqwest::Method;

use super::table::{cut, plain};
use crate::common::Common;

/// Search targets, experiments, runs, pages and documentation.
#[derive(Debug, Args)]
pub struct Search {
    #[command(flatten)]
    common: Common,
    /// Words of a name, or the beginning of an id or of its last part
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
}

impl Search {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let client = self.common.connect()?.client;
        let request = client.request(Method::GET, "api/v1/search").query(&[("q", self.words.join(" "))]);
        let results: SearchResults = client.json(request).await?;
        self.common.print(&results, text)
    }
}

fn text(results: &SearchResults) -> String {
    if results.hits.is_empty() {
        return format!("nothing matches {:?}\n", results.query);
    }
    let line = |hit: &Hit| format!("{:<14} {}\n  {}\n", hit.kind.word(), cut(&hit.title, 60), plain(&hit.url));
    results.hits.iter().map(line).collect()
}
