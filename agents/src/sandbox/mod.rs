//! Machine sizes: the resources a target may use, enforced by control groups and read back from them.
//!
//! A run has a group per [`ProgramRole`]: the target's has the limits of its size, the others have limits that protect
//! the machine, and each can be killed as a whole. Both are below one home folder, `brewbench-<agent>`, which exists
//! only while it contains groups. Control files are written directly: there are a dozen of them, and each is read back.

pub mod cage;
pub mod cores;
mod files;
pub mod firewall;
mod found;
mod group;
pub mod lines;
mod memory;
mod own_quota;
pub mod process;
mod topology;
mod v1;
mod v2;

use std::io;
use std::path::{Path, PathBuf};

pub use found::clear_container;
pub use group::{AGENT_MARK, Group, Watch};
pub use memory::MemoryUse;
pub use own_quota::OwnQuota;

use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::outcome::{Enforced, Mechanism, Observed};

/// Mount point of the kernel's control groups on common Linux distributions.
pub const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// CPU quotas are per 100 ms, the default of the kernel and of container engines, so that targets are throttled as they
/// are in production.
const CPU_PERIOD_US: u64 = 100_000;

/// Maximum processes and threads of each role in a run: enough for a thread for each of thousands of connections, and
/// harmless for the machine.
pub(crate) const MAX_PIDS: u64 = 8192;

/// One of the programs of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramRole {
    /// The server under test.
    Target,
    /// k6.
    Generator,
    /// What observes the target. Its use of CPUs is neither the target's nor k6's.
    Profiler,
}

impl ProgramRole {
    /// Returns the name used for groups and in the processes' environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Generator => "generator",
            Self::Profiler => "profiler",
        }
    }
}

/// The control groups available to this agent.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// Mount point of the control groups.
    root: PathBuf,
    agent: String,
    home: Tree,
    enforced: Enforced,
}

impl Sandbox {
    /// Detects what works below `root` (see [`CGROUP_ROOT`]) with a probe: a group is created, limited, read back and
    /// removed. What did not work is [`Mechanism::None`]. With cgroup v2 this may move the calling process into its own
    /// leaf group, because the kernel allows processes only in leaves.
    pub fn detect(root: &Path, agent: &str) -> Self {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::detect_from(root, agent, v2::own_path(&own))
    }

    /// Uses no control groups.
    pub fn none(agent: &str) -> Self {
        Self { root: CGROUP_ROOT.into(), agent: agent.to_owned(), home: Tree::None, enforced: Enforced::NONE }
    }

    fn detect_from(root: &Path, agent: &str, own_path: &str) -> Self {
        let folder = folder_name(agent);
        let mut best = Self { root: root.to_owned(), ..Self::none(agent) };
        let homes = if root.join("cgroup.controllers").exists() {
            v2::homes(root, own_path, &folder).into_iter().map(Tree::Unified).collect()
        } else {
            vec![Tree::Split(v1::Dirs::homes(root, &folder))]
        };
        for home in homes {
            let enforced = home.probe();
            if rank(enforced) > rank(best.enforced) {
                best = Self { home, enforced, ..best };
            }
            if rank(best.enforced) == 2 {
                break;
            }
        }
        best
    }

    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns which limits it can enforce, and how.
    pub fn mechanisms(&self) -> Enforced {
        self.enforced
    }

    /// Creates the group of one role in a run, without limits. Fails if the kernel refuses the folder.
    pub fn open(&self, run: RunId, role: ProgramRole) -> io::Result<Group> {
        let tree = self.home.join(&format!("{run}-{}", role.as_str()));
        self.home.create_home()?;
        tree.create()?;
        Ok(Group::new(self.agent.clone(), run, role, tree, self.home.clone()))
    }

    /// Finds the group in which an engine has put a container, by one of its processes and its id.
    pub fn container(&self, pid: i32, id: &str) -> Option<Watch> {
        Watch::of_container(&self.root, pid, id)
    }

    /// Kills and removes all groups left by an earlier process of this agent; returns their folders.
    pub(crate) async fn sweep(&self) -> Vec<PathBuf> {
        let mut removed = Vec::new();
        for home in self.home.folders() {
            for folder in files::subfolders(&home) {
                if let Err(error) = group::clear(std::slice::from_ref(&folder)).await {
                    tracing::error!(folder = %folder.display(), %error, "failed to remove a leftover control group");
                } else {
                    removed.push(folder);
                }
            }
            let _ = std::fs::remove_dir(home);
        }
        removed
    }
}

