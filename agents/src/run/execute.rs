//! One run on this machine, from its job to its outcome; or one agent's part of it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, Round, Script};
use crate::host::cleanup::RUN_FOLDER_PREFIX;
use crate::host::cpu_tuning::Steady;
use crate::host::environment::Environment;
use crate::host::idle_wait::Quiet;
use crate::host::{clocks, environment, machine};
use crate::run::address_policy::Reach;
use crate::run::admission::{check_engine, check_size, find_target};
use crate::run::barrier::{Barrier, Gates};
use crate::run::failure::Failure;
use crate::sandbox::cores::{self, Beside};
use crate::sandbox::process::Process;
use crate::sandbox::{Group, Sandbox, Side};
use crate::series::live::Live;
use crate::series::recording::{Recorded, Recording};
use crate::series::sampler::Watched;
use crate::series::shared::{core_use, network_use};
use crate::target::{self, Fingerprints, Running};
use crate::wire::job::{Job, Role};
use crate::wire::outcome::{
    Cause, Conditions, CoreUse, Cores, Ended, Enforced, Mechanism, NetworkUse, Outcome, PhaseTime, Placement,
};
use crate::wire::series::{Packed, Part, Series};
use crate::wire::work_done::WorkDone;
use crate::wire::{Phase, now_ms};

/// How long a target may take to end by itself after the measurement. Nothing depends on how it ends, and a run shall
/// not take longer for it.
const TARGET_GRACE: Duration = Duration::from_millis(500);

/// What an agent works with, the same for all runs.
#[derive(Debug)]
pub struct Workbench {
    /// Holds targets to their size. It knows the agent's name, which must be unique on the machine.
    pub sandbox: Sandbox,
    /// Makes the load.
    pub engine: Engine,
    /// The folder of the manifests.
    pub targets: PathBuf,
    /// Where each run gets a folder, named `run-…`; it must exist.
    pub work_folder: PathBuf,
    /// Of the targets' programs.
    pub fingerprints: Arc<Fingerprints>,
    /// What this machine is.
    pub environment: Environment,
    /// When it is quiet enough for a measurement.
    pub quiet: Quiet,
    /// Makes its processors steady, if the owner wants that.
    pub steady: Option<Steady>,
    /// What the run in work comes to, for whoever watches.
    pub live: Live,
    /// Where targets listen for load from other machines, if its owner allows that.
    pub load_address: Option<IpAddr>,
    /// Whom it loads for others.
    pub reach: Reach,
}

impl Workbench {
    /// One that waits for a quiet machine as usual, leaves its processors alone and shows its runs to nobody. Both
    /// folders must exist.
    pub fn new(sandbox: Sandbox, engine: Engine, targets: PathBuf, work_folder: PathBuf) -> Self {
        Self {
            sandbox,
            engine,
            targets,
            work_folder,
            fingerprints: Arc::default(),
            environment: Environment::new("/"),
            quiet: Quiet::default(),
            steady: None,
            live: Live::default(),
            load_address: None,
            reach: Reach::default(),
        }
    }
}

/// Does a job. Whatever happens, it returns an outcome, and when it returns, nothing of the run is left on the machine:
/// no process, no control group, no folder. Cancelling takes effect at once in every phase. `on_phase` hears of each
/// phase as it begins, except of the final one, which the outcome tells.
///
/// It must not be called within `spawn_blocking`: see [`Process::start`].
pub async fn run(job: &Job, bench: &Workbench, cancel: &CancellationToken, on_phase: impl Fn(Phase)) -> Outcome {
    run_with(job, bench, Barrier::Open, cancel, on_phase).await
}

/// The same for a job of which others do a part: see [`Role`]. Of a generator `on_phase` hears nothing, for the run's phase
/// is its host's.
pub async fn run_part(
    job: &Job,
    bench: &Workbench,
    gates: Gates,
    cancel: &CancellationToken,
    on_phase: impl Fn(Phase),
) -> Outcome {
    let is_generator = matches!(job.role, Role::Generator(_));
    run_with(job, bench, Barrier::Shared(gates), cancel, |phase| {
        if !is_generator {
            on_phase(phase);
        }
    })
    .await
}

