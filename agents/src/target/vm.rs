//! The target kind `vm`: a virtual machine, started by a launcher of its owner or by QEMU, which the agent drives. The
//! guest proves its size by a line on its console.

mod kvm;
mod launcher;
mod monitor;
mod proof;
mod qemu;
mod qmp;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use kvm::check as check_kvm;
pub use monitor::Monitor;
use proof::Proof;
use tokio::net::UnixListener;

use brewbench_wire::job::Size;
use brewbench_wire::manifest::Accelerator;
use brewbench_wire::outcome::{Cause, Enforced, Mechanism};

use super::fingerprint::Fingerprints;
use super::manifest::{Machine, Manifest, Qemu};
use super::process::ProcessTarget;
use super::serving::{Ended, Serving};
use crate::host::environment::Facts;
use crate::host::process_snapshot::Snapshot;
use crate::host::procfs;
use crate::run::address_policy::{LoadLimits, check_address};
use crate::run::failure::Failure;
use crate::sandbox::cage::user;
use crate::sandbox::{Group, ProgramRole};
use crate::series::sampler::Source;

/// How long the first try of a request may take: a port of a virtual machine accepts connections before the guest
/// listens, and forgets them.
const FIRST_TRY: Duration = Duration::from_millis(500);

/// A virtual machine, before it is started, while it runs, or after it has ended.
#[derive(Debug)]
pub struct VmTarget {
    started: ProcessTarget,
    size: Size,
    /// `None` for a launcher.
    driven: Option<Driven>,
}

/// A QEMU that the agent drives.
#[derive(Debug)]
struct Driven {
    qemu: Qemu,
    /// Socket of the agent to which QEMU connects.
    control: PathBuf,
    /// The CPUs of the target.
    cores: Vec<usize>,
    /// Once it runs.
    monitor: Option<Arc<Monitor>>,
    /// Whether the guest reports its memory.
    has_memory: bool,
}

impl Machine {
    /// Returns what identifies it. The error is a sentence.
    pub(super) fn fingerprint(&self, fingerprints: &Fingerprints) -> Result<String, String> {
        match self {
            Self::Launcher(program) => program.fingerprint_with_files(fingerprints),
            Self::Qemu(qemu) => qemu.fingerprint(fingerprints),
        }
    }

    /// Whether it can be reached from other machines.
    pub(super) fn listens_anywhere(&self) -> bool {
        match self {
            Self::Launcher(program) => program.listens_anywhere(),
            Self::Qemu(qemu) => qemu.tap.is_none(),
        }
    }

    /// Describes it in a line.
    pub fn describe(&self) -> String {
        match self {
            Self::Launcher(program) => program.command.join(" "),
            Self::Qemu(qemu) => qemu.describe(),
        }
    }
}

impl VmTarget {
    /// Prepares a virtual machine to be started. Fails with a sentence if it can't have this size.
    pub fn new(machine: Machine, group: Group, cores: Vec<usize>, home: PathBuf, size: Size) -> Result<Self, String> {
        if size.vcpus.fract() != 0.0 {
            return Err(format!(
                "the size {} has {} vCPUs, but a virtual machine needs whole ones",
                size.name, size.vcpus
            ));
        }
        let (program, driven) = match machine {
            Machine::Launcher(program) => (program, None),
            Machine::Qemu(qemu) => {
                let control = home.join("control");
                let program = qemu.program(false, &control);
                (program, Some(Driven { qemu, control, cores: cores.clone(), monitor: None, has_memory: false }))
            }
        };
        let elsewhere = driven.as_ref().and_then(Driven::address);
        let started = ProcessTarget::new(program.sized(&size), group, cores, home).retried(FIRST_TRY);
        Ok(Self { started: started.serving_at(elsewhere), size, driven })
    }

    /// Starts it, waits until it serves, and checks the guest's size. It can be stopped and its console read even if
    /// this fails or is cancelled.
    pub async fn start(&mut self, manifest: &Manifest, address: IpAddr) -> Result<Serving, Failure> {
        let serving = match &mut self.driven {
            None => self.started.start(manifest, address).await,
            Some(driven) => driven.start(&mut self.started, &self.size, manifest, address).await,
        };
        let serving = match serving {
            Ok(serving) => serving,
            Err(failure) => return Err(self.explained(failure).await),
        };
        let proof = Proof::find(&self.started.log().await);
        if let Some(proof) = &proof {
            proof.fits(&self.size).map_err(Failure::by(Cause::TargetNotReady))?;
        }
        let mechanism = if proof.is_some() { Mechanism::Guest } else { Mechanism::None };
        let is_emulated = !self.started.watch().processes().into_iter().any(procfs::has_kvm);
        let mut facts = facts(proof.as_ref(), is_emulated);
        facts.extend(self.driven.iter().flat_map(Driven::facts));
        let enforced = Some(Enforced { cpu: mechanism, memory: mechanism });
        let reach = self.driven.as_ref().and_then(Driven::address);
        let reach = reach.map(|guest| LoadLimits { allowed: vec![guest.ip()], redirects: Vec::new() });
        Ok(Serving { enforced, emulated: Some(is_emulated), facts, reach, ..serving })
    }

    /// Waits until the monitor has exited; forever if it was not started.
    pub async fn wait(&mut self) {
        self.started.wait().await;
    }

