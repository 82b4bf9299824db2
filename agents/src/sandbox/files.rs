//! Reading and writing the kernel's control files.

use std::fs;
use std::path::{Path, PathBuf};

/// Writes a value; whether the kernel took it. A missing file is a refusal.
pub fn write(path: &Path, value: &str) -> bool {
    let written = fs::write(path, value);
    if let Err(error) = &written {
        tracing::debug!(path = %path.display(), value, %error, "control file refused");
    }
    written.is_ok()
}

/// Writes a value and reads it back; whether the same came back.
pub fn set(path: &Path, value: &str) -> bool {
    write(path, value) && text(path).is_some_and(|read| read.trim() == value)
}

/// A file's text.
pub fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A file that holds one number.
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// One value of a file of `key value` lines.
pub fn value(path: &Path, key: &str) -> Option<u64> {
    text(path)?.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// A folder's folders, sorted; none when it can't be read.
pub fn subfolders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect();
    found.sort();
    found
}

/// Whether the machine has no swap that memory could go to.
pub fn machine_has_no_swap() -> bool {
    text(Path::new("/proc/meminfo")).is_some_and(|text| {
        text.lines().any(|line| line.strip_prefix("SwapTotal:").is_some_and(|rest| rest.trim() == "0 kB"))
    })
}
