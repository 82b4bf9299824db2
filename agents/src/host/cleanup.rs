//! Finds and removes what an earlier process of the same agent left when it died during a run.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::host::procfs;
use crate::sandbox::cage::user;
use crate::sandbox::{AGENT_MARK, Sandbox, firewall};

/// Prefix of the folders of runs in an agent's work folder; every folder with it may be removed.
pub const RUN_FOLDER_PREFIX: &str = "run-";

/// Creates the folder of a run, which programs of a run may enter. Fails with a sentence.
pub fn create_run_folder(work_folder: &Path) -> Result<TempDir, String> {
    let create = || {
        let folder = tempfile::Builder::new().prefix(RUN_FOLDER_PREFIX).tempdir_in(work_folder)?;
        user::open_path(folder.path())?;
        Ok(folder)
    };
    create().map_err(|error: io::Error| format!("can't create a folder in {}: {error}", work_folder.display()))
}

/// What was removed; empty after a clean exit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Folders of control groups.
    pub groups: Vec<PathBuf>,
    /// Names and pids of processes outside of any known group.
    pub processes: Vec<(String, i32)>,
    /// Tables with rules for a load generator's connections.
    pub firewalls: Vec<String>,
    /// Temporary folders.
    pub folders: Vec<PathBuf>,
}

impl Leftovers {
    /// Whether there was nothing to remove.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Removes everything marked with this agent's name. The name must be unique on the machine: of two agents with the
/// same name, each would remove the runs of the other.
pub async fn remove(sandbox: &Sandbox, work_folder: &Path) -> Leftovers {
    let groups = sandbox.sweep().await;
    let processes = kill_marked(sandbox.agent()).await;
    let firewalls = firewall::sweep(sandbox.agent());
    Leftovers { groups, processes, firewalls, folders: remove_folders(work_folder) }
}

/// Kills marked processes until there are none: a process may fork during the search.
async fn kill_marked(agent: &str) -> Vec<(String, i32)> {
    let mut killed = Vec::new();
    for _ in 0..1000 {
        let found = procfs::marked(&[(AGENT_MARK, agent)]);
        if found.is_empty() {
            break;
        }
        for pid in found {
            if killed.iter().all(|(_, known)| *known != pid) {
                killed.push((procfs::name(pid), pid));
            }
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    killed
}

fn remove_folders(work_folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(work_folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(RUN_FOLDER_PREFIX));
    let remove = |path: &PathBuf| match std::fs::remove_dir_all(path) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "failed to remove a folder of an earlier run");
            false
        }
    };
    ours.map(|entry| entry.path()).filter(remove).collect()
}
