//! Reads and writes the kernel's control files.

use std::fs;
use std::path::{Path, PathBuf};

/// Writes a value; returns whether the kernel accepted it. A missing file counts as refusal.
pub fn write(path: &Path, value: &str) -> bool {
    let written = fs::write(path, value);
    if let Err(error) = &written {
        tracing::debug!(path = %path.display(), value, %error, "failed to write a control file");
    }
    written.is_ok()
}

/// Writes a value and reads it back; returns whether they are the same.
pub fn set(path: &Path, value: &str) -> bool {
    write(path, value) && text(path).is_some_and(|read| read.trim() == value)
}

/// Reads a file.
pub fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Reads a file with a single number.
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// Reads one value of a file with `key value` lines.
pub fn value(path: &Path, key: &str) -> Option<u64> {
    value_in(&text(path)?, key)
}

/// Returns one value of `key value` lines.
pub fn value_in(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns a group's CPU quota and its period, microseconds; `None` without a quota.
pub fn cpu_quota(dir: &Path) -> Option<(u64, u64)> {
    let (quota_us, period_us) = match text(&dir.join("cpu.max")) {
        // Without a quota it is `max`.
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        // Without a quota it is -1.
        None => (number(&dir.join("cpu.cfs_quota_us"))?, number(&dir.join("cpu.cfs_period_us"))?),
    };
    (period_us > 0).then_some((quota_us, period_us))
}

/// Returns for how long a group's own CPU quota has throttled it so far, microseconds.
pub fn throttled_us(dir: &Path) -> Option<u64> {
    let stat = dir.join("cpu.stat");
    value(&stat, "throttled_usec").or_else(|| Some(value(&stat, "throttled_time")? / 1_000))
}

/// Returns the controllers of each hierarchy and the path of a process in it, from the text of `/proc/PID/cgroup`. The
/// unified hierarchy has no controllers.
pub fn memberships(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// Returns the path of a process in the hierarchy of a controller, or in the unified one if that is empty.
pub fn path_in<'t>(text: &'t str, controller: &str) -> Option<&'t str> {
    let has_it = |controllers: &str| controllers.split(',').any(|name| name == controller);
    memberships(text).find(|(controllers, _)| has_it(controllers)).map(|(_, path)| path)
}

/// Returns the subfolders, sorted; empty if the folder can't be read.
pub fn subfolders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect();
    found.sort();
    found
}

/// Whether the machine has no swap.
pub fn machine_has_no_swap() -> bool {
    text(Path::new("/proc/meminfo")).is_some_and(|text| {
        text.lines().any(|line| line.strip_prefix("SwapTotal:").is_some_and(|rest| rest.trim() == "0 kB"))
    })
}
