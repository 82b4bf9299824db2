//! The cluster that an agent may use: one namespace of it.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use kube::{Api, Client, Config, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use brewbench_io::client::prepare_tls;

use super::state::Exit;
use crate::sandbox::process::{LOG_BYTES, last_lines};

/// Label of everything that an agent creates: its name.
pub const AGENT: &str = "brewbench.dev/agent";
/// Label of everything that belongs to a run: its id.
pub const RUN: &str = "brewbench.dev/run";

/// Timeout of a request: a cluster that is busy answers within a second.
pub const REQUEST: Duration = Duration::from_secs(10);

/// Pause between two attempts to remove objects.
const PAUSE: Duration = Duration::from_millis(250);
/// Lines of output to read.
const LOG_LINES: i64 = 2_000;

/// Variables by which an agent's Pod knows itself, set by its manifests: a label that the next Pod of the agent has,
/// too, and its own name and id.
const LABEL: &str = "BREWBENCH_AGENT_LABEL";
const POD_NAME: &str = "BREWBENCH_POD_NAME";
const POD_UID: &str = "BREWBENCH_POD_UID";

/// What an agent needs: verb, group, resource, and subresource; whether it belongs to the namespace, and what for.
const PERMISSIONS: [Permission; 14] = [
    Permission::new("create", "apps", "deployments", "start targets"),
    Permission::new("list", "apps", "deployments", "find what an earlier agent left"),
    Permission::new("get", "apps", "deployments", "explain why a target does not start"),
    Permission::new("delete", "apps", "deployments", "remove targets"),
    Permission::new("list", "", "pods", "follow targets"),
    Permission::new("watch", "", "pods", "follow targets"),
    Permission::new("get", "", "pods/log", "show the output of targets"),
    Permission::new("list", "", "events", "explain why a target does not start"),
    Permission::new("create", "", "services", "load targets through a Service"),
    Permission::new("get", "", "services", "load targets through a Service"),
    Permission::new("list", "", "services", "find what an earlier agent left"),
    Permission::new("delete", "", "services", "load targets through a Service"),
    Permission::of_cluster("get", "nodes", "record what a node is"),
    Permission::of_cluster("get", "nodes/proxy", "read CPU time and memory of targets"),
];

/// What an agent needs in addition if it generates load in the cluster.
const GENERATOR_PERMISSIONS: [Permission; 9] = [
    Permission::new("create", "batch", "jobs", "start generators"),
    Permission::new("list", "batch", "jobs", "remove generators"),
    Permission::new("delete", "batch", "jobs", "remove generators"),
    Permission::new("create", "", "configmaps", "give scenarios to generators"),
    Permission::new("list", "", "configmaps", "find what an earlier agent left"),
    Permission::new("delete", "", "configmaps", "remove scenarios"),
    Permission::new("create", "k6.io", "testruns", "start generators with k6-operator"),
    Permission::new("list", "k6.io", "testruns", "find what an earlier agent left"),
    Permission::new("delete", "k6.io", "testruns", "remove generators of k6-operator"),
];

/// A permission that an agent needs.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    /// Whether it is limited to the namespace.
    is_namespaced: bool,
    /// What it is needed for.
    purpose: &'static str,
}

impl Permission {
    const fn new(verb: &'static str, group: &'static str, resource: &'static str, purpose: &'static str) -> Self {
        Self { verb, group, resource, is_namespaced: true, purpose }
    }

    const fn of_cluster(verb: &'static str, resource: &'static str, purpose: &'static str) -> Self {
        Self { verb, group: "", resource, is_namespaced: false, purpose }
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a Pod has a node.
    pub scheduling: Duration,
    /// For which an image may fail to be pulled before that counts as final.
    pub pull_retries: Duration,
    /// Until its node has prepared it, including the pull.
    pub preparation: Duration,
    /// Until everything is removed.
    pub removal: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            scheduling: Duration::from_mins(2),
            pull_retries: Duration::from_secs(30),
            preparation: Duration::from_mins(15),
            removal: Duration::from_secs(90),
        }
    }
}