    /// Whether it was started and the monitor has exited.
    pub fn has_ended(&mut self) -> bool {
        self.started.has_ended()
    }

    /// Describes why it exited while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let report = self.started.exit_report(when).await;
        self.explained(report).await
    }

    /// Adds what the guest did: the monitor's exit status does not say it, and the end of its console is a stack if the
    /// kernel panicked.
    async fn explained(&mut self, Failure { reason, cause }: Failure) -> Failure {
        let log = self.started.log().await;
        let panic = log.lines().find_map(|line| Some(line[line.find("Kernel panic")?..].trim().to_owned()));
        let end = match (&panic, self.driven.as_ref().and_then(|driven| driven.monitor.as_ref())) {
            (None, Some(monitor)) if self.started.has_ended() => monitor.end().await,
            _ => None,
        };
        let reason = match (panic, end) {
            (Some(panic), _) => format!("{reason}; in the guest: {panic}"),
            (None, Some(end)) => format!("{reason}; {end}"),
            (None, None) => reason,
        };
        Failure { reason, cause }
    }

    /// Returns a handle to sample the CPU time and processes that the virtual machine takes from its host, and the
    /// memory that the guest uses, if it reports that.
    pub fn source(&self) -> Source {
        let group = Box::new(self.started.watch());
        match &self.driven {
            Some(Driven { monitor: Some(monitor), has_memory: true, .. }) => {
                Source::Guest(group, Some(Arc::clone(monitor)))
            }
            _ => Source::Guest(group, None),
        }
    }

    /// Returns a snapshot of its processes.
    pub fn processes(&self) -> Snapshot {
        self.started.processes()
    }

    /// Stops it, killing it after `grace`, and removes its group.
    pub async fn stop(self, grace: Duration) -> Ended {
        let mut ended = self.started.stop(grace).await;
        if let (Some(observed), Some(Driven { monitor: Some(monitor), has_memory: true, .. })) =
            (&mut ended.observed, &self.driven)
        {
            observed.peak_memory_bytes = monitor.peak_memory_bytes();
        }
        ended
    }
}

impl Driven {
    /// Returns where the guest serves, if QEMU does not forward a port of this machine.
    fn address(&self) -> Option<SocketAddr> {
        self.qemu.tap.as_ref().map(|tap| SocketAddr::new(tap.address, self.qemu.port))
    }

    /// Starts QEMU and takes control of it.
    async fn start(
        &mut self,
        started: &mut ProcessTarget,
        size: &Size,
        manifest: &Manifest,
        address: IpAddr,
    ) -> Result<Serving, Failure> {
        let other = Failure::by(Cause::Other);
        if let Some(guest) = self.address() {
            check_address(guest.ip()).map_err(other)?;
        }
        started.set_program(self.qemu.program(self.chooses_kvm().await.map_err(other)?, &self.control).sized(size));
        let listener = UnixListener::bind(&self.control)
            .and_then(|listener| user::give(&self.control, ProgramRole::Target).map(|()| listener));
        let listener = listener.map_err(|error| other(format!("can't create {}: {error}", self.control.display())))?;
        let mut met = Err("QEMU did not connect to the agent".to_owned());
        let serving = {
            let mut starting = std::pin::pin!(started.start(manifest, address));
            loop {
                tokio::select! {
                    biased;
                    // It connects once for each attempt to start. If it ends before that, the start says why.
                    accepted = listener.accept() => met = match accepted {
                        Ok((stream, _)) => Monitor::meet(stream, &self.cores).await,
                        Err(error) => Err(format!("QEMU can't connect to the agent: {error}")),
                    },
                    serving = &mut starting => break serving,
                }
            }
        };
        self.monitor = met.as_ref().ok().cloned();
        let (serving, monitor) = (serving?, met.map_err(other)?);
        self.has_memory = monitor.has_memory().await;
        Ok(serving)
    }

    async fn chooses_kvm(&self) -> Result<bool, String> {
        match self.qemu.accelerator {
            Accelerator::Tcg => Ok(false),
            Accelerator::Auto => Ok(check_kvm().await.is_ok()),
            Accelerator::Kvm => match check_kvm().await {
                Ok(()) => Ok(true),
                Err(fault) => Err(format!("vm.accelerator: KVM does not work here: {fault}")),
            },
        }
    }

    fn facts(&self) -> Facts {
        let network = match &self.qemu.tap {
            Some(tap) => format!("virtio on the tap interface {}", tap.interface),
            None => "virtio behind QEMU's user-mode network".to_owned(),
        };
        let memory = if self.has_memory { "guest" } else { "host: the guest has no balloon driver" };
        let monitor = self.monitor.as_ref();
        let known = [
            ("guest.network", Some(network)),
            ("guest.memory_source", Some(memory.to_owned())),
            ("guest.monitor", monitor.map(|monitor| monitor.version.clone())),
            ("guest.vcpu_placement", monitor.map(|monitor| monitor.placement.clone())),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

fn facts(proof: Option<&Proof>, is_emulated: bool) -> Facts {
    let accelerator = if is_emulated { "none: emulated" } else { "kvm" };
    let known = [
        ("guest.accelerator", Some(accelerator.to_owned())),
        ("guest.cpus", proof.map(|proof| proof.cpus.to_string())),
        ("guest.memory_bytes", proof.map(|proof| proof.memory_bytes.to_string())),
        ("guest.kernel", proof.and_then(|proof| proof.kernel.clone())),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
