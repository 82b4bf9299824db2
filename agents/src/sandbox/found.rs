//! The control group of a container, in which its engine has put it: found by a process, read, but never changed except
//! to kill its processes.

use std::io;
use std::path::{Path, PathBuf};

use super::group::{Watch, empty};
use super::{Tree, files, v1, v2};
use crate::wire::job::Size;
use crate::wire::outcome::Enforced;

impl Watch {
    /// Finds the group of a container below `root` (see [`super::CGROUP_ROOT`]), by one of its processes and its id.
    /// `None` if that process is not in a group of this container.
    pub fn of_container(root: &Path, pid: i32, id: &str) -> Option<Self> {
        let text = files::text(&PathBuf::from(format!("/proc/{pid}/cgroup")))?;
        let tree = if root.join("cgroup.controllers").exists() {
            Tree::Unified(root.join(group_of(&text, "", id)?))
        } else {
            Tree::Split(v1::Dirs::of(root, |controller| group_of(&text, controller, id))?)
        };
        Some(Self::foreign(tree))
    }

    /// Returns which limits of a size are in force, as read from the kernel.
    pub fn confirmed(&self, size: &Size) -> Enforced {
        match &self.tree {
            Tree::Unified(dir) => v2::confirmed(dir, size),
            Tree::Split(dirs) => dirs.confirmed(size),
            Tree::None => Enforced::NONE,
        }
    }

    /// Kills all its processes, for an engine that does not respond.
    pub async fn kill(&self) -> io::Result<()> {
        empty(&self.tree.folders(), || self.processes()).await
    }
}

/// Returns the path of a container's group in the hierarchy of a controller, relative to its root, from the text of
/// `/proc/PID/cgroup`; the unified hierarchy has no name. The limits are at the part that names the container: engines
/// may have groups below it.
fn group_of(text: &str, controller: &str, id: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let mut group = PathBuf::new();
    for part in path.trim_start_matches('/').split('/') {
        group.push(part);
        if part.contains(id) {
            return Some(group);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_the_part_that_names_the_container() {
        let found =
            |text: &str, controller: &str| group_of(text, controller, "abc").map(|path| path.display().to_string());
        let docker = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc\n";
        assert_eq!(found(docker, "memory").as_deref(), Some("docker/abc"));
        assert_eq!(found(docker, "cpuacct").as_deref(), Some("docker/abc"));
        assert_eq!(found(docker, "pids"), None);
        let systemd = "0::/machine.slice/libpod-abc.scope/container\n";
        assert_eq!(found(systemd, "").as_deref(), Some("machine.slice/libpod-abc.scope"));
        assert_eq!(found("0::/user.slice/session.scope\n", ""), None, "another process has this pid");
    }

    #[test]
    fn a_process_of_no_container_has_no_group() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert!(Watch::of_container(Path::new(super::super::CGROUP_ROOT), own, "abc").is_none());
    }
}