/// A connection to a cluster.
#[derive(Clone)]
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// The namespace of everything that is created.
    pub namespace: String,
    /// How long things may take there.
    pub patience: Patience,
    agent: String,
    /// The agent's own Pod, which then owns what it creates.
    owner: Option<Value>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.namespace)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Connects as the agent's Pod, or as `KUBECONFIG` says. The error is a sentence.
    pub async fn connect(agent: &str, namespace: Option<&str>) -> Result<Self, String> {
        prepare_tls();
        let mut config = Config::infer().await.map_err(|error| {
            format!("no cluster: {error}; set KUBECONFIG, or run the agent in a Pod with a service account")
        })?;
        config.connect_timeout = Some(REQUEST);
        let namespace = namespace.map_or_else(|| config.default_namespace.clone(), str::to_owned);
        let client = Client::try_from(config).map_err(|error| format!("no cluster: {}", describe_error(&error)))?;
        let [label, name, uid] = [LABEL, POD_NAME, POD_UID].map(|name| std::env::var(name).ok());
        let owner = name.zip(uid).map(|(name, uid)| owner(&name, &uid));
        let agent = label.unwrap_or_else(|| agent.to_owned());
        Ok(Self { owner, ..Self::new(client, &namespace, &agent) })
    }

    /// Connects, and removes what an earlier process of this agent left.
    pub async fn open(agent: &str, namespace: Option<&str>) -> Result<Self, String> {
        let cluster = Self::connect(agent, namespace).await?;
        match cluster.sweep().await {
            Ok(swept) if swept.is_empty() => {}
            Ok(swept) => tracing::warn!(objects = ?swept, "removed Pods of an earlier process of this agent"),
            // The next run tries again.
            Err(fault) => tracing::warn!(fault, "Pods of an earlier process of this agent may be left"),
        }
        Ok(cluster)
    }

    /// Uses a namespace with a client. `agent` differs from that of all other agents of the namespace.
    pub fn new(client: Client, namespace: &str, agent: &str) -> Self {
        let (namespace, agent) = (namespace.to_owned(), agent.to_owned());
        Self { client, namespace, patience: Patience::default(), agent, owner: None }
    }

    /// Returns the API of a kind of objects.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the metadata of an object of a run.
    pub fn metadata(&self, name: &str, run: &str) -> Value {
        self.labelled(name, RUN, run)
    }

    /// Returns the metadata of an object of this agent, with another label.
    pub fn labelled(&self, name: &str, label: &str, value: &str) -> Value {
        let labels = json!({"app.kubernetes.io/managed-by": "brewbench", AGENT: self.agent, label: value});
        let owners: Vec<&Value> = self.owner.iter().collect();
        json!({"name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": owners})
    }

    /// Removes what earlier runs of this agent left. Returns the names.
    pub async fn sweep(&self) -> Result<Vec<String>, String> {
        let own = ListParams::default().labels(&format!("{AGENT}={}", self.agent));
        let mut removed = Vec::new();
        let deployments = self.api::<Deployment>();
        for left in deployments.list(&own).await.map_err(|error| describe_error(&error))? {
            remove(&deployments, &left.name_any()).await?;
            removed.push(left.name_any());
        }
        // An agent that never used a Service may not be allowed to list them.
        let services = self.api::<Service>();
        for left in services.list(&own).await.into_iter().flatten() {
            remove(&services, &left.name_any()).await?;
            removed.push(left.name_any());
        }
        removed.extend(self.sweep_generators(&own).await);
        Ok(removed)
    }

    /// Removes generators. An agent without them may not be allowed to list them.
    async fn sweep_generators(&self, own: &ListParams) -> Vec<String> {
        let mut removed = Vec::new();
        // First what would create the others again.
        let test_runs = crate::generators::test_runs(self);
        for left in test_runs.list(own).await.into_iter().flatten() {
            removed.extend(remove(&test_runs, &left.name_any()).await.map(|()| left.name_any()));
        }
        let jobs = self.api::<Job>();
        for left in jobs.list(own).await.into_iter().flatten() {
            removed.extend(remove(&jobs, &left.name_any()).await.map(|()| left.name_any()));
        }
        let maps = self.api::<ConfigMap>();
        for left in maps.list(own).await.into_iter().flatten() {
            removed.extend(remove(&maps, &left.name_any()).await.map(|()| left.name_any()));
        }
        removed
    }

    /// Returns what is not permitted of what targets need, as sentences. Fails with one if that can't be asked.
    pub async fn missing_permissions(&self) -> Result<Vec<String>, String> {
        self.missing(&PERMISSIONS).await
    }

    /// Returns what is not permitted of what load generators need in addition.
    pub async fn missing_generator_permissions(&self) -> Result<Vec<String>, String> {
        self.missing(&GENERATOR_PERMISSIONS).await
    }

    async fn missing(&self, permissions: &[Permission]) -> Result<Vec<String>, String> {
        let mut missing = Vec::new();
        for permission in permissions {
            if !self.is_permitted(permission).await? {
                let Permission { verb, resource, is_namespaced, purpose, .. } = *permission;
                let place = if is_namespaced { format!(" in {}", self.namespace) } else { String::new() };
                missing.push(format!("not permitted to {verb} {resource}{place}, to {purpose}"));
            }
        }
        Ok(missing)
    }

    async fn is_permitted(&self, permission: &Permission) -> Result<bool, String> {
        let Permission { verb, group, resource, is_namespaced, .. } = permission;
        let (resource, subresource) = resource.split_once('/').map_or((*resource, None), |(of, sub)| (of, Some(sub)));
        let attributes = ResourceAttributes {
            verb: Some((*verb).to_owned()),
            group: Some((*group).to_owned()),
            resource: Some(resource.to_owned()),
            subresource: subresource.map(str::to_owned),
            namespace: is_namespaced.then(|| self.namespace.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await.map_err(|error| describe_error(&error))?;
        Ok(reviewed.status.is_some_and(|status| status.allowed))
    }

    /// Adds why the node has evicted a Pod, if it has, to how that ended. If its container then exits with 0, the Pod ends
    /// as if nothing had been wrong, and only an event says more.
    pub async fn explain(&self, pod: &str, exit: &mut Exit) {
        let evicted = ListParams::default().fields(&format!("involvedObject.name={pod},reason=Evicted"));
        let events = timeout(REQUEST, self.api::<Event>().list(&evicted)).await.ok().and_then(Result::ok);
        let message = events.into_iter().flatten().find_map(|event| event.message);
        if let Some(message) = message.filter(|_| !exit.reason.contains("Evicted")) {
            exit.reason = format!("{}: Evicted: {}", exit.reason, message.trim());
        }
    }

    /// Returns the end of the output of a Pod's container; empty if it has none, or it can't be read.
    pub async fn log(&self, pod: &Pod) -> String {
        let newest = LogParams { tail_lines: Some(LOG_LINES), ..LogParams::default() };
        // After a restart the output of interest is that of the container before.
        let restarted = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let previous = restarted.map(|container| container.restart_count).sum::<i32>() > 0;
        let pods = self.api::<Pod>();
        let read = timeout(REQUEST, pods.logs(&pod.name_any(), &LogParams { previous, ..newest })).await;
        let mut log = read.ok().and_then(Result::ok).unwrap_or_default();
        let surplus = log.len().saturating_sub(LOG_BYTES);
        log.drain(..log.ceil_char_boundary(surplus));
        log
    }

    /// Sends a `GET` to a node's kubelet, through the API server.
    pub async fn node(&self, node: &str, path: &str) -> Result<String, String> {
        let uri = format!("/api/v1/nodes/{node}/proxy/{path}");
        let request = http::Request::get(uri).body(Vec::new()).map_err(|error| error.to_string())?;
        match timeout(REQUEST, self.client.request_text(request)).await {
            Ok(text) => text.map_err(|error| describe_error(&error)),
            Err(_) => Err(format!("no response within {} s", REQUEST.as_secs())),
        }
    }
}

/// Removes an object and everything that it owns.
pub async fn remove<K>(api: &Api<K>, name: &str) -> Result<(), String>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    match api.delete(name, &DeleteParams::background()).await {
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(format!("can't delete {name}: {}", describe_error(&error))),
        Ok(_) => Ok(()),
    }
}

