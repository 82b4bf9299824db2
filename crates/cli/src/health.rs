//! `brewbench health`

use brewbench_io::client::Client;
use clap::Args;
use reqwest::Method;
use url::Url;

/// Check whether a server can store results. Containers use it.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  0  the server is ready\n  1  it is not, or does not respond")]
pub struct Health {
    /// The server's address
    #[arg(default_value = "http://127.0.0.1:8377")]
    url: Url,
}

impl Health {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.url, None)?;
        client.send(client.request(Method::GET, "readyz")).await?;
        println!("ready");
        Ok(())
    }
}
