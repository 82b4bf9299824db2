//! How much a run may write into its folder. A full disk would end other runs, too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::outcome::Cause;
use tokio::time::{MissedTickBehavior, interval};

use super::failure::Failure;

/// The most that the folder of a run may take on the disk: many times a summary, temporary files and a profile.
const BYTES: u64 = 1 << 30;

/// The most files and folders there.
const ENTRIES: usize = 100_000;

/// How often the folder is looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// Folders that a run writes to.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    /// That of the run.
    pub run: PathBuf,
    /// Those of the load generator in it.
    pub generators: Vec<PathBuf>,
}

/// Waits until a run has written too much; forever if it does not.
pub(super) async fn exceeded(folders: Folders) -> Failure {
    let mut clock = interval(INTERVAL);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let looked = folders.clone();
        if let Ok(Some(failure)) = tokio::task::spawn_blocking(move || looked.check(BYTES, ENTRIES)).await {
            return failure;
        }
    }
}

impl Folders {
    fn check(&self, bytes: u64, entries: usize) -> Option<Failure> {
        let (all_bytes, all_entries) = size(&self.run, entries);
        if all_bytes <= bytes && all_entries <= entries {
            return None;
        }
        let of_k6 = self.generators.iter().map(|folder| size(folder, entries));
        let (k6_bytes, k6_entries) = of_k6.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let is_k6 = 2 * k6_bytes > all_bytes || 2 * k6_entries > all_entries;
        let (who, cause) = if is_k6 { ("the script", Cause::Script) } else { ("the target", Cause::TargetDied) };
        let (mib, most) = (all_bytes >> 20, bytes >> 20);
        Some(Failure::by(cause)(format!(
            "{who} filled the folder of the run with {mib} MiB in {all_entries} files; the limit is {most} MiB in {entries} files"
        )))
    }
}

/// Returns what a folder takes on the disk, and the number of files and folders; stops counting above `most` of them.
fn size(folder: &Path, most: usize) -> (u64, usize) {
    use std::os::unix::fs::MetadataExt;
    let (mut open, mut bytes, mut entries) = (vec![folder.to_owned()], 0, 0);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > most {
                return (bytes, entries);
            }
            // Not through symbolic links.
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * 512;
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    (bytes, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wrote_more_is_named() {
        let run = tempfile::tempdir().expect("a folder");
        let path = |below: &str| run.path().join(below);
        for below in ["files", "results", "home"] {
            std::fs::create_dir(path(below)).expect("a folder");
        }
        let folders = Folders { run: run.path().to_owned(), generators: vec![path("files"), path("results")] };
        let check = |bytes, entries| folders.check(bytes, entries).map(|failure| (failure.cause, failure.reason));
        std::fs::write(path("home/a"), vec![1; 1 << 20]).expect("a file");
        assert_eq!(check(2 << 20, 10), None);
        let (cause, reason) = check(1 << 19, 10).expect("too much");
        assert!(cause == Cause::TargetDied && reason.starts_with("the target filled the folder"), "{reason}");
        std::fs::write(path("files/b"), vec![1; 4 << 20]).expect("a file");
        let (cause, reason) = check(2 << 20, 10).expect("too much");
        assert!(cause == Cause::Script && reason.contains("with 5 MiB in 5 files"), "{reason}");
        assert!(check(1 << 30, 4).is_some(), "too many files");
        // A link leads nowhere.
        std::os::unix::fs::symlink("/", path("home/link")).expect("a link");
        assert_eq!(check(1 << 30, 10), None);
    }
}
