//! wrk, to check results by an independent load generator: one request, constant connections, and totals only.

mod find;
mod request;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use brewbench_wire::engine::{EngineKind, EngineOffer};
use brewbench_wire::load_record::LoadRecord;
use brewbench_wire::work_done::WorkDone;
pub use request::Request;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::native::NO_SUMMARY;
use super::round::{LoadTarget, Round};
use crate::sandbox::Group;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{Plan, Process, describe, last_lines};
use crate::series::recording::Recording;

/// Its output has a few hundred bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// How long the rest of the output may take to arrive after the exit, on a busy machine.
const REST: Duration = Duration::from_secs(5);

/// A usable wrk.
#[derive(Clone, Debug)]
pub struct Wrk {
    path: PathBuf,
    version: String,
}

/// What wrk prints at its end.
#[derive(Debug)]
pub struct Report {
    load_start_ms: Option<i64>,
    /// Until it has been waited for.
    reader: Option<JoinHandle<Option<String>>>,
    output: Option<String>,
}

impl Wrk {
    /// Finds it in `PATH`; `None` if there is none, or one that can't run where load generators do.
    pub async fn find() -> Option<Self> {
        let (path, version) = find::find().await?;
        Some(Self { path, version })
    }

    /// Describes it for the server.
    pub fn offer(&self) -> EngineOffer {
        EngineOffer {
            name: EngineKind::Wrk.as_str().to_owned(),
            version: self.version.clone(),
            path: self.path.display().to_string(),
            supported: "4.x".to_owned(),
            fault: None,
            capabilities: EngineKind::Wrk.capabilities().to_vec(),
        }
    }

    /// Starts a round. Fails if it can't be executed.
    pub(super) fn start(
        &self,
        request: &Request,
        load: &LoadTarget<'_>,
        round: Round,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<(Process, Report)> {
        let home = request.home();
        let plan = Plan {
            program: self.path.clone(),
            arguments: request.arguments(load, round)?,
            environment: BTreeMap::new(),
            folder: home.to_owned(),
            cores: load.cores.to_vec(),
            cage: Cage::generator(&self.path, home, home, home),
        };
        let (process, _, output) = Process::start_connected(&plan, group)?;
        Ok((process, Report::read(output, recording)))
    }
}

impl Report {
    /// Reads its output. wrk says nothing about its start, and connects first: the load begins with the process.
    fn read(mut output: Receiver, recording: Option<&Recording>) -> Self {
        let feed = recording.map(|recording| (recording.clock(), recording.arrivals(), recording.edges()));
        let load_start_ms = feed.as_ref().map(|(clock, arrivals, edges)| {
            let now_ms = clock.now_ms();
            arrivals.begin(now_ms);
            edges.notify_one();
            now_ms
        });
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            let read = (&mut output).take(MAX_OUTPUT).read_to_string(&mut text).await;
            if let Some((clock, arrivals, edges)) = feed {
                edges.notify_one();
                arrivals.conclude(&WorkDone::default(), clock.now_ms());
            }
            read.is_ok_and(|bytes| bytes > 0).then_some(text)
        });
        Self { load_start_ms, reader: Some(reader), output: None }
    }

    /// Waits for the output of a process that has ended.
    pub async fn finish(&mut self) {
        if let Some(reader) = &mut self.reader {
            self.output = timeout(REST, reader).await.ok().and_then(Result::ok).flatten();
            self.reader = None;
        }
    }

    /// Returns the course of the load.
    pub fn record(&self) -> LoadRecord {
        LoadRecord { load_start_ms: self.load_start_ms, ..LoadRecord::default() }
    }

    /// Returns the output. The error is a sentence.
    pub fn summary(&self) -> Result<String, String> {
        self.output.clone().ok_or_else(|| NO_SUMMARY.to_owned())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

/// Checks that it completed its load; the error is a sentence with its last lines.
pub fn judge(status: ExitStatus, log: &str) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    let lines = last_lines(log);
    Err(format!("wrk failed: {}", if lines.is_empty() { describe(status) } else { lines }))
}
