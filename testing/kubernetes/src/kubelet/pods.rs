//! Follows the Pods of the node and gives each a worker.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use tokio::sync::{mpsc, watch};

use super::{
    node::Node,
    worker::{Desired, Worker},
};

/// Pause before the list is read again after an error.
const RETRY: Duration = Duration::from_millis(200);

/// What a test asks the kubelet to do.
#[derive(Debug)]
pub enum Command {
    /// Evicts a Pod.
    Evict { namespace: String, pod: String },
}

/// Workers by the uid of their Pod. Those that have ended stay until the API has forgotten the Pod.
struct Workers {
    node: Arc<Node>,
    desired: BTreeMap<String, watch::Sender<Desired>>,
    listed: BTreeSet<String>,
}

/// Follows the Pods of the node for ever.
///
/// The watcher lists them again when the API server was away or has forgotten the version.
pub async fn follow(node: Arc<Node>, mut commands: mpsc::UnboundedReceiver<Command>) {
    let pods: Api<Pod> = Api::all(node.client.clone());
    let config = watcher::Config::default().fields(&format!("spec.nodeName={}", node.options.name));
    let mut events = pin!(watcher(pods, config));
    let mut workers = Workers { node, desired: BTreeMap::new(), listed: BTreeSet::new() };
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => workers.handle(event),
                Some(Err(_)) => tokio::time::sleep(RETRY).await,
                None => return,
            },
            Some(Command::Evict { namespace, pod }) = commands.recv() => workers.evict(&namespace, &pod),
        }
    }
}

impl Workers {
    fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.uid());
                self.apply(pod);
            }
            Event::InitDone => {
                let missing: Vec<_> = self.desired.keys().filter(|uid| !self.listed.contains(*uid)).cloned().collect();
                for uid in missing {
                    self.forget(&uid);
                }
            }
            Event::Apply(pod) => self.apply(pod),
            Event::Delete(pod) => self.forget(&pod.uid().unwrap_or_default()),
        }
    }

    fn apply(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(worker) = self.desired.get(&uid) {
            worker.send_modify(|desired| desired.pod = pod);
            return;
        }
        let (sender, receiver) = watch::channel(Desired { pod, evicted: false, gone: false });
        tokio::spawn(Worker::new(Arc::clone(&self.node), receiver).run());
        self.desired.insert(uid, sender);
    }

    /// Handles that the API has no such Pod any more.
    fn forget(&mut self, uid: &str) {
        if let Some(worker) = self.desired.remove(uid) {
            worker.send_modify(|desired| desired.gone = true);
        }
    }

    fn evict(&self, namespace: &str, pod: &str) {
        for worker in self.desired.values() {
            let is_it = |desired: &Desired| {
                desired.pod.namespace().as_deref() == Some(namespace) && desired.pod.name_any() == pod
            };
            worker.send_if_modified(|desired| {
                let evict = is_it(desired);
                desired.evicted |= evict;
                evict
            });
        }
    }
}
