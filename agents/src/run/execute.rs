//! Executes one run on this machine, or one agent's part of it: from a job to an outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use brewbench_wire::job::{Job, Role};
use brewbench_wire::load_time::LoadTime;
use brewbench_wire::outcome::{
    Cause, Conditions, CoreUse, Cores, Ended, Enforced, Mechanism, NetworkUse, Outcome, PhaseTime,
};
use brewbench_wire::profile::Profiled;
use brewbench_wire::series::{Packed, Series, WindowKind};
use brewbench_wire::traffic::Traffic;
use brewbench_wire::work_done::WorkDone;
use brewbench_wire::{Phase, now_ms};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::build::{self, ResolvedTarget};
use crate::engine::{Engine, Report, Round};
use crate::generators::runners::Runners;
use crate::host::cleanup::create_run_folder;
use crate::host::cpu_tuning::Pinned;
use crate::host::{clocks, machine};
use crate::profile::attached::Attached;
use crate::run::admission::check_engine;
use crate::run::barrier::{Barrier, Gates};
use crate::run::context::RunContext;
use crate::run::destination::Destination;
use crate::run::failure::Failure;
use crate::run::{prepare, secrets};
use crate::sandbox::firewall::Firewall;
use crate::sandbox::process::Process;
use crate::sandbox::{Group, OwnQuota, ProgramRole};
use crate::series::live::Live;
use crate::series::load_time::Planned;
use crate::series::recording::{Recorded, Recording};
use crate::series::sampler::Watched;
use crate::series::shared::{core_use, network_use};
use crate::target::{self, Running};

/// How long a target may take to exit after the measurement. Its exit does not affect the result, so a run shall not
/// wait longer for it.
const TARGET_GRACE: Duration = Duration::from_millis(500);

/// Executes a job. Always returns an outcome, and leaves nothing of the run on the machine: no process, control group
/// or folder. Cancelling takes effect at once in every phase. `on_phase` is called when a phase starts, except the
/// final one, which is in the outcome.
///
/// Must not be called within `spawn_blocking`: see [`Process::start`].
pub async fn run(job: &Job, context: &RunContext, cancel: &CancellationToken, on_phase: impl Fn(Phase)) -> Outcome {
    let _pinned = pin(context);
    run_with(job, context, Barrier::Open, &context.live, cancel, on_phase).await
}

/// Executes one part of a distributed run: see [`Role`]. A generator does not call `on_phase`, because the phase of the
/// run is that of its host.
pub async fn run_part(
    job: &Job,
    context: &RunContext,
    gates: Gates,
    cancel: &CancellationToken,
    on_phase: impl Fn(Phase),
) -> Outcome {
    let is_generator = matches!(job.role, Role::Generator(_));
    let _pinned = pin(context);
    run_with(job, context, Barrier::Shared(gates), &context.live, cancel, |phase| {
        if !is_generator {
            on_phase(phase);
        }
    })
    .await
}

/// Pins the CPU frequency until nothing of the run is left, if that is enabled.
pub(super) fn pin(context: &RunContext) -> Option<Pinned> {
    let refused = |error: &String| tracing::error!(%error, "CPU tuning failed; the run continues without it");
    context.cpu_tuning.as_ref()?.pin().inspect_err(refused).ok()
}

pub(super) async fn run_with(
    job: &Job,
    context: &RunContext,
    barrier: Barrier,
    live: &Live,
    cancel: &CancellationToken,
    on_phase: impl Fn(Phase),
) -> Outcome {
    let clock = clocks::Watch::begin();
    let mut record = OutcomeBuilder { outcome: empty_outcome(job, context), on_phase };
    record.enter(Phase::Preparing);
    live.begin(job.run);
    let resolved = Box::pin(resolve_target(job, context, live, cancel)).await;
    let opened = resolved.and_then(|resolved| {
        RunResources::open(job, context, live, resolved, &mut record.outcome).map_err(Failure::by(Cause::Other))
    });
    let ended = match opened {
        Err(failure) => {
            live.end();
            if cancel.is_cancelled() { Ended::Cancelled } else { failure.into() }
        }
        Ok(mut site) => {
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Ended::Cancelled,
                end = Box::pin(site.work(job, context, &mut record, barrier)) => {
                    end.map_or_else(Ended::from, |()| Ended::Finished)
                }
            };
            let grace = if ended == Ended::Finished { TARGET_GRACE } else { Duration::ZERO };
            Box::pin(site.clear(grace, &mut record.outcome)).await;
            ended
        }
    };
    record.outcome.conditions.clock_jump_ms = Some(clock.farthest_ms());
    let mut outcome = record.outcome;
    let phase = match ended {
        Ended::Finished => Phase::Finished,
        Ended::Failed { .. } => Phase::Failed,
        Ended::Cancelled => Phase::Cancelled,
    };
    outcome.times.push(PhaseTime { phase, at_ms: now_ms() });
    secrets::masked(Outcome { ended, sent_at_ms: now_ms(), ..outcome }, &job.spec.parameters)
}

