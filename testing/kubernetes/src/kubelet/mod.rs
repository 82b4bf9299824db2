//! A small kubelet: registers a node and runs its Pods as processes of this machine.
//!
//! A thread with a runtime of its own does everything, so that a kubelet stops completely when it is dropped: every
//! process, namespace, mount and control group belongs to a value on that thread.

mod container;
mod environment;
mod events;
mod launch;
mod node;
mod options;
mod pods;
mod probe;
mod server;
mod stats;
mod status;
mod volumes;
mod worker;

use std::{
    error::Error,
    fmt,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{
    net::TcpListener,
    runtime,
    sync::{mpsc, oneshot},
};

pub use self::options::{Image, NodeOptions};
use self::{
    node::{Node, PORT},
    pods::Command,
    stats::Cached,
};
use crate::{
    Cluster,
    cgroup::Groups,
    network::{Address, Network},
    process::folder,
};

/// The node while it runs.
type Shared = Arc<Mutex<Option<Arc<Node>>>>;

/// A running node of a [`Cluster`].
///
/// Dropping it kills its Pods abruptly, like [`Kubelet::kill_node`].
pub struct Kubelet {
    name: String,
    address: Ipv4Addr,
    node: Shared,
    commands: mpsc::UnboundedSender<Command>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelet").field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}

impl Kubelet {
    /// Registers a node and waits until it is ready for Pods.
    ///
    /// # Panics
    /// If it can't be started, or if the API server refuses the node.
    pub async fn start(cluster: &Cluster, options: NodeOptions) -> Self {
        let name = options.name.clone();
        let address = cluster.network().reserve_for_node().unwrap_or_else(|error| panic!("an address: {error}"));
        let ip = address.ip();
        let (commands, received) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        let shared = Shared::default();
        let start = Start {
            kubeconfig: cluster.kubeconfig_for("admin"),
            network: Arc::clone(cluster.network()),
            address,
            options,
            commands: received,
            shared: Arc::clone(&shared),
        };
        let run = move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            // The runtime is dropped afterwards with all tasks, which kills what they run.
            runtime.block_on(start.run(ready, stopped));
        };
        let thread = Builder::new().name(format!("kubelet-{name}")).spawn(run).expect("a thread");
        let kubelet = Self { name, address: ip, node: shared, commands, stop: Some(stop), thread: Some(thread) };
        match is_ready.await {
            Ok(Ok(())) => kubelet,
            Ok(Err(error)) => panic!("the kubelet can't start: {error}"),
            Err(error) => panic!("the kubelet has panicked: {error}"),
        }
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of the node.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Evicts a Pod, as a kubelet does when the node runs out of memory.
    ///
    /// The Pod is killed and becomes `Failed` with the reason `Evicted`.
    pub fn evict(&self, namespace: &str, pod: &str) {
        let _ = self.commands.send(Command::Evict { namespace: namespace.to_owned(), pod: pod.to_owned() });
    }

    /// Returns the id of a container's first process on this machine, while it runs.
    pub fn pid(&self, namespace: &str, pod: &str, container: &str) -> Option<i32> {
        let node = lock(&self.node).clone()?;
        launch::first_process(node.container(namespace, pod, container)?.running?.0)
    }

    /// Kills all Pods and stops, as if the machine had lost its power.
    ///
    /// Nothing is reported: the node and the Pods stay in the API until the cluster notices.
    pub fn kill_node(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.kill_node();
    }
}

/// What the thread of a kubelet needs.
struct Start {
    kubeconfig: PathBuf,
    network: Arc<Network>,
    address: Address,
    options: NodeOptions,
    commands: mpsc::UnboundedReceiver<Command>,
    shared: Shared,
}

impl Start {
    /// Runs the kubelet until `stopped`. Returns the node's only owner besides the tasks of the runtime.
    async fn run(self, ready: oneshot::Sender<Result<(), String>>, stopped: oneshot::Receiver<()>) {
        let shared = Arc::clone(&self.shared);
        let result = self.begin().await;
        let is_running = result.is_ok();
        if ready.send(result).is_ok() && is_running {
            // The handle is dropped, or the node is killed.
            let _ = stopped.await;
        }
        lock(&shared).take();
    }

    async fn begin(self) -> Result<(), String> {
        let Self { kubeconfig, network, address, options, commands, shared } = self;
        let (client, api) = client(&kubeconfig).await.map_err(|error| error.to_string())?;
        let groups = Groups::create(address.ip()).map_err(|error| format!("control groups: {error}"))?;
        let folder = folder(&format!("kubelet-{}", address.ip())).map_err(|error| error.to_string())?;
        let listener = TcpListener::bind((address.ip(), PORT)).await.map_err(|error| error.to_string())?;
        let acceptor = server::acceptor(vec![address.ip().to_string(), options.name.clone()])?;
        let (pods, summary, cadvisor) = (Mutex::default(), Cached::default(), Cached::default());
        let node = Arc::new(Node { options, client, api, address, network, groups, folder, pods, summary, cadvisor });
        node.register().await.map_err(|error| format!("the node is refused: {error}"))?;
        tokio::spawn(server::serve(Arc::clone(&node), listener, acceptor));
        tokio::spawn(Arc::clone(&node).keep_alive());
        tokio::spawn(pods::follow(Arc::clone(&node), commands));
        *lock(&shared) = Some(node);
        Ok(())
    }
}

/// Returns an admin's client, which belongs to the runtime of the caller, and host and port of the API.
async fn client(kubeconfig: &Path) -> Result<(Client, (String, String)), Box<dyn Error>> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let (host, port) = (config.cluster_url.host().unwrap_or_default(), config.cluster_url.port_u16().unwrap_or(443));
    let api = (host.to_owned(), port.to_string());
    Ok((Client::try_from(config)?, api))
}

fn lock(shared: &Shared) -> MutexGuard<'_, Option<Arc<Node>>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
