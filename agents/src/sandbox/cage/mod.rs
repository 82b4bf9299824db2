//! The sandbox of k6 and targets. The kernel enforces it, and neither a program nor its children can leave it.
//!
//! - `files`: Landlock limits which files a program reads, executes and writes, and which processes it may signal.
//! - `calls`: a seccomp filter blocks system calls that leave the control group or affect other processes.
//! - [`user`]: programs run as other users than the agent, if it is privileged; else `calls` blocks more.
//! - `privileges`: a program has no capabilities, gains none, and leaves no core dump.
//! - [`environment`]: a program gets only listed variables of the agent's environment.
//!
//! Everything is prepared before the fork: between fork and exec only system calls are allowed.

pub mod access;
mod calls;
pub mod environment;
mod files;
mod privileges;
pub mod support;
pub mod user;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Gid;

use self::access::Access;
use self::user::User;
use super::ProgramRole;

/// What a program may access beyond what every program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cage {
    kind: Kind,
    /// Folder for temporary files, writable.
    home: PathBuf,
    /// Files and folders it may read and execute, recursively.
    read: Vec<PathBuf>,
    /// Files and folders it may also write. With a device its group is allowed, with a socket the use of sockets.
    write: Vec<PathBuf>,
    /// Whether it has no network.
    is_offline: bool,
}

/// The largest file that a load generator may write. Its own are far smaller; a script decides about others.
const MAX_FILE: u64 = 64 << 20;

/// The kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A server.
    Target,
    /// A load generator, which needs no information about the machine.
    Generator,
    /// A profiler: it attaches to other processes, which is what a cage prevents.
    Profiler,
}

impl Cage {
    /// Creates the cage of a target that starts in `folder` and may write only below `home`.
    pub fn target(program: &Path, folder: &Path, home: &Path) -> Self {
        let read = vec![program.to_owned(), folder.to_owned()];
        Self { kind: Kind::Target, home: home.to_owned(), read, write: Vec::new(), is_offline: false }
    }

    /// Creates the cage of a load generator that reads its scenario and writes its results.
    pub fn generator(program: &Path, scenario: &Path, home: &Path, results: &Path) -> Self {
        let read = vec![program.to_owned(), scenario.to_owned()];
        Self { kind: Kind::Generator, home: home.to_owned(), read, write: vec![results.to_owned()], is_offline: false }
    }

    /// No cage, for a profiler that the agent's owner allows.
    pub fn open(home: &Path) -> Self {
        Self { kind: Kind::Profiler, home: home.to_owned(), read: Vec::new(), write: Vec::new(), is_offline: false }
    }

    /// Denies network access.
    #[must_use]
    pub fn without_network(self) -> Self {
        Self { is_offline: true, ..self }
    }

    /// Additionally allows reading and writing these paths.
    #[must_use]
    pub fn widened(mut self, read: &[PathBuf], write: &[PathBuf]) -> Self {
        self.read.extend_from_slice(read);
        self.write.extend_from_slice(write);
        self
    }

    /// Whether it may read a file or list a folder. The path must be absolute, without symbolic links.
    pub fn may_read(&self, path: &Path) -> bool {
        files::readable(self).chain(self.write.iter().chain([&self.home]).cloned()).any(|open| path.starts_with(open))
    }

    /// Returns the folder for temporary files.
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn role(&self) -> ProgramRole {
        match self.kind {
            Kind::Target => ProgramRole::Target,
            Kind::Generator => ProgramRole::Generator,
            Kind::Profiler => ProgramRole::Profiler,
        }
    }

    /// Explains why the program can't start, or can't read or write what it shall; `None` if it can, as far as that is
    /// known.
    pub fn obstacle(&self, program: &Path) -> Option<String> {
        let role = self.role();
        // Of a folder it may not need everything.
        let files = self.read.iter().filter(|path| path.is_file() && *path != program);
        let start = access::obstacle(role, program, Access::Start);
        let read = || files.into_iter().find_map(|path| access::obstacle(role, path, Access::Read));
        start.or_else(read).or_else(|| self.write.iter().find_map(|path| access::obstacle(role, path, Access::Write)))
    }

    /// Whether the program's user can't pass through the folders above a file.
    pub fn is_closed(&self, path: &Path) -> bool {
        access::is_closed(self.role(), path)
    }

    /// Prepares everything for [`Lock::close`]; `None` for an open cage. Fails if the kernel refuses a rule.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        if self.kind == Kind::Profiler {
            return Ok(None);
        }
        let user = User::for_role(self.role());
        let refused = calls::Refused {
            network: self.is_offline,
            agents_user: user.is_none(),
            local_sockets: user.is_none() && !self.write.iter().any(|path| is_socket(path)),
        };
        let groups = self.write.iter().filter_map(|path| group_of_device(path)).collect();
        let largest_file = (self.role() == ProgramRole::Generator).then_some(MAX_FILE);
        Ok(Some(Lock { ruleset: files::ruleset(self)?, filter: calls::filter(refused)?, user, groups, largest_file }))
    }
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.file_type().is_socket())
}

/// Returns the group that may use a device, such as `/dev/kvm`, unless that is root's.
fn group_of_device(path: &Path) -> Option<Gid> {
    let device = path.metadata().ok().filter(|file| file.file_type().is_char_device() && file.gid() != 0)?;
    Some(Gid::from_raw(device.gid()))
}

/// A cage prepared for a forked process.
#[derive(Debug)]
pub struct Lock {
    /// `None` if the kernel has no Landlock.
    ruleset: Option<OwnedFd>,
    filter: calls::Filter,
    user: Option<User>,
    groups: Vec<Gid>,
    largest_file: Option<u64>,
}

impl Lock {
    /// Confines the calling process, permanently. Makes system calls only.
    pub fn close(&self) -> io::Result<()> {
        if let Some(bytes) = self.largest_file {
            setrlimit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
        }
        privileges::drop_all(self.user, &self.groups)?;
        if let Some(ruleset) = &self.ruleset {
            files::enter(ruleset)?;
        }
        self.filter.install()
    }

    /// Returns the user that it becomes; `None` for the agent's.
    pub fn user(&self) -> Option<User> {
        self.user
    }
}
