//! cgroup v1: one hierarchy per controller.

use std::path::{Path, PathBuf};

use brewbench_wire::job::Size;
use brewbench_wire::outcome::{Enforced, Mechanism, Observed};

use super::memory::MemoryUse;
use super::{CPU_PERIOD_US, MAX_PIDS, files, quota_us, same_memory};

/// The same group in the hierarchy of each controller; `None` for unavailable controllers.
#[derive(Clone, Debug)]
pub struct Dirs {
    cpu: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
}

impl Dirs {
    /// Creates the home folders below `root`, where permitted.
    pub fn homes(root: &Path, folder: &str) -> Self {
        let home = |controller: &str| {
            let home = hierarchy(root, controller)?.join(folder);
            match std::fs::create_dir_all(&home) {
                Ok(()) => Some(home),
                Err(error) => {
                    tracing::debug!(home = %home.display(), %error, "no control groups available");
                    None
                }
            }
        };
        Self { cpu: home("cpu"), cpuacct: home("cpuacct"), memory: home("memory"), pids: home("pids") }
    }

    /// An existing group: `group` returns its path in the hierarchy of a controller. `None` if there is none at all.
    pub fn existing(root: &Path, group: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let dir =
            |controller: &str| Some(hierarchy(root, controller)?.join(group(controller)?)).filter(|dir| dir.is_dir());
        let found = Self { cpu: dir("cpu"), cpuacct: dir("cpuacct"), memory: dir("memory"), pids: dir("pids") };
        (!found.folders().is_empty()).then_some(found)
    }

    /// Returns which limits of a size are in force.
    pub fn confirmed(&self, size: &Size) -> Enforced {
        let is_cpu =
            |dir: &Path| files::cpu_quota(dir).is_some_and(|(quota, period)| quota == quota_us(size.vcpus, period));
        let is_memory = |dir: &Path| {
            let is_limited = |file: &str| same_memory(size.memory_bytes, files::number(&dir.join(file)));
            is_limited("memory.limit_in_bytes")
                && (is_limited("memory.memsw.limit_in_bytes") || files::machine_has_no_swap())
        };
        Enforced {
            cpu: mechanism(self.cpu.as_deref().is_some_and(is_cpu)),
            memory: mechanism(self.memory.as_deref().is_some_and(is_memory)),
        }
    }

    /// Returns the group with that name below this one.
    pub fn join(&self, name: &str) -> Self {
        let Self { cpu, cpuacct, memory, pids } = self;
        let below = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.join(name));
        Self { cpu: below(cpu), cpuacct: below(cpuacct), memory: below(memory), pids: below(pids) }
    }

    /// Returns all folders without duplicates: controllers may share a hierarchy.
    pub fn folders(&self) -> Vec<PathBuf> {
        let Self { cpu, cpuacct, memory, pids } = self;
        let mut folders: Vec<_> = [cpu, cpuacct, memory, pids].into_iter().flatten().cloned().collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Limits memory and processes.
    pub fn bound(&self, memory_bytes: u64) {
        if let Some(dir) = &self.pids {
            files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
        }
        if let Some(dir) = &self.memory {
            limit_memory(dir, memory_bytes);
        }
    }

    /// Sets all limits; returns those that the kernel confirmed.
    pub fn limit(&self, size: &Size) -> Enforced {
        if let Some(dir) = &self.pids {
            files::set(&dir.join("pids.max"), &MAX_PIDS.to_string());
        }
        Enforced {
            cpu: mechanism(self.cpu.as_deref().is_some_and(|dir| limit_cpu(dir, size.vcpus))),
            memory: mechanism(self.memory.as_deref().is_some_and(|dir| limit_memory(dir, size.memory_bytes))),
        }
    }

    /// Returns the usage so far.
    pub fn observed(&self) -> Observed {
        let cpu_ns = self.cpuacct.as_deref().and_then(|dir| files::number(&dir.join("cpuacct.usage")));
        let memory = self.memory.as_deref();
        Observed {
            cpu_us: cpu_ns.map(|ns| ns / 1000),
            throttled_us: self.cpu.as_deref().and_then(files::throttled_us),
            peak_memory_bytes: memory.and_then(|dir| files::number(&dir.join("memory.max_usage_in_bytes"))),
            oom_kills: memory.and_then(|dir| files::value(&dir.join("memory.oom_control"), "oom_kill")),
        }
    }

    /// Returns the current memory by what it is used for.
    pub fn memory(&self) -> MemoryUse {
        let Some(dir) = self.memory.as_deref() else { return MemoryUse::default() };
        let stat = files::text(&dir.join("memory.stat")).unwrap_or_default();
        let value = |key: &str| files::value_in(&stat, key);
        let all = files::number(&dir.join("memory.usage_in_bytes"));
        // Names and inodes of cached files are part of it: this version does not tell them apart.
        let kernel = files::number(&dir.join("memory.kmem.usage_in_bytes")).unwrap_or(0);
        let (anonymous, shared) = (value("total_rss"), value("total_shmem"));
        MemoryUse {
            working_set_bytes: all.map(|all| all.saturating_sub(value("total_inactive_file").unwrap_or(0))),
            held_bytes: anonymous.zip(shared).map(|(anonymous, shared)| anonymous + shared + kernel),
            file_cache_bytes: value("total_cache").zip(shared).map(|(files, shared)| files.saturating_sub(shared)),
        }
    }
}

