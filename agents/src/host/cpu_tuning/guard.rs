//! A process that puts things back when its agent is gone, however it went.
//!
//! It reads from a pipe whose other end only the agent holds, and into which nothing is ever written: the kernel ends the
//! pipe when the agent ends, also by SIGKILL. Until then it sleeps.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use super::Restored;

/// Its agent's end of it. Dropping this ends the guard.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    line: Option<ChildStdin>,
}

impl Guard {
    /// Starts it: a program that calls [`stand_by`].
    pub fn start(command: &[OsString]) -> io::Result<Self> {
        let [program, arguments @ ..] = command else { return Err(io::Error::other("no program for the guard")) };
        // What ends the agent by its process group, a Ctrl-C say, must not end the guard before it.
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        Ok(Self { line: child.stdin.take(), child })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.line.take());
        let _ = self.child.wait();
    }
}

/// Waits until standard input ends, then puts back what the agent with this state folder left. Deaf to all signals that
/// one can be deaf to. Fails as [`super::restore`] does.
pub async fn stand_by(state: &Path) -> io::Result<Restored> {
    let _deaf = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let ended = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    // However it ends, nobody is there any more.
    let _ = ended.await;
    super::restore(state)
}
