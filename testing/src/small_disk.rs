//! Disks that are full when a test wants them to be.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::skip;

/// A disk with little room.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one of a size that `mount` understands, such as `48m`. Where that is not possible, skips the test.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[track_caller]
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path());
        let why = match mount.output() {
            Ok(done) if done.status.success() => return Some(Self(folder)),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(fault) => fault.to_string(),
        };
        skip(&format!("no small disk can be mounted: {why}"));
        None
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no room on it. Removing the file that is returned makes room again.
    ///
    /// # Panics
    /// If no file can be created.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = File::create(&path).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A server that is under test may still have its files open.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}
