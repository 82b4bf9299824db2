//! Control groups of containers: limits, usage and OOM kills.
//!
//! The kernel's version 1 and version 2 are supported, not a mix of controllers of both.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::process::is_gone;

const ROOT: &str = "/sys/fs/cgroup";
const HOMES: &str = "brewbench-kubelet-";
/// The default of kubelets, microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// What a container may use at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Memory without swap.
    pub memory_bytes: Option<u64>,
}

/// What a container has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub cpu_ns: u64,
    pub periods: u64,
    pub throttled_periods: u64,
    pub throttled_ns: u64,
    pub memory_bytes: u64,
    /// Memory without file cache that is inactive.
    pub working_set_bytes: u64,
    pub rss_bytes: u64,
    pub oom_kills: u64,
}

/// A group in each hierarchy: one per controller with version 1, a single one with version 2.
#[derive(Clone, Debug)]
enum Folders {
    Split { cpu: PathBuf, cpuacct: PathBuf, memory: PathBuf },
    Unified(PathBuf),
}

impl Folders {
    fn below_root(name: &str) -> Self {
        let root = Path::new(ROOT);
        if root.join("cgroup.controllers").exists() {
            return Self::Unified(root.join(name));
        }
        let home = |controller| root.join(controller).join(name);
        Self::Split { cpu: home("cpu"), cpuacct: home("cpuacct"), memory: home("memory") }
    }

    fn join(&self, name: &str) -> Self {
        match self {
            Self::Split { cpu, cpuacct, memory } => {
                Self::Split { cpu: cpu.join(name), cpuacct: cpuacct.join(name), memory: memory.join(name) }
            }
            Self::Unified(folder) => Self::Unified(folder.join(name)),
        }
    }

    fn all(&self) -> Vec<&Path> {
        match self {
            Self::Split { cpu, cpuacct, memory } => vec![cpu, cpuacct, memory],
            Self::Unified(folder) => vec![folder],
        }
    }

    fn create(&self) -> io::Result<()> {
        self.all().into_iter().try_for_each(fs::create_dir_all)
    }

