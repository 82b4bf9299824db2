//! cgroup v2, the unified hierarchy.
//!
//! The location of the home folder depends on the agent's permissions. A service that owns its group (systemd's
//! `Delegate=yes`) uses that; root uses the root of the tree; any other user uses the nearest ancestor group delegated
//! to it, e.g. that of its user manager.

use std::path::{Path, PathBuf};

use brewbench_wire::job::Size;
use brewbench_wire::outcome::{Enforced, Mechanism, Observed};
use nix::unistd::{AccessFlags, access};

use super::memory::MemoryUse;
use super::{CPU_PERIOD_US, MAX_PIDS, files, quota_us, same_memory};

/// Memory is first, because it alone refuses a group that contains processes. With another one enabled before, the
/// kernel would refuse to move the processes into a leaf.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// The leaf group into which an agent moves itself if it is in the parent of its groups: the kernel allows processes
/// only in leaves.
const LEAF: &str = "brewbench.agent";

/// Returns the path of the calling process in the tree, from the text of `/proc/self/cgroup`.
pub fn own_path(text: &str) -> &str {
    let path = files::path_in(text, "").unwrap_or("/");
    path.strip_suffix(LEAF).map_or(path, |path| path.trim_end_matches('/'))
}

/// Returns folders for the agent's groups, best first, not created yet. Each is below a writable group whose
/// controllers are enabled as far as the kernel allows.
pub fn homes(root: &Path, own_path: &str, folder: &str) -> Vec<PathBuf> {
    let own = root.join(own_path.trim_start_matches('/'));
    let mut parents: Vec<&Path> = Vec::new();
    if own != root && is_alone(&own) {
        parents.push(&own);
    }
    if is_writable(root) {
        parents.push(root);
    } else {
        parents.extend(own.ancestors().skip(1).take_while(|dir| dir.starts_with(root)));
    }
    let usable = |parent: &&Path| is_writable(parent) && enable(parent);
    parents.into_iter().filter(usable).map(|parent| parent.join(folder)).collect()
}

/// Enables the available controllers for groups below `dir`; returns whether any is enabled. Moves the calling process
/// into a leaf if only that process prevents it.
pub fn enable(dir: &Path) -> bool {
    let control = dir.join("cgroup.subtree_control");
    let available = read_words(&dir.join("cgroup.controllers"));
    let wanted = || CONTROLLERS.iter().filter(|name| available.iter().any(|word| word == *name));
    let is_on = |name: &&str| read_words(&control).iter().any(|word| word == name);
    let switch_on = || wanted().all(|name| is_on(name) || files::write(&control, &format!("+{name}")));
    let enabled = switch_on() || (processes(dir) == [own_pid()] && step_aside(dir) && switch_on());
    enabled && wanted().any(is_on)
}

/// Limits memory and processes.
pub fn bound(dir: &Path, memory_bytes: u64) {
    files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
    limit_memory(dir, memory_bytes);
}

/// Sets all limits; returns those that the kernel confirmed.
pub fn limit(dir: &Path, size: &Size) -> Enforced {
    files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
    let quota = format!("{} {CPU_PERIOD_US}", quota_us(size.vcpus, CPU_PERIOD_US));
    Enforced {
        cpu: mechanism(files::set(&dir.join("cpu.max"), &quota)),
        memory: mechanism(limit_memory(dir, size.memory_bytes)),
    }
}

/// Returns which limits of a size are in force.
pub fn confirmed(dir: &Path, size: &Size) -> Enforced {
    let is_cpu = files::cpu_quota(dir).is_some_and(|(quota, period)| quota == quota_us(size.vcpus, period));
    let has_no_swap = files::number(&dir.join("memory.swap.max")) == Some(0) || files::machine_has_no_swap();
    let is_memory = same_memory(size.memory_bytes, files::number(&dir.join("memory.max"))) && has_no_swap;
    Enforced { cpu: mechanism(is_cpu), memory: mechanism(is_memory) }
}

fn mechanism(confirmed: bool) -> Mechanism {
    if confirmed { Mechanism::Cgroup2 } else { Mechanism::None }
}

/// Returns the usage so far.
pub fn observed(dir: &Path) -> Observed {
    Observed {
        cpu_us: files::value(&dir.join("cpu.stat"), "usage_usec"),
        throttled_us: files::throttled_us(dir),
        peak_memory_bytes: files::number(&dir.join("memory.peak")),
        oom_kills: files::value(&dir.join("memory.events"), "oom_kill"),
    }
}

/// Returns the current memory by what it is used for.
pub fn memory(dir: &Path) -> MemoryUse {
    let stat = files::text(&dir.join("memory.stat")).unwrap_or_default();
    let value = |key: &str| files::value_in(&stat, key);
    let current = files::number(&dir.join("memory.current"));
    let (anonymous, shared) = (value("anon"), value("shmem"));
    MemoryUse {
        working_set_bytes: current.map(|all| all.saturating_sub(value("inactive_file").unwrap_or(0))),
        held_bytes: anonymous.zip(shared).map(|(anonymous, shared)| anonymous + shared + kernel_bytes(value)),
        file_cache_bytes: value("file").zip(shared).map(|(files, shared)| files.saturating_sub(shared)),
    }
}

