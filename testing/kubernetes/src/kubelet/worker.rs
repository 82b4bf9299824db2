//! The life of one Pod on the node, from its network to its removal from the API.

use std::{
    net::Ipv4Addr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::core::v1::{Pod, PodSpec},
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    container::{Container, Surroundings},
    environment::References,
    events,
    node::{Node, PodView},
    status::{self, Conditions, Facts},
    volumes::{self, Volumes},
};
use crate::network::{self, PodNetwork};

/// Time between looks at the containers.
const TICK: Duration = Duration::from_millis(50);

/// Pause after a request that the API server did not answer.
const RETRY: Duration = Duration::from_millis(500);

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the API and the test want of a Pod.
#[derive(Debug)]
pub struct Desired {
    pub pod: Pod,
    pub evicted: bool,
    /// The API has no such Pod any more.
    pub gone: bool,
}

/// Runs one Pod.
///
/// Dropping it kills and removes everything that the Pod has on this machine.
pub struct Worker {
    node: Arc<Node>,
    desired: watch::Receiver<Desired>,
    pod: Pod,
    uid: String,
    init: Vec<Container>,
    main: Vec<Container>,
    volumes: Option<Volumes>,
    network: Option<PodNetwork>,
    address: Option<Ipv4Addr>,
    started: Timestamp,
    conditions: Conditions,
    reported: Value,
    prepare_after: Instant,
    report_after: Instant,
    evicted: bool,
    /// When containers that were asked to exit are killed.
    deadline: Option<Instant>,
}

impl Worker {
    /// A worker of a Pod that has just appeared.
    pub fn new(node: Arc<Node>, desired: watch::Receiver<Desired>) -> Self {
        let pod = desired.borrow().pod.clone();
        let spec = pod.spec.clone().unwrap_or_default();
        let create = |specs: Vec<_>| specs.into_iter().map(Container::new).collect();
        Self {
            uid: pod.uid().unwrap_or_default(),
            init: create(spec.init_containers.unwrap_or_default()),
            main: create(spec.containers),
            node,
            desired,
            pod,
            volumes: None,
            network: None,
            address: None,
            started: Timestamp::now(),
            conditions: Conditions::new(),
            reported: Value::Null,
            prepare_after: Instant::now(),
            report_after: Instant::now(),
            evicted: false,
            deadline: None,
        }
    }

    /// Runs the Pod until it is deleted.
    pub async fn run(mut self) {
        // A Pod that had ended before this kubelet was started is not run again.
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        let had_ended = has_ended(&phase);
        loop {
            let (evicted, gone) = {
                let desired = self.desired.borrow_and_update();
                self.pod = desired.pod.clone();
                (desired.evicted, desired.gone)
            };
            if gone {
                return;
            }
            self.evicted |= evicted && !self.has_ended();
            let deleted = self.pod.metadata.deletion_timestamp.is_some();
            let stopped = self.evicted || deleted;
            if stopped {
                self.stop(if deleted { grace(&self.pod) } else { Duration::ZERO });
            } else if !had_ended {
                self.advance().await;
            }
            let failed: Vec<_> = self.all().filter_map(Container::check).collect();
            for (kind, reason, message) in failed {
                events::report(&self.node, &self.pod, kind, reason, &message);
            }
            self.reap(stopped);
            self.publish();
            let has_stopped = self.all().all(|container| container.running().is_none());
            if !had_ended && (!self.evicted || has_stopped) {
                self.report(deleted).await;
            }
            if deleted && has_stopped && self.remove().await {
                return;
            }
            let _ = tokio::time::timeout(TICK, self.desired.changed()).await;
        }
    }

    /// Creates what the Pod needs, and starts the containers whose turn it is.
    async fn advance(&mut self) {
        if self.has_ended() {
            self.network = None;
            return;
        }
        if self.prepare_after <= Instant::now()
            && let Err((reason, message)) = self.prepare().await
        {
            events::report(&self.node, &self.pod, "Warning", reason, &message);
            self.prepare_after = Instant::now() + Duration::from_secs(1);
        }
        let (Some(address), Some(volumes)) = (self.address, &self.volumes) else { return };
        let surroundings = Surroundings {
            references: References { node: &self.node, pod: &self.pod, address },
            network: self.network.as_ref().map_or_else(network::own_path, PodNetwork::path),
            volumes,
            folder: self.folder(),
        };
        let next = self.init.iter_mut().find(|container| container.exit().is_none_or(|exit| exit.code != 0));
        let due = match next {
            Some(init) => vec![init],
            None => self.main.iter_mut().collect(),
        };
        for container in due.into_iter().filter(|container| container.is_due()) {
            for (kind, reason, message) in container.start(&surroundings).await {
                events::report(&self.node, &self.pod, kind, reason, &message);
            }
        }
    }

