//! `brewbench serve`

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use brewbench::app::{
    config::Config, listener::descriptors, local_admin, logs::Log, networks::Networks, server::Server, signals,
    tls::CertificateFiles,
};
use brewbench_agent::connection::daemon;
use clap::Args;
use nix::sys::stat::{Mode, umask};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{agent::Tools, duration};

/// Start the server.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, env = "BREWBENCH_LISTEN", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// Folder of the database
    #[arg(long, env = "BREWBENCH_DATA", default_value = "data")]
    data: PathBuf,
    /// File with the key that encrypts stored secrets [default: secrets.key in the folder of the database]
    #[arg(long, env = "BREWBENCH_SECRETS_KEY", value_name = "FILE")]
    secrets_key: Option<PathBuf>,
    /// URL at which browsers reach the server [default: http://localhost:PORT]
    #[arg(long, env = "BREWBENCH_PUBLIC_URL")]
    public_url: Option<Url>,
    /// Proxies whose X-Forwarded-For is trusted: addresses or networks, separated by commas. Without a value: those on
    /// this machine
    #[arg(long, env = "BREWBENCH_BEHIND_PROXY", value_name = "NETWORKS", num_args = 0..=1, require_equals = true,
        default_value = "", default_missing_value = "loopback", hide_default_value = true)]
    behind_proxy: Networks,
    /// Networks that webhooks may reach besides the public internet, also over plain HTTP, separated by commas
    #[arg(long, env = "BREWBENCH_WEBHOOKS_TO", value_name = "NETWORKS", default_value = "", hide_default_value = true)]
    webhooks_to: Networks,
    /// Serve TLS with this PEM certificate chain; reloaded when the file changes
    #[arg(long, env = "BREWBENCH_TLS_CERT", value_name = "FILE", requires = "tls_key", conflicts_with = "local_agent")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, env = "BREWBENCH_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Log format
    #[arg(long, env = "BREWBENCH_LOG", value_enum, default_value_t)]
    log: Log,
    /// Maximum size of an accepted summary, in bytes
    #[arg(long, env = "BREWBENCH_MAX_SUMMARY_BYTES", default_value_t = 16 * 1024 * 1024)]
    max_summary_bytes: usize,
    /// Time without data after which an agent counts as disconnected
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_AGENT_SILENCE", default_value = "5s", value_parser = timeout)]
    agent_silence: Duration,
    /// Time without data from its agent after which a run is lost, and retried if the plan allows it
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_LEASE", default_value = "15s", value_parser = timeout)]
    lease: Duration,
    /// Offer tools for assistants (Model Context Protocol) at /mcp
    #[arg(long, env = "BREWBENCH_MCP")]
    mcp: bool,
    /// Run an agent named `local` in the same process
    #[arg(long, env = "BREWBENCH_LOCAL_AGENT")]
    local_agent: bool,
    #[command(flatten)]
    tools: Tools,
}

/// Parses a timeout. Below one second, normal network delays would exceed it.
fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = duration::seconds(text)?;
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| "write it as 5s or 2m".to_owned())?;
    let allowed = Duration::from_secs(1)..=Duration::from_hours(24);
    if allowed.contains(&timeout) { Ok(timeout) } else { Err("must be between 1s and 24h".to_owned()) }
}

impl Serve {
    /// Returns the log format.
    pub fn log(&self) -> Log {
        self.log
    }

    /// Serves until a signal ends it.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self {
            listen,
            data,
            secrets_key,
            public_url,
            behind_proxy: proxies,
            webhooks_to,
            tls_cert,
            tls_key,
            log,
            max_summary_bytes,
            agent_silence: silence,
            lease,
            mcp,
            local_agent,
            tools,
        } = self;
        let tls = tls_cert.zip(tls_key).map(|(chain, key)| CertificateFiles { chain, key });
        let defaults = Config::new(listen, data);
        let config = Config {
            secrets_key,
            public_url,
            max_summary_bytes,
            silence,
            lease,
            proxies,
            webhooks_to,
            tls,
            mcp,
            ..defaults
        };
        // Files written from now on are readable by their owner only.
        umask(Mode::S_IRWXG | Mode::S_IRWXO);
        if !local_agent {
            // Not with an agent in this process: targets would inherit the higher limit.
            descriptors::raise();
        }
        let end = signals::end();
        let server = Server::start(config, CancellationToken::new()).await?;
        say(log, &format!("brewbench listens on {}, open {}", server.address, server.state.public_url));
        if server.has_no_users().await? {
            say(log, &format!("no users yet; {}", first_steps(&server).await?));
        }
        if !local_agent {
            let server_end = server.state.shutdown.clone();
            tokio::spawn(async move {
                end.cancelled().await;
                server_end.cancel();
            });
            return Ok(server.serve().await?);
        }
        let key = local_admin::local_agent_key(&server.state.db, "local").await?;
        let state = server.state.config.data.join("agent");
        let options = tools.options(server.local_url(), Some(key), state)?;
        with_agent(server, options, end).await
    }
}

/// Prints a line of the start: for people whatever the level of the logs, for programs as one of them.
fn say(log: Log, line: &str) {
    match log {
        Log::Text => eprintln!("{line}"),
        Log::Json => tracing::info!("{line}"),
    }
}

/// Describes how to register the first user. Prints the link to a terminal only: it is a secret, and logs are stored.
async fn first_steps(server: &Server) -> anyhow::Result<String> {
    if std::io::stderr().is_terminal() {
        let link = local_admin::link(&server.state).await?;
        return Ok(format!("register with this link, valid once, for two days:\n  {link}"));
    }
    let data = server.state.config.data.display();
    Ok(format!("create a registration link for an administrator with `brewbench invite --data {data}`"))
}

/// Serves with an agent in the same process. If one of them fails, the other is stopped too.
pub async fn with_agent(server: Server, options: daemon::Options, end: CancellationToken) -> anyhow::Result<()> {
    // The agent stops first, so that it can return its run to a server that still listens.
    let server_end = server.state.shutdown.clone();
    let agent = async {
        let outcome = daemon::run(options, end.clone()).await;
        server_end.cancel();
        outcome
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
