//! What k6 and targets may do on this machine. The kernel enforces it, and a program that was started in a cage can't
//! leave it; neither can the programs that it starts.
//!
//! - `files`: Landlock limits which files it reads, runs and writes, and which processes it may signal.
//! - `calls`: a seccomp filter refuses the system calls that lead out of a control group or to other processes.
//! - `privileges`: it has no capabilities, gains none, and leaves no core dump.
//! - [`environment`]: of the agent's environment it sees only what is on a list.
//!
//! Everything is prepared before the fork: between fork and exec only system calls are allowed.

mod calls;
pub mod environment;
mod files;
mod privileges;
pub mod support;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a program may do beyond what every program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cage {
    kind: Kind,
    /// Where it keeps temporary files; it may write there.
    home: PathBuf,
    /// Files and folders that it may read and run, with all below.
    read: Vec<PathBuf>,
    /// Files and folders that it may also write.
    write: Vec<PathBuf>,
}

/// For whom a cage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A server.
    Target,
    /// A load generator: it knows nothing of the machine.
    Generator,
    /// A load generator that only reads a script: it has no network either.
    Reader,
}

impl Cage {
    /// For a target that is started from `folder` and may write only below `home`.
    pub fn target(program: &Path, folder: &Path, home: &Path) -> Self {
        let read = vec![program.to_owned(), folder.to_owned()];
        Self { kind: Kind::Target, home: home.to_owned(), read, write: Vec::new() }
    }

    /// For a load generator that reads its scenario and writes its results.
    pub fn generator(program: &Path, scenario: &Path, home: &Path, results: &Path) -> Self {
        let read = vec![program.to_owned(), scenario.to_owned()];
        Self { kind: Kind::Generator, home: home.to_owned(), read, write: vec![results.to_owned()] }
    }

    /// The same for one that has no business on the network.
    #[must_use]
    pub fn without_network(self) -> Self {
        Self { kind: Kind::Reader, ..self }
    }

    /// Also lets it read `read` and write `write`.
    #[must_use]
    pub fn widened(mut self, read: &[PathBuf], write: &[PathBuf]) -> Self {
        self.read.extend_from_slice(read);
        self.write.extend_from_slice(write);
        self
    }

    /// Whether it may read a file, or what is in a folder. Both must be absolute, without links.
    pub fn may_read(&self, path: &Path) -> bool {
        files::readable(self).chain(self.write.iter().chain([&self.home]).cloned()).any(|open| path.starts_with(open))
    }

    /// Where it keeps temporary files.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Everything that [`Lock::close`] needs. Fails when the kernel refuses a rule.
    pub fn lock(&self) -> io::Result<Lock> {
        let ruleset = files::ruleset(self)?;
        let is_confined = ruleset.is_some();
        Ok(Lock { ruleset, filter: calls::filter(self.kind == Kind::Reader)?, is_confined })
    }
}

/// A cage that is ready to be closed around a forked process.
#[derive(Debug)]
pub struct Lock {
    /// None where the kernel has no Landlock.
    ruleset: Option<OwnedFd>,
    filter: calls::Filter,
    is_confined: bool,
}

impl Lock {
    /// Closes the cage around the calling process, for good. Makes system calls only.
    pub fn close(&self) -> io::Result<()> {
        privileges::drop_all(self.is_confined)?;
        if let Some(ruleset) = &self.ruleset {
            files::enter(ruleset)?;
        }
        self.filter.install()
    }
}
