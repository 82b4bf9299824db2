//! CPU quotas that this program itself is under, such as the limit of its Pod or of its service. They bound its k6,
//! too, whatever number of CPUs the machine has.

use std::path::{Path, PathBuf};

use super::{CGROUP_ROOT, files, v1};

/// Groups of this program with a CPU controller, its own first.
#[derive(Clone, Debug, Default)]
pub struct OwnQuota(Vec<PathBuf>);

impl OwnQuota {
    /// Finds the groups of the calling process.
    pub fn find() -> Self {
        let groups = files::text(Path::new("/proc/self/cgroup")).unwrap_or_default();
        Self::below(Path::new(CGROUP_ROOT), &groups)
    }

    /// `groups` is the text of `/proc/self/cgroup`.
    fn below(root: &Path, groups: &str) -> Self {
        let is_unified = root.join("cgroup.controllers").exists();
        let controller = if is_unified { "" } else { "cpu" };
        let hierarchy = if is_unified { Some(root.to_owned()) } else { v1::hierarchy(root, "cpu") };
        let (Some(hierarchy), Some(own)) = (hierarchy, files::path_in(groups, controller)) else {
            return Self(Vec::new());
        };
        // In a container, the root of the hierarchy is the container's group, whatever its path says.
        let own = hierarchy.join(own.trim_start_matches('/'));
        let above = own.ancestors().take_while(|folder| folder.starts_with(&hierarchy));
        Self(above.filter(|folder| folder.is_dir()).map(Path::to_owned).collect())
    }

    /// Returns the cores that the least quota allows; `None` without a quota.
    pub fn cores(&self) -> Option<f64> {
        self.0.iter().filter_map(|folder| quota(folder)).min_by(f64::total_cmp)
    }

    /// Returns for how long quotas have throttled this program so far, microseconds; `None` without a quota.
    pub fn throttled_us(&self) -> Option<u64> {
        let limited = self.0.iter().filter(|folder| quota(folder).is_some());
        limited.filter_map(|folder| files::throttled_us(folder)).reduce(|sum, next| sum + next)
    }
}

fn quota(folder: &Path) -> Option<f64> {
    let (quota_us, period_us) = files::cpu_quota(folder)?;
    Some(quota_us as f64 / period_us as f64)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::time::Duration;

    use brewbench_testing::skip;
    use brewbench_wire::RunId;
    use brewbench_wire::job::Size;
    use brewbench_wire::outcome::Mechanism;

    use super::super::{ProgramRole, Sandbox};
    use super::*;

    fn folder(path: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(path).expect("a folder");
        for (name, text) in files {
            fs::write(path.join(name), text).expect("a file");
        }
    }

    #[test]
    fn the_least_quota_of_the_groups_above_counts() {
        let root = tempfile::tempdir().expect("a folder");
        folder(root.path(), &[("cgroup.controllers", "cpu memory"), ("cpu.stat", "usage_usec 9\n")]);
        folder(
            &root.path().join("team.slice"),
            &[("cpu.max", "150000 100000\n"), ("cpu.stat", "usage_usec 7\nthrottled_usec 30\n")],
        );
        let service = [("cpu.max", "max 100000\n"), ("cpu.stat", "usage_usec 5\nthrottled_usec 0\n")];
        folder(&root.path().join("team.slice/agent.service"), &service);
        let found = OwnQuota::below(root.path(), "0::/team.slice/agent.service\n");
        assert_eq!((found.cores(), found.throttled_us()), (Some(1.5), Some(30)));
        let free = OwnQuota::below(root.path(), "0::/\n");
        assert_eq!((free.cores(), free.throttled_us()), (None, None));
    }

    #[test]
    fn the_root_is_the_group_of_a_container() {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("cpu.cfs_quota_us", "50000\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpu.stat", "nr_periods 2\nthrottled_time 2000000\n"),
        ];
        folder(&root.path().join("cpu"), &files);
        let found = OwnQuota::below(root.path(), "3:memory:/kubepods/x\n1:cpu:/kubepods/x\n");
        assert_eq!((found.cores(), found.throttled_us()), (Some(0.5), Some(2_000)));
        fs::write(root.path().join("cpu/cpu.cfs_quota_us"), "-1\n").expect("a file");
        assert_eq!((found.cores(), found.throttled_us()), (None, None));
        assert_eq!(OwnQuota::below(Path::new("/nonexistent"), "").cores(), None);
    }

    #[test]
    fn a_quota_of_the_kernel_is_found_and_throttles() {
        let root = Path::new(CGROUP_ROOT);
        let group = Sandbox::detect(root, "test own quota").open(RunId::now(), ProgramRole::Target).expect("a group");
        let size = Size { name: "half".to_owned(), vcpus: 0.5, memory_bytes: 64 << 20, replicas: 1 };
        if group.limit(&size).cpu == Mechanism::None {
            return skip("no control group for CPU");
        }
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        for mut entrance in group.entrances().expect("files") {
            std::io::Write::write_all(&mut entrance, busy.id().to_string().as_bytes()).expect("entered");
        }
        let groups = files::text(&PathBuf::from(format!("/proc/{}/cgroup", busy.id()))).expect("its groups");
        let found = OwnQuota::below(root, &groups);
        assert_eq!(found.cores(), Some(0.5));
        while found.throttled_us() == Some(0) {
            std::thread::sleep(Duration::from_millis(1));
        }
        busy.kill().expect("killed");
        busy.wait().expect("ended");
        assert!(found.throttled_us() > Some(0));
    }
}
