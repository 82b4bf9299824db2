//! `brewbench share …`

use brewbench_agent::wire::now_ms;
use clap::Subcommand;
use url::form_urlencoded;

use super::{
    compare::{How, Which},
    table::{Align, cut, left, table},
};
use crate::{
    cli::common::Common,
    shares::model::{MadeShare, NewShare, Share as ShareData, ShareList},
};

/// Commands about links to a comparison that need no login.
#[derive(Debug, Subcommand)]
pub enum Share {
    /// Make a link to the comparison of some runs; it is shown once
    Create {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Of which runs
        #[command(flatten)]
        which: Which,
        /// The target that differences are relative to [default: the first by name]
        #[arg(long)]
        baseline: Option<String>,
        /// How they are compared
        #[command(flatten)]
        how: How,
        /// Days until it ends [default: no end]
        #[arg(long, value_name = "DAYS")]
        expires_in: Option<u32>,
    },
    /// List the links, without their secrets
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// End a link for good
    Revoke {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The number of the link, as the list shows it
        id: i64,
    },
}

impl Share {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Create { common, which, baseline, how, expires_in } => {
                let connection = common.connect()?;
                let query = which.query(&connection, baseline, how).await?;
                let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
                let asked = NewShare { query, expires_in_days: expires_in };
                let made: MadeShare = connection.client.post("api/v1/shares", &asked).await?;
                common.print(&made, |made| format!("{}\n", made.url))
            }
            Self::List { common } => {
                let list: ShareList = common.connect()?.client.get("api/v1/shares").await?;
                common.print(&list, |list| rows(&list.shares))
            }
            Self::Revoke { common, id } => {
                common.connect()?.client.delete(&format!("api/v1/shares/{id}")).await?;
                eprintln!("the link {id} is revoked");
                Ok(())
            }
        }
    }
}

fn rows(shares: &[ShareData]) -> String {
    if shares.is_empty() {
        return "no comparison is shared: brewbench share create ID ID …\n".to_owned();
    }
    let head = [
        ("id", Align::Right),
        ("comparison", Align::Left),
        ("runs", Align::Right),
        ("made by", Align::Left),
        ("ends in", Align::Right),
        ("state", Align::Left),
    ];
    let now = now_ms();
    let row = |share: &ShareData| {
        vec![
            share.id.to_string(),
            cut(&share.title, 30),
            share.runs.len().to_string(),
            cut(&share.created_by, 16),
            share.expires_at_ms.map_or("–".to_owned(), |end| left(end - now)),
            share.state(now).to_owned(),
        ]
    };
    table(&head, &shares.iter().map(row).collect::<Vec<_>>())
}
