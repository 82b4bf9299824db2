//! `brewbench token …`

use std::path::PathBuf;

use brewbench::{
    app::local_admin,
    auth::{
        model::Scope,
        users::{self, CreatedSecret, NewToken, TOKEN_DAYS, TokenList},
    },
};
use brewbench_wire::now_ms;
use clap::Subcommand;

use super::table::{cut, left, plain, table};
use crate::{common::Common, connection::encoded};

/// Manage API tokens.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Create a token; it is shown once
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Name of the token
        name: String,
        /// Scope of the token: read, submit or admin
        #[arg(long, default_value = "read")]
        scope: Scope,
        /// Days until the token expires
        #[arg(long, value_name = "DAYS", default_value_t = TOKEN_DAYS, conflicts_with = "never")]
        expires_in: u32,
        /// Create a token that never expires
        #[arg(long)]
        never: bool,
        /// The data folder of a server on this machine; makes a login unnecessary
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// List tokens, without their secrets
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a token permanently
    #[command(alias = "revoke")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The token's name
        name: String,
    },
}

impl Token {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, name, scope, expires_in, never, data } => {
                let expires_in_days = (!never).then_some(expires_in);
                let request = NewToken { name, scope, expires_in_days, never_expires: never };
                let created: CreatedSecret = match data {
                    Some(data) => local_admin::token(&data, &request).await?,
                    None => common.connect()?.client.post("api/v1/tokens", &request).await?,
                };
                common.print(&created, |created| format!("{}\n", created.secret))
            }
            Self::List { common } => common.show("api/v1/tokens", rows).await,
            Self::Delete { common, name } => {
                common.connect()?.client.delete(&format!("api/v1/tokens/{}", encoded(&name))).await?;
                eprintln!("revoked token {}", plain(&name));
                Ok(())
            }
        }
    }
}

fn rows(list: &TokenList) -> String {
    if list.tokens.is_empty() {
        return "no tokens yet; `brewbench token new NAME` creates one\n".to_owned();
    }
    let head = ["name", "scope", "owner", ">last used", ">expires in", "state"];
    let now = now_ms();
    let row = |token: &users::Token| {
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
    table(&head, &list.tokens, row)
}
