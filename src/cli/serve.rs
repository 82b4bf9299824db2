//! `brewbench serve`

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use brewbench_agent::connection::daemon;
use clap::Args;
use nix::sys::stat::{Mode, umask};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{agent::Tools, duration};
use crate::app::{
    config::Config, listener::descriptors, local_admin, logs::Log, networks::Networks, server::Server, signals,
    tls::CertificateFiles,
};

/// Starts the server.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "BREWBENCH_LISTEN", default_value = "127.0.0.1:8377")]
    listen: SocketAddr,
    /// The folder of the database
    #[arg(long, env = "BREWBENCH_DATA", default_value = "data")]
    data: PathBuf,
    /// The key that stored secrets are encrypted with [default: secrets.key in the folder of the database]
    #[arg(long, env = "BREWBENCH_SECRETS_KEY", value_name = "FILE")]
    secrets_key: Option<PathBuf>,
    /// How browsers reach it [default: http://localhost:PORT]
    #[arg(long, env = "BREWBENCH_PUBLIC_URL")]
    public_url: Option<Url>,
    /// Whose X-Forwarded-For is believed: proxies by address or network, separated by commas; without any, those on this
    /// machine
    #[arg(long, env = "BREWBENCH_BEHIND_PROXY", value_name = "NETWORKS", num_args = 0..=1, require_equals = true,
        default_value = "", default_missing_value = "loopback", hide_default_value = true)]
    behind_proxy: Networks,
    /// Networks that webhooks may go to besides the public internet, also by plain http, separated by commas
    #[arg(long, env = "BREWBENCH_WEBHOOKS_TO", value_name = "NETWORKS", default_value = "", hide_default_value = true)]
    webhooks_to: Networks,
    /// Speak TLS with this certificate, PEM, with those between it and its CA; read anew when it changes
    #[arg(long, env = "BREWBENCH_TLS_CERT", value_name = "FILE", requires = "tls_key", conflicts_with = "local_agent")]
    tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, env = "BREWBENCH_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// How the log is written
    #[arg(long, env = "BREWBENCH_LOG", value_enum, default_value_t)]
    log: Log,
    /// The largest summary that is taken, in bytes
    #[arg(long, default_value_t = 16 * 1024 * 1024)]
    max_summary_bytes: usize,
    /// An agent that has said nothing for so long counts as gone
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_AGENT_SILENCE", default_value = "5s", value_parser = silence)]
    agent_silence: Duration,
    /// The run of an agent that has said nothing for so long is given up, and done again if its plan allows
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_LEASE", default_value = "15s", value_parser = silence)]
    lease: Duration,
    /// Run an agent in the same process, called `local`
    #[arg(long)]
    local_agent: bool,
    #[command(flatten)]
    tools: Tools,
}

/// How long somebody may be silent: less than a second would be taken for granted by nobody's network.
fn silence(text: &str) -> Result<Duration, String> {
    let seconds = duration::seconds(text)?;
    let silence = Duration::try_from_secs_f64(seconds).map_err(|_| "write it as 5s or 2m".to_owned())?;
    let allowed = Duration::from_secs(1)..=Duration::from_hours(24);
    if allowed.contains(&silence) { Ok(silence) } else { Err("it must be from 1s to 24h".to_owned()) }
}

impl Serve {
    /// How the log is to be written.
    pub fn log(&self) -> Log {
        self.log
    }

    /// Serves until it is told to end.
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
            log: _,
            max_summary_bytes,
            agent_silence: silence,
            lease,
            local_agent,
            tools,
        } = self;
        let tls = tls_cert.zip(tls_key).map(|(chain, key)| CertificateFiles { chain, key });
        let usual = Config::new(listen, data);
        let config =
            Config { secrets_key, public_url, max_summary_bytes, silence, lease, proxies, webhooks_to, tls, ..usual };
        // What is written from now on is nobody else's to read.
        umask(Mode::S_IRWXG | Mode::S_IRWXO);
        if !local_agent {
            // Targets would inherit it and find another machine than those of an agent by itself.
            descriptors::raise();
        }
        let end = signals::end();
        let server = Server::start(config, CancellationToken::new()).await?;
        eprintln!("brewbench listens on {}, open {}", server.address, server.state.public_url);
        if server.is_nobodys().await? {
            eprintln!("nobody has registered yet; {}", first_steps(&server).await?);
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

/// What who has started a server does next. A link is a key to it, and what is no terminal is kept as a log.
async fn first_steps(server: &Server) -> anyhow::Result<String> {
    if std::io::stderr().is_terminal() {
        let link = local_admin::link(&server.state).await?;
        return Ok(format!("register once, within two days, at\n  {link}"));
    }
    let data = server.state.config.data.display();
    Ok(format!("`brewbench invite --data {data}` makes a registration link"))
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
