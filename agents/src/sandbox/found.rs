//! The control group of a container, in which its engine has put it: found by a process, read, but never changed except
//! to kill its processes, and to remove what the engine has forgotten.

use std::io;
use std::path::{Path, PathBuf};

use brewbench_wire::job::Size;
use brewbench_wire::outcome::Enforced;

use super::group::{Watch, clear, empty};
use super::{Tree, files, v1, v2};
use crate::host::procfs;

impl Watch {
    /// Finds the group of a container below `root` (see [`super::CGROUP_ROOT`]), by one of its processes and its id.
    /// `None` if that process is not in a group of this container.
    pub fn of_container(root: &Path, pid: i32, id: &str) -> Option<Self> {
        let text = files::text(&PathBuf::from(format!("/proc/{pid}/cgroup")))?;
        let tree = if root.join("cgroup.controllers").exists() {
            Tree::Unified(root.join(group_of(&text, "", id)?))
        } else {
            Tree::Split(v1::Dirs::existing(root, |controller| group_of(&text, controller, id))?)
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

/// Kills what an engine has forgotten of a container that it has removed, and removes its groups below `root`. If
/// Podman is killed between creating and starting a container, a process waits forever to become that container.
pub async fn clear_container(root: &Path, id: &str) -> io::Result<()> {
    for pid in procfs::all() {
        let text = files::text(&PathBuf::from(format!("/proc/{pid}/cgroup"))).unwrap_or_default();
        let folders = groups_of(&text, id).map(|(controllers, group)| hierarchy(root, controllers).join(group));
        let folders: Vec<_> = folders.filter(|folder| folder.is_dir()).collect();
        if !folders.is_empty() {
            clear(&folders).await?;
        }
    }
    Ok(())
}

/// Returns where a hierarchy is mounted; the unified one has no controllers in `/proc/PID/cgroup`.
fn hierarchy(root: &Path, controllers: &str) -> PathBuf {
    match controllers.split(',').next().unwrap_or_default() {
        "" if root.join("cgroup.controllers").exists() => root.to_owned(),
        "" => root.join("unified"),
        name => root.join(name.trim_start_matches("name=")),
    }
}

/// Returns the path of a container's group in the hierarchy of a controller, relative to its root; the unified
/// hierarchy has no controllers.
fn group_of(text: &str, controller: &str, id: &str) -> Option<PathBuf> {
    let mut groups = groups_of(text, id);
    groups.find(|(controllers, _)| controllers.split(',').any(|name| name == controller)).map(|(_, group)| group)
}

/// Returns the controllers of each hierarchy with a group of a container, and the path of that group relative to its
/// root, from the text of `/proc/PID/cgroup`. The limits are at the part that names the container: engines may have
/// groups below it. Podman's own monitor of a container is not part of it.
fn groups_of<'t>(text: &'t str, id: &str) -> impl Iterator<Item = (&'t str, PathBuf)> {
    files::memberships(text).filter_map(move |(controllers, path)| {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let place = parts.iter().position(|part| part.contains(id) && !part.contains("conmon"))?;
        Some((controllers, parts[..=place].iter().collect()))
    })
}

#[cfg(test)]
mod tests {
    use brewbench_testing::skip;

    use super::*;

    #[test]
    fn the_group_is_the_part_that_names_the_container() {
        let found =
            |text: &str, controller: &str| group_of(text, controller, "abc").map(|path| path.display().to_string());
        let docker = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc\n";
        assert_eq!(found(docker, "memory").as_deref(), Some("docker/abc"));
        assert_eq!(found(docker, "cpuacct").as_deref(), Some("docker/abc"));
        assert_eq!(found(docker, "pids"), None);
        let monitor = "0::/machine.slice/libpod-conmon-abc.scope\n";
        assert_eq!(found(monitor, ""), None);
        let systemd = "0::/machine.slice/libpod-abc.scope/container\n";
        assert_eq!(found(systemd, "").as_deref(), Some("machine.slice/libpod-abc.scope"));
        assert_eq!(found("0::/user.slice/session.scope\n", ""), None, "another process has this pid");
    }

    #[test]
    fn a_process_of_no_container_has_no_group() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert!(Watch::of_container(Path::new(super::super::CGROUP_ROOT), own, "abc").is_none());
    }

    #[tokio::test]
    async fn processes_that_an_engine_forgot_are_killed_and_their_groups_removed() {
        let root = Path::new(super::super::CGROUP_ROOT);
        let id = format!("{:064x}", u128::from(std::process::id()));
        let hierarchies = files::text(Path::new("/proc/self/cgroup")).expect("groups");
        let groups: Vec<PathBuf> = hierarchies
            .lines()
            .filter_map(|line| Some(hierarchy(root, line.split(':').nth(1)?).join(format!("libpod-{id}"))))
            // A process can't enter a group of cpuset before that has CPUs.
            .filter(|group| !group.starts_with(root.join("cpuset")) && std::fs::create_dir(group).is_ok())
            .collect();
        if groups.is_empty() {
            return skip("no control group can be created");
        }
        let mut forgotten = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        for group in &groups {
            std::fs::write(group.join("cgroup.procs"), forgotten.id().to_string()).expect("entered");
        }
        clear_container(root, "another").await.expect("nothing to do");
        assert!(forgotten.try_wait().expect("a child").is_none(), "it is not in that container");
        clear_container(root, &id).await.expect("cleared");
        assert!(forgotten.wait().expect("a child").code().is_none(), "it was killed");
        assert_eq!(groups.iter().filter(|group| group.exists()).count(), 0);
    }
}
