//! The Pods of one round of load: created, waited for, started together, and removed.

mod start;

use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use brewbench_wire::job::Segment;
use brewbench_wire::outcome::Cause;
use futures_util::StreamExt;
use futures_util::future::{join_all, try_join_all};
use futures_util::stream;
use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use tokio::time::{Instant, timeout};

use super::files::Files;
use super::manifest::Generators;
use super::names::Names;
use super::objects::{self, LOAD, Shared};
use super::operator;
use crate::engine::k6::Paused;
use crate::engine::remote::{ARCHIVE, PORT, Remote};
use crate::engine::{Arrivals, judge};
use crate::run::failure::Failure;
use crate::target::Cluster;
use crate::target::kubernetes::cluster::{describe_error, last_output, remove, until_removed};
use crate::target::kubernetes::pods::Pods;
use crate::target::kubernetes::state::{Exit, State};

/// Pause between two looks at what is not watched.
const PAUSE: Duration = Duration::from_millis(100);
/// How many requests are sent to the API server at once.
const AT_ONCE: usize = 16;
/// How long a k6 that runs may take to create its virtual users.
const MAX_SETUP: Duration = Duration::from_mins(5);
/// How long the first push of a k6 may take: it pushes every second, even while it is paused.
const FIRST_PUSH: Duration = Duration::from_secs(15);
/// After this time without a push, a generator counts as lost: k6 pushes every second until its end.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// How long the API server may take to report the end of a Pod.
const MAX_END: Duration = Duration::from_mins(2);

/// The generators of one round.
#[derive(Debug)]
pub struct Runners {
    cluster: Cluster,
    generators: Generators,
    names: Names,
    count: u32,
    environment: Vec<(String, String)>,
    files: Files,
    longest: Duration,
    pods: Pods,
    /// Whether k6-operator creates and starts them.
    has_operator: bool,
}

/// When a generator has started, by this machine's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// The earliest time.
    pub at_ms: i64,
    /// How much later it may have been.
    pub error_ms: i64,
}

/// A round of load.
#[derive(Clone, Debug)]
pub struct Round {
    /// Its name, which differs between all rounds.
    pub name: String,
    /// How many generators.
    pub count: u32,
    /// What they run.
    pub remote: Remote,
    /// The maximum duration of the load.
    pub longest: Duration,
}

impl Runners {
    /// Prepares a round. Nothing is created yet.
    pub async fn new(cluster: &Cluster, generators: &Generators, round: Round) -> Result<Self, String> {
        let Round { name, count, remote, longest } = round;
        // A TestRun has no runtime class.
        let has_operator = !generators.has_runtime_class() && operator::is_installed(cluster).await?;
        let metadata = cluster.labelled(&name, LOAD, &name);
        let pods = Pods::watch(cluster, LOAD, &name);
        let names = Names { name, metadata };
        let (cluster, generators) = (cluster.clone(), generators.clone());
        let (environment, files) = (remote.environment, Files::pack(ARCHIVE, &remote.archive));
        Ok(Self { cluster, generators, names, count, environment, files, longest, pods, has_operator })
    }

