//! What an agent needs for its runs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use brewbench_wire::profile::ProfileSource;
use tokio::sync::Mutex;

use crate::engine::Engines;
use crate::generators::Generators;
use crate::host::cpu_tuning::CpuTuning;
use crate::host::environment::Environment;
use crate::host::idle_wait::{IdleWait, Patience};
use crate::run::address_policy::AddressPolicy;
use crate::sandbox::Sandbox;
use crate::series::live::Live;
use crate::target::{Cluster, Containers, Fingerprints};

/// What an agent needs for its runs; the same for all of them.
#[derive(Debug)]
pub struct RunContext {
    /// Enforces machine sizes. It knows the agent's name, which must be unique on the machine.
    pub sandbox: Sandbox,
    /// Generate the load.
    pub engines: Engines,
    /// Folder of the manifests.
    pub targets: PathBuf,
    /// Existing folder in which each run creates its own, `run-…`.
    pub work_folder: PathBuf,
    /// Folder of the targets that are built here.
    pub builds: PathBuf,
    /// Held by the only one who may change that folder: the two targets of a duet are prepared at the same time.
    pub building: Arc<Mutex<()>>,
    /// Fingerprints of the targets' programs.
    pub fingerprints: Arc<Fingerprints>,
    /// Starts containers.
    pub containers: Containers,
    /// Runs Pods, if the agent uses a cluster.
    pub cluster: Option<Cluster>,
    /// Generates load in that cluster, if its owner allows it.
    pub generators: Option<Generators>,
    /// Facts about this machine.
    pub environment: Environment,
    /// When the machine is idle enough for a measurement.
    pub idle_wait: IdleWait,
    /// In which experiment it did not become so.
    pub patience: Patience,
    /// Pins the CPU frequency, if enabled.
    pub cpu_tuning: Option<CpuTuning>,
    /// Live series of the current run.
    pub live: Live,
    /// Address on which targets accept load from other machines, if allowed.
    pub load_address: Option<IpAddr>,
    /// Which targets on other machines it may load.
    pub reach: AddressPolicy,
    /// Addresses that k6 may reach besides its target where the kernel confines it; some tests need one.
    pub also_reachable: Vec<IpAddr>,
    /// Which profilers may attach to targets.
    pub profilers: Vec<ProfileSource>,
}

impl RunContext {
    /// Uses the default idle wait, no containers, no CPU tuning, no profilers and no live series. Both folders must
    /// exist.
    pub fn new(sandbox: Sandbox, engines: impl Into<Engines>, targets: PathBuf, work_folder: PathBuf) -> Self {
        Self {
            sandbox,
            engines: engines.into(),
            targets,
            builds: work_folder.with_extension("builds"),
            building: Arc::default(),
            work_folder,
            fingerprints: Arc::default(),
            containers: Containers::none(),
            cluster: None,
            generators: None,
            environment: Environment::new("/"),
            idle_wait: IdleWait::default(),
            patience: Patience::default(),
            cpu_tuning: None,
            live: Live::default(),
            load_address: None,
            reach: AddressPolicy::default(),
            also_reachable: Vec::new(),
            profilers: Vec::new(),
        }
    }
}
