//! The sandbox of k6 and targets. The kernel enforces it, and neither a program nor its children can leave it.
//!
//! - `files`: Landlock limits which files a program reads, executes and writes, and which processes it may signal.
//! - `calls`: a seccomp filter blocks system calls that leave the control group or affect other processes.
//! - `privileges`: a program has no capabilities, gains none, and leaves no core dump.
//! - [`environment`]: a program gets only listed variables of the agent's environment.
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

/// What a program may access beyond what every program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cage {
    kind: Kind,
    /// Folder for temporary files, writable.
    home: PathBuf,
    /// Files and folders it may read and execute, recursively.
    read: Vec<PathBuf>,
    /// Files and folders it may also write.
    write: Vec<PathBuf>,
}

/// The kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A server.
    Target,
    /// A load generator, which needs no information about the machine.
    Generator,
    /// A load generator that only inspects a script, without network.
    Reader,
    /// A profiler: it attaches to other processes, which is what a cage prevents.
    Profiler,
}

impl Cage {
    /// Creates the cage of a target that starts in `folder` and may write only below `home`.
    pub fn target(program: &Path, folder: &Path, home: &Path) -> Self {
        let read = vec![program.to_owned(), folder.to_owned()];
        Self { kind: Kind::Target, home: home.to_owned(), read, write: Vec::new() }
    }

    /// Creates the cage of a load generator that reads its scenario and writes its results.
    pub fn generator(program: &Path, scenario: &Path, home: &Path, results: &Path) -> Self {
        let read = vec![program.to_owned(), scenario.to_owned()];
        Self { kind: Kind::Generator, home: home.to_owned(), read, write: vec![results.to_owned()] }
    }

    /// No cage, for a profiler that the agent's owner allows.
    pub fn open(home: &Path) -> Self {
        Self { kind: Kind::Profiler, home: home.to_owned(), read: Vec::new(), write: Vec::new() }
    }

    /// Denies network access.
    #[must_use]
    pub fn without_network(self) -> Self {
        Self { kind: Kind::Reader, ..self }
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

    /// Prepares everything for [`Lock::close`]; `None` for an open cage. Fails if the kernel refuses a rule.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        if self.kind == Kind::Profiler {
            return Ok(None);
        }
        let ruleset = files::ruleset(self)?;
        let is_confined = ruleset.is_some();
        Ok(Some(Lock { ruleset, filter: calls::filter(self.kind == Kind::Reader)?, is_confined }))
    }
}

/// A cage prepared for a forked process.
#[derive(Debug)]
pub struct Lock {
    /// `None` if the kernel has no Landlock.
    ruleset: Option<OwnedFd>,
    filter: calls::Filter,
    is_confined: bool,
}

impl Lock {
    /// Confines the calling process, permanently. Makes system calls only.
    pub fn close(&self) -> io::Result<()> {
        privileges::drop_all(self.is_confined)?;
        if let Some(ruleset) = &self.ruleset {
            files::enter(ruleset)?;
        }
        self.filter.install()
    }
}
