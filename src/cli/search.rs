//! `brewbench search …`

use clap::Args;
use reqwest::Method;

use super::table::{Align, cut, table};
use crate::{
    cli::common::Common,
    search::model::{Hit, SearchResults},
};

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
    let head = [("kind", Align::Left), ("title", Align::Left), ("url", Align::Left)];
    let row = |hit: &Hit| vec![hit.kind.word().to_owned(), cut(&hit.title, 44), hit.url.clone()];
    table(&head, &results.hits.iter().map(row).collect::<Vec<_>>())
}
