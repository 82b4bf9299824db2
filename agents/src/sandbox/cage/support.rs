//! Which parts of the sandbox this kernel can enforce.

use std::io;
use std::path::Path;

use nix::libc;

use super::Cage;
use super::user::Users;

/// Landlock support of this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landlock {
    /// The kernel is older than 5.13, or Landlock is disabled.
    Absent,
    /// Files are protected, except from truncation (before Linux 6.2), and processes are not from signals (before
    /// 6.12).
    Partial(u32),
    /// Everything the cage needs.
    Complete(u32),
}

/// The first version that blocks signals.
const COMPLETE_FROM: u32 = 6;

impl Landlock {
    /// Detects the support of this kernel.
    pub fn detect() -> Self {
        match version() {
            Err(_) | Ok(0) => Self::Absent,
            Ok(version @ COMPLETE_FROM..) => Self::Complete(version),
            Ok(version) => Self::Partial(version),
        }
    }
}

/// Explains why foreign scripts are unsafe for an agent with this state folder; `None` if they are safe.
pub fn script_risk(landlock: Landlock, state: &Path) -> Option<String> {
    if landlock == Landlock::Absent {
        return Some(format!(
            "this kernel has no Landlock (Linux 5.13), so a script could read and write {}",
            exposed()
        ));
    }
    let generator = Cage::generator("k6".as_ref(), "scenario".as_ref(), "home".as_ref(), "results".as_ref());
    let state = resolved(state);
    generator.may_read(&state).then(|| format!("every program may read {}, including the agent's key", state.display()))
}

/// Describes as whom programs run.
pub fn describe_users() -> String {
    match Users::find() {
        Ok(Users { target, generator }) => {
            format!("targets run as user {}, load generators as {}", target.uid(), generator.uid())
        }
        Err(reason) => format!("targets and load generators run as the agent's user, because {reason}"),
    }
}

/// Explains why targets could read the key of an agent; `None` if they can't.
pub fn target_risk(landlock: Landlock, state: &Path, targets: &Path) -> Option<String> {
    if landlock == Landlock::Absent {
        return Some(format!("this kernel has no Landlock (Linux 5.13): targets can access {}", exposed()));
    }
    let state = resolved(state);
    let target = Cage::target("program".as_ref(), &resolved(targets), "home".as_ref());
    target.may_read(&state).then(|| format!("targets may read {}, including the agent's key", state.display()))
}

/// Describes the files that programs can access without Landlock.
fn exposed() -> &'static str {
    if Users::find().is_ok() { "what every user of this machine may" } else { "all files of the agent's user" }
}

/// Resolves symbolic links; a folder that does not exist yet stays as it is.
fn resolved(folder: &Path) -> std::path::PathBuf {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
}

#[expect(unsafe_code, reason = "no library returns the version")]
fn version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no memory and opens nothing.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_unsafe_without_landlock_or_with_a_readable_state_folder() {
        let state = Path::new("/var/lib/brewbench-agent");
        assert_eq!(script_risk(Landlock::Complete(7), state), None);
        let why = script_risk(Landlock::Absent, state).expect("a reason");
        assert!(why.contains("no Landlock"), "{why}");
        let why = script_risk(Landlock::Partial(1), Path::new("/opt/agent/state")).expect("a reason");
        assert_eq!(why, "every program may read /opt/agent/state, including the agent's key");
    }

    #[test]
    fn the_state_folder_must_not_be_below_the_targets() {
        let state = Path::new("/srv/bench/state");
        assert_eq!(target_risk(Landlock::Complete(7), state, Path::new("/srv/targets")), None);
        let why = target_risk(Landlock::Complete(7), state, Path::new("/srv/bench")).expect("a reason");
        assert_eq!(why, "targets may read /srv/bench/state, including the agent's key");
        assert!(target_risk(Landlock::Absent, state, Path::new("/srv/targets")).is_some());
    }
}
