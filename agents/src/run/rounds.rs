//! The rounds of a load generator: the warm-up and the measurement.

use std::time::Duration;

use brewbench_wire::job::Job;
use brewbench_wire::load::{Load, MIN_DURATION};
use brewbench_wire::load_record::LoadRecord;
use brewbench_wire::outcome::{Cause, Conditions, WarmUp};
use brewbench_wire::series::Second;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep, timeout};

use crate::engine::{Bounds, LoadTarget, Round};
use crate::run::budget::{self, Folders};
use crate::run::context::RunContext;
use crate::run::execute::{RunResources, lost};
use crate::run::failure::Failure;
use crate::run::refusals;
use crate::sandbox::firewall::{self, Firewall};
use crate::series::collector::MAX_SECONDS;
use crate::series::level::is_level;
use crate::series::live::Live;
use crate::series::load_time::Planned;
use crate::series::recording::SoFar;
use crate::target::Running;

/// How long a load generator may take to exit after the warm-up, as iterations may be in progress.
const WARM_UP_GRACE: Duration = Duration::from_millis(500);

impl RunResources {
    /// Warms up for the time of the job, or until the target is level; returns the outcome of the latter.
    pub(super) async fn warm_up(
        &mut self,
        job: &Job,
        context: &RunContext,
        load: &LoadTarget<'_>,
    ) -> Result<Option<WarmUp>, Failure> {
        let broken = Failure::by(Cause::Generator);
        self.start(load, context, Round::WarmUp).await?;
        let begun = Instant::now();
        let level = level(job, self.recording.as_ref().map(|(_, recording)| recording.so_far()), &self.live);
        // It limits the duration itself unless it is too short; a script's own load is interrupted.
        let length = match (job.spec.load(), job.spec.longest_warm_up()) {
            (Load::Closed(_) | Load::Open(_), length) if length >= MIN_DURATION => {
                self.engine.lasts(length) + WARM_UP_GRACE
            }
            (_, length) => length,
        };
        let folders = self.folders();
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let (early, steady) = tokio::select! {
            biased;
            () = target_exit(&mut self.target) => return Err(self.target_exit("during the warm-up").await),
            status = generator.wait() => (Some(status.map_err(lost)?), false),
            failure = budget::exceeded(folders) => return Err(failure),
            () = level => (None, true),
            () = sleep(length) => (None, false),
        };
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let outcome = job.spec.warm_up_auto.then_some(WarmUp { took_ms, steady });
        // A script that aborts its warm-up aborts the measured load, too, and that is recorded.
        if let Some(status) = early.filter(|status| !self.engine.is_aborted(*status)) {
            self.engine.judge(status, &generator.log().await).map_err(broken)?;
            return self.check_responses().await.map(|()| outcome);
        }
        generator.signal(Signal::SIGINT);
        // After the interrupt, the exit status does not matter.
        let _ = timeout(WARM_UP_GRACE, generator.wait()).await;
        let stopped = self.generator_group.kill().await;
        let name = self.engine.name();
        stopped.map_err(|error| broken(format!("{name} did not stop after the warm-up: {error}")))?;
        self.check_responses().await.map(|()| outcome)
    }

    /// Ends the recording of the warm-up, and the run if its target refused everything.
    async fn check_responses(&mut self) -> Result<(), Failure> {
        if let Some(report) = &mut self.report {
            report.finish().await;
        }
        let work = self.stop_recording().await;
        let seconds = self.series.warm_up.iter().flat_map(|window| &window.seconds);
        let iterations = seconds.map(|second| second.iterations).sum();
        refusals::find(&work, iterations).map_or(Ok(()), |reason| Err(Failure::by(Cause::NoSuccess)(reason)))
    }

    /// Returns the folders whose size is limited.
    fn folders(&self) -> Folders {
        Folders { run: self.folder.path().to_owned(), generators: self.engine.folders() }
    }

    /// Confines the load generator to its target and to the recording, if this machine can.
    pub(super) fn confine(&mut self, load: &LoadTarget<'_>, context: &RunContext) -> Result<(), Failure> {
        self.firewall = None;
        let user = firewall::user();
        let (Some(user), Some(destination)) = (user, &self.destination) else { return Ok(()) };
        let mut reachable = destination.reachable(load.reach, load.own);
        let receiver = self.recording.as_ref().map(|(_, recording)| recording.address());
        reachable.addresses.extend(receiver.map(|at| (at.ip(), Some(at.port()))));
        reachable.addresses.extend(context.also_reachable.iter().map(|address| (*address, None)));
        let raised = Firewall::raise(context.sandbox.agent(), user, &reachable);
        self.firewall = Some(raised.map_err(Failure::by(Cause::Generator))?);
        Ok(())
    }

