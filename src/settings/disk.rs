//! How much room the data folder takes and how much is left.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use nix::sys::statvfs::statvfs;

use crate::web::format::{self, Figure};

/// Below this SQLite and its journal get into trouble, bytes.
const LITTLE: u64 = 1 << 30;

/// A data folder and the disk that it lies on, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// What the folder takes.
    pub taken: u64,
    /// What is left for us.
    pub free: u64,
    /// What the disk holds.
    pub size: u64,
}

impl Disk {
    /// Looks at a folder.
    pub async fn of(folder: &Path) -> io::Result<Self> {
        let folder: PathBuf = folder.to_owned();
        tokio::task::spawn_blocking(move || look(&folder)).await.map_err(io::Error::other)?
    }

    /// What the folder takes, for people.
    pub fn taken_text(&self) -> Figure {
        format::bytes(Some(self.taken as f64))
    }

    /// What is left, for people.
    pub fn free_text(&self) -> Figure {
        format::bytes(Some(self.free as f64))
    }

    /// What the disk holds, for people.
    pub fn size_text(&self) -> Figure {
        format::bytes(Some(self.size as f64))
    }

    /// Whether somebody should make room: less than a gibibyte, or less than a twentieth, is left.
    pub fn is_low(&self) -> bool {
        self.free < LITTLE || self.free < self.size / 20
    }
}

fn look(folder: &Path) -> io::Result<Disk> {
    let disk = statvfs(folder)?;
    let block = disk.fragment_size();
    Ok(Disk { taken: taken(folder)?, free: disk.blocks_available() * block, size: disk.blocks() * block })
}

/// Files come and go meanwhile: what is not there any more takes nothing.
fn taken(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        sum += if about.is_dir() { taken(&entry.path()).unwrap_or_default() } else { about.len() };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_takes_what_its_files_take() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("agent")).expect("a folder");
        fs::write(folder.path().join("agent/spool"), [0; 1000]).expect("a file");
        fs::write(folder.path().join("brewbench.db"), [0; 500]).expect("a file");
        let disk = Disk::of(folder.path()).await.expect("a disk");
        assert_eq!(disk.taken, 1500);
        assert!(disk.free <= disk.size && disk.size > 0);
    }

    #[test]
    fn little_is_less_than_a_gibibyte_or_a_twentieth() {
        let disk = |free: u64, size: u64| Disk { taken: 0, free: free << 30, size: size << 30 };
        assert!(disk(0, 1).is_low() && disk(4, 100).is_low());
        assert!(!disk(6, 100).is_low() && !disk(1, 10).is_low());
    }
}
