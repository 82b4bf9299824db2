//! A Kubernetes control plane that belongs to one test.

use std::{
    fmt::Display,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use brewbench_testing::skip;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use nix::unistd::Uid;
use tempfile::TempDir;

use crate::{
    cgroup::Groups,
    control_plane::ControlPlane,
    credentials::{ADMIN, Credentials},
    network::Network,
    process::{Daemon, folder},
};

/// How long the control plane may take to start, beside other tests on a small machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running control plane: etcd, API server, controller manager and scheduler.
///
/// Dropping it kills and removes all. Its processes are also killed when the thread that has started it ends. Each cluster has its own network and files,
/// so that tests can run beside each other.
pub struct Cluster {
    // In the order in which they are stopped.
    daemons: Vec<Daemon>,
    api_server: Option<Daemon>,
    plane: ControlPlane,
    credentials: Credentials,
    client: Client,
    network: Arc<Network>,
    folder: TempDir,
}

impl Cluster {
    /// Starts a control plane and waits until it is ready.
    ///
    /// Returns `None`, with a printed reason, without its programs, root or control groups.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn start() -> Option<Self> {
        let programs = match ControlPlane::find() {
            Ok(programs) if Uid::effective().is_root() => programs,
            missing => {
                skip(&missing.err().unwrap_or_else(|| "a Kubernetes cluster needs root".to_owned()));
                return None;
            }
        };
        let network = expect(Network::create(), "a bridge");
        if let Err(error) = Groups::create(network.gateway()) {
            skip(&format!("no control groups for CPU and memory: {error}"));
            return None;
        }
        let folder = expect(folder("cluster"), "a folder");
        let address = network.gateway();
        let port = free_port(&network);
        let (folder_path, services) = (folder.path().to_owned(), network.services());
        let plane = ControlPlane { programs, folder: folder_path, address, port, services };
        let credentials = expect(Credentials::create(folder.path(), address, network.first_service()), "certificates");
        let kubeconfig = write_kubeconfig(&plane, &credentials, ADMIN);
        let client = client(&kubeconfig).await;
        let etcd = expect(plane.start_etcd(), "etcd");
        let mut cluster = Self {
            daemons: vec![etcd],
            api_server: None,
            plane,
            credentials,
            client,
            network: Arc::new(network),
            folder,
        };
        cluster.start_api_server().await;
        let manager = expect(cluster.plane.start_controller_manager(&kubeconfig), "kube-controller-manager");
        let scheduler = expect(cluster.plane.start_scheduler(&kubeconfig), "kube-scheduler");
        cluster.daemons.splice(0..0, [scheduler, manager]);
        cluster.wait_for_default_account().await;
        Some(cluster)
    }

    /// Returns a client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the URL of the API server.
    pub fn url(&self) -> String {
        self.plane.url()
    }

    /// Writes a kubeconfig with the token of a user.
    ///
    /// `admin` may do everything, `agent` and `other` nothing until a test gives them a role.
    ///
    /// # Panics
    /// If there is no such user.
    pub fn kubeconfig_for(&self, user: &str) -> PathBuf {
        write_kubeconfig(&self.plane, &self.credentials, user)
    }

    /// Writes a kubeconfig with any token, such as one of a service account.
    ///
    /// # Panics
    /// If the file can't be written.
    pub fn kubeconfig_with_token(&self, token: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{}.kubeconfig", uuid::Uuid::new_v4().simple()));
        write(&path, &self.credentials.kubeconfig(&self.url(), "token", token));
        path
    }

    /// Kills the API server, as a crash would. Pods keep running.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server at the same address again, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn start_api_server(&mut self) {
        self.api_server = None;
        self.api_server = Some(expect(self.plane.start_api_server(), "kube-apiserver"));
        let begun = Instant::now();
        while let Err(error) = self.is_ready().await {
            let failures = self.daemons.iter_mut().chain(&mut self.api_server).filter_map(Daemon::failure);
            let failures: Vec<_> = failures.collect();
            assert!(failures.is_empty(), "the control plane has exited: {failures:?}");
            assert!(begun.elapsed() < PATIENCE, "the API server is not ready: {error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the folder with the logs of the control plane.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder with the programs of control plane and nodes.
    pub(crate) fn programs(&self) -> &Path {
        &self.plane.programs
    }

    /// Returns the bridge of the nodes and Pods.
    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    async fn is_ready(&self) -> kube::Result<()> {
        let request = hyper::Request::get("/readyz").body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await.map(drop)
    }

    /// Waits for the account without which no Pod can be created.
    async fn wait_for_default_account(&mut self) {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), "default");
        let begun = Instant::now();
        while !matches!(accounts.get_opt("default").await, Ok(Some(_))) {
            let failures: Vec<_> = self.daemons.iter_mut().filter_map(Daemon::failure).collect();
            assert!(failures.is_empty(), "the control plane has exited: {failures:?}");
            assert!(begun.elapsed() < PATIENCE, "the controller manager creates no service account");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Finds a port for the API server.
///
/// The address is of this cluster alone, and the port is below those that the kernel gives to outgoing connections: it
/// stays free while the API server is stopped.
fn free_port(network: &Network) -> u16 {
    let mut ports = 6443..u16::MAX;
    let is_free = |port: &u16| TcpListener::bind((network.gateway(), *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

fn write_kubeconfig(plane: &ControlPlane, credentials: &Credentials, user: &str) -> PathBuf {
    let Some(token) = credentials.token(user) else { panic!("the cluster has no user {user}") };
    let path = plane.folder.join(format!("{user}.kubeconfig"));
    write(&path, &credentials.kubeconfig(&plane.url(), user, token));
    path
}

fn write(path: &Path, content: &str) {
    expect(fs::write(path, content), "a file");
}

async fn client(kubeconfig: &Path) -> Client {
    // Several providers may be linked; then there is no default. Another test of this process may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = expect(Kubeconfig::read_from(kubeconfig), "a kubeconfig");
    let config = expect(Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await, "a configuration");
    expect(Client::try_from(config), "a client")
}

/// Unwraps what only a broken machine fails to do.
fn expect<T, E: Display>(result: Result<T, E>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}
