//! The target kind `kubernetes`: a Pod of its own for each run, placed by the cluster's scheduler.
//!
//! The API server is asked to create and to delete a Deployment of one Pod; the Pod is followed by a watch that goes on
//! after an outage of the API server. Its figures come from its node's kubelet.

pub(crate) mod cluster;
pub(crate) mod facts;
mod objects;
pub(crate) mod pods;
pub(crate) mod state;
pub(crate) mod stats;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use cluster::{Cluster, Patience};
use cluster::{last_output, remove, sentence, until_removed};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, Service};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use pods::Pods;
use state::{Exit, State};
pub use stats::PodStats;
use tokio::time::timeout;

use super::answer::Known;
use super::manifest::{Manifest, Workload};
use super::ready::{self, Endpoint};
use super::running::{Ended, Serving};
use crate::run::address_policy::LoadLimits;
use crate::run::failure::Failure;
use crate::wire::RunId;
use crate::wire::job::Size;
use crate::wire::outcome::{Cause, Enforced, Mechanism, Observed};
use crate::wire::target::Identity;

/// Pause between two requests for objects that are not watched.
const PAUSE: Duration = Duration::from_millis(250);

/// What is known before a Pod is created.
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

/// A Pod, before it is created, while it runs, or after it has ended.
#[derive(Debug)]
pub struct Scheduled {
    prepared: Prepared,
    /// From the request that creates its Deployment on, even if that was cancelled.
    pods: Option<Pods>,
    /// Once it runs.
    placed: Option<Placed>,
}

/// A Pod on a node.
#[derive(Clone, Debug)]
struct Placed {
    pod: String,
    stats: Arc<PodStats>,
}

impl Scheduled {
    /// Prepares a Pod to be created.
    pub fn new(prepared: Prepared) -> Self {
        Self { prepared, pods: None, placed: None }
    }

    fn name(&self) -> String {
        format!("brewbench-{}", self.prepared.run).to_lowercase()
    }

    /// Creates it and waits until it serves. It can be stopped and its log read even if this fails or is cancelled.
    /// `progress` is called with sentences.
    pub async fn start(&mut self, manifest: &Manifest, progress: impl Fn(String)) -> Result<Serving, Failure> {
        let swept = self.prepared.cluster.sweep().await.map_err(Failure::by(Cause::Other))?;
        if !swept.is_empty() {
            tracing::warn!(objects = ?swept, "removed objects of earlier runs");
        }
        self.create().await.map_err(Failure::by(Cause::TargetNotReady))?;
        let pod = self.scheduled(progress).await?;
        let running = pod.status.clone().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let stats = Arc::new(PodStats::new(self.prepared.cluster.clone(), node.clone(), uid));
        self.placed = Some(Placed { pod: pod.name_any(), stats });
        let address = if self.prepared.workload.service {
            self.service_address().await.map_err(Failure::by(Cause::TargetNotReady))?
        } else {
            running.pod_ip.clone().unwrap_or_default()
        };
        let known = self.serves(manifest, &address).await?;
        let image = running.container_statuses.iter().flatten().map(|container| container.image_id.clone()).next();
        let id = image.map(|image| digest(&image).to_owned()).filter(|id| !id.is_empty());
        let identity = Identity::Kubernetes { image: self.prepared.workload.image.clone(), id };
        let place = facts::place(&self.prepared.cluster, &pod, &node, self.prepared.size.vcpus).await;
        let facts::Place { facts, shares_cores } = place;
        let enforced = Enforced { cpu: Mechanism::Pod, memory: Mechanism::Pod };
        // The manifest's Pod may be loaded wherever its cluster has put it.
        let allowed = address.parse().into_iter().collect();
        let reach = Some(LoadLimits { allowed, redirects: false });
        Ok(Serving {
            identity: Some(identity),
            enforced: Some(enforced),
            shares_cores,
            reach,
            facts,
            ..Serving::of(known)
        })
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
        created.map_err(|error| format!("can't create the Deployment: {}", sentence(&error)))?;
        if workload.service {
            let service = serde_json::from_value(objects::service(workload, &metadata, &run)).map_err(invalid)?;
            let created = cluster.api::<Service>().create(&PostParams::default(), &service).await;
            created.map_err(|error| format!("can't create the Service: {}", sentence(&error)))?;
        }
        Ok(())
    }

