//! The processes of a run with one role: limits, watches and kills them together.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::outcome::{Enforced, Observed};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{MemoryUse, ProgramRole, Tree, files};
use crate::host::procfs;

/// Environment variable of every process with the agent's name.
pub const AGENT_MARK: &str = "BREWBENCH_AGENT";
const RUN_MARK: &str = "BREWBENCH_RUN";
const SIDE_MARK: &str = "BREWBENCH_SIDE";

/// A killed process needs a moment to exit; after this time it is stuck in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(1);

/// The programs of a run with one role. Dropping it tries to kill its processes and to remove its folders;
/// [`Group::clear`] waits until that is done.
#[derive(Debug)]
pub struct Group {
    agent: String,
    run: RunId,
    role: ProgramRole,
    tree: Tree,
    home: Tree,
}

impl Group {
    pub(super) fn new(agent: String, run: RunId, role: ProgramRole, tree: Tree, home: Tree) -> Self {
        Self { agent, run, role, tree, home }
    }

    /// Sets the limits of a size; returns those that the kernel confirmed.
    pub fn limit(&self, size: &Size) -> Enforced {
        self.tree.limit(size)
    }

    /// Limits memory and processes of a group without a size, so that it can't exhaust the machine.
    pub fn bound(&self, machine_memory_bytes: u64) {
        self.tree.bound(machine_memory_bytes / 4 * 3);
    }

    /// Returns the usage so far; `None` without control groups.
    pub fn observed(&self) -> Option<Observed> {
        self.tree.observed()
    }

    /// Returns the environment variables by which its processes are found without control groups.
    pub fn marks(&self) -> [(&'static str, String); 3] {
        [(AGENT_MARK, self.agent.clone()), (RUN_MARK, self.run.to_string()), (SIDE_MARK, self.role.as_str().to_owned())]
    }

    /// Opens the files through which a process enters the group, by writing `0` into each.
    pub fn entrances(&self) -> io::Result<Vec<File>> {
        let open = |folder: PathBuf| OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
        self.tree.folders().into_iter().map(open).collect()
    }

    /// Returns the pids of its processes.
    pub fn processes(&self) -> BTreeSet<i32> {
        processes(&self.tree, &self.marks())
    }

    /// Returns a view of the group that outlives it; then it is empty.
    pub fn watch(&self) -> Watch {
        Watch { marks: self.marks(), tree: self.tree.clone() }
    }

    /// Kills every process in the group and waits until it is empty. Fails if one can't be killed.
    pub async fn kill(&self) -> io::Result<()> {
        empty(&self.tree.folders(), || self.processes()).await
    }

    /// Kills its processes and removes the group. Fails if a process can't be killed.
    pub async fn clear(self) -> io::Result<()> {
        self.kill().await?;
        remove(&self.tree.folders()).await?;
        self.home.remove();
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // After `clear` the folders are gone, and there is nothing to do.
        let folders: Vec<_> = self.tree.folders().into_iter().filter(|folder| folder.exists()).collect();
        if folders.is_empty() {
            return;
        }
        for _ in 0..100 {
            kill_once(&folders, &self.processes());
            if folders.iter().all(|folder| remove_once(folder).is_ok()) {
                break;
            }
            std::thread::sleep(STEP);
        }
        self.home.remove();
    }
}

/// A view of a group.
#[derive(Clone, Debug)]
pub struct Watch {
    marks: [(&'static str, String); 3],
    pub(super) tree: Tree,
}

impl Watch {
    /// A group that this agent has not created, so its processes have no marks.
    pub(super) fn foreign(tree: Tree) -> Self {
        Self { marks: [AGENT_MARK, RUN_MARK, SIDE_MARK].map(|mark| (mark, String::new())), tree }
    }

    /// Returns the usage so far; `None` without control groups.
    pub fn observed(&self) -> Option<Observed> {
        self.tree.observed()
    }

    /// Returns the inode of the group, which the kernel reports for each socket that was opened in it; `None` without
    /// cgroup v2.
    pub fn inode(&self) -> Option<u64> {
        let Tree::Unified(folder) = &self.tree else { return None };
        std::fs::metadata(folder).ok().map(|folder| folder.ino())
    }

    /// Returns the memory in use; all of it is unknown without control groups.
    pub fn memory(&self) -> MemoryUse {
        self.tree.memory()
    }

    /// Returns the pids of its processes.
    pub fn processes(&self) -> BTreeSet<i32> {
        processes(&self.tree, &self.marks)
    }
}

fn processes(tree: &Tree, marks: &[(&str, String)]) -> BTreeSet<i32> {
    match tree {
        Tree::None => procfs::marked(marks),
        tree => members(&tree.folders()),
    }
}

/// Kills and removes groups by their folders.
pub(super) async fn clear(folders: &[PathBuf]) -> io::Result<()> {
    empty(folders, || members(folders)).await?;
    remove(folders).await
}

/// After this many attempts, something forks as fast as it is killed.
const ATTEMPTS_BEFORE_BRAKE: u32 = 20;

pub(super) async fn empty(folders: &[PathBuf], processes: impl Fn() -> BTreeSet<i32>) -> io::Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut brake = None;
    for attempt in 0.. {
        let left = processes();
        if left.is_empty() {
            break;
        }
        if tokio::time::Instant::now() > deadline {
            return Err(io::Error::other(format!("processes {left:?} can't be killed")));
        }
        if attempt == ATTEMPTS_BEFORE_BRAKE {
            brake = Some(Brake::apply(folders));
        }
        kill_once(folders, &left);
        tokio::time::sleep(STEP).await;
    }
    drop(brake);
    Ok(())
}

/// Kills all processes once.
fn kill_once(folders: &[PathBuf], processes: &BTreeSet<i32>) {
    for folder in folders {
        let kill_file = folder.join("cgroup.kill");
        if kill_file.exists() {
            files::write(&kill_file, "1");
        }
    }
    for &pid in processes {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// Prevents new processes until dropped, as the group may be used again.
struct Brake(Vec<(PathBuf, String)>);

impl Brake {
    fn apply(folders: &[PathBuf]) -> Self {
        let limits = folders.iter().map(|folder| folder.join("pids.max"));
        let before: Vec<_> = limits.filter_map(|path| files::text(&path).map(|limit| (path, limit))).collect();
        for (path, _) in &before {
            files::write(path, "0");
        }
        Self(before)
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        for (path, limit) in &self.0 {
            files::write(path, limit.trim());
        }
    }
}

/// Returns the processes of these groups and of all groups below them.
fn members(folders: &[PathBuf]) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for folder in folders {
        let text = files::text(&folder.join("cgroup.procs")).unwrap_or_default();
        // A process of another pid namespace appears as 0.
        found.extend(text.lines().filter_map(|line| line.parse().ok()).filter(|&pid: &i32| pid > 0));
        found.extend(members(&files::subfolders(folder)));
    }
    found
}

/// Removes groups; one stays busy for a moment after its last process was killed.
async fn remove(folders: &[PathBuf]) -> io::Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for folder in folders {
        while let Err(error) = remove_once(folder) {
            if tokio::time::Instant::now() > deadline {
                return Err(error);
            }
            tokio::time::sleep(STEP).await;
        }
    }
    Ok(())
}

fn remove_once(folder: &Path) -> io::Result<()> {
    files::subfolders(folder).iter().try_for_each(|below| remove_once(below))?;
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
