//! `brewbench login`

use std::{io::IsTerminal, path::PathBuf};

use anyhow::{Context, bail};
use brewbench::catalog::model::SizeList;
use brewbench_io::client::{Client, Plain, Trust};
use clap::Args;
use url::Url;

use super::connection::StoredLogin;
use crate::common::TrustFlags;

/// Store a server's address and a token for the other commands.
#[derive(Debug, Args)]
pub struct Login {
    /// The server's address
    #[arg(env = "BREWBENCH_URL")]
    url: Url,
    /// An API token [default: a prompt, or the first line of standard input]
    #[arg(long, env = "BREWBENCH_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[command(flatten)]
    trust: TrustFlags,
}

impl Login {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { url, token, trust } = self;
        let trust = Trust::from(trust);
        let token = match token {
            Some(token) => token,
            None if std::io::stdin().is_terminal() => {
                rpassword::prompt_password("Token (create one with `brewbench token new NAME`): ")?
            }
            None => std::io::stdin().lines().next().transpose()?.unwrap_or_default(),
        };
        let token = token.trim().to_owned();
        if token.is_empty() {
            bail!("the token is empty");
        }
        // A cheap request that every token may make: reports a wrong token now.
        let _: SizeList = Client::with_trust(&url, Some(token.clone()), &trust)?.get("api/v1/sizes").await?;
        // Later commands may run in other folders.
        let absolute = |file: PathBuf| std::path::absolute(file).context("the path of the CA file is invalid");
        let ca_file = trust.ca_file.map(absolute).transpose()?;
        let file = StoredLogin { url, token, ca_file, insecure_http: trust.plain == Plain::Anywhere }.save()?;
        eprintln!("stored in {}", file.display());
        Ok(())
    }
}
