//! The users of the programs of a run, other ones than the agent's and than each other's.
//!
//! What a user owns, no other user may change, whichever path, socket or system call is used: the files and processes
//! of the agent and of its owner, the sockets of services, and the load generator of the same run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use nix::unistd::{Gid, Group, Uid, chown};

use crate::sandbox::ProgramRole;

/// The first and last number for users and groups of runs. Neither systemd nor Debian gives these to anybody.
const NUMBERS: (u32, u32) = (65_520, 65_533);

/// What an agent needs to start programs as other users, to watch and end them, and to remove their files.
const NEEDED: [(&str, u32); 7] =
    [("CHOWN", 0), ("DAC_OVERRIDE", 1), ("FOWNER", 3), ("KILL", 5), ("SETGID", 6), ("SETUID", 7), ("SYS_PTRACE", 19)];

/// A user with a group of the same number, without an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    number: u32,
}

/// The users of runs on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// Runs targets.
    pub target: User,
    /// Runs load generators.
    pub generator: User,
}

impl Users {
    /// Returns the users of runs. The error is the reason, a sentence, why programs run as the agent's user.
    pub fn find() -> Result<Self, &'static str> {
        static FOUND: LazyLock<Result<Users, String>> = LazyLock::new(|| {
            let read = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default();
            let is_taken = |number: u32| {
                matches!(nix::unistd::User::from_uid(Uid::from_raw(number)), Ok(Some(_)))
                    || matches!(Group::from_gid(Gid::from_raw(number)), Ok(Some(_)))
            };
            check_privileges(&read("status"), [&read("uid_map"), &read("gid_map")], &read("setgroups"))?;
            choose(is_taken)
        });
        FOUND.as_ref().copied().map_err(String::as_str)
    }
}

impl User {
    /// Returns the user of the programs with a role in a run; `None` if its programs run as the agent's user.
    pub fn for_role(role: ProgramRole) -> Option<Self> {
        let users = Users::find().ok()?;
        match role {
            ProgramRole::Target => Some(users.target),
            ProgramRole::Generator => Some(users.generator),
            // It attaches to processes of other users.
            ProgramRole::Profiler => None,
        }
    }

    /// Returns its number.
    pub fn uid(self) -> Uid {
        Uid::from_raw(self.number)
    }

    /// Returns the number of its group.
    pub fn gid(self) -> Gid {
        Gid::from_raw(self.number)
    }
}

/// Lets programs of runs pass through a folder of the agent to what they may access below.
pub fn open_path(folder: &Path) -> io::Result<()> {
    let mode = if Users::find().is_ok() { 0o711 } else { 0o700 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))
}

/// Gives a new folder or socket of the agent to the programs with this role, and to nobody else.
pub fn give(path: &Path, role: ProgramRole) -> io::Result<()> {
    let Some(user) = User::for_role(role) else { return Ok(()) };
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    chown(path, Some(user.uid()), Some(user.gid()))?;
    Ok(())
}

/// Allows the programs with this role to read a file or folder of the agent, and nobody else.
pub fn show(path: &Path, role: ProgramRole) -> io::Result<()> {
    let Some(user) = User::for_role(role) else { return Ok(()) };
    let mode = if path.is_dir() { 0o750 } else { 0o640 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    chown(path, None, Some(user.gid()))?;
    Ok(())
}

fn check_privileges(status: &str, maps: [&str; 2], setgroups: &str) -> Result<(), String> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or_default();
    let missing: Vec<_> = NEEDED.iter().filter(|(_, bit)| effective & (1 << bit) == 0).map(|(name, _)| *name).collect();
    if missing.len() == NEEDED.len() {
        return Err("the agent is not privileged".to_owned());
    }
    if !missing.is_empty() {
        return Err(format!("the agent lacks the capabilities {}", missing.join(", ")));
    }
    if !maps.iter().all(|map| is_mapped(map)) || setgroups.trim() == "deny" {
        return Err(format!("the agent's user namespace has no users {} to {}", NUMBERS.0, NUMBERS.1));
    }
    Ok(())
}

/// Whether a user namespace has all numbers; each line of a map is a first number inside, one outside, and a count.
fn is_mapped(map: &str) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or_default());
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let range = first.unwrap_or_default()..first.unwrap_or_default() + count.unwrap_or_default();
        range.contains(&NUMBERS.0.into()) && range.contains(&NUMBERS.1.into())
    })
}

/// Chooses numbers that no account and no group of this machine has.
fn choose(is_taken: impl Fn(u32) -> bool) -> Result<Users, String> {
    let mut free = (NUMBERS.0..=NUMBERS.1).filter(|number| !is_taken(*number)).map(|number| User { number });
    match (free.next(), free.next()) {
        (Some(target), Some(generator)) => Ok(Users { target, generator }),
        _ => Err(format!("accounts of this machine have all numbers {} to {}", NUMBERS.0, NUMBERS.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_existing_accounts_are_left_to_them() {
        let numbers = |taken: &[u32]| choose(|number| taken.contains(&number));
        let users =
            |target, generator| Ok(Users { target: User { number: target }, generator: User { number: generator } });
        assert_eq!(numbers(&[]), users(65_520, 65_521));
        assert_eq!(numbers(&[65_520, 65_522]), users(65_521, 65_523));
        let error = choose(|_| true).expect_err("none is free");
        assert_eq!(error, "accounts of this machine have all numbers 65520 to 65533");
    }

    #[test]
    fn an_agent_without_privileges_says_what_is_missing() {
        const ALL: &str = "         0          0 4294967295\n";
        let check = |hex: &str, map: &str, setgroups: &str| {
            check_privileges(&format!("Name:\tx\nCapEff:\t{hex}\n"), [map, map], setgroups)
        };
        assert_eq!(check("000001ffffffffff", ALL, "allow\n"), Ok(()));
        assert_eq!(check("0000000000000000", ALL, "allow\n"), Err("the agent is not privileged".to_owned()));
        let missing = Err("the agent lacks the capabilities SYS_PTRACE".to_owned());
        assert_eq!(check("00000000a80425fb", ALL, "allow\n"), missing, "root in a container of Docker");
        let unmapped = Err("the agent's user namespace has no users 65520 to 65533".to_owned());
        assert_eq!(check("000001ffffffffff", "0 1000 1\n1 100000 65536\n", "allow\n"), Ok(()));
        assert_eq!(check("000001ffffffffff", "0 1000 1\n", "deny\n"), unmapped);
        assert_eq!(check("000001ffffffffff", ALL, "deny\n"), unmapped);
    }
}