    /// Starts the load generator and the recording of a round.
    pub(super) async fn start(
        &mut self,
        load: &LoadTarget<'_>,
        context: &RunContext,
        round: Round,
    ) -> Result<(), Failure> {
        self.record(round).await;
        self.confine(load, context)?;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = self.engine.start(load, round, recording, &self.generator_group);
        let (process, report) = started.map_err(|error| self.not_started(&error))?;
        (self.generator, self.report) = (Some(process), Some(report));
        Ok(())
    }

    pub(super) fn not_started(&self, error: &std::io::Error) -> Failure {
        Failure::by(Cause::Generator)(format!("can't start {}: {error}", self.engine.name()))
    }

    /// Waits for the end of the measured load, within a maximum duration, and records its course.
    pub(super) async fn measured(&mut self, bounds: Bounds, conditions: &mut Conditions) -> Result<(), Failure> {
        const WHEN: &str = "during the measurement";
        let Bounds { longest, rps_limit } = bounds;
        let (broken, folders) = (Failure::by(Cause::Generator), self.folders());
        let generator = self.generator.as_mut().ok_or_else(unstarted)?;
        let status = tokio::select! {
            biased;
            () = target_exit(&mut self.target) => return Err(self.target_exit(WHEN).await),
            status = generator.wait() => status.map_err(lost)?,
            failure = budget::exceeded(folders) => return Err(failure),
            () = sleep(longest) => {
                let seconds = longest.as_secs();
                let name = self.engine.name();
                return Err(broken(format!("{name} was still running after {seconds} s, longer than its load can take")));
            }
        };
        let output = generator.log().await;
        if let Some(report) = &mut self.report {
            report.finish().await;
        }
        let record = self.report.as_ref().and_then(|report| report.record(status));
        conditions.load_record = record.map(|record| LoadRecord { rps_limit, ..record });
        let record = conditions.load_record.as_ref();
        self.planned = record.and_then(|record| Planned::new(record, self.engine.duration()));
        if !self.engine.is_aborted(status) {
            self.engine.judge(status, &output).map_err(broken)?;
        }
        if self.target.as_mut().is_some_and(Running::has_ended) {
            return Err(self.target_exit(WHEN).await);
        }
        Ok(())
    }
}

/// Waits until the target is level and the minimum warm-up is over; forever if that is not requested, or nothing is
/// recorded.
fn level(job: &Job, so_far: Option<SoFar>, live: &Live) -> impl Future<Output = ()> + use<> {
    let shortest = job.spec.warm_up();
    let so_far = so_far.filter(|_| job.spec.warm_up_auto);
    let (is_open, mut news) = (matches!(job.spec.load(), Load::Open(_)), live.listen());
    async move {
        let Some(so_far) = so_far else { return std::future::pending().await };
        sleep(shortest).await;
        while !is_level(&points(&so_far.seconds_after(0, MAX_SECONDS), is_open)) {
            // Nothing more comes once the recording is over.
            if news.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Returns the points to check: requests per second in the closed model, median latency in the open model. Excludes the
/// first second, in which the load generator starts, and the last, which may still grow.
fn points(seconds: &[Second], is_open: bool) -> Vec<f64> {
    let complete = seconds.split_last().map_or(&[][..], |(_, complete)| complete);
    let point = |pair: &[Second]| {
        if is_open {
            return Some(pair[1].succeeded.quantile(0.5)?.estimate);
        }
        let lasted_s = (f64::from(pair[1].until_ms) - f64::from(pair[0].until_ms)) / 1_000.0;
        (lasted_s > 0.0).then(|| pair[1].requests() as f64 / lasted_s)
    };
    complete.windows(2).filter_map(point).collect()
}

/// Waits for the exit of the target; forever if another agent runs it.
pub(super) async fn target_exit(target: &mut Option<Running>) {
    match target {
        Some(target) => target.wait().await,
        None => std::future::pending().await,
    }
}

pub(super) fn unstarted() -> Failure {
    Failure::by(Cause::Generator)("the load generator was not started".to_owned())
}
