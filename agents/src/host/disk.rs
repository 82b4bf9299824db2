//! Free space on the disks where an agent has its state and its runs.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// May not be enough even for a few results.
pub const TOO_LITTLE: u64 = 64 << 20;

/// Fewer files than a few runs have.
const TOO_FEW_FILES: u64 = 1_000;

/// Returns the free bytes of a folder's disk for this user. Fails if there is no such folder.
pub fn free(folder: &Path) -> nix::Result<u64> {
    let disk = statvfs(folder)?;
    Ok(disk.blocks_available() * disk.fragment_size())
}

/// Explains why an agent with these folders takes no runs; `None` if it does.
pub fn fault<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    folders.into_iter().find_map(fault_of)
}

fn fault_of(folder: &Path) -> Option<String> {
    let disk = statvfs(folder).ok()?;
    let free = disk.blocks_available() * disk.fragment_size();
    // Some file systems don't count files.
    let files = Some(disk.files_available()).filter(|_| disk.files() > 0);
    describe_shortage(free, files, folder)
}

fn describe_shortage(free: u64, files: Option<u64>, folder: &Path) -> Option<String> {
    let (folder, mib) = (folder.display(), 1 << 20);
    if free < TOO_LITTLE {
        let needed = TOO_LITTLE / mib;
        return Some(format!("the disk of {folder} is full: {} MiB are free, {needed} are needed", free / mib));
    }
    let files = files.filter(|files| *files < TOO_FEW_FILES)?;
    Some(format!("the disk of {folder} is full: it has room for {files} more files, {TOO_FEW_FILES} are needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named() {
        let folder = Path::new("/var/lib/x");
        let fault = |free, files| describe_shortage(free, files, folder);
        assert_eq!((fault(TOO_LITTLE, None), fault(TOO_LITTLE, Some(TOO_FEW_FILES))), (None, None));
        let full = "the disk of /var/lib/x is full: 3 MiB are free, 64 are needed";
        assert_eq!(fault(4_000_000, Some(0)).as_deref(), Some(full));
        let files = "the disk of /var/lib/x is full: it has room for 7 more files, 1000 are needed";
        assert_eq!(fault(u64::MAX, Some(7)).as_deref(), Some(files));
    }
}
