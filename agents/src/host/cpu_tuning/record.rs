//! What was changed, on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE: &str = "steady.json";

/// All that was changed for a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    boot: String,
    /// In the order in which it was done.
    pub changes: Vec<Change>,
}

/// One file of the kernel's.
#[derive(Debug, Serialize, Deserialize)]
pub struct Change {
    /// Where it is.
    pub path: PathBuf,
    /// What was in it.
    pub before: String,
    /// What was put into it.
    pub set: String,
}

impl Record {
    /// Of now.
    pub fn new(changes: Vec<Change>) -> Self {
        Self { boot: boot(), changes }
    }

    /// Whether the machine was not started anew since.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// On the disk when this returns, whole.
    pub fn save(&self, state: &Path) -> io::Result<()> {
        let (new, path) = (state.join("steady.new"), state.join(FILE));
        let mut file = File::create(&new)?;
        file.write_all(serde_json::to_string_pretty(self).map_err(io::Error::other)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    /// What is there. Fails when it can't be read or understood.
    pub fn load(state: &Path) -> io::Result<Option<Self>> {
        let path = state.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = |error| io::Error::other(format!("{}: {error}", path.display()));
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Forgets it.
    pub fn remove(state: &Path) -> io::Result<()> {
        fs::remove_file(state.join(FILE))
    }
}

/// Names the time since the machine's start.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
