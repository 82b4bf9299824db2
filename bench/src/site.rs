//! A real server on a free port of loopback, and a client that may do everything.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::Context;

use brewbench::{
    auth::{NewToken, Scope},
    config::Config,
    owner,
    server::Server,
};
use brewbench_agent::client::Client;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use tokio_util::sync::CancellationToken;

/// Starts a server on a folder; it is not served yet.
pub async fn start(data: &Path) -> anyhow::Result<(Server, Client)> {
    let (server, token) = begin(data).await?;
    let client = Client::new(&server.local_url(), Some(token))?;
    Ok((server, client))
}

/// A server and a token with which everything may be done.
async fn begin(data: &Path) -> anyhow::Result<(Server, String)> {
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(Config::new(listen, data), CancellationToken::new()).await?;
    let asked = NewToken { name: "bench".to_owned(), scope: Scope::Admin, expires_in_days: None };
    Ok((server, owner::token(data, &asked).await?.secret))
}

/// The word that makes this program such a server: its data folder follows.
pub const APART: &str = "serve";

/// A server in a process of its own, so that what it costs can be read.
pub struct Apart {
    process: Child,
    /// May do everything.
    pub client: Client,
}

impl Apart {
    /// Starts it on a folder.
    pub async fn start(data: &Path) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(APART)
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("its output")?).lines();
        let url = lines.next_line().await?.context("an address")?;
        let secret = lines.next_line().await?.context("a token")?;
        Ok(Self { process, client: Client::new(&url.parse()?, Some(secret))? })
    }

    /// CPU time that it has used, s.
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        // Fields 14 and 15 in ticks, of which every Linux has 100 a second; the name before them may hold spaces.
        let stat = std::fs::read_to_string(self.proc("stat")?)?;
        let fields = stat.rsplit_once(')').context("a stat line")?.1.split_whitespace().skip(11).take(2);
        Ok(fields.map(|ticks| ticks.parse::<f64>().unwrap_or_default()).sum::<f64>() / 100.0)
    }

    /// The most memory that it has held, MiB.
    pub fn peak_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(self.proc("status")?)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a peak")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1_024.0)
    }

    fn proc(&self, file: &str) -> anyhow::Result<PathBuf> {
        Ok(format!("/proc/{}/{file}", self.process.id().context("it runs")?).into())
    }

    /// Ends it as its owner would.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        anyhow::ensure!(self.process.wait().await?.success(), "the server did not end well");
        Ok(())
    }
}

/// Serves a folder, says where and with which token, and ends with its standard input.
pub async fn serve_apart(data: &Path) -> anyhow::Result<()> {
    let (server, token) = begin(data).await?;
    println!("{}\n{token}", server.local_url());
    let shutdown = server.state.shutdown.clone();
    tokio::task::spawn_blocking(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        shutdown.cancel();
    });
    Ok(server.serve().await?)
}
