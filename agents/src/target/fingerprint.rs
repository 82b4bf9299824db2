//! SHA-256 of files, cached by what the file system says about them.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use brewbench_wire::hex;
use sha2::{Digest, Sha256};

use super::identity::output::output;

/// A file that changed less than this ago may change again without another time: its digest is not cached.
const SETTLED: Duration = Duration::from_secs(1);

/// Cached fingerprints; computed again if the file system reports another file, length or time.
#[derive(Debug, Default)]
pub struct Fingerprints {
    known: Mutex<HashMap<PathBuf, (Stamp, String)>>,
    /// What commands printed, and when.
    printed: Mutex<HashMap<Asked, (Instant, Answer)>>,
}

/// A command and its folder.
type Asked = (Vec<String>, PathBuf);

/// What it printed. The error is a part of a sentence.
type Answer = Result<String, String>;

/// How long what a command printed is used while the agent is idle.
const PRINTED: Duration = Duration::from_secs(30);

/// The time of the last status change can't be set by programs, other than that of the last write.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    written_ns: (i64, i64),
    changed_ns: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            written_ns: (metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nanoseconds = |(seconds, rest): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let last = nanoseconds(self.written_ns).max(nanoseconds(self.changed_ns));
        i128::try_from((now.saturating_sub(SETTLED)).as_nanos()).is_ok_and(|limit| last < limit)
    }
}

impl Fingerprints {
    /// Returns what a command prints in a folder. The error is a part of a sentence.
    pub(super) fn output(&self, command: &[String], folder: &Path) -> Result<String, String> {
        let key = (command.to_vec(), folder.to_owned());
        let printed = || self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, text)) = printed().get(&key)
            && at.elapsed() < PRINTED
        {
            return text.clone();
        }
        let text = output(command, folder);
        printed().insert(key, (Instant::now(), text.clone()));
        text
    }

    /// Runs all commands again when they are needed next: before a run, what they printed a while ago does not count.
    pub(super) fn forget_outputs(&self) {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the SHA-256 of a file in hex. Reads the file only if it is new or changed.
    pub fn compute(&self, path: &Path) -> io::Result<String> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&std::fs::metadata(path)?);
        if let Some((at, sha256)) = known().get(path)
            && *at == stamp
        {
            return Ok(sha256.clone());
        }
        let mut file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let mut hasher = Sha256::new();
        io::copy(&mut file, &mut hasher)?;
        let sha256 = hex(&hasher.finalize());
        if stamp.is_settled() {
            known().insert(path.to_owned(), (stamp, sha256.clone()));
        }
        Ok(sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_a_new_fingerprint() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let prints = Fingerprints::default();
        std::fs::write(&path, "abc").expect("a file");
        let first = prints.compute(&path).expect("a fingerprint");
        assert_eq!(first, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(prints.compute(&path).expect("a fingerprint"), first);
        std::fs::write(&path, "abcd").expect("a file");
        assert_ne!(prints.compute(&path).expect("a fingerprint"), first);
        // As long as before, and as old as the first one.
        let time = std::fs::metadata(&path).expect("a file").modified().expect("a time");
        let before = prints.compute(&path).expect("a fingerprint");
        std::fs::write(&path, "abce").expect("a file");
        File::options().write(true).open(&path).expect("a file").set_modified(time).expect("set back");
        assert_ne!(prints.compute(&path).expect("a fingerprint"), before);
    }
}