/// Resolves the target, unless another agent runs it.
async fn resolve_target(
    job: &Job,
    context: &RunContext,
    live: &Live,
    cancel: &CancellationToken,
) -> Result<Option<ResolvedTarget>, Failure> {
    match job.role {
        Role::Alone | Role::Host => build::resolve(job, context, live, cancel).await.map(Some),
        Role::Generator(_) => Ok(None),
    }
}

fn empty_outcome(job: &Job, context: &RunContext) -> Outcome {
    let mut environment = context.environment.facts();
    let engine = context.engines.offer(job.spec.engine()).ok().map(|offer| offer.version());
    environment.extend(engine.iter().map(|engine| (format!("{}.version", engine.name), engine.version.clone())));
    Outcome {
        run: job.run,
        ended: Ended::Cancelled,
        times: Vec::new(),
        sent_at_ms: 0,
        summary: None,
        series: None,
        warm_up: None,
        work: WorkDone::default(),
        target_log: String::new(),
        generator_log: String::new(),
        enforced: Enforced { cpu: Mechanism::None, memory: Mechanism::None },
        observed: None,
        cores: Cores::default(),
        engine: engine.filter(|_| job.role != Role::Host),
        target: None,
        target_version: String::new(),
        environment,
        conditions: Conditions::default(),
        profiled: None,
        generators: Vec::new(),
    }
}

/// The outcome in progress.
pub(crate) struct OutcomeBuilder<F> {
    pub(crate) outcome: Outcome,
    on_phase: F,
}

impl<F: Fn(Phase)> OutcomeBuilder<F> {
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.outcome.times.push(PhaseTime { phase, at_ms: now_ms() });
        (self.on_phase)(phase);
    }
}

/// Everything of a run that must be removed at its end.
pub(crate) struct RunResources {
    pub(crate) folder: TempDir,
    pub(crate) engine: Engine,
    /// `None` if another agent runs the target.
    pub(crate) target: Option<Running>,
    pub(crate) generator_group: Group,
    /// The CPU quotas that bound the load generator; `None` if it runs elsewhere.
    quota: Option<OwnQuota>,
    pub(crate) generator: Option<Process>,
    /// Confines it to its target.
    pub(super) firewall: Option<Firewall>,
    /// What it reports about its load.
    pub(super) report: Option<Report>,
    /// Load generators in a cluster.
    pub(crate) runners: Option<Runners>,
    /// Observes the target during the measurement.
    pub(crate) profiler: Option<Box<Attached>>,
    pub(crate) recording: Option<(WindowKind, Recording)>,
    pub(crate) series: Series,
    work: WorkDone,
    /// The requests of the last round by path, if they are known.
    pub(super) paths: BTreeMap<String, u64>,
    /// When the measured load was meant to run, once it is over.
    pub(super) planned: Option<Planned>,
    load_time: Option<LoadTime>,
    /// The CPUs of both sides.
    pub(crate) cores: Cores,
    /// Network interface of the load, if it leaves the machine.
    pub(crate) interface: Option<String>,
    /// Where the load shall go, once that is known.
    pub(crate) destination: Option<Destination>,
    /// Usage of the run's cores and network during the measurement.
    usage: (Option<CoreUse>, Option<NetworkUse>, Option<Traffic>),
    pub(crate) live: Live,
}

impl RunResources {
    /// Prepares a run. Fails with a sentence if it is not possible on this machine.
    fn open(
        job: &Job,
        context: &RunContext,
        live: &Live,
        resolved: Option<ResolvedTarget>,
        outcome: &mut Outcome,
    ) -> Result<Self, String> {
        (outcome.cores, outcome.conditions.placement) = prepare::assign_cores(job);
        if job.role != Role::Host {
            check_engine(job, &context.engines.offer(job.spec.engine())?)?;
        }
        let folder = create_run_folder(&context.work_folder)?;
        let engine = Engine::for_job(job, &context.engines, folder.path())?;
        let target =
            resolved.map(|resolved| prepare::target(job, context, folder.path(), resolved, outcome)).transpose()?;
        let generator_group = prepare::open_group(job, context, ProgramRole::Generator)?;
        generator_group.bound(machine::memory_bytes());
        if job.role != Role::Host {
            outcome.conditions.script_may_wait = Some(engine.may_wait());
        }
        let quota = (job.role != Role::Host && job.spec.cluster_generators == 0).then(OwnQuota::find);
        outcome.conditions.generator_quota = quota.as_ref().and_then(OwnQuota::cores);
        Ok(Self {
            folder,
            engine,
            target,
            generator_group,
            quota,
            generator: None,
            firewall: None,
            report: None,
            runners: None,
            profiler: None,
            recording: None,
            series: Series::default(),
            work: WorkDone::default(),
            paths: BTreeMap::new(),
            planned: None,
            load_time: None,
            cores: outcome.cores.clone(),
            interface: None,
            destination: None,
            usage: (None, None, None),
            live: live.clone(),
        })
    }

