//! `brewbench login`

use anyhow::bail;
use brewbench_agent::client::Client;
use clap::Args;
use url::Url;

use super::connection::Kept;
use crate::catalog::SizeList;

/// Keeps a server's address and a token for the other commands.
#[derive(Debug, Args)]
pub struct Login {
    /// The server's address
    #[arg(env = "BREWBENCH_URL")]
    url: Url,
    /// An API token [default: asked for]
    #[arg(long, env = "BREWBENCH_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Login {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { url, token } = self;
        let token = match token {
            Some(token) => token,
            None => rpassword::prompt_password("Token (brewbench token new NAME makes one): ")?,
        };
        let token = token.trim().to_owned();
        if token.is_empty() {
            bail!("no token was given");
        }
        // Something small that every token may read: a wrong one shows now and not later.
        let _: SizeList = Client::new(&url, Some(token.clone()))?.get("api/v1/sizes").await?;
        let file = Kept { url, token }.save()?;
        eprintln!("kept in {}", file.display());
        Ok(())
    }
}