/// Returns the memory of the kernel for a group, without what it can reclaim: names and inodes of cached files.
fn kernel_bytes(value: impl Fn(&str) -> Option<u64>) -> u64 {
    let whole = value("kernel").map(|all| all.saturating_sub(value("slab_reclaimable").unwrap_or(0)));
    // Kernels before 5.18 have the parts only.
    let parts = || ["kernel_stack", "pagetables", "percpu", "slab_unreclaimable"].into_iter().filter_map(&value).sum();
    whole.unwrap_or_else(parts) + value("sock").unwrap_or(0)
}

fn limit_memory(dir: &Path, bytes: u64) -> bool {
    let max = dir.join("memory.max");
    files::write(&max, &bytes.to_string())
        && same_memory(bytes, files::number(&max))
        && (files::set(&dir.join("memory.swap.max"), "0") || files::machine_has_no_swap())
}

/// Whether the calling process may create groups here and move processes into them.
fn is_writable(dir: &Path) -> bool {
    access(dir, AccessFlags::W_OK).is_ok() && access(&dir.join("cgroup.procs"), AccessFlags::W_OK).is_ok()
}

/// Whether no other process is in this group; the calling process may have moved to its leaf already.
fn is_alone(dir: &Path) -> bool {
    processes(dir).iter().all(|pid| *pid == own_pid())
}

fn processes(dir: &Path) -> Vec<String> {
    read_words(&dir.join("cgroup.procs"))
}

fn read_words(path: &Path) -> Vec<String> {
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
    fn the_own_path_is_on_the_unified_line() {
        assert_eq!(own_path("2:cpu:/x\n0::/system.slice/brew.service\n"), "/system.slice/brew.service");
        assert_eq!(own_path("0::/system.slice/brew.service/brewbench.agent\n"), "/system.slice/brew.service");
        assert_eq!(own_path("0::/brewbench.agent\n"), "");
        assert_eq!(own_path(""), "/");
    }

    /// Creates a folder that looks like a cgroup v2 tree, but allows all writes.
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
    fn a_service_alone_in_its_group_uses_it_and_others_use_the_root() {
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
    fn every_limit_is_written_in_the_kernels_format() {
        let dir = tempfile::tempdir().expect("a folder");
        let size = Size { name: String::new(), vcpus: 1.5, memory_bytes: 512 << 20, replicas: 1 };
        let enforced = limit(dir.path(), &size);
        assert_eq!(enforced, Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 });
        assert_eq!(confirmed(dir.path(), &size), enforced);
        assert_eq!(confirmed(dir.path(), &Size { vcpus: 1.0, memory_bytes: 1 << 30, ..size }), Enforced::NONE);
        let table =
            [("cpu.max", "150000 100000"), ("memory.max", "536870912"), ("memory.swap.max", "0"), ("pids.max", "8192")];
        for (file, text) in table {
            assert_eq!(files::text(&dir.path().join(file)).as_deref(), Some(text), "{file}");
        }
    }

    #[test]
    fn a_limit_that_does_not_read_back_is_not_enforced() {
        let dir = tempfile::tempdir().expect("a folder");
        for file in ["cpu.max", "memory.max"] {
            // A folder in place of the file makes the write fail.
            std::fs::create_dir(dir.path().join(file)).expect("a folder");
        }
        let size = Size { name: String::new(), vcpus: 1.0, memory_bytes: 1 << 20, replicas: 1 };
        assert_eq!(limit(dir.path(), &size), Enforced { cpu: Mechanism::None, memory: Mechanism::None });
    }

    #[test]
    fn counters_are_read_and_missing_ones_are_unknown() {
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
        assert_eq!(memory(dir.path()), MemoryUse::default());
    }

    #[test]
    fn held_memory_and_file_cache_are_told_apart() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("memory.current"), "9000\n").expect("a file");
        let read = |stat: &str| {
            std::fs::write(dir.path().join("memory.stat"), stat).expect("a file");
            memory(dir.path())
        };
        // Files that are used again are active, and shared memory is one of the files.
        let common = "anon 1000\nfile 6200\nshmem 200\ninactive_file 3000\nactive_file 3000\nsock 10\n";
        let expected =
            MemoryUse { working_set_bytes: Some(6000), held_bytes: Some(1510), file_cache_bytes: Some(6000) };
        let slab = "slab_reclaimable 1000\nslab_unreclaimable 150\n";
        assert_eq!(read(&format!("{common}kernel 1300\nkernel_stack 100\n{slab}")), expected);
        assert_eq!(read(&format!("{common}kernel_stack 100\npagetables 50\n{slab}")), expected, "before Linux 5.18");
        assert_eq!(read("inactive_file 1\n"), MemoryUse { working_set_bytes: Some(8999), ..MemoryUse::default() });
    }
}
