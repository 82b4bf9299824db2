//! Child processes that never outlive the test.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

/// How temporary folders begin; the id of the test's process follows.
const FOLDERS: &str = "brewbench-kubernetes-";

/// Returns a command whose process ends with this one.
///
/// The kernel kills it when the thread that has started it ends, however it ends.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// Runs a command to its end; what it prints is the error if it fails.
pub fn run(program: &str, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program} {}: {}", arguments.join(" "), message.trim())))
}

/// Runs `ip` with these words.
pub fn ip(words: &str) -> io::Result<()> {
    run("ip", &words.split(' ').collect::<Vec<_>>())
}

/// A program that runs until it is dropped, with its output in a file.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program. Its output is appended to the log.
    pub fn start(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdout(output.try_clone()?).stderr(output);
        Ok(Self { child: command.spawn()?, log: log.to_owned() })
    }

    /// Returns the process that the program has started first, while both run.
    pub fn child(&self) -> Option<i32> {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split(' ').next()?.parse().ok()
    }

    /// Kills what `unshare --pid --fork` runs, and waits until the kernel has killed all processes of that namespace.
    pub fn kill_namespace(&mut self) {
        if let Some(first) = self.child() {
            let _ = kill(Pid::from_raw(first), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }

    /// Returns the end of the log if the program has exited.
    pub fn failure(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let start = log.char_indices().rev().nth(2000).map_or(0, |(index, _)| index);
        Some(format!("{}: {status}: {}", self.log.display(), &log[start..]))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the test with this process id, which has left something, is gone.
pub fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

/// Creates a folder for a test; removes those of tests that were killed.
pub fn folder(name: &str) -> io::Result<TempDir> {
    for entry in std::fs::read_dir(std::env::temp_dir())?.flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        let owner = found.strip_prefix(FOLDERS).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(is_gone) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new().prefix(&format!("{FOLDERS}{}-{name}-", std::process::id())).tempdir()
}