fn mechanism(confirmed: bool) -> Mechanism {
    if confirmed { Mechanism::Cgroup1 } else { Mechanism::None }
}

fn limit_cpu(dir: &Path, vcpus: f64) -> bool {
    files::set(&dir.join("cpu.cfs_period_us"), &CPU_PERIOD_US.to_string())
        && files::set(&dir.join("cpu.cfs_quota_us"), &quota_us(vcpus, CPU_PERIOD_US).to_string())
}

/// Sets the memory limit first, then that of memory and swap: the kernel refuses a second limit below the first.
/// Without swap accounting, swapping is disabled for reclaim by the group itself.
fn limit_memory(dir: &Path, bytes: u64) -> bool {
    let set = |name: &str| {
        let path = dir.join(name);
        files::write(&path, &bytes.to_string()) && same_memory(bytes, files::number(&path))
    };
    set("memory.limit_in_bytes")
        && (set("memory.memsw.limit_in_bytes")
            || files::set(&dir.join("memory.swappiness"), "0")
            || files::machine_has_no_swap())
}

/// Returns the folder of a controller's hierarchy: `cpu`, or a shared one such as `cpu,cpuacct`. Symbolic links are
/// resolved, so that a shared hierarchy has one path.
pub fn hierarchy(root: &Path, controller: &str) -> Option<PathBuf> {
    let plain = root.join(controller);
    if plain.is_dir() {
        return plain.canonicalize().ok();
    }
    let shares = |dir: &PathBuf| {
        dir.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.split(',').any(|part| part == controller))
    };
    files::subfolders(root).into_iter().find(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_share_a_hierarchy_share_a_group() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["cpu,cpuacct", "memory"] {
            std::fs::create_dir(root.path().join(name)).expect("a hierarchy");
        }
        let homes = Dirs::homes(root.path(), "brewbench-x");
        let group = homes.join("g");
        let expected = ["cpu,cpuacct/brewbench-x/g", "memory/brewbench-x/g"].map(|path| root.path().join(path));
        assert_eq!(group.folders(), expected);
    }

    #[test]
    fn links_to_a_shared_hierarchy_are_followed() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("cpu,cpuacct")).expect("a hierarchy");
        for name in ["cpu", "cpuacct"] {
            std::os::unix::fs::symlink("cpu,cpuacct", root.path().join(name)).expect("a link");
        }
        assert_eq!(Dirs::homes(root.path(), "brewbench-x").folders().len(), 1);
    }

    #[test]
    fn held_memory_and_file_cache_are_told_apart() {
        let root = tempfile::tempdir().expect("a folder");
        let dirs = Dirs { cpu: None, cpuacct: None, memory: Some(root.path().to_owned()), pids: None };
        assert_eq!(dirs.memory(), MemoryUse::default());
        // Values without a prefix lack the groups below.
        let stat = "cache 1\nrss 1\nshmem 1\ntotal_cache 6200\ntotal_rss 1000\ntotal_shmem 200\n\
            total_inactive_file 3000\ntotal_active_file 3000\n";
        for (file, text) in
            [("memory.usage_in_bytes", "9000\n"), ("memory.kmem.usage_in_bytes", "310\n"), ("memory.stat", stat)]
        {
            std::fs::write(root.path().join(file), text).expect("a file");
        }
        let expected =
            MemoryUse { working_set_bytes: Some(6000), held_bytes: Some(1510), file_cache_bytes: Some(6000) };
        assert_eq!(dirs.memory(), expected);
    }

    #[test]
    fn a_missing_controller_limits_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let size = Size { name: String::new(), vcpus: 1.0, memory_bytes: 1 << 20, replicas: 1 };
        let enforced = Dirs::homes(root.path(), "brewbench-x").limit(&size);
        assert_eq!(enforced, Enforced { cpu: Mechanism::None, memory: Mechanism::None });
    }
}
