//! `brewbench serve`

use std::{net::SocketAddr, path::PathBuf};

use brewbench_agent::daemon;
use clap::Args;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::agent::Tools;
use crate::{config::Config, owner, server::Server, signal};

/// Starts the server.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "BREWBENCH_LISTEN", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// The folder of the database
    #[arg(long, env = "BREWBENCH_DATA", default_value = "data")]
    data: PathBuf,
    /// How browsers reach it [default: http://localhost:PORT]
    #[arg(long, env = "BREWBENCH_PUBLIC_URL")]
    public_url: Option<Url>,
    /// Callers' addresses are what the proxy before it adds to X-Forwarded-For
    #[arg(long, env = "BREWBENCH_BEHIND_PROXY")]
    behind_proxy: bool,
    /// The largest summary that is taken, in bytes
    #[arg(long, default_value_t = 16 * 1024 * 1024)]
    max_summary_bytes: usize,
    /// Run an agent in the same process, called `local`
    #[arg(long)]
    local_agent: bool,
    #[command(flatten)]
    tools: Tools,
}

impl Serve {
    /// Serves until it is told to end.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { listen, data, public_url, behind_proxy, max_summary_bytes, local_agent, tools } = self;
        let config = Config { public_url, max_summary_bytes, behind_proxy, ..Config::new(listen, data) };
        let end = signal::end();
        let server = Server::start(config, CancellationToken::new()).await?;
        eprintln!("brewbench listens on {}, open {}", server.address, server.state.public_url);
        if let Some(link) = server.first_invite().await? {
            eprintln!("nobody has registered yet; register once, within two days, at\n  {link}");
        }
        if !local_agent {
            let server_end = server.state.shutdown.clone();
            tokio::spawn(async move {
                end.cancelled().await;
                server_end.cancel();
            });
            return Ok(server.serve().await?);
        }
        let key = owner::local_agent_key(&server.state.db, "local").await?;
        let state = server.state.config.data.join("agent");
        let options = tools.options(server.local_url(), Some(key), state)?;
        with_agent(server, options, end).await
    }
}

/// Serves with an agent in the same process until told to end. If one of them fails, the other is ended too.
pub async fn with_agent(server: Server, options: daemon::Options, end: CancellationToken) -> anyhow::Result<()> {
    // The agent ends first: what it works on is handed back to a server that still listens.
    let server_end = server.state.shutdown.clone();
    let agent = async {
        let lived = daemon::run(options, end.clone()).await;
        server_end.cancel();
        lived
    };
    let serving = async {
        let outcome = server.serve().await;
        end.cancel();
        outcome
    };
    let (site, daemon) = tokio::join!(serving, agent);
    site?;
    daemon
}