async fn run_with(
    job: &Job,
    bench: &Workbench,
    barrier: Barrier,
    cancel: &CancellationToken,
    on_phase: impl Fn(Phase),
) -> Outcome {
    let clock = clocks::Watch::begin();
    // Held until nothing of the run is left.
    let _steady = bench.steady.as_ref().and_then(|steady| {
        let refused = |error: &String| tracing::error!(%error, "a run goes on with unsteady processors");
        steady.hold().inspect_err(refused).ok()
    });
    let mut record = Record { outcome: blank(job, bench), on_phase };
    record.enter(Phase::Preparing);
    let ended = match Site::open(job, bench, &mut record.outcome) {
        Err(reason) => Failure::by(Cause::Other)(reason).into(),
        Ok(mut site) => {
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Ended::Cancelled,
                end = Box::pin(site.work(job, bench, &mut record, barrier)) => end.map_or_else(Ended::from, |()| Ended::Finished),
            };
            let grace = if ended == Ended::Finished { TARGET_GRACE } else { Duration::ZERO };
            site.clear(grace, &mut record.outcome).await;
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
    Outcome { ended, sent_at_ms: now_ms(), ..outcome }
}

fn blank(job: &Job, bench: &Workbench) -> Outcome {
    let mut environment = bench.environment.facts();
    let engine = bench.engine.offer().version();
    environment.insert(format!("{}.version", engine.name), engine.version.clone());
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
        engine: (!matches!(job.role, Role::Host)).then_some(engine),
        target_sha256: None,
        target_version: String::new(),
        environment,
        conditions: Conditions::default(),
    }
}

/// The outcome as it grows.
pub(crate) struct Record<F> {
    pub(crate) outcome: Outcome,
    on_phase: F,
}

impl<F: Fn(Phase)> Record<F> {
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.outcome.times.push(PhaseTime { phase, at_ms: now_ms() });
        (self.on_phase)(phase);
    }
}

/// Everything of a run that must be gone at its end.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) script: Script,
    /// None where another agent runs the target.
    pub(crate) target: Option<Running>,
    pub(crate) generator_group: Group,
    pub(crate) generator: Option<Process>,
    pub(crate) recording: Option<(Part, Recording)>,
    series: Series,
    work: WorkDone,
    /// The processors of both sides.
    cores: Cores,
    /// The interface that the load crosses, if it leaves the machine.
    pub(crate) interface: Option<String>,
    /// What the run's cores and the network did while it was measured.
    seen: (Option<CoreUse>, Option<NetworkUse>),
    pub(crate) live: Live,
}

impl Site {
    /// Makes the places for a run, or says in a sentence why it can't be done here.
    fn open(job: &Job, bench: &Workbench, outcome: &mut Outcome) -> Result<Self, String> {
        (outcome.cores, outcome.conditions.placement) = deal(job);
        check_engine(job, &bench.engine.offer())?;
        let temporary = tempfile::Builder::new().prefix(RUN_FOLDER_PREFIX).tempdir_in(&bench.work_folder);
        let folder =
            temporary.map_err(|error| format!("can't make a folder in {}: {error}", bench.work_folder.display()))?;
        let script = Script::of(job, folder.path())?;
        let target = match job.role {
            Role::Alone | Role::Host => Some(prepare_target(job, bench, folder.path(), outcome)?),
            Role::Generator(_) => None,
        };
        let generator_group = open_group(job, bench, Side::Generator)?;
        generator_group.bound(machine::memory_bytes());
        if job.role != Role::Host {
            outcome.conditions.script_may_wait = Some(script.may_wait());
        }
        bench.live.begin(job.run);
        Ok(Self {
            folder,
            script,
            target,
            generator_group,
            generator: None,
            recording: None,
            series: Series::default(),
            work: WorkDone::default(),
            cores: outcome.cores.clone(),
            interface: None,
            seen: (None, None),
            live: bench.live.clone(),
        })
    }

