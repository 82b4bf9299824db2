//! Disks that are full when a test wants them to be.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A disk with little room; none where it can't be mounted.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// So large, as `mount` has it: `48m`.
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut mount = std::process::Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path()).output();
        match done {
            Ok(done) if done.status.success() => Some(Self(folder)),
            Ok(done) => {
                println!("skipped: no small disk: {}", String::from_utf8_lossy(&done.stderr).trim());
                None
            }
            Err(fault) => {
                println!("skipped: no small disk: {fault}");
                None
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room on it; what is returned can be removed.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = fs::File::create(&path).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server of the test may still have its files open.
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}
