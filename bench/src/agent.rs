//! An agent in a separate process.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use brewbench::{
    auth::users::CreatedSecret,
    fleet::model::{AgentList, NewAgentKey},
};
use brewbench_agent::{
    connection::{
        daemon::{self, CGROUPS, Options},
        session::Accepts,
    },
    host::idle_wait::IdleWait,
    run::address_policy::AddressPolicy,
};
use brewbench_io::client::Trust;
use brewbench_wire::profile::ProfileSource;
use tokio_util::sync::CancellationToken;

use crate::{
    apart::{self, Apart, What},
    site::Site,
};

/// How long it may take to inspect its machine and connect, s.
const CONNECT_TIMEOUT_S: u32 = 30;

/// Starts an agent and waits until it is connected to the server.
///
/// It uses this container engine, or one that it finds.
pub async fn start(site: &Site, state: &Path, manifests: &Path, engine: Option<&Path>) -> anyhow::Result<Apart> {
    let request = NewAgentKey { name: "bench".to_owned() };
    let key: CreatedSecret = site.client.post("api/v1/agent-keys", &request).await?;
    let (url, key) = (site.url.as_str(), key.secret.as_str());
    let arguments = [url.as_ref(), key.as_ref(), state.as_os_str(), manifests.as_os_str()];
    let arguments: Vec<&OsStr> = arguments.into_iter().chain(engine.map(Path::as_os_str)).collect();
    let agent = Apart::start(What::Agent, &arguments)?;
    for _ in 0..CONNECT_TIMEOUT_S * 10 {
        let list: AgentList = site.client.get("api/v1/agents").await?;
        if list.agents.iter().any(|agent| agent.connected) {
            return Ok(agent);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("the agent did not connect within {CONNECT_TIMEOUT_S} s")
}

/// Runs an agent until standard input ends. Arguments: server, key, state folder, folder of the manifests
/// and, optionally, the socket of a container engine.
pub async fn run_child(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let mut next = |what: &'static str| arguments.next().context(what);
    let text = |word: std::ffi::OsString| word.into_string().ok().context("text");
    let options = Options {
        generators: None,
        server: text(next("name the server")?)?.parse()?,
        key: Some(text(next("name the key")?)?),
        trust: Trust::default(),
        state: PathBuf::from(next("name the state folder")?),
        targets: PathBuf::from(next("name the folder of the manifests")?),
        engine: None,
        native: None,
        accepts: Accepts::BundledScenarios,
        cgroups: CGROUPS.into(),
        idle_wait: IdleWait::default(),
        cpu_tuning: None,
        load_address: None,
        reach: AddressPolicy::default(),
        container_engine: arguments.next().map(PathBuf::from),
        profilers: vec![ProfileSource::Pprof, ProfileSource::Perf],
        kubernetes: false,
        namespace: None,
    };
    let end = CancellationToken::new();
    let cancelled = end.clone();
    apart::on_stdin_end(move || cancelled.cancel());
    daemon::run(options, end).await
}
