//! Disk usage of the data folder and free space.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use nix::sys::statvfs::statvfs;

use crate::web::format::{self, Figure};

/// The free space that SQLite and its journal need, bytes.
const MIN_FREE: u64 = 1 << 30;

/// The size of the data folder and of its disk, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The space that the folder uses.
    pub taken: u64,
    /// The space that is available to this process.
    pub free: u64,
    /// The capacity of the disk.
    pub size: u64,
}

impl Disk {
    /// Measures a folder and its disk.
    pub async fn measure(folder: &Path) -> io::Result<Self> {
        let folder: PathBuf = folder.to_owned();
        tokio::task::spawn_blocking(move || measure(&folder)).await.map_err(io::Error::other)?
    }

    /// Formats the space that the folder uses.
    pub fn taken_text(&self) -> Figure {
        format::bytes(Some(self.taken as f64))
    }

    /// Formats the free space.
    pub fn free_text(&self) -> Figure {
        format::bytes(Some(self.free as f64))
    }

    /// Formats the capacity of the disk.
    pub fn size_text(&self) -> Figure {
        format::bytes(Some(self.size as f64))
    }

    /// Whether the disk is nearly full: less than 1 GiB or less than 5 % is free.
    pub fn is_low(&self) -> bool {
        self.free < MIN_FREE || self.free < self.size / 20
    }
}

fn measure(folder: &Path) -> io::Result<Disk> {
    let disk = statvfs(folder)?;
    let block = disk.fragment_size();
    Ok(Disk { taken: used_bytes(folder)?, free: disk.blocks_available() * block, size: disk.blocks() * block })
}

/// Adds up the sizes of all files. A file that disappears in the meantime counts as empty.
fn used_bytes(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else { continue };
        sum += if metadata.is_dir() { used_bytes(&entry.path()).unwrap_or_default() } else { metadata.len() };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_uses_the_sum_of_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("agent")).expect("a folder");
        fs::write(folder.path().join("agent/spool"), [0; 1000]).expect("a file");
        fs::write(folder.path().join("brewbench.db"), [0; 500]).expect("a file");
        let disk = Disk::measure(folder.path()).await.expect("a disk");
        assert_eq!(disk.taken, 1500);
        assert!(disk.free <= disk.size && disk.size > 0);
    }

    #[test]
    fn less_than_a_gibibyte_or_a_twentieth_is_low() {
        let disk = |free: u64, size: u64| Disk { taken: 0, free: free << 30, size: size << 30 };
        assert!(disk(0, 1).is_low() && disk(4, 100).is_low());
        assert!(!disk(6, 100).is_low() && !disk(1, 10).is_low());
    }
}
