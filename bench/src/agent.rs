//! An agent in a process of its own.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use brewbench::{
    auth::people::MadeSecret,
    fleet::model::{AgentList, NewAgentKey},
};
use brewbench_agent::{
    connection::{
        client::Trust,
        daemon,
        daemon::{CGROUPS, Options},
        session::Accepts,
    },
    host::idle_wait::Quiet,
    run::address_policy::Reach,
};
use tokio_util::sync::CancellationToken;

use crate::{
    apart::{self, Apart, What},
    site::Site,
};

/// How long it may take to look at its machine and to dial.
const DIALLING_S: u32 = 30;

/// Starts one that works for a server; it has dialled in.
pub async fn start(site: &Site, state: &Path, manifests: &Path) -> anyhow::Result<Apart> {
    let asked = NewAgentKey { name: "bench".to_owned() };
    let key: MadeSecret = site.client.post("api/v1/agent-keys", &asked).await?;
    let (url, key) = (site.url.as_str(), key.secret.as_str());
    let agent = Apart::start(What::Agent, &[url.as_ref(), key.as_ref(), state.as_os_str(), manifests.as_os_str()])?;
    for _ in 0..DIALLING_S * 10 {
        let list: AgentList = site.client.get("api/v1/agents").await?;
        if list.agents.iter().any(|agent| agent.connected) {
            return Ok(agent);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("the agent did not dial in within {DIALLING_S} s")
}

/// Is one until its standard input ends: server, key, state folder and the folder of the manifests are its arguments.
pub async fn work_apart(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let mut next = |what: &'static str| arguments.next().context(what);
    let text = |word: std::ffi::OsString| word.into_string().ok().context("text");
    let options = Options {
        server: text(next("name the server")?)?.parse()?,
        key: Some(text(next("name the key")?)?),
        trust: Trust::default(),
        state: PathBuf::from(next("name the state folder")?),
        targets: PathBuf::from(next("name the folder of the manifests")?),
        engine: None,
        accepts: Accepts::BundledScenarios,
        cgroups: CGROUPS.into(),
        quiet: Quiet::default(),
        steady: None,
        load_address: None,
        reach: Reach::default(),
    };
    let end = CancellationToken::new();
    let asked = end.clone();
    apart::at_the_end(move || asked.cancel());
    daemon::run(options, end).await
}
