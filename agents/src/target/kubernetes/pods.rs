//! Follows the Pods of a run.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::cluster::{Cluster, RUN};
use super::state::{Exit, State};

/// All Pods of a run by name, as last seen; those that are gone remain, marked.
type Seen = BTreeMap<String, Option<Pod>>;

/// The Pods of a run, followed in the background.
#[derive(Debug)]
pub struct Pods {
    seen: watch::Receiver<Seen>,
    _watching: AbortOnDropHandle<()>,
}

impl Pods {
    /// Starts to follow.
    pub fn watch(cluster: &Cluster, run: &str) -> Self {
        let (sender, seen) = watch::channel(Seen::new());
        let own = watcher::Config::default().labels(&format!("{RUN}={run}"));
        // A watch that expires, or breaks with the API server, begins again with a list.
        let mut events = watcher(cluster.api::<Pod>(), own).default_backoff().boxed();
        let watching = tokio::spawn(async move {
            let mut listed = Vec::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => listed.clear(),
                    Ok(Event::InitApply(pod)) => listed.push(pod),
                    Ok(Event::InitDone) => sender.send_modify(|seen| replace(seen, std::mem::take(&mut listed))),
                    Ok(Event::Apply(pod)) => sender.send_modify(|seen| drop(seen.insert(pod.name_any(), Some(pod)))),
                    Ok(Event::Delete(pod)) => sender.send_modify(|seen| drop(seen.insert(pod.name_any(), None))),
                    Err(error) => tracing::debug!(%error, "the watch of a target's Pods begins again"),
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

    /// Waits until a Pod has ended.
    pub async fn ended(&self, name: &str) {
        if self.seen.clone().wait_for(|seen| exit_of(seen, name).is_some()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the Pod that was created last, of those that exist.
    pub fn newest(&self) -> Option<Pod> {
        let seen = self.seen.borrow();
        seen.values().flatten().max_by_key(|pod| pod.creation_timestamp()).cloned()
    }

    /// Returns how a Pod ended; `None` while it runs.
    pub fn exit_of(&self, name: &str) -> Option<Exit> {
        exit_of(&self.seen.borrow(), name)
    }
}

fn exit_of(seen: &Seen, name: &str) -> Option<Exit> {
    match seen.get(name)? {
        None => Some(Exit { reason: "its Pod was deleted".to_owned(), is_memory: false }),
        Some(pod) => match State::of(pod) {
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
