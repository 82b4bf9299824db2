//! A run whose load comes from Pods of the agent's cluster. The agent starts the target and the generators, receives
//! their series, and reads their usage; each generator is judged like one on another machine.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use brewbench_wire::Phase;
use brewbench_wire::engine::EngineVersion;
use brewbench_wire::job::Job;
use brewbench_wire::outcome::{Cause, Generator};
use brewbench_wire::series::{Packed, Series, Window, WindowKind};
use tokio::time::sleep;

use super::context::RunContext;
use super::execute::{OutcomeBuilder, RunResources};
use super::failure::Failure;
use super::participant::Prepared;
use super::rounds::target_exit;
use crate::engine::remote::{Remote, Subject, version_of};
use crate::engine::{Bounds, Received, Round, Script, Sent};
use crate::generators::runners::{self, Runners};
use crate::generators::usage::Follower;
use crate::generators::{Generators, JOB_VARIABLE, job_name};
use crate::run::address_policy::Limits;
use crate::series::recording::Recording;
use crate::series::sampler::Watched;
use crate::target::kubernetes::facts;
use crate::target::kubernetes::pods::Placed;
use crate::target::{Cluster, Running};

/// How long k6 may take to end after its load.
const MARGIN: Duration = Duration::from_secs(5);

const NO_GENERATORS: &str = "its generators are gone";

/// What all rounds of a run share.
struct Load<'a> {
    job: &'a Job,
    cluster: &'a Cluster,
    generators: &'a Generators,
    base_url: String,
    limits: Limits,
    /// The address at which generators reach this agent.
    address: IpAddr,
    longest: Duration,
}

/// A round that is over: what each generator sent, and what its node reported.
#[derive(Default)]
struct FinishedRound {
    parts: Vec<Series>,
    received: Vec<Received>,
    placed: Vec<Placed>,
    logs: Vec<String>,
    start_errors_ms: Vec<i64>,
}

impl RunResources {
    /// Does the whole run. Can be cancelled at any time.
    pub(super) async fn work_with_cluster<F: Fn(Phase)>(
        &mut self,
        job: &Job,
        context: &RunContext,
        record: &mut OutcomeBuilder<F>,
    ) -> Result<(), Failure> {
        let (Some(cluster), Some(generators)) = (&context.cluster, &context.generators) else {
            let reason = "this agent generates no load in a cluster: start it with --kubernetes and --generators";
            return Err(Failure::by(Cause::Other)(reason.to_owned()));
        };
        if job.spec.cluster_generators > generators.most {
            let reason =
                format!("{} generators; this agent's owner allows {}", job.spec.cluster_generators, generators.most);
            return Err(Failure::by(Cause::Other)(reason));
        }
        let Prepared { serving, bounds: Bounds { longest, .. } } =
            self.prepare(job, context, &mut record.outcome).await?;
        let mut serving = serving.ok_or_else(|| Failure::by(Cause::Other)("this agent runs no target".to_owned()))?;
        let base_url = serving.base_url.clone();
        let address = address_towards(&base_url).map_err(Failure::by(Cause::Generator))?;
        let mut own = serving.reach.clone().unwrap_or_default();
        own.allowed.push(address);
        let limits = context.reach.limits(Some(&own));
        let load = Load { job, cluster, generators, base_url, limits, address, longest };
        self.note_idle_memory(&mut record.outcome.conditions).await;
        let mut parts = vec![Series::default(); job.spec.cluster_generators as usize];
        if !job.spec.warm_up().is_zero() {
            record.enter(Phase::WarmingUp);
            let warm = self.round(&load, Round::WarmUp, || {}).await?;
            parts = warm.parts;
        }
        serving.known.confirm(&self.paths).await;
        if job.spec.profiled {
            self.begin_profile(job, context, &serving, &record.outcome.cores).await;
        }
        let counting = self.begin_counting().await;
        let before = self.processes();
        let measured = self.round(&load, Round::Measure, || record.enter(Phase::Measuring)).await?;
        self.end_counting(counting, &mut record.outcome.conditions).await;
        for (part, measured) in parts.iter_mut().zip(&measured.parts) {
            part.measured.clone_from(&measured.measured);
        }
        record.outcome.generators = outcomes(&load, parts, measured).await?;
        record.outcome.engine = record.outcome.generators.iter().find_map(|one| one.engine.clone());
        record.outcome.cores.generator.clear();
        self.collect(false, before, Some(&serving), record).await
    }

