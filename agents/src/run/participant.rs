//! Runs the target, generates load, or both. A run on one machine takes the same path as a distributed one, with an
//! open barrier.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use brewbench_wire::Phase;
use brewbench_wire::job::{Job, Role};
use brewbench_wire::messages::Gate;
use brewbench_wire::outcome::{Cause, Conditions, Cores, Outcome};
use brewbench_wire::target::Identity;

use super::address_policy::LoadLimits;
use super::barrier::Barrier;
use super::context::RunContext;
use super::destination::Destination;
use super::execute::{OutcomeBuilder, RunResources, lost};
use super::failure::Failure;
use super::interface;
use super::rounds::target_exit;
use crate::counters::Counting;
use crate::engine::{Bounds, LoadTarget, Paused, Round};
use crate::host::process_snapshot::Snapshot;
use crate::profile::attached::{self, Attached, Subject};
use crate::sandbox::Watch;
use crate::series::sampler::Source;
use crate::target::{Identified, Running, Serving};

/// How long participants wait for each other, including the idle wait and the start of thousands of virtual users.
const WAIT_FOR_OTHERS: Duration = Duration::from_mins(10);

/// Maximum duration of a script's own load, which a host does not know.
const MAX_SCRIPT: Duration = Duration::from_hours(25);

/// The result of the preparation: a host has its target, a generator its load.
pub(super) struct Prepared {
    pub(super) serving: Option<Serving>,
    /// Bounds of the measured load.
    pub(super) bounds: Bounds,
}

