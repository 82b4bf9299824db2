//! What an agent does of a run: run the target, generate load, or both. A run on one machine takes the same path as one on
//! several; its barrier is open.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::barrier::Barrier;
use super::execute::{Record, Site, Workbench, lost};
use super::failure::Failure;
use super::interface;
use crate::engine::{self, LoadOn, Paused, Round};
use crate::host::process_snapshot::Roster;
use crate::series::sampler::memory_bytes;
use crate::target::{Running, Serving};
use crate::wire::Phase;
use crate::wire::job::{Job, Role};
use crate::wire::messages::Gate;
use crate::wire::outcome::{Cause, Conditions, Outcome};

/// How long participants of a run wait for the others. They may have to wait for an idle machine, and to start thousands of
/// virtual users.
const WAIT_FOR_OTHERS: Duration = Duration::from_mins(10);

/// How long a script's own load may take; a host does not know how long it is.
const LONGEST_SCRIPT: Duration = Duration::from_hours(25);

/// What a participant has prepared: a host its target, a generator its load.
struct Prepared {
    serving: Option<Serving>,
    /// How long the measured load may take.
    longest: Duration,
}

impl Site {
    /// Does what this agent has to do of the run. Can be given up at any time.
    pub(super) async fn work<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        bench: &Workbench,
        record: &mut Record<F>,
        mut barrier: Barrier,
    ) -> Result<(), Failure> {
        if job.role != Role::Alone && barrier.is_open() {
            return Err(alone());
        }
        let Prepared { mut serving, longest } = self.prepare(job, bench, &mut record.outcome).await?;
        self.wait_until_idle(bench, &mut record.outcome.conditions).await;
        let own_url = serving.as_ref().map(|serving| serving.base_url.clone());
        let own_url = own_url.as_deref();
        let base_url =
            self.meet(&mut barrier, (Gate::Load, own_url), WAIT_FOR_OTHERS, "while others prepared their load").await?;
        if own_url.is_none() {
            bench.reach.admits(&base_url).map_err(Failure::by(Cause::Generator))?;
            self.interface = interface::to(&base_url);
        }
        let cores = record.outcome.cores.generator.clone();
        let segment = match job.role {
            Role::Generator(segment) => Some(segment),
            Role::Alone | Role::Host => None,
        };
        let load = (job.role != Role::Host).then_some(LoadOn {
            base_url: &base_url,
            segment,
            cores: &cores,
            reach: bench.reach,
        });
        self.warm_up_part(job, bench, load.as_ref(), record).await?;
        let paused = match &load {
            Some(load) if !barrier.is_open() => Some(self.start_paused(load, bench).await?),
            _ => None,
        };
        let patience = WAIT_FOR_OTHERS + Duration::from_millis(job.warm_up_max_ms.unwrap_or(job.warm_up_ms));
        self.meet(&mut barrier, (Gate::Measure, own_url), patience, "while it was warmed up").await?;
        if let Some(serving) = &mut serving {
            serving.known.confirm().await;
        }
        let before = self.begin_measurement(bench, load.as_ref(), paused, record).await?;
        if load.is_some() {
            self.measured(longest).await?;
            barrier.tell(Gate::End);
        } else {
            self.meet(&mut barrier, (Gate::End, own_url), longest, "during the measurement").await?;
        }
        self.collect(load.is_some(), before, serving.as_ref(), record).await
    }

    /// Starts the target, and finds out how long the load may take.
    async fn prepare(&mut self, job: &Job, bench: &Workbench, outcome: &mut Outcome) -> Result<Prepared, Failure> {
        let address = match job.role {
            Role::Alone | Role::Generator(_) => Ipv4Addr::LOCALHOST.into(),
            Role::Host => load_address(bench)?,
        };
        if job.role == Role::Host {
            self.interface = interface::of_own(address);
        }
        let Self { target, script, generator_group, .. } = self;
        let cores = outcome.cores.generator.clone();
        let starting = async {
            let Some(target) = target else { return Ok(None) };
            let sha256 = target.identity(&bench.fingerprints).await?;
            outcome.environment.insert("target.sha256".to_owned(), sha256.clone());
            outcome.target_sha256 = Some(sha256);
            let serving = target.start(address).await?;
            outcome.conditions.startup_ms = Some(serving.startup.as_secs_f64() * 1_000.0);
            Ok(Some(serving))
        };
        let asking = async {
            if job.role == Role::Host {
                return Ok(WAIT_FOR_OTHERS + job.load.duration().unwrap_or(LONGEST_SCRIPT));
            }
            let longest = bench.engine.longest(script, &job.load, generator_group, &cores).await;
            longest.map_err(Failure::by(Cause::Generator))
        };
        let (serving, longest) = tokio::try_join!(starting, asking)?;
        Ok(Prepared { serving, longest })
    }

    /// Waits until the machine is idle, the run's own processes aside. The target has had no load then.
    async fn wait_until_idle(&self, bench: &Workbench, conditions: &mut Conditions) {
        let target = self.target.as_ref().map(Running::watch);
        let own: Vec<_> = target.iter().cloned().chain([self.generator_group.watch()]).collect();
        conditions.ground = bench.quiet.wait(&own).await;
        conditions.idle_memory_bytes = target.as_ref().and_then(memory_bytes);
    }

    /// Warms up, if the job says so. A host records what its machine does meanwhile.
    async fn warm_up_part<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        bench: &Workbench,
        load: Option<&LoadOn<'_>>,
        record: &mut Record<F>,
    ) -> Result<(), Failure> {
        if job.warm_up_ms == 0 {
            return Ok(());
        }
        record.enter(Phase::WarmingUp);
        match load {
            Some(load) => record.outcome.warm_up = self.warm_up(job, bench, load).await?,
            None => self.record(Round::WarmUp).await,
        }
        Ok(())
    }

    /// Starts the load generator with all its virtual users, waiting for the signal to begin.
    async fn start_paused(&mut self, load: &LoadOn<'_>, bench: &Workbench) -> Result<Paused, Failure> {
        let broken = Failure::by(Cause::Generator);
        self.record(Round::Measure).await;
        let paused = Paused::choose().map_err(|error| broken(format!("there is no free port: {error}")))?;
        let recording = self.recording.as_ref().map(|(_, recording)| recording);
        let started = bench.engine.start_paused(&self.script, load, &paused, recording, &self.generator_group);
        self.generator = Some(started.map_err(|error| broken(format!("can't start k6: {error}")))?);
        let watch = self.generator_group.watch();
        tokio::select! {
            biased;
            failure = self.early_end() => Err(failure),
            ready = paused.wait(&watch) => ready.map(|()| paused).map_err(broken),
        }
    }

    /// Enters the measured phase; returns the processes that the target has then.
    async fn begin_measurement<F: Fn(Phase)>(
        &mut self,
        bench: &Workbench,
        load: Option<&LoadOn<'_>>,
        paused: Option<Paused>,
        record: &mut Record<F>,
    ) -> Result<Roster, Failure> {
        if let Some(paused) = paused {
            paused.resume().await.map_err(Failure::by(Cause::Generator))?;
            record.enter(Phase::Measuring);
            self.begin_recording();
            return Ok(self.processes());
        }
        record.enter(Phase::Measuring);
        let before = self.processes();
        match load {
            Some(load) => self.start(load, bench, Round::Measure).await?,
            None => self.record(Round::Measure).await,
        }
        Ok(before)
    }

    /// Records what the target is like after the measurement, and reads the load generator's report.
    async fn collect<F: Fn(Phase)>(
        &mut self,
        has_load: bool,
        before: Roster,
        serving: Option<&Serving>,
        record: &mut Record<F>,
    ) -> Result<(), Failure> {
        if self.target.is_some() {
            let conditions = &mut record.outcome.conditions;
            conditions.processes = Some(before.len());
            conditions.processes_gone = Some(before.gone(&self.processes()));
        }
        record.enter(Phase::Collecting);
        // What is asked now is no part of the series.
        self.stop_recording().await;
        if let Some(serving) = serving {
            record.outcome.conditions.response_change = Some(serving.known.change().await);
        }
        if has_load {
            record.outcome.summary = Some(self.script.summary().map_err(Failure::by(Cause::Generator))?);
        }
        Ok(())
    }

    /// Waits at a gate while the target serves and the load generator waits, as far as they are on this machine. Returns
    /// where the target serves.
    async fn meet(
        &mut self,
        barrier: &mut Barrier,
        (gate, own_url): (Gate, Option<&str>),
        longest: Duration,
        when: &str,
    ) -> Result<String, Failure> {
        let gates = match barrier {
            Barrier::Open => return own_url.map(str::to_owned).ok_or_else(alone),
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
        Err(self.death(when).await)
    }

    /// Waits for the end of a load generator that waits for the signal to begin; for ever where none does.
    async fn early_end(&mut self) -> Failure {
        let Some(generator) = self.generator.as_mut().filter(|_| self.recording.is_some()) else {
            return std::future::pending().await;
        };
        let status = match generator.wait().await {
            Ok(status) => status,
            Err(error) => return lost(error),
        };
        let fault = engine::judge(status, &generator.log().await).err();
        Failure::by(Cause::Generator)(fault.unwrap_or_else(|| "k6 ended before the measurement".to_owned()))
    }

    fn processes(&self) -> Roster {
        self.target.as_ref().map(Running::processes).unwrap_or_default()
    }
}

/// Where targets listen for load from other machines.
fn load_address(bench: &Workbench) -> Result<IpAddr, Failure> {
    bench.load_address.ok_or_else(|| {
        let reason = "the owner of this agent allows no load from other machines: start it with --load-address";
        Failure::by(Cause::Other)(reason.to_owned())
    })
}

fn alone() -> Failure {
    Failure::by(Cause::Other)("nobody is there to do the rest of the run".to_owned())
}