    fn remove(&self) {
        for folder in self.all() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The groups of one kubelet, removed when dropped.
#[derive(Debug)]
pub struct Groups(Folders);

impl Groups {
    /// Creates the folder for the groups of the node with this address.
    ///
    /// Fails where there are no controllers for CPU and memory.
    pub fn create(node: Ipv4Addr) -> io::Result<Self> {
        sweep();
        let folders = Folders::below_root(&format!("{HOMES}{}-{node}", std::process::id()));
        folders.create()?;
        let groups = Self(folders);
        if let Folders::Unified(folder) = &groups.0 {
            for folder in [Path::new(ROOT), folder] {
                fs::write(folder.join("cgroup.subtree_control"), "+cpu +memory")?;
            }
        }
        Ok(groups)
    }

    /// Creates the group of a container.
    pub fn open(&self, name: &str, limits: Limits) -> io::Result<Group> {
        let group = Group(self.0.join(name));
        group.0.create()?;
        group.limit(limits)?;
        Ok(group)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// The group of one container. Dropping it kills its processes and removes it.
#[derive(Debug)]
pub struct Group(Folders);

impl Group {
    fn limit(&self, limits: Limits) -> io::Result<()> {
        let quota = limits.cpu_millis.map(|millis| millis * CPU_PERIOD_US / 1000);
        match &self.0 {
            Folders::Split { cpu, memory, .. } => {
                if let Some(quota) = quota {
                    fs::write(cpu.join("cpu.cfs_period_us"), CPU_PERIOD_US.to_string())?;
                    fs::write(cpu.join("cpu.cfs_quota_us"), quota.to_string())?;
                }
                if let Some(bytes) = limits.memory_bytes {
                    fs::write(memory.join("memory.limit_in_bytes"), bytes.to_string())?;
                    // Where the machine has swap, the limit would not be one.
                    let _ = fs::write(memory.join("memory.swappiness"), "0");
                }
            }
            Folders::Unified(folder) => {
                if let Some(quota) = quota {
                    fs::write(folder.join("cpu.max"), format!("{quota} {CPU_PERIOD_US}"))?;
                }
                if let Some(bytes) = limits.memory_bytes {
                    fs::write(folder.join("memory.max"), bytes.to_string())?;
                    let _ = fs::write(folder.join("memory.swap.max"), "0");
                    // As kubelets do: the kernel kills the whole container, not one of its processes.
                    let _ = fs::write(folder.join("memory.oom.group"), "1");
                }
            }
        }
        Ok(())
    }

    /// Returns the files through which a process enters, by writing `0`.
    pub fn entrances(&self) -> Vec<PathBuf> {
        self.0.all().into_iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Returns the usage so far.
    pub fn usage(&self) -> Usage {
        match &self.0 {
            Folders::Split { cpu, cpuacct, memory } => {
                let memory_bytes = number(&memory.join("memory.usage_in_bytes"));
                Usage {
                    cpu_ns: number(&cpuacct.join("cpuacct.usage")),
                    periods: value(&cpu.join("cpu.stat"), "nr_periods"),
                    throttled_periods: value(&cpu.join("cpu.stat"), "nr_throttled"),
                    throttled_ns: value(&cpu.join("cpu.stat"), "throttled_time"),
                    memory_bytes,
                    working_set_bytes: memory_bytes
                        .saturating_sub(value(&memory.join("memory.stat"), "total_inactive_file")),
                    rss_bytes: value(&memory.join("memory.stat"), "total_rss"),
                    oom_kills: value(&memory.join("memory.oom_control"), "oom_kill"),
                }
            }
            Folders::Unified(folder) => {
                let cpu = |key| value(&folder.join("cpu.stat"), key);
                let memory = |key| value(&folder.join("memory.stat"), key);
                let memory_bytes = number(&folder.join("memory.current"));
                Usage {
                    cpu_ns: cpu("usage_usec") * 1000,
                    periods: cpu("nr_periods"),
                    throttled_periods: cpu("nr_throttled"),
                    throttled_ns: cpu("throttled_usec") * 1000,
                    memory_bytes,
                    working_set_bytes: memory_bytes.saturating_sub(memory("inactive_file")),
                    rss_bytes: memory("anon"),
                    oom_kills: value(&folder.join("memory.events"), "oom_kill"),
                }
            }
        }
    }

    /// Returns its processes.
    pub fn processes(&self) -> Vec<i32> {
        let list = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        let text: String = self.entrances().iter().map(list).collect();
        text.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 0).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group stays busy for a moment after its last process was killed.
        for _ in 0..200 {
            for pid in self.processes() {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            self.0.remove();
            if self.0.all().iter().all(|folder| !folder.exists()) {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Removes the empty groups of tests that were killed.
fn sweep() {
    for home in Folders::below_root("").all() {
        for entry in fs::read_dir(home).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(HOMES).and_then(|rest| rest.split('-').next());
            if owner.is_some_and(is_gone) {
                let groups = fs::read_dir(entry.path()).into_iter().flatten().flatten();
                groups.filter(|group| group.path().is_dir()).for_each(|group| drop(fs::remove_dir(group.path())));
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn value(path: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter(|(name, _)| *name == key).find_map(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Child, Command},
    };

    use brewbench_testing::skip;

    use super::*;

    fn start(group: &Group, program: &str) -> Child {
        let enter = |path: &PathBuf| format!("echo 0 > {}; ", path.display());
        let script: String = group.entrances().iter().map(enter).collect();
        Command::new("sh").arg("-c").arg(script + program).spawn().expect("sh")
    }

    #[test]
    fn a_group_enforces_its_limits_and_counts() {
        let groups = match Groups::create(Ipv4Addr::LOCALHOST) {
            Ok(groups) => groups,
            Err(error) => return skip(&format!("no control groups: {error}")),
        };
        let limits = Limits { cpu_millis: Some(100), memory_bytes: Some(16 << 20) };
        let small = groups.open("small", limits).expect("a group");
        let status = start(&small, "exec tail /dev/zero").wait().expect("an exit");
        assert_eq!(status.signal(), Some(9), "killed by the kernel");
        // The kernel counts twice where it kills whole groups.
        assert!(small.usage().oom_kills > 0, "{:?}", small.usage());

        let busy = groups.open("busy", limits).expect("a group");
        let mut child = start(&busy, "x=$(head -c 2000000 /dev/zero | tr '\\0' x); while :; do :; done");
        thread::sleep(Duration::from_secs(1));
        let usage = busy.usage();
        assert!((50_000_000..300_000_000).contains(&usage.cpu_ns), "{usage:?}");
        assert!(usage.throttled_periods >= 5 && usage.throttled_ns > 300_000_000, "{usage:?}");
        assert!(usage.periods >= usage.throttled_periods, "{usage:?}");
        assert!(usage.memory_bytes >= usage.working_set_bytes && usage.rss_bytes > 100_000, "{usage:?}");
        drop(busy);
        assert_eq!(child.wait().expect("an exit").signal(), Some(9), "killed with its group");
        let folders: Vec<_> = groups.0.all().into_iter().map(Path::to_owned).collect();
        drop((small, groups));
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
}
