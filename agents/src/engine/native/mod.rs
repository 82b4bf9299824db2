//! The native load generator, as a child process: it reads a plan from its standard input and writes events to its
//! standard output.

mod report;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use brewbench_load::VERSION;
use brewbench_load::plan::Plan;
use brewbench_wire::engine::{EngineKind, EngineOffer};
pub use report::{NO_SUMMARY, Report};
pub use requests::{Requests, check, read};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;

use crate::sandbox::Group;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{self, Process, describe, last_lines};
use crate::series::recording::Recording;

/// The program that generates the load.
#[derive(Clone, Debug)]
pub struct Native {
    /// Its path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Native {
    /// Describes it for the server.
    pub fn offer(&self) -> EngineOffer {
        EngineOffer {
            name: EngineKind::Native.as_str().to_owned(),
            version: VERSION.to_owned(),
            path: self.program.display().to_string(),
            supported: VERSION.to_owned(),
            fault: None,
            capabilities: EngineKind::Native.capabilities().to_vec(),
        }
    }

    /// Starts a plan. Returns the process, what it reports, and what starts the load of a paused one. Fails if it can't
    /// be executed.
    pub(super) fn start(
        &self,
        plan: &Plan,
        requests: &Requests,
        cores: &[usize],
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<(Process, Report, oneshot::Sender<()>)> {
        let home = requests.home();
        let start = process::Plan {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment: BTreeMap::new(),
            folder: home.to_owned(),
            cores: cores.to_vec(),
            cage: Cage::generator(&self.program, home, home, home),
        };
        let mut text = serde_json::to_vec(plan)?;
        text.push(b'\n');
        let (process, mut input, output) = Process::start_connected(&start, group)?;
        let (resume, resumed) = oneshot::channel();
        // If it can't be written to, the process has ended, which is noticed elsewhere.
        tokio::spawn(async move {
            input.write_all(&text).await?;
            if resumed.await.is_ok() {
                input.write_all(b"start\n").await?;
            }
            Ok::<_, io::Error>(())
        });
        Ok((process, Report::read(output, recording), resume))
    }
}

/// Checks that it completed its load; the error is a sentence with its last lines.
pub fn judge(status: ExitStatus, log: &str) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    Err(match last_lines(log) {
        lines if lines.is_empty() => format!("the load generator failed: {}", describe(status)),
        lines => format!("the load generator failed: {lines}"),
    })
}