/// Returns the number of limited resources.
fn rank(enforced: Enforced) -> u8 {
    u8::from(enforced.cpu != Mechanism::None) + u8::from(enforced.memory != Mechanism::None)
}

/// A place in the kernel's hierarchies: one folder with cgroup v2, one per controller with v1.
#[derive(Clone, Debug)]
enum Tree {
    Unified(PathBuf),
    Split(v1::Dirs),
    None,
}

impl Tree {
    fn join(&self, name: &str) -> Self {
        match self {
            Self::Unified(dir) => Self::Unified(dir.join(name)),
            Self::Split(dirs) => Self::Split(dirs.join(name)),
            Self::None => Self::None,
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        match self {
            Self::Unified(dir) => vec![dir.clone()],
            Self::Split(dirs) => dirs.folders(),
            Self::None => Vec::new(),
        }
    }

    fn create(&self) -> io::Result<()> {
        self.folders().iter().try_for_each(std::fs::create_dir_all)
    }

    fn create_home(&self) -> io::Result<()> {
        self.create()?;
        if let Self::Unified(dir) = self {
            v2::enable(dir);
        }
        Ok(())
    }

    fn remove(&self) {
        for folder in self.folders() {
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Sets all limits of a size; returns those that the kernel confirmed.
    fn limit(&self, size: &Size) -> Enforced {
        match self {
            Self::Unified(dir) => v2::limit(dir, size),
            Self::Split(dirs) => dirs.limit(size),
            Self::None => Enforced::NONE,
        }
    }

    fn bound(&self, memory_bytes: u64) {
        match self {
            Self::Unified(dir) => v2::bound(dir, memory_bytes),
            Self::Split(dirs) => dirs.bound(memory_bytes),
            Self::None => {}
        }
    }

    fn observed(&self) -> Option<Observed> {
        match self {
            Self::Unified(dir) => Some(v2::observed(dir)),
            Self::Split(dirs) => Some(dirs.observed()),
            Self::None => None,
        }
    }

    fn memory(&self) -> MemoryUse {
        match self {
            Self::Unified(dir) => v2::memory(dir),
            Self::Split(dirs) => dirs.memory(),
            Self::None => MemoryUse::default(),
        }
    }

    fn probe(&self) -> Enforced {
        let group = self.join("probe");
        let size = Size { name: "probe".to_owned(), vcpus: 0.5, memory_bytes: 64 << 20, replicas: 1 };
        let created = self.create_home().and_then(|()| group.create());
        let enforced = match created {
            Ok(()) => group.limit(&size),
            Err(error) => {
                tracing::debug!(?self, %error, "no control groups available");
                Enforced::NONE
            }
        };
        group.remove();
        self.remove();
        enforced
    }
}

/// Converts a number of cores to CPU time per period, microseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cores are positive and far below 2^40")]
fn quota_us(vcpus: f64, period_us: u64) -> u64 {
    (vcpus * period_us as f64).round() as u64
}

/// Whether a memory limit was accepted: the kernel rounds down to its page size, 64 KiB at most.
fn same_memory(requested: u64, read: Option<u64>) -> bool {
    read.is_some_and(|read| read <= requested && requested - read < 64 << 10)
}

/// Turns an agent's name into a folder name: special bytes become `=XX`, so the result is unique.
fn folder_name(agent: &str) -> String {
    use std::fmt::Write;
    agent.bytes().fold("brewbench-".to_owned(), |mut name, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(byte)),
            _ => {
                let _ = write!(name, "={byte:02X}");
            }
        }
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_with_special_names_have_distinct_folders() {
        assert_eq!(folder_name("rack-1.a_b"), "brewbench-rack-1.a_b");
        assert_eq!(folder_name("../x y"), "brewbench-..=2Fx=20y");
    }

    #[test]
    fn a_quota_is_cores_times_the_period() {
        assert_eq!(quota_us(0.5, CPU_PERIOD_US), 50_000);
        assert_eq!(quota_us(1.1, CPU_PERIOD_US), 110_000);
        assert_eq!(quota_us(16.0, CPU_PERIOD_US), 1_600_000);
    }

    #[test]
    fn a_limit_may_be_rounded_down_by_less_than_a_page() {
        assert!(same_memory(50_000_000, Some(49_999_872)));
        assert!(!same_memory(50_000_000, Some(50_003_968)));
        assert!(!same_memory(50_000_000, Some(u64::MAX)));
        assert!(!same_memory(50_000_000, Some(40_000_000)));
        assert!(!same_memory(50_000_000, None));
    }
}