    /// Waits until its container runs.
    async fn scheduled(&mut self, progress: impl Fn(String)) -> Result<Pod, Failure> {
        let begun = Instant::now();
        let Patience { scheduling, pull_retries, preparation, .. } = self.prepared.cluster.patience;
        let (mut reported, mut failing_since) = (String::new(), None);
        loop {
            let pod = self.pods.as_ref().and_then(Pods::newest);
            let state = match &pod {
                Some(pod) => State::of(pod),
                None => State::Unscheduled(self.refusal().await?),
            };
            let (words, limit) = match &state {
                State::Runs => return pod.ok_or_else(|| Failure::by(Cause::Other)("no Pod".to_owned())),
                State::Ended(_) => return Err(self.exit_report("before it was ready").await),
                State::Broken(why) => return Err(not_started(why, &self.events().await)),
                State::Unscheduled(why) => (format!("waits for a node: {why}"), scheduling),
                State::Waiting(why) => (format!("starts its Pod: {why}"), preparation),
                State::PullFails(why) => (format!("can't pull its image yet: {why}"), preparation),
            };
            failing_since = matches!(state, State::PullFails(_)).then(|| failing_since.unwrap_or_else(Instant::now));
            let pull_failed = failing_since.is_some_and(|since| since.elapsed() > pull_retries);
            if pull_failed || begun.elapsed() > limit {
                let (waited, events) = (begun.elapsed().as_secs(), self.events().await);
                return Err(not_started(&format!("{words} (given up after {waited} s)"), &events));
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
            Err(error) => Ok(sentence(&error)),
        }
    }

    async fn service_address(&self) -> Result<String, String> {
        let service = self.prepared.cluster.api::<Service>().get(&self.name()).await;
        let service = service.map_err(|error| format!("can't read the Service: {}", sentence(&error)))?;
        let address = service.spec.and_then(|spec| spec.cluster_ip);
        address.ok_or_else(|| "the Service has no address".to_owned())
    }

    async fn serves(&mut self, manifest: &Manifest, address: &str) -> Result<Known, Failure> {
        let not_ready = Failure::by(Cause::TargetNotReady);
        let port = self.prepared.workload.port;
        let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        let endpoint = Endpoint::remote(&format!("http://{host}:{port}"), ready::client().map_err(not_ready)?);
        let answering = async {
            ready::answer(&endpoint, &manifest.ready).await?;
            Known::learn(endpoint.clone(), manifest).await
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

    /// How its Pod ended; `None` while it runs, or if it was not placed.
    fn exit(&self) -> Option<Exit> {
        let placed = self.placed.as_ref()?;
        self.pods.as_ref()?.exit_of(&placed.pod)
    }

    /// Waits until it has ended; forever if it was not placed.
    pub async fn wait(&self) {
        match (&self.pods, &self.placed) {
            (Some(pods), Some(placed)) => pods.ended(&placed.pod).await,
            _ => std::future::pending().await,
        }
    }

    /// Whether it ran and has ended.
    pub fn has_ended(&self) -> bool {
        self.exit().is_some()
    }

    /// Describes why it ended while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let newest = self.pods.as_ref().and_then(Pods::newest);
        let at_start = newest.as_ref().map(State::of).and_then(|state| match state {
            State::Ended(exit) => Some(exit),
            _ => None,
        });
        let Exit { reason, is_memory, .. } = self.exit().or(at_start).unwrap_or_default();
        let cause = if is_memory { Cause::TargetOutOfMemory } else { Cause::TargetDied };
        let output = last_output(&self.log().await);
        Failure { reason: format!("ended {when}: {reason}; {output}"), cause }
    }

    /// Returns a handle to read its CPU time and memory; `None` before it runs.
    pub fn stats(&self) -> Option<Arc<PodStats>> {
        self.placed.as_ref().map(|placed| Arc::clone(&placed.stats))
    }

    /// Deletes everything that was created, and waits until it is gone.
    pub async fn stop(self) -> Ended {
        let mut ended = Ended::default();
        if self.pods.is_none() {
            return ended;
        }
        if let Some(placed) = &self.placed {
            let namespace = &self.prepared.cluster.namespace;
            let (throttled_us, oom_kills) = placed.stats.throttling(namespace, &placed.pod).await;
            let usage = placed.stats.read().await;
            let known = self.exit().filter(|exit| exit.is_memory).map(|_| 1);
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
        let Prepared { cluster, workload, run, .. } = &self.prepared;
        remove(&cluster.api::<Deployment>(), &self.name()).await?;
        if workload.service {
            remove(&cluster.api::<Service>(), &self.name()).await?;
        }
        let own = ListParams::default().labels(&format!("{}={run}", cluster::RUN));
        let left = cluster.api::<Pod>().list(&own).await.map_err(|error| sentence(&error))?;
        Ok(left.items.is_empty())
    }

    /// Returns what the cluster reports about its newest Pod, newest last.
    async fn events(&self) -> Vec<String> {
        let Some(pod) = self.pods.as_ref().and_then(Pods::newest) else { return Vec::new() };
        let own = ListParams::default().fields(&format!("involvedObject.name={}", pod.name_any()));
        let listed = self.prepared.cluster.api::<Event>().list(&own).await;
        let warnings = listed.into_iter().flatten().filter(|event| event.type_.as_deref() == Some("Warning"));
        warnings.filter_map(|event| event.message).collect()
    }

    /// Returns the end of its output; empty if it has none, or it can't be read.
    async fn log(&self) -> String {
        match self.pods.as_ref().and_then(Pods::newest) {
            Some(pod) => self.prepared.cluster.log(&pod).await,
            None => String::new(),
        }
    }
}

fn not_started(why: &str, events: &[String]) -> Failure {
    let last = events.last().filter(|event| !why.contains(event.as_str()));
    let event = last.map_or_else(String::new, |event| format!("; the cluster reports: {event}"));
    Failure::by(Cause::TargetNotReady)(format!("{why}{event}"))
}

/// Returns the digest of an image id such as `docker.io/library/nginx@sha256:…`.
fn digest(image_id: &str) -> &str {
    image_id.rsplit_once('@').map_or(image_id, |(_, digest)| digest)
}
