//! What of the cage this kernel can enforce.

use std::io;
use std::path::Path;

use nix::libc;

use super::Cage;

/// What Landlock does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landlock {
    /// The kernel is older than 5.13, or Landlock is not switched on.
    Absent,
    /// Files are protected, except from being truncated (before Linux 6.2) or processes from signals (before 6.12).
    Partial(u32),
    /// All that the cage asks for.
    Whole(u32),
}

/// The version from which on signals stay in the cage.
const WHOLE_FROM: u32 = 6;

impl Landlock {
    /// Asks the kernel.
    pub fn here() -> Self {
        match version() {
            Err(_) | Ok(0) => Self::Absent,
            Ok(version @ WHOLE_FROM..) => Self::Whole(version),
            Ok(version) => Self::Partial(version),
        }
    }
}

/// Why scripts of strangers would not be safe to run by an agent with this state folder; nothing where they are.
pub fn what_scripts_could_do(landlock: Landlock, state: &Path) -> Option<String> {
    if landlock == Landlock::Absent {
        return Some(
            "this kernel has no Landlock (Linux 5.13), so a script could read and write all files of the agent's user"
                .to_owned(),
        );
    }
    let generator = Cage::generator("k6".as_ref(), "scenario".as_ref(), "home".as_ref(), "results".as_ref());
    let state = resolved(state);
    generator.may_read(&state).then(|| format!("every program may read {}, and so the agent's key", state.display()))
}

/// Why targets could read the key of an agent; nothing where they can't.
pub fn what_targets_could_do(landlock: Landlock, state: &Path, targets: &Path) -> Option<String> {
    if landlock == Landlock::Absent {
        return Some(
            "this kernel has no Landlock (Linux 5.13): targets reach all files of the agent's user".to_owned(),
        );
    }
    let state = resolved(state);
    let target = Cage::target("program".as_ref(), &resolved(targets), "home".as_ref());
    target.may_read(&state).then(|| format!("targets may read {}, and so the agent's key", state.display()))
}

/// The folder without links; one that is still to be made is taken as it is.
fn resolved(folder: &Path) -> std::path::PathBuf {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}

#[expect(unsafe_code, reason = "no library gives the version")]
fn version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no memory and opens nothing.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_unsafe_without_landlock_or_with_a_state_folder_that_all_may_read() {
        let state = Path::new("/var/lib/brewbench-agent");
        assert_eq!(what_scripts_could_do(Landlock::Whole(7), state), None);
        let why = what_scripts_could_do(Landlock::Absent, state).expect("a reason");
        assert!(why.contains("no Landlock"), "{why}");
        let why = what_scripts_could_do(Landlock::Partial(1), Path::new("/opt/agent/state")).expect("a reason");
        assert_eq!(why, "every program may read /opt/agent/state, and so the agent's key");
    }

    #[test]
    fn targets_must_not_have_the_state_folder_in_their_own() {
        let state = Path::new("/srv/bench/state");
        assert_eq!(what_targets_could_do(Landlock::Whole(7), state, Path::new("/srv/targets")), None);
        let why = what_targets_could_do(Landlock::Whole(7), state, Path::new("/srv/bench")).expect("a reason");
        assert_eq!(why, "targets may read /srv/bench/state, and so the agent's key");
        assert!(what_targets_could_do(Landlock::Absent, state, Path::new("/srv/targets")).is_some());
    }
}
