//! Flags that most commands share.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use brewbench_io::client::{Plain, Trust};
use clap::Args;
use serde::{Serialize, de::DeserializeOwned};

use crate::connection::Connection;

/// Heading of the flags about the server, which come last.
const CONNECTION: &str = "Connection";

/// Which server, and as whom.
#[derive(Clone, Debug, Args)]
pub struct ServerFlags {
    /// The server's address [default: from the last login]
    #[arg(long, env = "BREWBENCH_URL", global = true, help_heading = CONNECTION)]
    url: Option<url::Url>,
    /// An API token [default: from the last login]
    #[arg(long, env = "BREWBENCH_TOKEN", hide_env_values = true, global = true, help_heading = CONNECTION)]
    token: Option<String>,
    #[command(flatten)]
    trust: TrustFlags,
}

/// Flags of every command that prints what a server answers.
#[derive(Clone, Debug, Args)]
pub struct Common {
    #[command(flatten)]
    server: ServerFlags,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// TLS flags of every command that connects to a server.
#[derive(Clone, Debug, Default, Args)]
pub struct TrustFlags {
    /// PEM file of an additional CA to trust, for a server with a private certificate
    #[arg(long, env = "BREWBENCH_CA_FILE", value_name = "FILE", global = true, help_heading = CONNECTION)]
    ca_file: Option<PathBuf>,
    /// Allow plain HTTP to another machine: anyone on the network can read and change the traffic
    #[arg(long, env = "BREWBENCH_INSECURE_HTTP", global = true, help_heading = CONNECTION)]
    insecure_http: bool,
}

impl From<TrustFlags> for Trust {
    fn from(flags: TrustFlags) -> Self {
        let TrustFlags { ca_file, insecure_http } = flags;
        Self { ca_file, plain: if insecure_http { Plain::Anywhere } else { Plain::Loopback } }
    }
}

impl ServerFlags {
    /// Connects to the server of the flags or of the last login.
    pub fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.url.clone(), self.token.clone(), self.trust.clone().into())
    }
}

impl Common {
    /// Connects to the server of the flags or of the last login.
    pub fn connect(&self) -> anyhow::Result<Connection> {
        self.server.connect()
    }

    /// Prints what the server answers to a GET.
    pub async fn show<T>(&self, path: &str, table: impl FnOnce(&T) -> String) -> anyhow::Result<()>
    where
        T: Serialize + DeserializeOwned,
    {
        let found: T = self.connect()?.client.get(path).await?;
        self.print(&found, table)
    }

    /// Prints JSON with `--json`, else text.
    pub fn print<T: Serialize>(&self, value: &T, table: impl FnOnce(&T) -> String) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string_pretty(value)? + "\n" } else { table(value) };
        match io::stdout().lock().write_all(text.as_bytes()) {
            // The reader has seen enough: `brewbench run list | head`.
            Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}

/// Parses `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
