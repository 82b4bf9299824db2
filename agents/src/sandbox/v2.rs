//! Control groups, unified hierarchy.
//!
//! Where the home folder may lie depends on who the agent is. A service that owns its group
//! (systemd's `Delegate=yes`) builds inside it; root builds below the tree's root; anybody else builds in the nearest
//! group above its own that was handed to it, e.g. that of its user manager.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::{CPU_PERIOD_US, MAX_PIDS, files, quota_us, same_memory};
use crate::wire::job::Size;
use crate::wire::outcome::{Enforced, Mechanism, Observed};

/// Memory first: of the three it alone refuses a group that has processes in it. Were another one on already, the
/// kernel would also refuse to let the processes move into a leaf.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// Where an agent moves itself when it shares a group with the groups that it makes: the kernel allows processes only
/// in leaves.
const LEAF: &str = "brewbench.agent";

/// The path of the calling process in the unified tree, from the text of `/proc/self/cgroup`.
pub fn own_path(text: &str) -> &str {
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    path.strip_suffix(LEAF).map_or(path, |path| path.trim_end_matches('/'))
}

/// Folders in which the agent's groups may lie, the best first; none of them made yet, all of them below a group that
/// may be written and whose controllers are switched on as far as the kernel allows.
pub fn homes(root: &Path, own_path: &str, folder: &str) -> Vec<PathBuf> {
    let own = root.join(own_path.trim_start_matches('/'));
    let mut parents: Vec<&Path> = Vec::new();
    if own != root && is_alone(&own) {
        parents.push(&own);
    }
    if may_hold(root) {
        parents.push(root);
    } else {
        parents.extend(own.ancestors().skip(1).take_while(|dir| dir.starts_with(root)));
    }
    let usable = |parent: &&Path| may_hold(parent) && enable(parent);
    parents.into_iter().filter(usable).map(|parent| parent.join(folder)).collect()
}

/// Switches the controllers that there are on for the groups below `dir`; whether that worked. Moves the calling
/// process into a leaf when it is the only one that stands in the way.
pub fn enable(dir: &Path) -> bool {
    let control = dir.join("cgroup.subtree_control");
    let available = words(&dir.join("cgroup.controllers"));
    let wanted = || CONTROLLERS.iter().filter(|name| available.iter().any(|word| word == *name));
    let is_on = |name: &&str| words(&control).iter().any(|word| word == name);
    let switch_on = || wanted().all(|name| is_on(name) || files::write(&control, &format!("+{name}")));
    let done = switch_on() || (processes(dir) == [own_pid()] && step_aside(dir) && switch_on());
    done && wanted().any(is_on)
}

/// Limits memory and processes.
pub fn bound(dir: &Path, memory_bytes: u64) {
    files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
    limit_memory(dir, memory_bytes);
}

/// Sets every limit; says which of them the kernel confirmed.
pub fn limit(dir: &Path, size: &Size) -> Enforced {
    files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
    let quota = format!("{} {CPU_PERIOD_US}", quota_us(size.vcpus));
    let held = |holds: bool| if holds { Mechanism::Cgroup2 } else { Mechanism::None };
    Enforced { cpu: held(files::set(&dir.join("cpu.max"), &quota)), memory: held(limit_memory(dir, size.memory_bytes)) }
}

/// What the group has used so far.
pub fn observed(dir: &Path) -> Observed {
    let cpu = dir.join("cpu.stat");
    Observed {
        cpu_us: files::value(&cpu, "usage_usec"),
        throttled_us: files::value(&cpu, "throttled_usec"),
        peak_memory_bytes: files::number(&dir.join("memory.peak")),
        oom_kills: files::value(&dir.join("memory.events"), "oom_kill"),
    }
}

/// Memory that the group uses now, less the files in it that nobody has used lately: what others call working set.
pub fn memory_bytes(dir: &Path) -> Option<u64> {
    let all = files::number(&dir.join("memory.current"))?;
    Some(all.saturating_sub(files::value(&dir.join("memory.stat"), "inactive_file").unwrap_or(0)))
}

fn limit_memory(dir: &Path, bytes: u64) -> bool {
    let max = dir.join("memory.max");
    files::write(&max, &bytes.to_string())
        && same_memory(bytes, files::number(&max))
        && (files::set(&dir.join("memory.swap.max"), "0") || files::machine_has_no_swap())
}

/// Whether the calling process may make groups here and move processes into them.
fn may_hold(dir: &Path) -> bool {
    access(dir, AccessFlags::W_OK).is_ok() && access(&dir.join("cgroup.procs"), AccessFlags::W_OK).is_ok()
}

