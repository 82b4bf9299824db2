//! Load generators: [`Engine`] has all in which they differ. The rest of the agent uses the names in this file.

pub mod inspection;
pub mod k6;
pub mod native;
mod pause;
mod probe;
pub mod round;
mod wrk;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use brewbench_wire::engine::{Capability, EngineKind, EngineOffer};
use brewbench_wire::job::Job;
use brewbench_wire::load_record::LoadRecord;

pub use k6::receiver::{Arrivals, Received, Receiver, Sent};
pub use k6::remote;
pub use k6::remote_write::Push;
pub use k6::{K6, NoK6, Script, judge};
use native::{Native, Requests};
pub use pause::Paused;
pub use round::{Bounds, LoadTarget, Round};
pub use wrk::Wrk;

use crate::sandbox::Group;
use crate::sandbox::process::Process;
use crate::series::collector::Scope;
use crate::series::recording::Recording;

/// The load generators of an agent.
#[derive(Clone, Debug)]
pub struct Engines {
    /// k6.
    pub k6: Option<K6>,
    /// brewbench's own; `None` in programs that can't execute it.
    pub native: Option<Native>,
    /// wrk.
    pub wrk: Option<Wrk>,
}

impl From<K6> for Engines {
    fn from(k6: K6) -> Self {
        Self { k6: Some(k6), native: None, wrk: None }
    }
}

impl Engines {
    /// Describes them for the server.
    pub fn offers(&self) -> Vec<EngineOffer> {
        let Self { k6, native, wrk } = self;
        let all = [k6.as_ref().map(K6::offer), native.as_ref().map(Native::offer), wrk.as_ref().map(Wrk::offer)];
        all.into_iter().flatten().collect()
    }

    /// Describes the one that a run asks for. The error is a sentence.
    pub fn offer(&self, kind: EngineKind) -> Result<EngineOffer, String> {
        match kind {
            EngineKind::K6 => self.k6().map(K6::offer),
            EngineKind::Native => self.native().map(Native::offer),
            EngineKind::Wrk => self.wrk().map(Wrk::offer),
        }
    }

    /// Returns k6. The error is a sentence.
    pub fn k6(&self) -> Result<&K6, String> {
        self.k6.as_ref().ok_or_else(|| "this agent has no k6".to_owned())
    }

    fn native(&self) -> Result<&Native, String> {
        self.native.as_ref().ok_or_else(|| "this agent has no native load generator".to_owned())
    }

    fn wrk(&self) -> Result<&Wrk, String> {
        self.wrk.as_ref().ok_or_else(|| "this agent has no wrk: install it, and put it in PATH".to_owned())
    }
}

/// A load generator with the scenario of a run.
#[derive(Debug)]
pub enum Engine {
    /// k6 with a script.
    K6(K6, Box<Script>),
    /// The native one with a list of requests.
    Native(Native, Box<Requests>),
    /// wrk with the only request of a list.
    Wrk(Wrk, Box<wrk::Request>),
}

/// What a running load generator reports besides its series.
#[derive(Debug)]
pub enum Report {
    /// k6's log; `None` for a warm-up.
    K6(Option<k6::Log>),
    /// Events.
    Native(native::Report),
    /// Its output.
    Wrk(wrk::Report),
}

impl Engine {
    /// Writes what the load generator of a job needs below `run_folder`. Fails with a sentence.
    pub fn for_job(job: &Job, engines: &Engines, run_folder: &Path) -> Result<Self, String> {
        Ok(match job.spec.engine() {
            EngineKind::K6 => Self::K6(engines.k6()?.clone(), Box::new(Script::from_job(job, run_folder)?)),
            EngineKind::Native => {
                Self::Native(engines.native()?.clone(), Box::new(Requests::from_job(job, run_folder)?))
            }
            EngineKind::Wrk => Self::Wrk(engines.wrk()?.clone(), Box::new(wrk::Request::from_job(job, run_folder)?)),
        })
    }

