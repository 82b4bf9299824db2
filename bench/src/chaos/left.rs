//! Finds what an agent has left on the machine: processes, control groups, run folders, outcomes.

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use brewbench_agent::sandbox::{AGENT_MARK, CGROUP_ROOT};
use brewbench_wire::hex;
use sha2::{Digest, Sha256};

/// An agent, identified by the mark of its processes and groups.
#[derive(Clone, Debug)]
pub struct Marked {
    name: String,
    state: PathBuf,
}

/// A process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server under test.
    Target,
    /// k6.
    Generator,
}

impl Marked {
    /// Returns the agent with this state folder.
    pub fn new(state: &Path) -> anyhow::Result<Self> {
        let state = state.canonicalize().context("the state folder")?;
        let name = hex(&Sha256::digest(state.as_os_str().as_bytes())[..6]);
        Ok(Self { name, state })
    }

    /// Returns its processes with their side of a run.
    pub fn processes(&self) -> BTreeMap<i32, Option<Side>> {
        let mark = format!("{AGENT_MARK}={}", self.name);
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let ours = numbers.filter_map(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let has = |mark: &str| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
            let side = match () {
                () if has("BREWBENCH_SIDE=target") => Some(Side::Target),
                () if has("BREWBENCH_SIDE=generator") => Some(Side::Generator),
                () => None,
            };
            has(&mark).then_some((pid, side))
        });
        ours.collect()
    }

    /// Returns a process on one side of a running run.
    pub fn one(&self, side: Side) -> Option<i32> {
        self.processes().into_iter().find(|(_, other)| *other == Some(side)).map(|(pid, _)| pid)
    }

    /// Describes everything that runs left behind.
    pub fn left(&self) -> Vec<String> {
        let processes = self.processes().into_keys().map(|pid| format!("process {pid}"));
        let groups = groups(Path::new(CGROUP_ROOT), &format!("brewbench-{}", self.name), 4);
        let groups = groups.into_iter().map(|group| format!("group {}", group.display()));
        let below = |folder: &str| std::fs::read_dir(self.state.join(folder)).into_iter().flatten().flatten();
        let outcomes = below("spool").filter(|entry| entry.file_name() != "aside").chain(below("spool/aside"));
        let files = below("work").chain(outcomes).map(|entry| entry.path().display().to_string());
        processes.chain(groups).chain(files).collect()
    }
}

fn groups(folder: &Path, name: &str, depth: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let mut found = Vec::new();
    for path in folders {
        if path.file_name().is_some_and(|own| own == name) {
            found.push(path);
        } else if depth > 0 {
            found.extend(groups(&path, name, depth - 1));
        }
    }
    found
}