    /// Starts recording a round. Without a recording, a run still has its summary.
    pub(crate) async fn record(&mut self, round: Round) {
        self.stop_recording().await;
        let watched = Watched {
            target: self.target.as_ref().and_then(Running::source),
            generator: self.quota.clone().map(|quota| (self.generator_group.watch(), quota)),
            cores: self.cores.clone(),
            interface: self.interface.clone(),
            destination: self.destination.clone(),
        };
        let part = round.part();
        match Recording::start(watched, self.engine.scope(), self.live.notifier()).await {
            Ok(recording) => {
                self.live.follow(part, recording.so_far());
                self.recording = Some((part, recording));
            }
            Err(error) => tracing::error!(%error, "failed to record the time series; the run continues without it"),
        }
    }

    /// Starts the series when a paused load generator resumes.
    pub(crate) fn begin_recording(&self) {
        if let Some((_, recording)) = &self.recording {
            recording.begin();
        }
    }

    /// Stops recording, if that runs; returns the work of the round.
    pub(crate) async fn stop_recording(&mut self) -> WorkDone {
        let Some((part, recording)) = self.recording.take() else { return WorkDone::default() };
        let Recorded { window, spans, work, paths, load_time, traffic } = recording.finish(self.planned).await;
        self.paths = paths.unwrap_or_default();
        if part == WindowKind::Measured {
            (self.work, self.load_time) = (work.clone(), load_time);
            let interface = self.interface.as_deref();
            let network = network_use(&spans, interface, interface.and_then(crate::run::interface::speed_bits));
            self.usage = (core_use(&spans, &self.cores), Some(network), traffic);
        }
        self.live.store(part, window.clone());
        *self.series.part_mut(part) = Some(window);
        work
    }

    /// Describes why the target exited while it was needed.
    pub(crate) async fn target_exit(&mut self, when: &str) -> Failure {
        match &mut self.target {
            Some(target) => target.exit_report(when).await,
            None => Failure::by(Cause::Other)("this agent runs no target".to_owned()),
        }
    }

    /// Stops and removes everything, and completes the outcome.
    async fn clear(mut self, grace: Duration, outcome: &mut Outcome) {
        if let Some(mut generator) = self.generator.take() {
            log_failure(generator.stop(Duration::ZERO, &self.generator_group).await);
            outcome.generator_log = generator.log().await;
        }
        self.firewall = None;
        if let Some(runners) = self.runners.take() {
            log_failure(runners.remove().await.map_err(std::io::Error::other));
        }
        if let Some(profiler) = self.profiler.take() {
            Box::pin(profiler.cancel()).await;
            let faults = vec!["the run ended before the profile was complete".to_owned()];
            outcome.profiled = Some(Profiled { faults, ..Profiled::default() });
        }
        self.stop_recording().await;
        outcome.work = std::mem::take(&mut self.work);
        let Conditions { core_use, network, traffic, load_time, .. } = &mut outcome.conditions;
        ((*core_use, *network, *traffic), *load_time) = (self.usage, self.load_time);
        outcome.series = (self.series != Series::default()).then(|| Packed::pack(&self.series));
        if let Some(target) = self.target.take() {
            let target::Ended { log, observed, faults } = target.stop(grace).await;
            (outcome.target_log, outcome.observed) = (log, observed);
            for fault in faults {
                log_failure(Err(fault));
            }
        }
        log_failure(self.generator_group.clear().await);
        log_failure(self.folder.close());
        self.live.end();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(crate) fn lost(error: std::io::Error) -> Failure {
    Failure { reason: format!("failed to wait for the load generator: {error}"), cause: Cause::Generator }
}

/// Logs a failed cleanup. It does not affect the result, but the machine, so its owner must know.
fn log_failure(cleaned: std::io::Result<()>) {
    if let Err(error) = cleaned {
        tracing::error!(%error, "failed to clean up after the run");
    }
}