    fn shared(&self) -> Shared<'_> {
        let Self { environment, files, generators, names, .. } = self;
        Shared { environment, files, generators, names }
    }

    /// Creates what generates the load. The error is a sentence.
    pub async fn create(&self) -> Result<(), Failure> {
        let broken = Failure::by(Cause::Generator);
        for map in self.files.config_maps(&self.names) {
            let map: ConfigMap = serde_json::from_value(map).map_err(|error| broken(error.to_string()))?;
            let created = self.cluster.api::<ConfigMap>().create(&PostParams::default(), &map).await;
            created.map_err(|error| broken(format!("can't create the ConfigMap: {}", describe_error(&error))))?;
        }
        if self.has_operator {
            let run = objects::test_run(self.shared(), self.count);
            let run = serde_json::from_value(run).map_err(|error| broken(error.to_string()))?;
            let created = operator::test_runs(&self.cluster).create(&PostParams::default(), &run).await;
            return created
                .map(drop)
                .map_err(|error| broken(format!("can't create the TestRun: {}", describe_error(&error))));
        }
        let creating = stream::iter((0..self.count).map(|index| self.create_job(index))).buffer_unordered(AT_ONCE);
        let created: Vec<Result<(), String>> = creating.collect().await;
        created.into_iter().collect::<Result<(), String>>().map_err(broken)
    }

    async fn create_job(&self, index: u32) -> Result<(), String> {
        let segment = Segment { index, of: self.count };
        let longest_s = (self.longest + MAX_SETUP + self.cluster.patience.preparation).as_secs();
        let job = objects::job(self.shared(), segment, longest_s);
        let job: BatchJob = serde_json::from_value(job).map_err(|error| error.to_string())?;
        let created = self.cluster.api::<BatchJob>().create(&PostParams::default(), &job).await;
        created.map(drop).map_err(|error| format!("can't create a Job: {}", describe_error(&error)))
    }

    fn unreachable(&self, index: u32, url: &str) -> Failure {
        let reason = format!(
            "runs, but its series does not arrive at {url}: is the agent reachable from Pods, and does a network policy \
             allow it?"
        );
        self.failure(index, &reason)
    }

    /// Waits until every generator has sent its summary or ended.
    pub async fn measured(&self, arrivals: &Arrivals, url: &str) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let mut is_open = false;
            for index in 0..self.count {
                if !arrivals.has_summary(index as usize) {
                    is_open = true;
                    if self.exit(index).is_some() {
                        return Err(self.exit_failure(index).await);
                    }
                    if arrivals.silent_for(index as usize).is_some_and(|silence| silence > MAX_SILENCE) {
                        let seconds = MAX_SILENCE.as_secs();
                        return Err(self.failure(index, &format!("was lost: nothing arrived from it for {seconds} s")));
                    }
                    if begun.elapsed() > FIRST_PUSH && !arrivals.has_pushed(index as usize) {
                        return Err(self.unreachable(index, url));
                    }
                }
            }
            if !is_open {
                return Ok(());
            }
            let _ = timeout(PAUSE, self.pods.changed()).await;
        }
    }

    /// Waits for the ends of all Pods, and returns their output. Fails if k6 has failed in one of them.
    pub async fn ended(&self) -> Result<Vec<String>, Failure> {
        let begun = Instant::now();
        while let Some(index) = (0..self.count).find(|index| self.exit(*index).is_none()) {
            if begun.elapsed() > MAX_END {
                return Err(self.failure(index, "has sent its summary, but the cluster does not report its end"));
            }
            let _ = timeout(PAUSE, self.pods.changed()).await;
        }
        let logs = join_all((0..self.count).map(|index| self.log(index))).await;
        for (index, log) in (0..self.count).zip(&logs) {
            let exit = self.exit(index).unwrap_or_default();
            let status = exit.code.filter(|_| !exit.is_memory).map(|code| ExitStatus::from_raw(code << 8));
            match status {
                Some(status) => judge(status, log).map_err(|fault| self.failure(index, &fault))?,
                None => return Err(self.failure(index, &exit.reason)),
            }
        }
        Ok(logs)
    }

    /// Waits until a generator has ended that should not have.
    async fn any_failed(&self) -> Failure {
        loop {
            if let Some(index) = (0..self.count).find(|index| self.exit(*index).is_some()) {
                return self.exit_failure(index).await;
            }
            self.pods.changed().await;
        }
    }

    async fn exit_failure(&self, index: u32) -> Failure {
        let mut exit = self.exit(index).unwrap_or_default();
        if let Some(pod) = self.pods.of_job(&self.names.job(index)) {
            self.cluster.explain(&pod.name_any(), &mut exit).await;
        }
        let output = last_output(&self.log(index).await);
        self.failure(index, &format!("ended early: {}; {output}", exit.reason))
    }

    /// Returns how a generator ended; `None` while it runs.
    fn exit(&self, index: u32) -> Option<Exit> {
        self.pods.exit_of_job(&self.names.job(index))
    }

    fn address(&self, index: u32) -> Option<IpAddr> {
        let pod = self.pods.of_job(&self.names.job(index))?;
        (State::from_pod(&pod) == State::Runs).then_some(())?;
        pod.status?.pod_ip?.parse().ok()
    }

    fn paused(&self, index: u32) -> Result<Paused, Failure> {
        let address = self.address(index).ok_or_else(|| self.failure(index, "does not run any more"))?;
        Ok(Paused::at(SocketAddr::new(address, PORT)))
    }

    fn failure(&self, index: u32, what: &str) -> Failure {
        let node = self.pods.of_job(&self.names.job(index)).and_then(|pod| pod.spec?.node_name);
        let on = node.map_or_else(String::new, |node| format!(" ({node})"));
        Failure::by(Cause::Generator)(format!("Pod {}{on} {what}", index + 1))
    }

    async fn log(&self, index: u32) -> String {
        match self.pods.of_job(&self.names.job(index)) {
            Some(pod) => self.cluster.log(&pod).await,
            None => String::new(),
        }
    }

    /// Deletes everything, and waits until its Pods are gone. Retries while the API server is away.
    pub async fn remove(&self) -> Result<(), String> {
        let limit = self.cluster.patience.removal;
        until_removed(limit, "Pods of its generators are still there", || self.try_remove()).await
    }

    async fn try_remove(&self) -> Result<bool, String> {
        if self.has_operator {
            remove(&operator::test_runs(&self.cluster), &self.names.name).await?;
        }
        let own = ListParams::default().labels(&format!("{LOAD}={}", self.names.name));
        let jobs = self.cluster.api::<BatchJob>();
        let left = jobs.list(&own).await.map_err(|error| describe_error(&error))?;
        try_join_all(left.iter().map(|job| async { remove(&jobs, &job.name_any()).await })).await?;
        let maps = self.cluster.api::<ConfigMap>();
        let left = maps.list(&own).await.map_err(|error| describe_error(&error))?;
        try_join_all(left.iter().map(|map| async { remove(&maps, &map.name_any()).await })).await?;
        let left = self.cluster.api::<Pod>().list(&own).await.map_err(|error| describe_error(&error))?;
        Ok(left.items.is_empty())
    }
}
