//! The target kind `kubernetes`: Pods of its own for each run, placed by the cluster's scheduler; one unless the
//! machine size has replicas.
//!
//! The API server is asked to create and to delete a Deployment; its Pods are followed by a watch that goes on after an
//! outage of the API server. Their figures come from the kubelets of their nodes.

pub(crate) mod cluster;
pub(crate) mod facts;
mod objects;
pub(crate) mod pods;
mod replicas;
pub(crate) mod state;
pub(crate) mod stats;

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use cluster::{Cluster, Patience};
use cluster::{describe_error, last_output, remove, until_removed};
use futures_util::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, Service};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use pods::{Placed, Pods};
pub use replicas::Replicas;
use state::{Exit, State};
use tokio::time::timeout;

use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::outcome::{Cause, Enforced, Mechanism, Observed};

use super::answer::ReferenceResponse;
use super::manifest::{Manifest, Workload};
use super::ready::{self, Endpoint};
use super::serving::{Ended, Serving};
use crate::run::address_policy::LoadLimits;
use crate::run::failure::Failure;
use crate::sandbox::process::LOG_BYTES;

/// Pause between two requests for objects that are not watched.
const PAUSE: Duration = Duration::from_millis(250);

/// What is known before its Pods are created.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The manifest's part.
    pub workload: Workload,
    /// Where it runs.
    pub cluster: Cluster,
    /// Its requests and limits.
    pub size: Size,
    /// The run.
    pub run: RunId,
}

/// The Pods of a target, before they are created, while they run, or after they have ended.
#[derive(Debug)]
pub struct PodTarget {
    prepared: Prepared,
    /// From the request that creates its Deployment on, even if that was cancelled.
    pods: Option<Pods>,
    /// Once all run.
    replicas: Option<Arc<Replicas>>,
}

impl PodTarget {
    /// Prepares a target to be created.
    pub fn new(prepared: Prepared) -> Self {
        Self { prepared, pods: None, replicas: None }
    }

    fn name(&self) -> String {
        format!("brewbench-{}", self.prepared.run).to_lowercase()
    }

    /// Whether it is loaded through a Service, which shares the load among replicas.
    fn has_service(&self) -> bool {
        self.prepared.workload.service || self.prepared.size.replicas > 1
    }

    /// Creates it and waits until it serves. It can be stopped and its log read even if this fails or is cancelled.
    /// `progress` is called with sentences.
    pub async fn start(&mut self, manifest: &Manifest, progress: impl Fn(String)) -> Result<Serving, Failure> {
        let swept = self.prepared.cluster.sweep().await.map_err(Failure::by(Cause::Other))?;
        if !swept.is_empty() {
            tracing::warn!(objects = ?swept, "removed objects of earlier runs");
        }
        self.create().await.map_err(Failure::by(Cause::TargetNotReady))?;
        let pods = self.scheduled(progress).await?;
        let image_id = facts::only_image(&pods).map_err(Failure::by(Cause::TargetNotReady))?;
        let cluster = self.prepared.cluster.clone();
        let facts::PodPlacement { mut facts, shares_cores, here } =
            facts::describe_placement(&cluster, &pods, self.prepared.size.vcpus).await;
        self.replicas = Some(Arc::new(Replicas::new(&cluster, &pods, here)));
        let addresses: Vec<String> = pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
        let address = if self.has_service() {
            self.service_address().await.map_err(Failure::by(Cause::TargetNotReady))?
        } else {
            addresses.first().cloned().unwrap_or_default()
        };
        let known = self.serves(manifest, &addresses, &address).await?;
        // A Service costs time: targets with and without one are not loaded alike.
        facts.insert("net.target_path".to_owned(), if self.has_service() { "Service" } else { "Pod" }.to_owned());
        let enforced = Enforced { cpu: Mechanism::Pod, memory: Mechanism::Pod };
        // The manifest's Pod may be loaded wherever its cluster has put it.
        let allowed = address.parse().into_iter().collect();
        let reach = Some(LoadLimits { allowed, redirects: Vec::new() });
        Ok(Serving { image_id, enforced: Some(enforced), shares_cores, reach, facts, ..Serving::of(known) })
    }

    async fn create(&mut self) -> Result<(), String> {
        let Prepared { workload, cluster, size, run } = &self.prepared;
        let (name, run) = (self.name(), run.to_string());
        let metadata = cluster.metadata(&name, &run);
        let invalid = |error: serde_json::Error| format!("kubernetes.template: {error}");
        let deployment: Deployment =
            serde_json::from_value(objects::deployment(workload, size, &metadata, &run)).map_err(invalid)?;
        self.pods = Some(Pods::watch(cluster, cluster::RUN, &run));
        let created = cluster.api::<Deployment>().create(&PostParams::default(), &deployment).await;
        created.map_err(|error| format!("can't create the Deployment: {}", describe_error(&error)))?;
        if self.has_service() {
            let service = serde_json::from_value(objects::service(workload, &metadata, &run)).map_err(invalid)?;
            let created = cluster.api::<Service>().create(&PostParams::default(), &service).await;
            created.map_err(|error| format!("can't create the Service: {}", describe_error(&error)))?;
        }
        Ok(())
    }