    /// Runs one round of load: creates the generators, starts them together, waits for their end, and removes them.
    async fn round(
        &mut self,
        load: &Load<'_>,
        round: Round,
        on_start: impl FnOnce(),
    ) -> Result<FinishedRound, Failure> {
        let broken = Failure::by(Cause::Generator);
        let part = round.part();
        let name = format!("brewbench-{}-{}", load.job.run, letter(round)).to_lowercase();
        let recording = self.listen(load, &name).await?;
        let (clock, created_ms) = (recording.clock(), recording.clock().now_ms());
        let placed = self.create(load, (round, name), &recording).await?;
        let usage = Follower::start(load.cluster.clone(), clock, placed.clone());
        self.live.follow(part, recording.so_far());
        let runners = self.runners.as_ref().ok_or_else(|| broken(NO_GENERATORS.to_owned()))?;
        let starts = runners.start(clock, created_ms).await?;
        on_start();
        for (index, start) in starts.iter().enumerate() {
            recording.begin_one(index, start.at_ms);
        }
        self.wait_for_end(load, round, &recording).await?;
        let starts_ms: Vec<i64> = starts.iter().map(|start| start.at_ms).collect();
        let usage = usage.finish(&starts_ms);
        let received = self.store(part, recording, &starts_ms).await;
        let runners = self.runners.as_ref().ok_or_else(|| broken(NO_GENERATORS.to_owned()))?;
        let logs = match round {
            Round::WarmUp => Vec::new(),
            Round::Measure => runners.ended().await?,
        };
        runners.remove().await.map_err(&broken)?;
        self.runners = None;
        let windows = received.iter().map(|one| one.window.clone()).zip(usage);
        let parts = windows.map(|(window, usage)| {
            let mut series = Series::default();
            *series.part_mut(part) = Some(Window { usage, ..window });
            series
        });
        let start_errors_ms = starts.iter().map(|start| start.error_ms).collect();
        Ok(FinishedRound { parts: parts.collect(), received, placed, logs, start_errors_ms })
    }

    /// Opens the port to which generators push.
    async fn listen(&self, load: &Load<'_>, name: &str) -> Result<Recording, Failure> {
        let jobs: Vec<String> = (0..load.job.spec.cluster_generators).map(|index| job_name(name, index)).collect();
        let watched = Watched {
            target: self.target.as_ref().and_then(Running::source),
            generator: None,
            cores: self.cores.clone(),
            interface: None,
            destination: None,
        };
        let at = (load.address, load.generators.port);
        let recording = Recording::start_for(at, &jobs, watched, self.engine.scope(), self.live.notifier()).await;
        recording.map_err(|error| {
            let port = load.generators.port;
            Failure::by(Cause::Generator)(format!("can't receive the series of generators on port {port}: {error}"))
        })
    }

    /// Creates the generators and waits until all of them can start.
    async fn create(
        &mut self,
        load: &Load<'_>,
        (round, name): (Round, String),
        recording: &Recording,
    ) -> Result<Vec<Placed>, Failure> {
        let broken = Failure::by(Cause::Generator);
        let remote =
            self.engine.script().and_then(|script| load.remote(round, recording.url(), script)).map_err(&broken)?;
        let plan = runners::Round { name, count: load.job.spec.cluster_generators, remote, longest: load.longest };
        let runners = Runners::new(load.cluster, load.generators, plan).await.map_err(&broken)?;
        // From here on they are removed, even if this is cancelled.
        let runners = self.runners.insert(runners);
        runners.create().await?;
        let (live, arrivals) = (self.live.clone(), recording.arrivals());
        tokio::select! {
            biased;
            () = target_exit(&mut self.target) => {}
            placed = runners.ready(&arrivals, recording.url(), |step| live.set_step(step)) => return placed,
        }
        Err(self.target_exit("while its generators started").await)
    }

