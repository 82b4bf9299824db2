//! Flags that most commands share.

use std::path::PathBuf;

use brewbench_agent::connection::client::{Plain, Trust};
use clap::Args;
use serde::Serialize;

use crate::cli::connection::Connection;

/// Given to every command that speaks to a server.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The server's address [default: that of the last login]
    #[arg(long, env = "BREWBENCH_URL", global = true)]
    url: Option<url::Url>,
    /// An API token [default: that of the last login]
    #[arg(long, env = "BREWBENCH_TOKEN", hide_env_values = true, global = true)]
    token: Option<String>,
    #[command(flatten)]
    trust: TrustFlags,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Whom to trust, given to whatever speaks to a server.
#[derive(Clone, Debug, Default, Args)]
pub struct TrustFlags {
    /// PEM file of a CA that is trusted as well, where the server's certificate is from one of your own
    #[arg(long, env = "BREWBENCH_CA_FILE", value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
    /// Speak plain HTTP also to another machine: whoever stands between reads and changes everything
    #[arg(long, env = "BREWBENCH_INSECURE_HTTP", global = true)]
    insecure_http: bool,
}

impl From<TrustFlags> for Trust {
    fn from(flags: TrustFlags) -> Self {
        let TrustFlags { ca_file, insecure_http } = flags;
        Self { ca_file, plain: if insecure_http { Plain::Anywhere } else { Plain::Loopback } }
    }
}

impl Common {
    /// To the server that is meant.
    pub fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.url.clone(), self.token.clone(), self.trust.clone().into())
    }

    /// Prints for scripts or for people.
    pub fn print<T: Serialize>(&self, value: &T, table: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
        if self.json {
            println!("{}", serde_json::to_string_pretty(value)?);
        } else {
            print!("{}", table(value));
        }
        Ok(())
    }
}

/// A name and a value from `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