    /// Waits until its containers run.
    async fn scheduled(&mut self, progress: impl Fn(String)) -> Result<Vec<Pod>, Failure> {
        let begun = Instant::now();
        let Patience { scheduling, pull_retries, preparation, .. } = self.prepared.cluster.patience;
        let (mut reported, mut failing_since) = (String::new(), None);
        loop {
            let count = self.prepared.size.replicas as usize;
            let pods = self.pods.as_ref().map_or_else(Vec::new, |pods| pods.newest_of(count));
            let missing = if pods.len() < count { Some(State::Unscheduled(self.refusal().await?)) } else { None };
            let state = pods.iter().map(State::from_pod).chain(missing).max().unwrap_or(State::Runs);
            let (words, limit) = match &state {
                State::Runs => return Ok(pods),
                State::Ended(_) => return Err(self.exit_report("before it was ready").await),
                State::Broken(why) => return Err(self.not_started(why).await),
                State::Unscheduled(why) => (format!("waits for a node: {why}"), scheduling),
                State::Waiting(why) => (format!("starts its Pod: {why}"), preparation),
                State::PullFails(why) => (format!("can't pull its image yet: {why}"), preparation),
            };
            failing_since = matches!(state, State::PullFails(_)).then(|| failing_since.unwrap_or_else(Instant::now));
            let pull_failed = failing_since.is_some_and(|since| since.elapsed() > pull_retries);
            if pull_failed || begun.elapsed() > limit {
                let waited = begun.elapsed().as_secs();
                return Err(self.not_started(&format!("{words} (given up after {waited} s)")).await);
            }
            if words != reported {
                progress(words.clone());
                reported = words;
            }
            let _ = timeout(PAUSE, self.changed()).await;
        }
    }

    /// Explains why there is no Pod yet; fails if there will be none.
    async fn refusal(&self) -> Result<String, Failure> {
        let found = self.prepared.cluster.api::<Deployment>().get_opt(&self.name()).await;
        let not_ready = Failure::by(Cause::TargetNotReady);
        match found {
            Ok(Some(deployment)) => {
                let conditions = deployment.status.and_then(|status| status.conditions).unwrap_or_default();
                match conditions.into_iter().find(|one| one.type_ == "ReplicaFailure" && one.status == "True") {
                    Some(failure) => Err(not_ready(failure.message.unwrap_or_else(|| "no Pod is created".to_owned()))),
                    None => Ok("its Pod is not created yet".to_owned()),
                }
            }
            Ok(None) => Err(not_ready("its Deployment was deleted".to_owned())),
            // It may come back within the limit.
            Err(error) => Ok(describe_error(&error)),
        }
    }

    async fn service_address(&self) -> Result<String, String> {
        let service = self.prepared.cluster.api::<Service>().get(&self.name()).await;
        let service = service.map_err(|error| format!("can't read the Service: {}", describe_error(&error)))?;
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        address.ok_or_else(|| "the Service has no address".to_owned())
    }

    /// Waits until all Pods are ready, then checks the address that is loaded.
    async fn serves(
        &mut self,
        manifest: &Manifest,
        pods: &[String],
        address: &str,
    ) -> Result<ReferenceResponse, Failure> {
        let not_ready = Failure::by(Cause::TargetNotReady);
        let (port, client) = (self.prepared.workload.port, ready::client().map_err(not_ready)?);
        let endpoint = |address: &str| {
            let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
            Endpoint::remote(&format!("http://{host}:{port}"), client.clone())
        };
        let (loaded, each): (Endpoint, Vec<Endpoint>) =
            (endpoint(address), pods.iter().map(|pod| endpoint(pod)).collect());
        let answering = async {
            // A Service answers as soon as one of its Pods is ready.
            try_join_all(each.iter().map(|pod| ready::answer(pod, &manifest.ready))).await?;
            ready::answer(&loaded, &manifest.ready).await?;
            ReferenceResponse::learn(loaded.clone(), manifest).await
        };
        let answered = tokio::select! {
            biased;
            () = self.wait() => None,
            answered = answering => Some(answered),
        };
        match answered {
            Some(known) => known.map_err(not_ready),
            None => Err(self.exit_report("before it was ready").await),
        }
    }

    async fn changed(&self) {
        match &self.pods {
            Some(pods) => pods.changed().await,
            None => std::future::pending().await,
        }
    }

    /// The first of its Pods that ended, and how; `None` while all run, or before.
    fn exit(&self) -> Option<(String, Exit)> {
        let (pods, replicas) = (self.pods.as_ref()?, self.replicas.as_ref()?);
        replicas.names().into_iter().find_map(|name| Some((name.clone(), pods.exit_of(&name)?)))
    }

