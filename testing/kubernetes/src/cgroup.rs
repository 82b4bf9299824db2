//! The control groups below which a node puts its Pods.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::process::is_gone;

const ROOT: &str = "/sys/fs/cgroup";
const NAMES: &str = "brewbench-kubelet-";

/// The groups of one node, removed when dropped. Its processes must be gone by then.
#[derive(Debug)]
pub struct Groups(String);

impl Groups {
    /// Creates a group for the node with this address, in each hierarchy.
    ///
    /// Fails where there are no controllers for CPU and memory.
    pub fn create(node: Ipv4Addr) -> io::Result<Self> {
        sweep();
        let groups = Self(format!("{NAMES}{}-{node}", std::process::id()));
        for hierarchy in hierarchies() {
            fs::create_dir_all(hierarchy.join(&groups.0))?;
        }
        if Path::new(ROOT).join("cgroup.controllers").exists() {
            for folder in [Path::new(ROOT).to_owned(), Path::new(ROOT).join(&groups.0)] {
                fs::write(folder.join("cgroup.subtree_control"), "+cpu +cpuset +io +memory +pids")?;
            }
        } else if !Path::new(ROOT).join("memory").join(&groups.0).exists() {
            return Err(io::Error::other("no controller for memory"));
        }
        Ok(groups)
    }

    /// Returns their path, as a kubelet names it.
    pub fn path(&self) -> String {
        format!("/{}", self.0)
    }

    /// Returns the processes of a container.
    pub fn processes(&self, container: &str) -> Vec<i32> {
        let is_container = |folder: &PathBuf| folder.file_name().is_some_and(|name| name == container);
        let mut all = hierarchies().into_iter().flat_map(|hierarchy| below(&hierarchy.join(&self.0)));
        let list = all.find(is_container).map(|folder| fs::read_to_string(folder.join("cgroup.procs")));
        list.and_then(Result::ok).unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // A group stays busy for a moment after its last process was killed.
        for _ in 0..200 {
            if remove(&self.0) {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the folder of each hierarchy: a single one with version 2; one per controller with version 1, and beside
/// these an empty one of version 2, to which runc adds groups, too.
fn hierarchies() -> Vec<PathBuf> {
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        return vec![ROOT.into()];
    }
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|folder| folder.join("cgroup.procs").exists()).collect()
}

/// Returns a group and all below it, these first.
fn below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let mut all: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).flat_map(|path| below(&path)).collect();
    all.push(group.to_owned());
    all
}

/// Removes a group of all hierarchies with what is below it. Returns whether nothing is left.
fn remove(name: &str) -> bool {
    let groups: Vec<_> = hierarchies().into_iter().map(|hierarchy| hierarchy.join(name)).collect();
    groups.iter().flat_map(|group| below(group)).for_each(|group| drop(fs::remove_dir(group)));
    groups.iter().all(|group| !group.exists())
}

/// Removes the groups of tests that were killed.
fn sweep() {
    for entry in hierarchies().iter().flat_map(fs::read_dir).flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(NAMES).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(is_gone) {
            remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_testing::skip;

    use super::*;

    #[test]
    fn groups_are_removed_with_all_below_them() {
        let groups = match Groups::create(Ipv4Addr::LOCALHOST) {
            Ok(groups) => groups,
            Err(error) => return skip(&format!("no control groups: {error}")),
        };
        let own: Vec<_> = hierarchies().iter().map(|hierarchy| hierarchy.join(&groups.0)).collect();
        fs::create_dir_all(own[0].join("pod/container")).expect("a group");
        assert_eq!(groups.processes("container"), Vec::<i32>::new());
        drop(groups);
        assert!(own.iter().all(|group| !group.exists()), "{own:?}");
    }
}
