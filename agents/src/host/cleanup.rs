//! What an earlier life of the same agent left when it died in the middle of a run: found and removed at the start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::procfs;
use crate::sandbox::{AGENT_MARK, Sandbox};

/// Folders of runs in an agent's work folder begin with this; whatever does may be removed.
pub const RUN_FOLDER_PREFIX: &str = "run-";

/// What was removed; empty after a clean end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Folders of control groups.
    pub groups: Vec<PathBuf>,
    /// Names and numbers of processes outside of any known group.
    pub processes: Vec<(String, i32)>,
    /// Temporary folders.
    pub folders: Vec<PathBuf>,
}

impl Leftovers {
    /// Whether there was nothing to remove.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Removes what carries this agent's name. Two agents of one name on one machine would take each other's runs for
/// leftovers: the name must be unique there.
pub async fn remove(sandbox: &Sandbox, work_folder: &Path) -> Leftovers {
    let groups = sandbox.sweep().await;
    let processes = kill_marked(sandbox.agent()).await;
    Leftovers { groups, processes, folders: remove_folders(work_folder) }
}

/// Again and again until there are none: a process may fork while it is looked for.
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
            tracing::warn!(path = %path.display(), %error, "a folder of an earlier run stays");
            false
        }
    };
    ours.map(|entry| entry.path()).filter(remove).collect()
}
