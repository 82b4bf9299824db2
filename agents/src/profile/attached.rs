//! A profiler during one run: it starts with the measurement, ends with it, and never fails the run.

use std::collections::BTreeSet;
use std::path::Path;

use brewbench_wire::RunId;
use brewbench_wire::job::Job;
use brewbench_wire::manifest::{Profile, Profiler};
use brewbench_wire::outcome::Cores;
use brewbench_wire::profile::{ProfileKind, ProfileSource, Profiled};
use reqwest::Client;
use tokio::task::JoinHandle;

use super::command::Observer;
use super::endpoint::Endpoint;
use super::offer;
use super::perf::Recorder;
use super::place::ProfilerGroup;
use super::quality::RawProfile;
use crate::sandbox::Sandbox;

/// Seconds to observe if a script has its own load, whose duration is unknown.
const OF_SCRIPTS: u64 = 10;

/// A target that serves, and what may observe it.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The manifest's way.
    pub profile: Option<&'a Profile>,
    /// What the agent's owner allows.
    pub allowed: &'a [ProfileSource],
    /// Creates control groups.
    pub sandbox: &'a Sandbox,
    /// The run.
    pub run: RunId,
    /// The folder of the run.
    pub folder: &'a Path,
    /// The CPUs of both sides.
    pub cores: &'a Cores,
    /// The target's URL.
    pub base_url: &'a str,
    /// The client that reaches it.
    pub client: Client,
    /// Seconds to observe.
    pub seconds: u64,
}

/// Returns the whole seconds to observe: k6 needs a moment at both ends.
pub fn seconds(job: &Job) -> u64 {
    job.spec.load().duration().map_or(OF_SCRIPTS, |load| load.as_secs().saturating_sub(1)).max(1)
}

/// A profiler that observes. Dropping it ends it.
#[derive(Debug)]
pub struct Attached {
    /// `None` for an endpoint.
    place: Option<ProfilerGroup>,
    work: Work,
    kinds: Vec<ProfileKind>,
}

#[derive(Debug)]
enum Work {
    Endpoint(Endpoint, Option<Fetch>),
    Perf(Recorder),
    Command(Observer),
    /// Why there is none.
    None(String),
}

/// A request in progress.
#[derive(Debug)]
struct Fetch(JoinHandle<Result<RawProfile, String>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Attached {
    /// Starts to observe. `processes` lists those of the target.
    pub async fn begin(subject: Subject<'_>, processes: impl Fn() -> BTreeSet<i32>) -> Self {
        let kinds = subject.profile.map(|profile| profile.kinds.clone()).unwrap_or_default();
        let mut place = None;
        let work = match Self::start(&subject, &mut place, processes).await {
            Ok(work) => work,
            Err(fault) => Work::None(fault),
        };
        Self { place, work, kinds }
    }

    async fn start(
        subject: &Subject<'_>,
        place: &mut Option<ProfilerGroup>,
        processes: impl Fn() -> BTreeSet<i32>,
    ) -> Result<Work, String> {
        let Subject { profile, allowed, sandbox, run, folder, cores, base_url, client, seconds } = subject;
        let profile = offer::check(*profile, allowed)?;
        match &profile.by {
            Profiler::Pprof(path) => {
                let endpoint = Endpoint::new(client.clone(), base_url, path, *seconds)?;
                let fetch = profile.kinds.contains(&ProfileKind::Cpu).then(|| {
                    let endpoint = endpoint.clone();
                    Fetch(tokio::spawn(async move { endpoint.take(ProfileKind::Cpu).await }))
                });
                Ok(Work::Endpoint(endpoint, fetch))
            }
            Profiler::Perf { call_graph, rate_hz } => {
                let place = place.insert(ProfilerGroup::open(sandbox, *run, folder, cores)?);
                Recorder::attach(place, processes, *call_graph, *rate_hz).await.map(Work::Perf)
            }
            Profiler::Command { command, folder: of_manifest, rate_hz } => {
                let place = place.insert(ProfilerGroup::open(sandbox, *run, folder, cores)?);
                let observer = Observer::start(place, (command, of_manifest), &processes(), *seconds, *rate_hz);
                observer.map(Work::Command)
            }
        }
    }

    /// Ends the observation with the measurement.
    pub fn end(&mut self) {
        if let Work::Perf(recorder) = &mut self.work {
            recorder.end();
        }
    }

    /// Returns the profiles, or why there are none. The target must still run. If this is cancelled, [`Self::cancel`]
    /// still removes everything.
    pub async fn finish(&mut self) -> Profiled {
        self.end();
        let Self { place, work, kinds } = self;
        let work = std::mem::replace(work, Work::None(String::new()));
        let mut profiled = Profiled::default();
        match work {
            Work::None(fault) => profiled.faults.push(plain(&fault)),
            Work::Perf(recorder) => {
                let taken = match place {
                    Some(place) => recorder.finish(place).await,
                    None => Err("perf has no folder".to_owned()),
                };
                keep(&mut profiled, taken).await;
            }
            Work::Command(observer) => {
                let kind = kinds.first().copied().unwrap_or(ProfileKind::Cpu);
                keep(&mut profiled, observer.finish(kind).await).await;
            }
            Work::Endpoint(endpoint, mut fetch) => {
                for &mut kind in kinds {
                    let taken = match fetch.take_if(|_| kind == ProfileKind::Cpu) {
                        Some(mut fetch) => match (&mut fetch.0).await {
                            Ok(taken) => taken,
                            Err(error) => Err(format!("failed to fetch the profile: {error}")),
                        },
                        None => endpoint.take(kind).await,
                    };
                    keep(&mut profiled, taken).await;
                }
            }
        }
        close(place.take()).await;
        profiled
    }

    /// Ends it without a result.
    pub async fn cancel(self) {
        let Self { place, work, kinds: _ } = self;
        drop(work);
        close(place).await;
    }
}

async fn close(place: Option<ProfilerGroup>) {
    if let Some(place) = place
        && let Err(error) = place.close().await
    {
        tracing::error!(%error, "failed to clean up after the profiler");
    }
}

/// Completes a profile outside the runtime's threads, because a large one takes a moment.
async fn keep(profiled: &mut Profiled, taken: Result<RawProfile, String>) {
    let completed = match taken {
        Ok(taken) => tokio::task::spawn_blocking(move || taken.complete())
            .await
            .map_err(|error| format!("failed to read the profile: {error}"))
            .flatten(),
        Err(fault) => Err(fault),
    };
    match completed {
        Ok(profile) => profiled.profiles.push(profile),
        Err(fault) => profiled.faults.push(plain(&fault)),
    }
}

/// Faults contain foreign text.
fn plain(fault: &str) -> String {
    brewbench_wire::sanitize::plain(fault).chars().take(1_000).collect()
}
