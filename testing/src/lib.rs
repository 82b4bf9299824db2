//! Helpers for the tests of both crates.

mod counter;
mod guest;
mod podman;
mod registry;
mod small_disk;

use std::path::{Path, PathBuf};

pub use counter::Counter;
pub use guest::Guest;
pub use podman::{Image, Podman};
pub use registry::{Manner, Registry};
pub use small_disk::SmallDisk;

/// While this variable is set, a test that can't run fails. CI sets it.
const NO_SKIP: &str = "BREWBENCH_NO_SKIP";

/// Creates a folder that every user may enter, as targets and load generators run as other users than the agent.
///
/// # Panics
/// If that is not possible.
#[track_caller]
pub fn public_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    folder
}

/// A copy of a program that a target's shell can start too, wherever the build is.
///
/// # Panics
/// If the program can't be copied.
#[must_use]
pub fn public_copy(program: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join(program.file_name().expect("a program has a name"));
    // By another process: one that this process starts at the same time would inherit the open file, which could not be
    // executed then.
    let copied = std::process::Command::new("cp").arg(program).arg(&copy).status().expect("cp");
    assert!(copied.success(), "{} is not copied", program.display());
    copy
}

/// Prints why a test, or a part of it, can't run on this machine.
///
/// # Panics
/// If `BREWBENCH_NO_SKIP` is set: where everything is installed, no test may be skipped.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os(NO_SKIP).is_none(), "skipped, which {NO_SKIP} forbids: {reason}");
    println!("skipped: {reason}");
}
