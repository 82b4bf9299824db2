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
    text(path)?.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
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