/// Repeats an attempt to remove objects until nothing is left twice in a row, also while the API server is away: a
/// controller may be about to create a Pod of an object that is gone by then. `left` is a sentence for what is left
/// after the limit.
pub async fn until_removed<F: Future<Output = Result<bool, String>>>(
    limit: Duration,
    left: &str,
    attempt: impl Fn() -> F,
) -> Result<(), String> {
    let (begun, mut was_clean) = (Instant::now(), false);
    loop {
        let attempted = attempt().await;
        match &attempted {
            Ok(true) if was_clean => return Ok(()),
            Err(fault) if begun.elapsed() > limit => return Err(fault.clone()),
            Ok(false) if begun.elapsed() > limit => return Err(format!("{left} after {} s", limit.as_secs())),
            _ => was_clean = attempted == Ok(true),
        }
        sleep(PAUSE).await;
    }
}

/// Describes the last output of a container, for the end of a sentence.
pub fn last_output(log: &str) -> String {
    match last_lines(log) {
        lines if lines.is_empty() => "no output".to_owned(),
        lines => format!("last output: {lines}"),
    }
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
}

/// Describes an error: what the API server says, or why it can't be reached.
pub fn describe_error(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        Error::Service(source) => format!("the API server can't be reached: {source}"),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_appears_after_a_removal_is_removed_too() {
        let (answers, attempts) =
            ([Ok(true), Ok(false), Err("away".to_owned()), Ok(true), Ok(true)], AtomicUsize::new(0));
        let attempt = || std::future::ready(answers[attempts.fetch_add(1, Ordering::Relaxed)].clone());
        assert_eq!(until_removed(Duration::from_mins(1), "a Pod is there", attempt).await, Ok(()));
        assert_eq!(attempts.into_inner(), answers.len());
        let attempts = || std::future::ready(Ok(false));
        let left = until_removed(Duration::ZERO, "a Pod is there", attempts).await;
        assert_eq!(left, Err("a Pod is there after 0 s".to_owned()));
    }
}
