//! `brewbench login`

use std::path::PathBuf;

use anyhow::{Context, bail};
use brewbench_agent::connection::client::{Client, Plain, Trust};
use clap::Args;
use url::Url;

use super::connection::Kept;
use crate::{catalog::model::SizeList, cli::common::TrustFlags};

/// Keeps a server's address and a token for the other commands.
#[derive(Debug, Args)]
pub struct Login {
    /// The server's address
    #[arg(env = "BREWBENCH_URL")]
    url: Url,
    /// An API token [default: asked for]
    #[arg(long, env = "BREWBENCH_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[command(flatten)]
    trust: TrustFlags,
}

impl Login {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { url, token, trust } = self;
        let trust = Trust::from(trust);
        let token = match token {
            Some(token) => token,
            None => rpassword::prompt_password("Token (brewbench token new NAME makes one): ")?,
        };
        let token = token.trim().to_owned();
        if token.is_empty() {
            bail!("no token was given");
        }
        // Something small that every token may read: a wrong one shows now and not later.
        let _: SizeList = Client::trusting(&url, Some(token.clone()), &trust)?.get("api/v1/sizes").await?;
        // Later commands are called in other folders.
        let absolute = |file: PathBuf| std::path::absolute(file).context("the CA's file");
        let ca_file = trust.ca_file.map(absolute).transpose()?;
        let file = Kept { url, token, ca_file, insecure_http: trust.plain == Plain::Anywhere }.save()?;
        eprintln!("kept in {}", file.display());
        Ok(())
    }
}