    /// Waits until the load of all generators is over.
    async fn wait_for_end(&mut self, load: &Load<'_>, round: Round, recording: &Recording) -> Result<(), Failure> {
        let broken = Failure::by(Cause::Generator);
        let runners = self.runners.as_ref().ok_or_else(|| broken(NO_GENERATORS.to_owned()))?;
        let arrivals = recording.arrivals();
        // A script's own load is not limited to the warm-up; k6 limits the others.
        let longest = match round {
            Round::WarmUp => load.job.spec.warm_up() + MARGIN,
            Round::Measure => load.longest,
        };
        tokio::select! {
            biased;
            () = target_exit(&mut self.target) => {}
            measured = runners.measured(&arrivals, recording.url()) => return measured,
            () = sleep(longest) => {
                let seconds = longest.as_secs();
                let reason = format!("k6 was still running after {seconds} s, longer than its load can take");
                return if matches!(round, Round::WarmUp) { Ok(()) } else { Err(broken(reason)) };
            }
        }
        Err(self.target_exit("during the load").await)
    }

    /// Ends the recording of a round, and stores the usage of the target. The load itself is in the series of the
    /// generators.
    async fn store(&mut self, part: WindowKind, recording: Recording, starts_ms: &[i64]) -> Vec<Received> {
        let first_ms = starts_ms.iter().copied().min().unwrap_or_default();
        let seconds = recording.arrivals().seconds_after(0, usize::MAX);
        let (received, usage) = recording.finish_all(first_ms).await;
        self.live.store(part, Window { start_ms: first_ms, seconds, ..Window::default() });
        *self.series.part_mut(part) = Some(Window { start_ms: first_ms, usage, ..Window::default() });
        received
    }
}

impl Load<'_> {
    fn remote(&self, round: Round, url: &str, script: &Script) -> Result<Remote, String> {
        let push_url = format!("{url}/$({JOB_VARIABLE})");
        let (limits, vcpus) = (&self.limits, self.generators.vcpus);
        let base_url = &self.base_url;
        Remote::new(script, round, &Subject { base_url, limits, push_url: &push_url, vcpus })
    }
}

/// Returns the result of each generator.
async fn outcomes(load: &Load<'_>, parts: Vec<Series>, measured: FinishedRound) -> Result<Vec<Generator>, Failure> {
    let FinishedRound { received, placed, logs, start_errors_ms, .. } = measured;
    let mut all = Vec::with_capacity(parts.len());
    let each = parts.into_iter().zip(received).zip(placed).zip(logs).zip(start_errors_ms);
    for ((((series, received), placed), log), error_ms) in each {
        let Sent { summary, user_agent, .. } = received.sent;
        let number = all.len() + 1;
        let name = format!("Pod {number} ({})", placed.node);
        let summary = summary.ok_or_else(|| Failure::by(Cause::Generator)(format!("{name} sent no summary")))?;
        let version = user_agent.as_deref().and_then(version_of);
        let mut environment = facts::of_node(load.cluster, &placed.node).await.facts;
        environment.insert("cpu.usable".to_owned(), load.generators.vcpus.to_string());
        all.push(Generator {
            name,
            summary,
            series: Packed::pack(&series),
            work: received.work,
            log,
            engine: version.map(|version| EngineVersion { name: "k6".to_owned(), version }),
            environment,
            start_error_ms: error_ms as f64,
        });
    }
    Ok(all)
}

/// Returns what tells the names of the rounds of a run apart.
fn letter(round: Round) -> char {
    match round {
        Round::WarmUp => 'w',
        Round::Measure => 'm',
    }
}

/// Returns the address of this machine from which it reaches a target, which its generators use to reach it.
fn address_towards(base_url: &str) -> Result<IpAddr, String> {
    let unknown = |error: &dyn std::fmt::Display| format!("no address for generators to reach this agent: {error}");
    let url = reqwest::Url::parse(base_url).map_err(|error| unknown(&error))?;
    let at = url.socket_addrs(|| None).map_err(|error| unknown(&error))?;
    let at = *at.first().ok_or_else(|| unknown(&"the target has none"))?;
    let any: SocketAddr = if at.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let local = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(at)?;
        socket.local_addr()
    };
    local().map(|address| address.ip()).map_err(|error| unknown(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_target_is_reached_from_this_machine() {
        assert_eq!(address_towards("http://127.0.0.1:9"), Ok(IpAddr::from([127, 0, 0, 1])));
        assert!(address_towards("nonsense").is_err_and(|why| why.starts_with("no address")));
    }
}
