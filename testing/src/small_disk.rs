//! File systems that a test can fill.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::skip;

/// A small file system, unmounted when dropped.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts a file system of a size that `mount` understands, such as `48m`. If that is not possible, skips the test.
    ///
    /// # Panics
    /// If no temporary folder can be created.
    #[track_caller]
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path());
        let reason = match mount.output() {
            Ok(output) if output.status.success() => return Some(Self(folder)),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(fault) => fault.to_string(),
        };
        skip(&format!("failed to mount a small file system: {reason}"));
        None
    }

    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the file system. Returns the file whose removal frees the space.
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
        // The server under test may still have files open.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}