    /// Returns its name, for sentences.
    pub fn name(&self) -> &'static str {
        match self {
            Self::K6(..) => "k6",
            Self::Native(..) => "the load generator",
            Self::Wrk(..) => "wrk",
        }
    }

    /// Checks that it can execute the scenario; returns the bounds of the measured load. The error is a sentence.
    pub async fn prepare(&mut self, group: &Group, cores: &[usize]) -> Result<Bounds, String> {
        match self {
            Self::K6(k6, script) => k6.prepare(script, group, cores, k6::INSPECTION).await.map(|(bounds, _)| bounds),
            Self::Native(_, requests) => requests.bounds(),
            Self::Wrk(_, request) => request.bounds(),
        }
    }

    /// Starts it, with a [recording](crate::series::recording), if there is one. Fails if it can't be executed.
    pub fn start(
        &self,
        load: &LoadTarget<'_>,
        round: Round,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<(Process, Report)> {
        match self {
            Self::K6(k6, script) => {
                let (process, log) = k6.start(script, load, round, recording, group)?;
                Ok((process, Report::K6(log)))
            }
            Self::Native(native, requests) => {
                let plan = requests.plan(load, round, false).map_err(io::Error::other)?;
                let (process, report, _) = native.start(&plan, requests, load.cores, recording, group)?;
                Ok((process, Report::Native(report)))
            }
            Self::Wrk(wrk, request) => {
                let (process, report) = wrk.start(request, load, round, recording, group)?;
                Ok((process, Report::Wrk(report)))
            }
        }
    }

    /// Starts it for the measured load, paused until resumed.
    pub fn start_paused(
        &self,
        load: &LoadTarget<'_>,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<(Process, Report, Paused)> {
        match self {
            Self::K6(k6, script) => {
                let paused = k6::Paused::choose()?;
                let (process, log) = k6.start_paused(script, load, &paused, recording, group)?;
                Ok((process, Report::K6(log), Paused::K6(paused)))
            }
            Self::Native(native, requests) => {
                let plan = requests.plan(load, Round::Measure, true).map_err(io::Error::other)?;
                let (process, report, start) = native.start(&plan, requests, load.cores, recording, group)?;
                let paused = Paused::Native { ready: report.ready(), start };
                Ok((process, Report::Native(report), paused))
            }
            Self::Wrk(..) => Err(io::Error::other(format!("it can't {}", Capability::Pausing))),
        }
    }

    /// Checks that it completed its load; the error is a sentence with its last errors.
    pub fn judge(&self, status: ExitStatus, log: &str) -> Result<(), String> {
        match self {
            Self::K6(..) => judge(status, log),
            Self::Native(..) => native::judge(status, log),
            Self::Wrk(..) => wrk::judge(status, log),
        }
    }

    /// Whether a script aborted its load. There is a summary anyway.
    pub fn is_aborted(&self, status: ExitStatus) -> bool {
        matches!(self, Self::K6(..)) && k6::is_aborted(status)
    }

    /// Returns the folders that it may write to.
    pub fn folders(&self) -> Vec<PathBuf> {
        match self {
            Self::K6(_, script) => vec![script.files_folder(), script.results_folder()],
            Self::Native(_, requests) => vec![requests.home().to_owned()],
            Self::Wrk(_, request) => vec![request.home().to_owned()],
        }
    }

    /// Whether a virtual user may wait between its requests.
    pub fn may_wait(&self) -> bool {
        match self {
            Self::K6(_, script) => script.may_wait(),
            Self::Native(_, requests) => requests.may_wait(),
            Self::Wrk(..) => false,
        }
    }

    /// What of its series belongs to the load.
    pub fn scope(&self) -> Scope {
        match self {
            Self::K6(_, script) => script.scope(),
            Self::Native(..) | Self::Wrk(..) => Scope::All,
        }
    }

    /// Returns the duration of the load, if it is not the script's own.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Self::K6(_, script) => script.duration(),
            Self::Native(_, requests) => requests.duration(),
            Self::Wrk(_, request) => request.duration(),
        }
    }

    /// Returns how long a load of a duration takes.
    pub fn lasts(&self, duration: Duration) -> Duration {
        match self {
            Self::K6(..) | Self::Wrk(..) => duration,
            Self::Native(_, requests) => requests.lasts(duration),
        }
    }

    /// Returns the options that change what the load does.
    pub fn notable_options(&self) -> Vec<(String, String)> {
        match self {
            Self::K6(_, script) => script.notable_options().collect(),
            Self::Native(..) | Self::Wrk(..) => Vec::new(),
        }
    }

    /// Returns the script, for load generators in a cluster. The error is a sentence.
    pub fn script(&self) -> Result<&Script, String> {
        match self {
            Self::K6(_, script) => Ok(script),
            Self::Native(..) | Self::Wrk(..) => Err("only k6 generates load in Pods".to_owned()),
        }
    }

    /// Returns the summary of a measured load that has ended. The error is a sentence.
    pub fn summary(&self, report: Option<&Report>) -> Result<String, String> {
        match (self, report) {
            (Self::K6(_, script), _) => script.summary(),
            (Self::Native(..), Some(Report::Native(report))) => report.summary(),
            (Self::Wrk(..), Some(Report::Wrk(report))) => report.summary(),
            (Self::Native(..) | Self::Wrk(..), _) => Err(native::NO_SUMMARY.to_owned()),
        }
    }
}

impl Report {
    /// Waits for the rest of what an ended load generator has written.
    pub async fn finish(&mut self) {
        match self {
            Self::K6(_) => {}
            Self::Native(report) => report.finish().await,
            Self::Wrk(report) => report.finish().await,
        }
    }

    /// Returns the course of the load, once the load generator has ended.
    pub fn record(&self, status: ExitStatus) -> Option<LoadRecord> {
        match self {
            Self::K6(log) => log.as_ref().map(|log| log.record(status)),
            Self::Native(report) => Some(report.record()),
            Self::Wrk(report) => Some(report.record()),
        }
    }

    /// Adds to the course of the load what only its summary tells.
    pub fn complete(&self, record: &mut LoadRecord, summary: &str) {
        if let Self::K6(_) = self {
            k6::name_thresholds(record, summary);
        }
    }
}
