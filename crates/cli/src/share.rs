//! `brewbench share …`

use brewbench::shares::model::{CreatedShare, NewShare, Share as ShareData, ShareList};
use brewbench_wire::now_ms;
use clap::Subcommand;
use url::form_urlencoded;

use super::{
    compare::{CompareFlags, RunSelection},
    table::{cut, left, table},
};
use crate::common::Common;

/// Manage share links.
#[derive(Debug, Subcommand)]
pub enum Share {
    /// Create a share link to a comparison; it is shown once
    #[command(alias = "create")]
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Which runs
        #[command(flatten)]
        which: RunSelection,
        /// Target that differences are relative to [default: the first by name]
        #[arg(long)]
        baseline: Option<String>,
        /// How to compare them
        #[command(flatten)]
        how: CompareFlags,
        /// Days until the link expires [default: never]
        #[arg(long, value_name = "DAYS")]
        expires_in: Option<u32>,
    },
    /// List share links, without their secrets
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a share link permanently
    #[command(alias = "revoke")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Id of the share link
        id: i64,
    },
}

impl Share {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, which, baseline, how, expires_in } => {
                let connection = common.connect()?;
                let query = which.query(&connection, baseline, how).await?;
                let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
                let request = NewShare { query, expires_in_days: expires_in };
                let created: CreatedShare = connection.client.post("api/v1/shares", &request).await?;
                common.print(&created, |created| format!("{}\n", created.url))
            }
            Self::List { common } => common.show("api/v1/shares", |list: &ShareList| rows(&list.shares)).await,
            Self::Delete { common, id } => {
                common.connect()?.client.delete(&format!("api/v1/shares/{id}")).await?;
                eprintln!("revoked share link {id}");
                Ok(())
            }
        }
    }
}

fn rows(shares: &[ShareData]) -> String {
    if shares.is_empty() {
        return "no share links; create one with: brewbench share new ID ID …\n".to_owned();
    }
    let head = [">id", "comparison", ">runs", "created by", ">expires in", "state"];
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
    table(&head, shares, row)
}