    /// Waits until one of its Pods has ended; forever before they run.
    pub async fn wait(&self) {
        match (&self.pods, &self.replicas) {
            (Some(pods), Some(replicas)) => pods.one_ended(&replicas.names()).await,
            _ => std::future::pending().await,
        }
    }

    /// Whether it ran and has ended.
    pub fn has_ended(&self) -> bool {
        self.exit().is_some()
    }

    /// Describes why it ended while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let count = self.prepared.size.replicas;
        let newest = self.pods.as_ref().map_or_else(Vec::new, |pods| pods.newest_of(count as usize));
        let at_start = newest.iter().find_map(|pod| match State::from_pod(pod) {
            State::Ended(exit) => Some((pod.name_any(), exit)),
            _ => None,
        });
        let (pod, mut exit) = self.exit().or(at_start).unwrap_or_default();
        self.prepared.cluster.explain(&pod, &mut exit).await;
        let Exit { reason, is_memory, .. } = exit;
        let cause = if is_memory { Cause::TargetOutOfMemory } else { Cause::TargetDied };
        let output = last_output(&self.log_of(&pod).await);
        let which = match self.replicas.as_ref().and_then(|replicas| replicas.node_of(&pod)) {
            Some(node) if count > 1 => format!("one of {count} replicas, on {node}, "),
            _ => String::new(),
        };
        Failure { reason: format!("{which}ended {when}: {reason}; {output}"), cause }
    }

    /// Returns a handle to read its CPU time and memory; `None` before it runs.
    pub fn replicas(&self) -> Option<Arc<Replicas>> {
        self.replicas.clone()
    }

    /// Deletes everything that was created, and waits until it is gone.
    pub async fn stop(self) -> Ended {
        let mut ended = Ended::default();
        if self.pods.is_none() {
            return ended;
        }
        if let Some(replicas) = &self.replicas {
            let (throttled_us, oom_kills) = replicas.throttling().await;
            let usage = replicas.read().await;
            let known = self.exit().filter(|(_, exit)| exit.is_memory).map(|_| 1);
            let oom_kills = oom_kills.max(known);
            ended.observed = Some(Observed { cpu_us: usage.cpu_us, throttled_us, peak_memory_bytes: None, oom_kills });
        }
        ended.log = self.log().await;
        if let Err(fault) = self.remove().await {
            ended.faults.push(io::Error::other(fault));
        }
        ended
    }

    /// Deletes its objects and waits for the end of its Pods. Retries while the API server is away.
    async fn remove(&self) -> Result<(), String> {
        let limit = self.prepared.cluster.patience.removal;
        until_removed(limit, "its Pod is still there", || self.try_remove()).await
    }

    /// Returns whether nothing is left.
    async fn try_remove(&self) -> Result<bool, String> {
        let Prepared { cluster, run, .. } = &self.prepared;
        remove(&cluster.api::<Deployment>(), &self.name()).await?;
        if self.has_service() {
            remove(&cluster.api::<Service>(), &self.name()).await?;
        }
        let own = ListParams::default().labels(&format!("{}={run}", cluster::RUN));
        let left = cluster.api::<Pod>().list(&own).await.map_err(|error| describe_error(&error))?;
        Ok(left.items.is_empty())
    }

    /// Describes why it can't start, with the last warning of the cluster about its newest Pod.
    async fn not_started(&self, why: &str) -> Failure {
        let newest = self.pods.as_ref().and_then(Pods::newest).map_or_else(String::new, |pod| pod.name_any());
        let own = ListParams::default().fields(&format!("involvedObject.name={newest}"));
        let listed = self.prepared.cluster.api::<Event>().list(&own).await;
        let warnings = listed.into_iter().flatten().filter(|event| event.type_.as_deref() == Some("Warning"));
        let last = warnings.filter_map(|event| event.message).next_back().filter(|event| !why.contains(event.as_str()));
        let event = last.map_or_else(String::new, |event| format!("; the cluster reports: {event}"));
        Failure::by(Cause::TargetNotReady)(format!("{why}{event}"))
    }

    /// Returns the end of its output; empty if it has none, or it can't be read.
    async fn log(&self) -> String {
        let count = self.prepared.size.replicas as usize;
        let mut pods = self.pods.as_ref().map_or_else(Vec::new, |pods| pods.newest_of(count));
        pods.sort_by_key(ResourceExt::name_any);
        let mut whole = String::new();
        for pod in &pods {
            let mut log = self.prepared.cluster.log(pod).await;
            let surplus = log.len().saturating_sub(LOG_BYTES / count);
            log.drain(..log.ceil_char_boundary(surplus));
            if count > 1 {
                let _ = writeln!(whole, "== {} on {}", pod.name_any(), Placed::from_pod(pod).node);
            }
            whole += &log;
        }
        whole
    }

    /// Returns the end of the output of one Pod.
    async fn log_of(&self, pod: &str) -> String {
        match self.pods.as_ref().and_then(|pods| pods.pod(pod)) {
            Some(pod) => self.prepared.cluster.log(&pod).await,
            None => String::new(),
        }
    }
}