/// Whether nobody but the calling process is in this group; it may have moved to its leaf already.
fn is_alone(dir: &Path) -> bool {
    processes(dir).iter().all(|pid| *pid == own_pid())
}

fn processes(dir: &Path) -> Vec<String> {
    words(&dir.join("cgroup.procs"))
}

fn words(path: &Path) -> Vec<String> {
    files::text(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn own_pid() -> String {
    std::process::id().to_string()
}

fn step_aside(dir: &Path) -> bool {
    let leaf = dir.join(LEAF);
    std::fs::create_dir_all(&leaf).is_ok() && files::write(&leaf.join("cgroup.procs"), "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_path_is_that_of_the_unified_line() {
        assert_eq!(own_path("2:cpu:/x\n0::/system.slice/brew.service\n"), "/system.slice/brew.service");
        assert_eq!(own_path("0::/system.slice/brew.service/brewbench.agent\n"), "/system.slice/brew.service");
        assert_eq!(own_path("0::/brewbench.agent\n"), "");
        assert_eq!(own_path(""), "/");
    }

    /// A folder that looks like a unified tree; unlike the kernel's it lets any file be written.
    fn tree(own: &str, processes: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join(own);
        std::fs::create_dir_all(&own).expect("a folder");
        for dir in own.ancestors().take_while(|dir| dir.starts_with(root.path())) {
            std::fs::write(dir.join("cgroup.procs"), if dir == own { processes } else { "1\n" }).expect("a file");
            for file in ["cgroup.controllers", "cgroup.subtree_control"] {
                std::fs::write(dir.join(file), "cpu memory pids").expect("a file");
            }
        }
        root
    }

    #[test]
    fn a_service_alone_in_its_group_builds_there_and_others_below_the_root() {
        let own = std::process::id().to_string();
        let root = tree("system.slice/brew.service", &own);
        let alone = homes(root.path(), "/system.slice/brew.service", "brewbench-x");
        let inside = root.path().join("system.slice/brew.service/brewbench-x");
        assert_eq!(alone, [inside, root.path().join("brewbench-x")]);

        let root = tree("user.slice/session-1.scope", &format!("{own}\n1\n"));
        let crowded = homes(root.path(), "/user.slice/session-1.scope", "brewbench-x");
        assert_eq!(crowded, [root.path().join("brewbench-x")]);
    }

    #[test]
    fn every_limit_is_written_in_the_kernel_s_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let size = Size { name: String::new(), vcpus: 1.5, memory_bytes: 512 << 20 };
        let enforced = limit(dir.path(), &size);
        assert_eq!(enforced, Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 });
        let table =
            [("cpu.max", "150000 100000"), ("memory.max", "536870912"), ("memory.swap.max", "0"), ("pids.max", "8192")];
        for (file, text) in table {
            assert_eq!(files::text(&dir.path().join(file)).as_deref(), Some(text), "{file}");
        }
    }

    #[test]
    fn what_does_not_read_back_is_not_held() {
        let dir = tempfile::tempdir().expect("a folder");
        for file in ["cpu.max", "memory.max"] {
            // A folder in the file's place refuses to be written, as the kernel may.
            std::fs::create_dir(dir.path().join(file)).expect("a folder");
        }
        let size = Size { name: String::new(), vcpus: 1.0, memory_bytes: 1 << 20 };
        assert_eq!(limit(dir.path(), &size), Enforced { cpu: Mechanism::None, memory: Mechanism::None });
    }

    #[test]
    fn counters_are_read_from_their_files_and_missing_ones_stay_empty() {
        let dir = tempfile::tempdir().expect("a folder");
        let files = [
            ("cpu.stat", "usage_usec 1500\nuser_usec 900\nnr_throttled 2\nthrottled_usec 77\n"),
            ("memory.events", "low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"),
        ];
        for (file, text) in files {
            std::fs::write(dir.path().join(file), text).expect("a file");
        }
        let expected =
            Observed { cpu_us: Some(1500), throttled_us: Some(77), peak_memory_bytes: None, oom_kills: Some(2) };
        assert_eq!(observed(dir.path()), expected);
        assert_eq!(memory_bytes(dir.path()), None);
    }

    #[test]
    fn memory_is_told_without_what_can_be_taken_back() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("memory.current"), "5000\n").expect("a file");
        std::fs::write(dir.path().join("memory.stat"), "anon 1000\ninactive_file 3000\n").expect("a file");
        assert_eq!(memory_bytes(dir.path()), Some(2000));
    }
}
