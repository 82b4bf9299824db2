//! `brewbench view …`

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, plain, table};
use crate::{
    cli::{common::Common, connection::encoded},
    runs::view::{SavedView, ViewList, ViewQuery},
};

/// Manage saved views of the run history.
#[derive(Debug, Subcommand)]
pub enum View {
    /// List saved views; `run list --view NAME` lists the runs of one
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Save a view for all users
    Save {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Name of the view
        name: String,
        /// Query string of the page /runs, e.g. "target=servy&sort=p99"
        query: String,
    },
    /// Remove a saved view; runs are kept
    Remove {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The view's name
        name: String,
    },
}

impl View {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { common } => {
                let list: ViewList = common.connect()?.client.get("api/v1/views").await?;
                common.print(&list, |list| rows(&list.views))
            }
            Self::Save { common, name, query } => {
                let path = format!("api/v1/views/{}", encoded(&name));
                let client = common.connect()?.client;
                let list: ViewList = client.json(client.request(Method::PUT, &path).json(&ViewQuery { query })).await?;
                common.print(&list, |list| rows(&list.views))
            }
            Self::Remove { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/views/{}", encoded(&name))).await?;
                eprintln!("removed view {}", plain(&name));
                Ok(())
            }
        }
    }
}

fn rows(views: &[SavedView]) -> String {
    if views.is_empty() {
        return "no saved views; save one with: brewbench view save NAME \"target=servy&sort=p99\"\n".to_owned();
    }
    let head = [("name", Align::Left), ("query", Align::Left), ("saved by", Align::Left)];
    let row = |view: &SavedView| vec![cut(&view.name, 24), cut(&view.query, 34), cut(&view.created_by, 16)];
    table(&head, &views.iter().map(row).collect::<Vec<_>>())
}
