//! A real server on a loopback port, and a client with an admin token.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use brewbench::{
    app::{config::Config, local_admin, server::Server},
    auth::{model::Scope, users::NewToken},
    catalog::model::MachineSize,
    experiments::model::ExperimentWithRuns,
};
use brewbench_io::client::Client;
use brewbench_wire::RunId;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::apart::{self, Apart, What};

/// Opens a server on a data folder, without serving yet, and returns a client.
pub async fn start(data: &Path) -> anyhow::Result<(Server, Client)> {
    let (server, token) = open(data, 0).await?;
    let client = Client::new(&server.local_url(), Some(token))?;
    Ok((server, client))
}

/// Opens a server on a data folder, without serving yet, and returns an admin token.
pub async fn open(data: &Path, port: u16) -> anyhow::Result<(Server, String)> {
    let listen = ([127, 0, 0, 1], port).into();
    let server = Server::start(Config::new(listen, data), CancellationToken::new()).await?;
    let request = NewToken {
        name: format!("bench {}", RunId::now()),
        scope: Scope::Admin,
        expires_in_days: None,
        never_expires: false,
    };
    Ok((server, local_admin::token(data, &request).await?.secret))
}

/// Measures an experiment to its end.
pub async fn experiment(client: &Client, plan: &Value) -> anyhow::Result<ExperimentWithRuns> {
    let created: ExperimentWithRuns = client.post("api/v1/experiments", plan).await?;
    let path = format!("api/v1/experiments/{}", created.experiment.id);
    // The event stream ends with the experiment.
    client.send(client.request(Method::GET, &format!("{path}/events"))).await?.text().await?;
    let finished: ExperimentWithRuns = client.get(&path).await?;
    ensure!(finished.progress.ended == finished.progress.total, "the experiment has not finished");
    Ok(finished)
}

/// A machine size so small that the target, and not k6, is the bottleneck, as in ordinary runs.
pub const ROOMY: &str = "0.25 vCPU / 256 MiB";

/// A server in a child process.
pub struct Site {
    /// The process.
    pub process: Apart,
    /// URL of the server.
    pub url: reqwest::Url,
    /// An admin token.
    pub token: String,
    /// A client with that token.
    pub client: Client,
}

impl Site {
    /// Starts it on a data folder.
    pub async fn start(data: &Path) -> anyhow::Result<Self> {
        let mut process = Apart::start(What::Site, &[data.as_os_str()])?;
        let url: reqwest::Url = process.line().await?.parse()?;
        let token = process.line().await?;
        let client = Client::new(&url, Some(token.clone()))?;
        let roomy = json!({"name": ROOMY, "vcpus": 0.25, "memory_bytes": 256 << 20});
        let _: MachineSize = client.post("api/v1/sizes", &roomy).await?;
        Ok(Self { process, url, token, client })
    }

    /// Restarts a killed server on its data folder and port.
    pub async fn restart(data: &Path, port: u16) -> anyhow::Result<Apart> {
        let mut process = Apart::start(What::Site, &[data.as_os_str(), port.to_string().as_ref()])?;
        process.line().await?;
        Ok(process)
    }
}

/// Serves a data folder until standard input ends; prints its URL and a token. Arguments: folder and, optionally, port.
pub async fn run_child(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let data = arguments.next().map(PathBuf::from).context("name the data folder")?;
    let port = arguments.next().map_or(Ok(0), |port| port.to_string_lossy().parse())?;
    let (server, token) = open(&data, port).await?;
    println!("{}\n{token}", server.local_url());
    let shutdown = server.state.shutdown.clone();
    apart::on_stdin_end(move || shutdown.cancel());
    Ok(server.serve().await?)
}
