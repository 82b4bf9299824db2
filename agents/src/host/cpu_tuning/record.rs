//! The record of changed settings, on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::machine::boot_id;

const FILE: &str = "steady.json";

/// All changes made for a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct ChangeRecord {
    boot: String,
    /// In the order they were made.
    pub changes: Vec<Change>,
}

/// A change of one kernel file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Change {
    /// Path of the file.
    pub path: PathBuf,
    /// Previous value.
    pub before: String,
    /// New value.
    pub set: String,
}

impl ChangeRecord {
    /// Creates a record for the current boot.
    pub fn new(changes: Vec<Change>) -> Self {
        Self { boot: boot_id(), changes }
    }

    /// Whether the machine has not been rebooted since.
    pub fn is_from_this_boot(&self) -> bool {
        self.boot == boot_id()
    }

    /// Writes the record to disk, atomically.
    pub fn save(&self, state: &Path) -> io::Result<()> {
        let (new, path) = (state.join("steady.new"), state.join(FILE));
        let mut file = File::create(&new)?;
        file.write_all(serde_json::to_string_pretty(self).map_err(io::Error::other)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    /// Loads the record; `None` if there is none. Fails if it can't be read or parsed.
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

    /// Deletes the record.
    pub fn remove(state: &Path) -> io::Result<()> {
        fs::remove_file(state.join(FILE))
    }
}