    /// Creates network and volumes unless they exist; fails with the reason and the message of an event.
    async fn prepare(&mut self) -> Result<(), (&'static str, String)> {
        let address = match self.address {
            Some(address) => address,
            None if spec(&self.pod).is_some_and(|spec| spec.host_network == Some(true)) => self.node.address.ip(),
            None => {
                let network = PodNetwork::create(&self.node.network);
                let network = network.map_err(|error| ("FailedCreatePodSandBox", error.to_string()))?;
                let address = network.address();
                self.network = Some(network);
                address
            }
        };
        self.address = Some(address);
        if self.volumes.is_none() {
            let references = References { node: &self.node, pod: &self.pod, address };
            let created = volumes::create(&references, &self.folder().join("volumes")).await;
            self.volumes = Some(created.map_err(|message| ("FailedMount", message))?);
        }
        Ok(())
    }

    /// Asks all containers to exit, and kills them after a time that later requests may only shorten.
    fn stop(&mut self, grace: Duration) {
        let latest = Instant::now() + grace;
        let is_first = self.deadline.is_none();
        let deadline = self.deadline.map_or(latest, |deadline| deadline.min(latest));
        self.deadline = Some(deadline);
        for running in self.all().filter_map(Container::running) {
            if is_first {
                running.terminate();
            }
            if Instant::now() >= deadline {
                running.kill();
            }
        }
    }

    fn reap(&mut self, stopped: bool) {
        let policy =
            spec(&self.pod).and_then(|spec| spec.restart_policy.clone()).unwrap_or_else(|| "Always".to_owned());
        // Init containers run until they succeed.
        let init = if policy == "Never" { "Never" } else { "OnFailure" };
        self.init.iter_mut().for_each(|container| container.reap((!stopped).then_some(init)));
        self.main.iter_mut().for_each(|container| container.reap((!stopped).then_some(&policy)));
    }

    /// Shows the Pod to the kubelet's server.
    fn publish(&self) {
        let containers = self.init.iter().chain(&self.main);
        let containers = containers.filter_map(|container| Some((container.spec.name.clone(), container.view()?)));
        let (namespace, name) = (self.pod.namespace().unwrap_or_default(), self.pod.name_any());
        self.node.pods().insert(self.uid.clone(), PodView { namespace, name, containers: containers.collect() });
    }

    /// Sends the status to the API if it has changed.
    async fn report(&mut self, terminating: bool) {
        let mut conditions = std::mem::take(&mut self.conditions);
        let status = status::of(&self.facts(terminating), &mut conditions);
        self.conditions = conditions;
        if status == self.reported || self.report_after > Instant::now() {
            return;
        }
        let pods = self.api();
        let (name, params) = (self.pod.name_any(), PatchParams::default());
        let patch = Patch::Strategic(json!({"metadata": {"uid": self.uid}, "status": status}));
        match tokio::time::timeout(PATIENCE, pods.patch_status(&name, &params, &patch)).await {
            Ok(Ok(_)) => self.reported = status,
            Ok(Err(kube::Error::Api(error))) if error.is_not_found() => {}
            _ => self.report_after = Instant::now() + RETRY,
        }
    }

    /// Removes the Pod from the API once nothing of it runs; returns whether it is gone.
    async fn remove(&mut self) -> bool {
        self.network = None;
        if self.report_after > Instant::now() {
            return false;
        }
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None }),
            ..DeleteParams::default()
        };
        match tokio::time::timeout(PATIENCE, self.api().delete(&self.pod.name_any(), &params)).await {
            Ok(Ok(_)) => true,
            Ok(Err(kube::Error::Api(error))) if error.is_not_found() || error.is_conflict() => true,
            _ => {
                self.report_after = Instant::now() + RETRY;
                false
            }
        }
    }

    fn has_ended(&self) -> bool {
        has_ended(status::phase(&self.facts(false)))
    }

    fn facts(&self, terminating: bool) -> Facts<'_> {
        let (host, started, address, evicted) = (self.node.address.ip(), self.started, self.address, self.evicted);
        Facts { init: &self.init, main: &self.main, started, host, address, evicted, terminating }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Container> {
        self.init.iter_mut().chain(&mut self.main)
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.node.client.clone(), &self.pod.namespace().unwrap_or_default())
    }

    fn folder(&self) -> PathBuf {
        self.node.folder.path().join(&self.uid)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.node.pods().remove(&self.uid);
        self.init.clear();
        self.main.clear();
        let _ = std::fs::remove_dir_all(self.folder());
    }
}

fn has_ended(phase: &str) -> bool {
    ["Succeeded", "Failed"].contains(&phase)
}

fn spec(pod: &Pod) -> Option<&PodSpec> {
    pod.spec.as_ref()
}

/// Returns the time that the containers of a deleted Pod have to exit.
fn grace(pod: &Pod) -> Duration {
    let seconds = pod.metadata.deletion_grace_period_seconds.or_else(|| spec(pod)?.termination_grace_period_seconds);
    Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(30))
}
