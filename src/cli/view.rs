//! `brewbench view …`

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, plain, table};
use crate::{
    cli::{common::Common, connection::encoded},
    runs::view::{SavedView, ViewList, ViewQuery},
};

/// Commands about saved views of the history.
#[derive(Debug, Subcommand)]
pub enum View {
    /// List the saved views; `run list --view NAME` lists the runs of one
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Save a view for everybody
    Save {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// What to call it
        name: String,
        /// As the address of /runs has it, e.g. "target=servy&sort=p99"
        query: String,
    },
    /// Remove a saved view; the runs stay
    Remove {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Its name
        name: String,
    },
}

impl View {
    /// Does what was asked for.
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
                eprintln!("the view {} is removed", plain(&name));
                Ok(())
            }
        }
    }
}

fn rows(views: &[SavedView]) -> String {
    if views.is_empty() {
        return "no view is saved yet: brewbench view save NAME \"target=servy&sort=p99\"\n".to_owned();
    }
    let head = [("name", Align::Left), ("shows", Align::Left), ("saved by", Align::Left)];
    let row = |view: &SavedView| vec![cut(&view.name, 24), cut(&view.query, 34), cut(&view.created_by, 16)];
    table(&head, &views.iter().map(row).collect::<Vec<_>>())
}
