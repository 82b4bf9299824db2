//! `brewbench token …`

use std::path::PathBuf;

use brewbench_agent::wire::now_ms;
use clap::Subcommand;

use super::table::{Align, cut, left, table};
use crate::{
    app::local_admin,
    auth::{
        model::Scope,
        people::{self, MadeSecret, NewToken, TokenList},
    },
    cli::{common::Common, connection::encoded},
};

/// Commands about API tokens.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token; it is shown once
    New {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// What to call it
        name: String,
        /// How far it reaches: read, submit or admin
        #[arg(long, default_value = "read")]
        scope: Scope,
        /// Days until it ends [default: no end]
        #[arg(long, value_name = "DAYS")]
        expires_in: Option<u32>,
        /// The server's data folder: its owner needs no login
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// List the tokens, without their secrets
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// End a token for good
    Revoke {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The token's name
        name: String,
    },
}

impl Token {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, name, scope, expires_in, data } => {
                let asked = NewToken { name, scope, expires_in_days: expires_in };
                let made: MadeSecret = match data {
                    Some(data) => local_admin::token(&data, &asked).await?,
                    None => common.connect()?.client.post("api/v1/tokens", &asked).await?,
                };
                common.print(&made, |made| format!("{}\n", made.secret))
            }
            Self::List { common } => {
                let list: TokenList = common.connect()?.client.get("api/v1/tokens").await?;
                common.print(&list, rows)
            }
            Self::Revoke { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/tokens/{}", encoded(&name))).await?;
                eprintln!("token {name} is revoked");
                Ok(())
            }
        }
    }
}

fn rows(list: &TokenList) -> String {
    if list.tokens.is_empty() {
        return "no tokens yet; `brewbench token new NAME` makes one\n".to_owned();
    }
    let head = [
        ("name", Align::Left),
        ("scope", Align::Left),
        ("whose", Align::Left),
        ("last used", Align::Right),
        ("ends in", Align::Right),
        ("state", Align::Left),
    ];
    let now = now_ms();
    let row = |token: &people::Token| {
        let used = token.last_used_at_ms.map_or("never".to_owned(), |at| format!("{} ago", left(now - at)));
        vec![
            cut(&token.name, 40),
            token.scope.clone(),
            cut(token.owner.as_deref().unwrap_or("–"), 24),
            used,
            token.expires_at_ms.map_or("–".to_owned(), |end| left(end - now)),
            token.state(now).to_owned(),
        ]
    };
    table(&head, &list.tokens.iter().map(row).collect::<Vec<_>>())
}
