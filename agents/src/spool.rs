//! Outcomes on the agent's disk, until the server has acknowledged them.
//!
//! One file a run. It is written whole, synced and then renamed into place, so that a crash leaves either no outcome or
//! a whole one. What can't be read or is refused for good goes to `aside/`, so that it blocks nothing.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::wire::{RunId, outcome::Outcome};

/// A folder of outcomes.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
}

impl Spool {
    /// Opens a folder, made if need be.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(folder.join("aside"))?;
        Ok(Self { folder })
    }

    fn file(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.json"))
    }

    /// Stores an outcome; it is on the disk when this returns.
    pub fn keep(&self, outcome: &Outcome) -> io::Result<()> {
        let target = self.file(outcome.run);
        let draft = target.with_extension("draft");
        let mut file = File::create(&draft)?;
        file.write_all(&serde_json::to_vec(outcome)?)?;
        file.sync_all()?;
        fs::rename(&draft, &target)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The runs whose outcomes wait, oldest first.
    pub fn waiting(&self) -> io::Result<Vec<RunId>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if let Some(run) = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok()) {
                runs.push(run);
            }
        }
        runs.sort_unstable();
        Ok(runs)
    }

    /// The outcome of a run; one that can't be read is put aside.
    pub fn read(&self, run: RunId) -> io::Result<Outcome> {
        let read = fs::read(self.file(run)).and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from));
        if read.is_err() {
            self.put_aside(run)?;
        }
        read
    }

    /// Deletes an outcome that the server has.
    pub fn acknowledged(&self, run: RunId) -> io::Result<()> {
        fs::remove_file(self.file(run))
    }

    /// Moves an outcome out of the way, for people to look at.
    pub fn put_aside(&self, run: RunId) -> io::Result<()> {
        let from = self.file(run);
        fs::rename(&from, self.folder.join("aside").join(from.file_name().unwrap_or_default()))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::outcome::tests::an_outcome;

    #[test]
    fn an_outcome_waits_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(folder.path().join("spool")).expect("a spool");
        let (first, second) = (an_outcome(), an_outcome());
        spool.keep(&first).expect("kept");
        spool.keep(&second).expect("kept");
        assert_eq!(spool.waiting().expect("listed"), [first.run, second.run]);
        assert_eq!(spool.read(first.run).expect("read"), first);
        spool.acknowledged(first.run).expect("deleted");
        assert_eq!(spool.waiting().expect("listed"), [second.run]);
    }

    #[test]
    fn what_is_damaged_is_put_aside_and_blocks_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(folder.path()).expect("a spool");
        let (damaged, whole) = (an_outcome(), an_outcome());
        spool.keep(&damaged).expect("kept");
        spool.keep(&whole).expect("kept");
        fs::write(spool.file(damaged.run), "{\"run\":").expect("damaged");
        assert!(spool.read(damaged.run).is_err());
        assert_eq!(spool.waiting().expect("listed"), [whole.run]);
        assert!(folder.path().join("aside").join(format!("{}.json", damaged.run)).exists());
    }
}
