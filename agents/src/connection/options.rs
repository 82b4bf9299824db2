//! What an agent is started with.

use std::net::IpAddr;
use std::path::PathBuf;

use brewbench_io::client::Trust;
use brewbench_wire::profile::ProfileSource;

use super::session::Accepts;
use crate::engine::native::Native;
use crate::host::idle_wait::IdleWait;
use crate::run::address_policy::AddressPolicy;

/// Options of an agent.
#[derive(Clone)]
pub struct Options {
    /// The server's address, http or https.
    pub server: reqwest::Url,
    /// What the agent trusts when it connects.
    pub trust: Trust,
    /// The key created for it on the server; `None` if the state folder has one from an earlier start.
    pub key: Option<String>,
    /// Folder of the key and the spool, and of the runs if their programs have no users of their own.
    pub state: PathBuf,
    /// Folder of the manifests.
    pub targets: PathBuf,
    /// k6, if it is not in `PATH`.
    pub engine: Option<PathBuf>,
    /// The native load generator; `None` in programs that can't execute it.
    pub native: Option<Native>,
    /// Which scripts it runs.
    pub accepts: Accepts,
    /// Mount point of the control groups.
    pub cgroups: PathBuf,
    /// When the machine is idle enough for a measurement.
    pub idle_wait: IdleWait,
    /// Sysfs mount point, [`crate::host::cpu_tuning::SYSFS`], if CPUs are tuned during runs.
    pub cpu_tuning: Option<PathBuf>,
    /// Address on which targets accept load from other machines; `None` if they don't.
    pub load_address: Option<IpAddr>,
    /// Which targets on other machines it may load.
    pub reach: AddressPolicy,
    /// Socket of the container engine; `None` for the only one on this machine.
    pub container_engine: Option<PathBuf>,
    /// Which profilers may attach to targets.
    pub profilers: Vec<ProfileSource>,
    /// Whether it runs targets in a Kubernetes cluster.
    pub kubernetes: bool,
    /// The namespace to use there; `None` for that of its service account or context.
    pub namespace: Option<String>,
    /// The file that allows load from Pods of the cluster; `None` if that is not allowed.
    pub generators: Option<PathBuf>,
}

/// Mount point of control groups on common Linux distributions.
pub const CGROUPS: &str = "/sys/fs/cgroup";