    /// Begins a recording. Without one a run has still its summary.
    pub(crate) async fn record(&mut self, round: Round) {
        self.stop_recording().await;
        let watched = Watched {
            target: self.target.as_ref().map(Running::watch),
            generator: self.generator_group.watch(),
            cores: self.cores.clone(),
            interface: self.interface.clone(),
        };
        let part = match round {
            Round::WarmUp => Part::WarmUp,
            Round::Measure => Part::Measured,
        };
        match Recording::start(watched, self.live.bell()).await {
            Ok(recording) => {
                self.live.follow(part, recording.so_far());
                self.recording = Some((part, recording));
            }
            Err(error) => tracing::error!(%error, "a run goes without its series"),
        }
    }

    /// k6 has waited until now.
    pub(crate) fn begin_recording(&self) {
        if let Some((_, recording)) = &self.recording {
            recording.begin();
        }
    }

    pub(crate) async fn stop_recording(&mut self) {
        if let Some((part, recording)) = self.recording.take() {
            let Recorded { stretch, spans, work } = recording.finish().await;
            if part == Part::Measured {
                self.work = work;
                let interface = self.interface.as_deref();
                let network = network_use(&spans, interface, interface.and_then(crate::run::interface::speed_bits));
                self.seen = (core_use(&spans, &self.cores), Some(network));
            }
            self.live.keep(part, stretch.clone());
            *self.series.part_mut(part) = Some(stretch);
        }
    }

    /// Why the target ended while it was needed.
    pub(crate) async fn death(&mut self, when: &str) -> Failure {
        match &mut self.target {
            Some(target) => target.exit_report(when).await,
            None => Failure::by(Cause::Other)("this agent runs no target".to_owned()),
        }
    }

    /// Ends and removes everything, and takes down what can only be known at the end.
    async fn clear(mut self, grace: Duration, outcome: &mut Outcome) {
        if let Some(mut generator) = self.generator.take() {
            report(generator.stop(Duration::ZERO, &self.generator_group).await);
            outcome.generator_log = generator.log().await;
        }
        self.stop_recording().await;
        outcome.work = std::mem::take(&mut self.work);
        (outcome.conditions.core_use, outcome.conditions.network) = self.seen;
        outcome.series = (self.series != Series::default()).then(|| Packed::pack(&self.series));
        if let Some(target) = self.target.take() {
            let target::Ended { log, observed, faults } = target.stop(grace).await;
            (outcome.target_log, outcome.observed) = (log, observed);
            for fault in faults {
                report(Err(fault));
            }
        }
        report(self.generator_group.clear().await);
        report(self.folder.close());
        self.live.end();
    }
}

/// Finds the job's target, and the group that holds it to its size.
fn prepare_target(job: &Job, bench: &Workbench, folder: &Path, outcome: &mut Outcome) -> Result<Running, String> {
    check_size(job)?;
    let manifest = find_target(&job.target, bench)?;
    outcome.target_version.clone_from(&manifest.version);
    outcome.environment.extend(environment::target::facts(&manifest));
    let home = folder.join("target");
    std::fs::create_dir(&home).map_err(|error| format!("can't make {}: {error}", home.display()))?;
    let group = open_group(job, bench, Side::Target)?;
    outcome.enforced = group.limit(&job.size);
    Ok(Running::new(manifest, group, outcome.cores.target.clone(), home))
}

fn open_group(job: &Job, bench: &Workbench, side: Side) -> Result<Group, String> {
    let group = bench.sandbox.open(job.run, side);
    group.map_err(|error| format!("can't make the control groups of the {}: {error}", side.as_str()))
}

/// Who gets which processors. Who runs the target only, or makes the load only, has them for that.
fn deal(job: &Job) -> (Cores, Option<Placement>) {
    let beside = match job.role {
        Role::Alone => Beside::Generator,
        Role::Host => Beside::Nobody,
        Role::Generator(_) => return (Cores { target: Vec::new(), generator: cores::allowed() }, None),
    };
    let (cores, placement) = cores::deal(&cores::physical(), job.size.vcpus, beside);
    (cores, Some(placement))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(crate) fn lost(error: std::io::Error) -> Failure {
    Failure { reason: format!("k6 was lost: {error}"), cause: Cause::Generator }
}

/// What can't be removed does not make a result worse, but the machine: its owner must hear of it.
fn report(cleaned: std::io::Result<()>) {
    if let Err(error) = cleaned {
        tracing::error!(%error, "something of the run stays on the machine");
    }
}
