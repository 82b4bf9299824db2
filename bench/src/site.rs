//! A real server on a free port of loopback, and a client that may do everything.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context;
use brewbench::{
    app::{config::Config, local_admin, server::Server},
    auth::{model::Scope, people::NewToken},
    catalog::model::MachineSize,
};
use brewbench_agent::{connection::client::Client, wire::RunId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::apart::{self, Apart, What};

/// Starts a server on a folder; it is not served yet.
pub async fn start(data: &Path) -> anyhow::Result<(Server, Client)> {
    let (server, token) = begin(data, 0).await?;
    let client = Client::new(&server.local_url(), Some(token))?;
    Ok((server, client))
}

/// Starts a server on a folder; returns an admin token too.
pub async fn begin(data: &Path, port: u16) -> anyhow::Result<(Server, String)> {
    let listen = ([127, 0, 0, 1], port).into();
    let server = Server::start(Config::new(listen, data), CancellationToken::new()).await?;
    let asked = NewToken { name: format!("bench {}", RunId::now()), scope: Scope::Admin, expires_in_days: None };
    Ok((server, local_admin::token(data, &asked).await?.secret))
}

/// A size so small that k6, with a core of its own, has room: the target is the bottleneck, as in every ordinary run.
pub const ROOMY: &str = "0.25 vCPU / 256 MiB";

/// A server in a process of its own.
pub struct Site {
    /// What it costs.
    pub process: Apart,
    /// Its address.
    pub url: reqwest::Url,
    /// May do everything.
    pub token: String,
    /// With that token.
    pub client: Client,
}

impl Site {
    /// Starts it on a folder.
    pub async fn start(data: &Path) -> anyhow::Result<Self> {
        let mut process = Apart::start(What::Site, &[data.as_os_str()])?;
        let url: reqwest::Url = process.line().await?.parse()?;
        let token = process.line().await?;
        let client = Client::new(&url, Some(token.clone()))?;
        let roomy = json!({"name": ROOMY, "vcpus": 0.25, "memory_bytes": 256 << 20});
        let _: MachineSize = client.post("api/v1/sizes", &roomy).await?;
        Ok(Self { process, url, token, client })
    }

    /// Starts it once more, on the folder and the port of one that was killed.
    pub async fn again(data: &Path, port: u16) -> anyhow::Result<Apart> {
        let mut process = Apart::start(What::Site, &[data.as_os_str(), port.to_string().as_ref()])?;
        process.line().await?;
        Ok(process)
    }
}

/// Serves a data folder, prints its address and a token, and ends with its standard input. Its arguments are the folder and,
/// unless any port will do, the port.
pub async fn serve_apart(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let data = arguments.next().map(PathBuf::from).context("name the data folder")?;
    let port = arguments.next().map_or(Ok(0), |port| port.to_string_lossy().parse())?;
    let (server, token) = begin(&data, port).await?;
    println!("{}\n{token}", server.local_url());
    let shutdown = server.state.shutdown.clone();
    apart::at_the_end(move || shutdown.cancel());
    Ok(server.serve().await?)
}
