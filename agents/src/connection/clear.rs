//! Clears the machine before an agent starts: nothing of an earlier process of it may disturb a measurement.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use brewbench_wire::hex;
use sha2::{Digest, Sha256};

use crate::connection::options::Options;
use crate::host::cleanup;
use crate::sandbox::Sandbox;
use crate::sandbox::cage::user::{self, Users};
use crate::target::{Cluster, Containers};

/// Where agents have the folders of their runs that start programs as other users.
const RUNS: &str = "/var/lib/brewbench-runs";

/// A machine without leftovers of this agent.
pub struct CleanupResult {
    pub sandbox: Sandbox,
    pub containers: Containers,
    pub cluster: Option<Cluster>,
    pub work_folder: PathBuf,
}

/// Removes what an earlier process of this agent has left on the machine and in its cluster.
pub async fn clear(options: &Options) -> anyhow::Result<CleanupResult> {
    let sandbox = Sandbox::detect(&options.cgroups, &name_on_machine(&options.state)?);
    let work_folder = work_folder(&options.state, sandbox.agent());
    fs::create_dir_all(&work_folder)
        .and_then(|()| work_folder.ancestors().take(2).try_for_each(user::open_path))
        .with_context(|| format!("{} can't be created", work_folder.display()))?;
    let left = cleanup::remove(&sandbox, &work_folder).await;
    let mut containers = Containers::find(options.container_engine.as_deref(), sandbox.agent());
    if !left.is_empty() {
        tracing::warn!(?left, "removed leftovers of an earlier process of this agent");
        containers = containers.with_unfinished_requests();
    }
    match containers.sweep().await {
        Ok(swept) if swept.is_empty() => {}
        Ok(swept) => tracing::warn!(containers = ?swept, "removed containers of an earlier process of this agent"),
        // An idle agent tries again.
        Err(fault) => tracing::warn!(fault, "containers of an earlier process of this agent may be left"),
    }
    let mut cluster = None;
    if options.kubernetes {
        let opened = Box::pin(Cluster::open(sandbox.agent(), options.namespace.as_deref())).await;
        cluster = Some(opened.map_err(anyhow::Error::msg)?);
    }
    Ok(CleanupResult { sandbox, containers, cluster, work_folder })
}

/// Returns the folder of the runs. It is in the state folder, unless programs have other users, who may not enter that.
fn work_folder(state: &Path, agent: &str) -> PathBuf {
    if Users::find().is_ok() { Path::new(RUNS).join(agent) } else { state.join("work") }
}

/// Returns a name that differs between agents on one machine and survives restarts.
fn name_on_machine(state: &Path) -> anyhow::Result<String> {
    let path = state.canonicalize().context("failed to resolve the state folder")?;
    Ok(hex(&Sha256::digest(path.as_os_str().as_bytes())[..6]))
}
