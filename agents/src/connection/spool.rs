//! Outcomes on the agent's disk, until the server has acknowledged them.
//!
//! One file per run. It is written, synced and then renamed, so that a crash never leaves a partial outcome. Files that
//! can't be read or are refused for good go to `aside/` and block nothing. While the disk is full, outcomes stay in
//! memory, are sent from there, and are written once there is space.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brewbench_wire::RunId;
use brewbench_wire::outcome::Outcome;

/// A folder of outcomes; clones share those that are not on disk yet.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
    unwritten: Arc<Mutex<BTreeMap<RunId, Outcome>>>,
}

impl Spool {
    /// Opens a folder, created if missing, and deletes drafts left by an earlier process.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(folder.join("aside"))?;
        for entry in fs::read_dir(&folder)?.flatten().filter(|entry| is_draft(&entry.path())) {
            let _ = fs::remove_file(entry.path());
        }
        Ok(Self { folder, unwritten: Arc::default() })
    }

    fn file(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.json"))
    }

    fn unwritten(&self) -> MutexGuard<'_, BTreeMap<RunId, Outcome>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an outcome on disk. If that fails, it stays in memory.
    pub fn keep(&self, outcome: Outcome) -> io::Result<()> {
        let written = self.write(&outcome);
        if written.is_err() {
            self.unwritten().insert(outcome.run, outcome);
        }
        written
    }

    /// Writes outcomes that did not fit on the disk before.
    pub fn write_pending(&self) {
        // An outcome sent at the same time is removed under the same lock.
        self.unwritten().retain(|run, outcome| {
            let written = self.write(outcome);
            if written.is_ok() {
                tracing::info!(%run, "outcome written to disk; it was held in memory");
            }
            written.is_err()
        });
    }

    fn write(&self, outcome: &Outcome) -> io::Result<()> {
        let target = self.file(outcome.run);
        let draft = target.with_extension(DRAFT);
        let written = || {
            let mut file = File::create(&draft)?;
            file.write_all(&serde_json::to_vec(outcome)?)?;
            file.sync_all()?;
            fs::rename(&draft, &target)
        };
        if let Err(fault) = written() {
            // A partial file would take space that the next attempt needs.
            let _ = fs::remove_file(&draft);
            return Err(fault);
        }
        File::open(&self.folder)?.sync_all()
    }

    /// Returns the runs with outcomes to send, oldest first.
    pub fn waiting(&self) -> io::Result<Vec<RunId>> {
        let mut runs: Vec<RunId> = self.unwritten().keys().copied().collect();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            if let Some(run) = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok()) {
                runs.push(run);
            }
        }
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    /// Reads the outcome of a run; puts an unreadable one aside.
    pub fn read(&self, run: RunId) -> io::Result<Outcome> {
        if let Some(outcome) = self.unwritten().get(&run) {
            return Ok(outcome.clone());
        }
        let read = fs::read(self.file(run)).and_then(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from));
        if read.is_err() {
            self.put_aside(run)?;
        }
        read
    }

    /// Deletes an outcome that the server has acknowledged.
    pub fn acknowledge(&self, run: RunId) -> io::Result<()> {
        self.unwritten().remove(&run);
        match fs::remove_file(self.file(run)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Moves an outcome to `aside/` for inspection. One that is in memory only is dropped.
    pub fn put_aside(&self, run: RunId) -> io::Result<()> {
        let (from, unwritten) = (self.file(run), self.unwritten().remove(&run));
        match fs::rename(&from, self.folder.join("aside").join(from.file_name().unwrap_or_default())) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound && unwritten.is_some() => Ok(()),
            result => result,
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Extension of a file that is being written.
const DRAFT: &str = "draft";

fn is_draft(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == DRAFT)
}

#[cfg(test)]
mod tests {
    use brewbench_testing::SmallDisk;
    use brewbench_wire::samples::an_outcome;

    use super::*;

    #[test]
    fn an_outcome_waits_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(folder.path().join("spool")).expect("a spool");
        let (first, second) = (an_outcome(), an_outcome());
        spool.keep(first.clone()).expect("kept");
        spool.keep(second.clone()).expect("kept");
        assert_eq!(spool.waiting().expect("listed"), [first.run, second.run]);
        assert_eq!(spool.read(first.run).expect("read"), first);
        spool.acknowledge(first.run).expect("deleted");
        assert_eq!(spool.waiting().expect("listed"), [second.run]);
    }

    #[test]
    fn a_damaged_outcome_is_put_aside_and_blocks_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(folder.path()).expect("a spool");
        let (damaged, intact) = (an_outcome(), an_outcome());
        spool.keep(damaged.clone()).expect("kept");
        spool.keep(intact.clone()).expect("kept");
        fs::write(spool.file(damaged.run), "{\"run\":").expect("damaged");
        assert!(spool.read(damaged.run).is_err());
        assert_eq!(spool.waiting().expect("listed"), [intact.run]);
        assert!(folder.path().join("aside").join(format!("{}.json", damaged.run)).exists());
    }

    #[test]
    fn outcomes_are_held_in_memory_while_the_disk_is_full() {
        let Some(disk) = SmallDisk::mount("256k") else { return };
        let spool = Spool::open(disk.path().join("spool")).expect("a spool");
        let (outcome, sent) = (an_outcome(), an_outcome());
        let filler = disk.fill();
        for outcome in [&outcome, &sent] {
            let full = spool.keep(outcome.clone()).expect_err("the disk is full");
            assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(spool.waiting().expect("listed"), [outcome.run, sent.run], "nothing is lost");
        assert_eq!(spool.read(outcome.run).expect("read"), outcome);
        spool.acknowledge(sent.run).expect("removed");
        spool.write_pending();
        assert!(!spool.file(outcome.run).exists(), "the disk is still full");
        fs::remove_file(filler).expect("space");
        spool.write_pending();
        let reopened = Spool::open(spool.folder()).expect("a spool");
        assert_eq!(reopened.waiting().expect("listed"), [outcome.run]);
        assert_eq!(reopened.read(outcome.run).expect("read"), outcome);
    }

    #[test]
    fn drafts_of_an_earlier_process_are_deleted() {
        let folder = tempfile::tempdir().expect("a folder");
        let draft = folder.path().join("x.draft");
        fs::write(&draft, "{").expect("written");
        Spool::open(folder.path()).expect("a spool");
        assert!(!draft.exists());
    }
}
