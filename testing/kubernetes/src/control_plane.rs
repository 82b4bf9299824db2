//! The programs of a control plane and their options.

use std::{
    env, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::process::{Daemon, command};

/// The version that `scripts/kubernetes.sh` builds.
const VERSION: &str = "v1.36.3";

/// The programs of control plane and nodes that it builds.
const PROGRAMS: [&str; 9] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "bridge",
    "host-local",
];

/// Unreachable Pods are deleted after this time; the default of five minutes is long for a test.
const TOLERATION_S: u32 = 5;

/// Where the programs are, and where one cluster has its files and its API.
#[derive(Debug)]
pub struct ControlPlane {
    pub programs: PathBuf,
    pub folder: PathBuf,
    pub address: Ipv4Addr,
    pub port: u16,
    /// The subnet of its Services.
    pub services: String,
}

impl ControlPlane {
    /// Returns the folder with the programs; otherwise what is missing.
    pub fn find() -> Result<PathBuf, String> {
        let cache = env::var_os("BREWBENCH_KUBERNETES").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/brewbench/kubernetes")));
        let programs = cache.ok_or("no HOME")?.join(VERSION);
        for program in PROGRAMS {
            if !programs.join(program).is_file() {
                return Err(format!("no {program}: make kubernetes"));
            }
        }
        for program in ["busybox", "etcd", "ip", "nsenter", "runc", "setpriv", "unshare"] {
            let folders = env::var_os("PATH").unwrap_or_default();
            if !env::split_paths(&folders).any(|folder| folder.join(program).is_file()) {
                return Err(format!("no {program}: make kubernetes network, with util-linux"));
            }
        }
        Ok(programs)
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.address, self.port)
    }

    /// Starts the database. The address is of this cluster alone, so its usual ports are free.
    pub fn start_etcd(&self) -> io::Result<Daemon> {
        let mut etcd = command("etcd");
        let (clients, peers) = (self.etcd_url(), format!("http://{}:2380", self.address));
        etcd.args(["--name", "test", "--log-level", "warn", "--unsafe-no-fsync"]);
        etcd.args(["--data-dir", &self.file("etcd"), "--initial-cluster", &format!("test={peers}")]);
        etcd.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        etcd.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        // Debian's package sets variables of the service only; those of a developer must not matter here.
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ETCD_")) {
            etcd.env_remove(name);
        }
        self.start("etcd", etcd)
    }

    /// Starts the API server.
    pub fn start_api_server(&self) -> io::Result<Daemon> {
        let mut server = command(self.programs.join("kube-apiserver"));
        let mut set = |name: &str, value: &str| {
            server.arg(format!("--{name}={value}"));
        };
        set("etcd-servers", &self.etcd_url());
        set("bind-address", &self.address.to_string());
        set("advertise-address", &self.address.to_string());
        set("secure-port", &self.port.to_string());
        set("tls-cert-file", &self.file("server.pem"));
        set("tls-private-key-file", &self.file("server.key"));
        set("cert-dir", &self.file("certificates"));
        set("token-auth-file", &self.file("tokens.csv"));
        set("anonymous-auth", "false");
        set("authorization-mode", "RBAC");
        set("service-cluster-ip-range", &self.services);
        set("service-account-issuer", "https://kubernetes.default.svc");
        set("service-account-key-file", &self.file("accounts.pem"));
        set("service-account-signing-key-file", &self.file("accounts.key"));
        set("kubelet-preferred-address-types", "InternalIP");
        set("default-not-ready-toleration-seconds", &TOLERATION_S.to_string());
        set("default-unreachable-toleration-seconds", &TOLERATION_S.to_string());
        self.start("kube-apiserver", server)
    }

    /// Starts the controller manager. It notices the loss of a node within seconds.
    pub fn start_controller_manager(&self, kubeconfig: &Path) -> io::Result<Daemon> {
        let mut manager = command(self.programs.join("kube-controller-manager"));
        let mut set = |name: &str, value: &str| {
            manager.arg(format!("--{name}={value}"));
        };
        set("kubeconfig", &kubeconfig.display().to_string());
        set("leader-elect", "false");
        set("secure-port", "0");
        set("controllers", "*,-nodeipam,-service-lb-controller");
        set("service-account-private-key-file", &self.file("accounts.key"));
        set("root-ca-file", &self.file("ca.pem"));
        set("node-monitor-period", "1s");
        set("node-monitor-grace-period", "8s");
        set("kube-api-qps", "100");
        set("kube-api-burst", "200");
        self.start("kube-controller-manager", manager)
    }

    /// Starts the scheduler.
    pub fn start_scheduler(&self, kubeconfig: &Path) -> io::Result<Daemon> {
        let mut scheduler = command(self.programs.join("kube-scheduler"));
        let mut set = |name: &str, value: &str| {
            scheduler.arg(format!("--{name}={value}"));
        };
        set("kubeconfig", &kubeconfig.display().to_string());
        set("leader-elect", "false");
        set("secure-port", "0");
        self.start("kube-scheduler", scheduler)
    }

    fn start(&self, name: &str, command: Command) -> io::Result<Daemon> {
        Daemon::start(command, &self.folder.join(format!("{name}.log")))
    }

    fn etcd_url(&self) -> String {
        format!("http://{}:2379", self.address)
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}
