//! Outcomes on the agent's disk, until the server has acknowledged them.
//!
//! One file a run. It is written whole, synced and then renamed into place, so that a crash leaves either no outcome or
//! a whole one. What can't be read or is refused for good goes to `aside/`, so that it blocks nothing. What the disk has no
//! room for stays in memory and is sent from there, and is written as soon as there is room.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wire::RunId;
use crate::wire::outcome::Outcome;

/// A folder of outcomes; its copies share what is not on the disk.
#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
    unwritten: Arc<Mutex<BTreeMap<RunId, Outcome>>>,
}

impl Spool {
    /// Opens a folder, made if need be. Drafts of an earlier life are no outcomes, and go.
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

    /// Stores an outcome; it is on the disk when this returns. Where that fails, it is in memory.
    pub fn keep(&self, outcome: Outcome) -> io::Result<()> {
        let written = self.write(&outcome);
        if written.is_err() {
            self.unwritten().insert(outcome.run, outcome);
        }
        written
    }

    /// Stores what the disk had no room for, if it has now.
    pub fn write_what_was_not(&self) {
        // Whoever has sent one meanwhile forgets it under the same lock.
        self.unwritten().retain(|run, outcome| {
            let written = self.write(outcome);
            if written.is_ok() {
                tracing::info!(%run, "an outcome that was kept in memory is on the disk");
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
            // A half of it would take the room that the next one needs.
            let _ = fs::remove_file(&draft);
            return Err(fault);
        }
        File::open(&self.folder)?.sync_all()
    }

    /// The runs whose outcomes wait, oldest first.
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

    /// The outcome of a run; one that can't be read is put aside.
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

    /// Deletes an outcome that the server has.
    pub fn acknowledged(&self, run: RunId) -> io::Result<()> {
        self.unwritten().remove(&run);
        match fs::remove_file(self.file(run)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Moves an outcome out of the way, for people to look at. One that is in memory only is forgotten.
    pub fn put_aside(&self, run: RunId) -> io::Result<()> {
        let (from, unwritten) = (self.file(run), self.unwritten().remove(&run));
        match fs::rename(&from, self.folder.join("aside").join(from.file_name().unwrap_or_default())) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound && unwritten.is_some() => Ok(()),
            done => done,
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// How the name of a file ends that is being written.
const DRAFT: &str = "draft";

fn is_draft(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == DRAFT)
}

#[cfg(test)]
mod tests {
    use brewbench_testing::SmallDisk;

    use super::*;
    use crate::wire::outcome::tests::an_outcome;

    #[test]
    fn an_outcome_waits_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(folder.path().join("spool")).expect("a spool");
        let (first, second) = (an_outcome(), an_outcome());
        spool.keep(first.clone()).expect("kept");
        spool.keep(second.clone()).expect("kept");
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
        spool.keep(damaged.clone()).expect("kept");
        spool.keep(whole.clone()).expect("kept");
        fs::write(spool.file(damaged.run), "{\"run\":").expect("damaged");
        assert!(spool.read(damaged.run).is_err());
        assert_eq!(spool.waiting().expect("listed"), [whole.run]);
        assert!(folder.path().join("aside").join(format!("{}.json", damaged.run)).exists());
    }

    #[test]
    fn what_the_disk_has_no_room_for_is_kept_and_written_when_there_is_room() {
        let Some(disk) = SmallDisk::mount("256k") else { return };
        let spool = Spool::open(disk.path().join("spool")).expect("a spool");
        let (outcome, sent) = (an_outcome(), an_outcome());
        let filler = disk.fill();
        for outcome in [&outcome, &sent] {
            let full = spool.keep(outcome.clone()).expect_err("there is no room");
            assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(spool.waiting().expect("listed"), [outcome.run, sent.run], "nothing is lost");
        assert_eq!(spool.read(outcome.run).expect("read"), outcome);
        spool.acknowledged(sent.run).expect("forgotten");
        spool.write_what_was_not();
        assert!(!spool.file(outcome.run).exists(), "there is still no room");
        fs::remove_file(filler).expect("room");
        spool.write_what_was_not();
        let anew = Spool::open(spool.folder()).expect("the next life");
        assert_eq!(anew.waiting().expect("listed"), [outcome.run]);
        assert_eq!(anew.read(outcome.run).expect("read"), outcome);
    }

    #[test]
    fn a_draft_of_an_earlier_life_takes_no_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let draft = folder.path().join("x.draft");
        fs::write(&draft, "{").expect("written");
        Spool::open(folder.path()).expect("a spool");
        assert!(!draft.exists());
    }
}
