//! Follows Pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::cluster::Cluster;
use super::state::{Exit, State};

/// The label of a Job's Pods, set by Kubernetes: the name of the Job.
pub const JOB: &str = "job-name";

/// Pause before a watch that broke begins again.
const RETRY: Duration = Duration::from_secs(2);

/// Retries at a steady pace. The usual growing pauses would report the end of a Pod a minute late after an outage of
/// the API server, and a run follows few Pods.
#[derive(Debug)]
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// A Pod on a node.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its name.
    pub pod: String,
    /// Its id.
    pub uid: String,
    /// The name of the node; empty before it has one.
    pub node: String,
}

impl Placed {
    /// Returns where a Pod is.
    pub fn from_pod(pod: &Pod) -> Self {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        Self { pod: pod.name_any(), uid: pod.uid().unwrap_or_default(), node }
    }
}

/// All Pods by name, as last seen; those that are gone remain, marked.
type Seen = BTreeMap<String, Option<Pod>>;

/// Pods, followed in the background.
#[derive(Debug)]
pub struct Pods {
    seen: watch::Receiver<Seen>,
    _watching: AbortOnDropHandle<()>,
}

impl Pods {
    /// Starts to follow the Pods with a label.
    pub fn watch(cluster: &Cluster, label: &str, value: &str) -> Self {
        let (sender, seen) = watch::channel(Seen::new());
        let own = watcher::Config::default().labels(&format!("{label}={value}"));
        // A watch that expires, or breaks with the API server, begins again with a list.
        let mut events = watcher(cluster.api::<Pod>(), own).backoff(Steady).boxed();
        let watching = tokio::spawn(async move {
            let mut listed = Vec::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => listed.clear(),
                    Ok(Event::InitApply(pod)) => listed.push(pod),
                    Ok(Event::InitDone) => sender.send_modify(|seen| replace(seen, std::mem::take(&mut listed))),
                    Ok(Event::Apply(pod)) => sender.send_modify(|seen| drop(seen.insert(pod.name_any(), Some(pod)))),
                    Ok(Event::Delete(pod)) => sender.send_modify(|seen| drop(seen.insert(pod.name_any(), None))),
                    Err(error) => tracing::debug!(%error, "a watch of Pods begins again"),
                }
            }
        });
        Self { seen, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Waits for the next change.
    pub async fn changed(&self) {
        let mut seen = self.seen.clone();
        seen.mark_unchanged();
        if seen.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until one of these Pods has ended.
    pub async fn one_ended(&self, names: &[String]) {
        let has_one = |seen: &Seen| names.iter().any(|name| exit_of(seen, name).is_some());
        if self.seen.clone().wait_for(has_one).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the Pod that was created last, of those that exist.
    pub fn newest(&self) -> Option<Pod> {
        self.newest_of(1).pop()
    }

    /// Returns the Pods that were created last, of those that exist; the newest first, those that are being deleted
    /// last.
    pub fn newest_of(&self, count: usize) -> Vec<Pod> {
        let seen = self.seen.borrow();
        let mut pods: Vec<&Pod> = seen.values().flatten().collect();
        pods.sort_by_key(|pod| (pod.metadata.deletion_timestamp.is_some(), Reverse(pod.creation_timestamp())));
        pods.into_iter().take(count).cloned().collect()
    }

    /// Returns a Pod, if it exists.
    pub fn pod(&self, name: &str) -> Option<Pod> {
        self.seen.borrow().get(name).cloned().flatten()
    }

    /// Returns the newest Pod of a Job, if it exists.
    pub fn of_job(&self, job: &str) -> Option<Pod> {
        let is_own = |pod: &&Pod| pod.labels().get(JOB).is_some_and(|found| found == job);
        let seen = self.seen.borrow();
        seen.values().flatten().filter(is_own).max_by_key(|pod| pod.creation_timestamp()).cloned()
    }

    /// Returns how the newest Pod of a Job ended, or that it was deleted; `None` while it runs, or before there is one.
    pub fn exit_of_job(&self, job: &str) -> Option<Exit> {
        let seen = self.seen.borrow();
        let start = format!("{job}-");
        // The Pods of a Job are named after it.
        let is_own = |name: &String| name.strip_prefix(&start).is_some_and(|rest| !rest.contains('-'));
        let mut exits = seen.keys().filter(|name| is_own(name)).map(|name| exit_of(&seen, name));
        // A Pod that replaces another one does not run the same load.
        exits.find_map(|exit| exit)
    }

    /// Returns how a Pod ended; `None` while it runs.
    pub fn exit_of(&self, name: &str) -> Option<Exit> {
        exit_of(&self.seen.borrow(), name)
    }
}

fn exit_of(seen: &Seen, name: &str) -> Option<Exit> {
    match seen.get(name)? {
        None => Some(Exit { reason: "its Pod was deleted".to_owned(), ..Exit::default() }),
        Some(pod) => match State::from_pod(pod) {
            State::Ended(exit) => Some(exit),
            _ => None,
        },
    }
}

/// Takes over a complete list: what is not in it is gone.
fn replace(seen: &mut Seen, listed: Vec<Pod>) {
    for pod in seen.values_mut() {
        *pod = None;
    }
    seen.extend(listed.into_iter().map(|pod| (pod.name_any(), Some(pod))));
}