impl RunResources {
    /// Does this agent's part of the run. Can be cancelled at any time.
    pub(super) async fn work<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        context: &RunContext,
        record: &mut OutcomeBuilder<F>,
        mut barrier: Barrier,
    ) -> Result<(), Failure> {
        if job.role != Role::Alone && barrier.is_open() {
            return Err(alone());
        }
        if job.spec.cluster_generators > 0 {
            return Box::pin(self.work_with_cluster(job, context, record)).await;
        }
        let Prepared { mut serving, bounds } = self.prepare(job, context, &mut record.outcome).await?;
        self.wait_until_idle(job, context, &mut record.outcome.conditions).await;
        let own_url = serving.as_ref().map(|serving| serving.base_url.clone());
        let own_limits = serving.as_ref().and_then(|serving| serving.reach.clone());
        let own_url = own_url.as_deref();
        let base_url =
            self.meet(&mut barrier, (Gate::Load, own_url), WAIT_FOR_OTHERS, "while others prepared their load").await?;
        if own_url.is_none() {
            context.reach.admits(&base_url).map_err(Failure::by(Cause::Generator))?;
        }
        self.set_destination(&base_url, own_url.is_none(), own_limits.as_ref());
        let cores = record.outcome.cores.generator.clone();
        let segment = match job.role {
            Role::Generator(segment) => Some(segment),
            Role::Alone | Role::Host => None,
        };
        let load = (job.role != Role::Host).then_some(LoadTarget {
            base_url: &base_url,
            segment,
            cores: &cores,
            reach: context.reach,
            own: own_limits.as_ref(),
        });
        self.warm_up_part(job, context, load.as_ref(), record).await?;
        let paused = match &load {
            Some(load) if !barrier.is_open() => Some(self.start_paused(load, context).await?),
            _ => None,
        };
        let patience = WAIT_FOR_OTHERS + job.spec.longest_warm_up();
        self.meet(&mut barrier, (Gate::Measure, own_url), patience, "during the warm-up").await?;
        if let Some(serving) = &mut serving {
            serving.known.confirm(&self.paths).await;
        }
        if let Some(serving) = serving.as_ref().filter(|_| job.spec.profiled) {
            self.begin_profile(job, context, serving, &record.outcome.cores).await;
        }
        let counting = self.begin_counting().await;
        let before = self.begin_measurement(context, load.as_ref(), paused, record).await?;
        if load.is_some() {
            self.measured(bounds, &mut record.outcome.conditions).await?;
            barrier.report(Gate::End);
        } else {
            self.meet(&mut barrier, (Gate::End, own_url), bounds.longest, "during the measurement").await?;
        }
        self.end_counting(counting, &mut record.outcome.conditions).await;
        self.collect(load.is_some(), before, serving.as_ref(), record).await
    }

    /// Starts the target, and determines the maximum duration of the load.
    pub(super) async fn prepare(
        &mut self,
        job: &Job,
        context: &RunContext,
        outcome: &mut Outcome,
    ) -> Result<Prepared, Failure> {
        let address = match job.role {
            Role::Alone | Role::Generator(_) => Ipv4Addr::LOCALHOST.into(),
            Role::Host => load_address(context)?,
        };
        if job.role == Role::Host {
            self.interface = interface::with_address(address);
        }
        let Self { target, engine, generator_group, live, .. } = self;
        let cores = outcome.cores.generator.clone();
        let starting = async {
            let Some(target) = target else { return Ok(None) };
            let Identified { identity, facts } = target.identity(&context.fingerprints).await?;
            if let Identity::Process { sha256, .. } = &identity {
                outcome.environment.insert("target.sha256".to_owned(), sha256.clone());
            }
            outcome.environment.extend(facts);
            outcome.target = Some(identity);
            let serving = target.start(address, |step| live.set_step(step)).await?;
            outcome.environment.extend(serving.facts.clone());
            outcome.conditions.emulated = serving.emulated;
            outcome.conditions.shares_cores = serving.shares_cores;
            outcome.enforced = serving.enforced.unwrap_or(outcome.enforced);
            outcome.target = outcome.target.take().map(|identity| identity.resolved(serving.image_id.clone()));
            let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
            outcome.conditions.startup_ms = serving.startup.map(milliseconds);
            outcome.conditions.round_trip_ms = serving.round_trip.map(milliseconds);
            Ok(Some(serving))
        };
        let inspecting = async {
            if job.role == Role::Host {
                let longest = WAIT_FOR_OTHERS + job.spec.load().duration().unwrap_or(MAX_SCRIPT);
                return Ok(Bounds { longest, rps_limit: None });
            }
            engine.prepare(generator_group, &cores).await.map_err(Failure::by(Cause::Script))
        };
        let (serving, bounds) = tokio::try_join!(starting, inspecting)?;
        outcome.environment.extend(self.engine.notable_options());
        Ok(Prepared { serving, bounds })
    }

    /// Sets where the load goes, and through which interface if it leaves the machine.
    fn set_destination(&mut self, base_url: &str, is_elsewhere: bool, limits: Option<&LoadLimits>) {
        self.destination = Destination::parse(base_url, limits);
        if is_elsewhere {
            self.interface = interface::to(base_url);
        }
    }

    /// Waits until the machine is idle except for the run's own processes. The target has had no load yet.
    async fn wait_until_idle(&self, job: &Job, context: &RunContext, conditions: &mut Conditions) {
        let target = self.target.as_ref().and_then(Running::source);
        let group = target.as_ref().and_then(Source::group).cloned();
        let own: Vec<_> = group.into_iter().chain([self.generator_group.watch()]).collect();
        conditions.idle_wait = context.patience.wait(context.idle_wait, job.experiment.as_deref(), &own).await;
        self.note_idle_memory(conditions).await;
    }

    /// Reads the memory of the target, which has had no load yet.
    pub(super) async fn note_idle_memory(&self, conditions: &mut Conditions) {
        let Some(target) = self.target.as_ref().and_then(Running::source) else { return };
        let idle = target.consumption().await;
        (conditions.idle_memory_bytes, conditions.idle_held_memory_bytes) = (idle.memory_bytes, idle.held_memory_bytes);
    }

    /// Warms up, if the job requests it. A host records its usage during the warm-up.
    async fn warm_up_part<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        context: &RunContext,
        load: Option<&LoadTarget<'_>>,
        record: &mut OutcomeBuilder<F>,
    ) -> Result<(), Failure> {
        if job.spec.warm_up().is_zero() {
            return Ok(());
        }
        record.enter(Phase::WarmingUp);
        match load {
            Some(load) => record.outcome.warm_up = self.warm_up(job, context, load).await?,
            None => self.record(Round::WarmUp).await,
        }
        Ok(())
    }

    /// Starts a paused load generator with all its virtual users.
    async fn start_paused(&mut self, load: &LoadTarget<'_>, context: &RunContext) -> Result<Paused, Failure> {
        let broken = Failure::by(Cause::Generator);
        self.record(Round::Measure).await;
        self.confine(load, context)?;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = self.engine.start_paused(load, recording, &self.generator_group);
        let (process, report, paused) = started.map_err(|error| self.not_started(&error))?;
        (self.generator, self.report) = (Some(process), Some(report));
        let watch = self.generator_group.watch();
        tokio::select! {
            biased;
            failure = self.early_end() => Err(failure),
            ready = paused.wait(&watch) => ready.map(|()| paused).map_err(broken),
        }
    }

    /// Starts the counters of the target, right before the load.
    pub(super) async fn begin_counting(&self) -> Option<Counting> {
        let source = self.target.as_ref().and_then(Running::source);
        if let Some(Source::Pods(stats)) = &source {
            stats.settle().await;
        }
        Counting::begin(source.as_ref()).await
    }

    /// Ends the counters and the profiler, right after the load.
    pub(super) async fn end_counting(&mut self, counting: Option<Counting>, conditions: &mut Conditions) {
        if let Some(counting) = counting {
            let source = self.target.as_ref().and_then(Running::source);
            conditions.counters = Some(counting.end(source.as_ref()).await);
        }
        if let Some(profiler) = &mut self.profiler {
            profiler.end();
        }
    }

    /// Attaches the profiler, right before the load.
    pub(super) async fn begin_profile(&mut self, job: &Job, context: &RunContext, serving: &Serving, cores: &Cores) {
        let subject = Subject {
            profile: self.target.as_ref().and_then(Running::profile),
            allowed: &context.profilers,
            sandbox: &context.sandbox,
            run: job.run,
            folder: self.folder.path(),
            cores,
            base_url: &serving.base_url,
            client: serving.known.client(),
            seconds: attached::seconds(job),
        };
        let group = self.target.as_ref().and_then(Running::source).and_then(|source| source.group().cloned());
        let processes = || group.as_ref().map(Watch::processes).unwrap_or_default();
        self.profiler = Some(Box::new(Attached::begin(subject, processes).await));
    }

    /// Starts the measurement; returns the target's processes at that time.
    async fn begin_measurement<F: Fn(Phase)>(
        &mut self,
        context: &RunContext,
        load: Option<&LoadTarget<'_>>,
        paused: Option<Paused>,
        record: &mut OutcomeBuilder<F>,
    ) -> Result<Snapshot, Failure> {
        if let Some(paused) = paused {
            record.enter(Phase::Measuring);
            self.begin_recording();
            paused.resume().await.map_err(Failure::by(Cause::Generator))?;
            return Ok(self.processes());
        }
        record.enter(Phase::Measuring);
        let before = self.processes();
        match load {
            Some(load) => self.start(load, context, Round::Measure).await?,
            None => self.record(Round::Measure).await,
        }
        Ok(before)
    }

    /// Records the state of the target after the measurement, and reads the load generator's report.
    pub(super) async fn collect<F: Fn(Phase)>(
        &mut self,
        has_load: bool,
        before: Snapshot,
        serving: Option<&Serving>,
        record: &mut OutcomeBuilder<F>,
    ) -> Result<(), Failure> {
        if !before.is_empty() {
            let conditions = &mut record.outcome.conditions;
            conditions.processes = Some(before.len());
            conditions.processes_gone = Some(before.gone(&self.processes()));
        }
        record.enter(Phase::Collecting);
        // The following requests are not part of the series.
        self.stop_recording().await;
        if let Some(profiler) = &mut self.profiler {
            record.outcome.profiled = Some(Box::pin(profiler.finish()).await);
            self.profiler = None;
        }
        if let Some(serving) = serving {
            let conditions = &mut record.outcome.conditions;
            let change = serving.known.change().await;
            (conditions.response_change, conditions.response_text_change) = (Some(change.of_kind), change.of_text);
            conditions.response_head_bytes = serving.known.head_bytes();
        }
        if has_load {
            let summary = self.engine.summary(self.report.as_ref()).map_err(Failure::by(Cause::Generator))?;
            if let Some((load, report)) = record.outcome.conditions.load_record.as_mut().zip(self.report.as_ref()) {
                report.complete(load, &summary);
            }
            record.outcome.summary = Some(summary);
        }
        Ok(())
    }

    /// Waits at a gate while the target and the paused load generator keep running, if they are on this machine.
    /// Returns the base URL of the target.
    async fn meet(
        &mut self,
        barrier: &mut Barrier,
        (gate, own_url): (Gate, Option<&str>),
        longest: Duration,
        when: &str,
    ) -> Result<String, Failure> {
        let gates = match barrier {
            Barrier::Open => return own_url.map(str::to_owned).ok_or_else(alone),
            Barrier::Pair(pair) => {
                tokio::select! {
                    biased;
                    () = target_exit(&mut self.target) => {}
                    _ = pair.wait() => return own_url.map(str::to_owned).ok_or_else(alone),
                }
                return Err(self.target_exit(when).await);
            }
            Barrier::Shared(gates) => gates,
        };
        let passed = gates.pass(gate, own_url.map(str::to_owned), longest);
        let Some(target) = &mut self.target else {
            return tokio::select! {
                biased;
                failure = self.early_end() => Err(failure),
                passed = passed => passed.map(|opening| opening.base_url),
            };
        };
        tokio::select! {
            biased;
            () = target.wait() => {}
            passed = passed => return passed.map(|opening| opening.base_url),
        }
        Err(self.target_exit(when).await)
    }

    /// Waits for the exit of a paused load generator; forever if there is none.
    async fn early_end(&mut self) -> Failure {
        let Some(generator) = self.generator.as_mut().filter(|_| self.recording.is_some()) else {
            return std::future::pending().await;
        };
        let status = match generator.wait().await {
            Ok(status) => status,
            Err(error) => return lost(error),
        };
        let fault = self.engine.judge(status, &generator.log().await).err();
        let name = self.engine.name();
        Failure::by(Cause::Generator)(fault.unwrap_or_else(|| format!("{name} exited before the measurement")))
    }

    pub(super) fn processes(&self) -> Snapshot {
        self.target.as_ref().map(Running::processes).unwrap_or_default()
    }
}

/// Returns the address on which targets accept load from other machines.
fn load_address(context: &RunContext) -> Result<IpAddr, Failure> {
    context.load_address.ok_or_else(|| {
        let reason = "this agent allows no load from other machines: start it with --load-address";
        Failure::by(Cause::Other)(reason.to_owned())
    })
}

fn alone() -> Failure {
    Failure::by(Cause::Other)("the other participants of the run are missing".to_owned())
}
