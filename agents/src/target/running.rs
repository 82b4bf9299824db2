//! A target, from preparation to removal, whatever its kind.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brewbench_wire::manifest::{Profile, Remote};
use brewbench_wire::outcome::Cause;

use super::container::{ContainerTarget, Prepared};
use super::fingerprint::Fingerprints;
use super::identity::{Identified, identify, neighbours};
use super::kubernetes::{self, PodTarget};
use super::manifest::{Manifest, Program};
use super::process::ProcessTarget;
use super::serving::{Ended, Serving};
use super::url::UrlTarget;
use super::vm::VmTarget;
use crate::host::process_snapshot::Snapshot;
use crate::run::failure::Failure;
use crate::sandbox::Group;
use crate::series::sampler::Source;

/// A target, before it is started, while it runs, or after it has ended.
#[derive(Debug)]
pub struct Running {
    manifest: Manifest,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Process(Box<ProcessTarget>),
    Container(Box<ContainerTarget>),
    Vm(Box<VmTarget>),
    Url(UrlTarget),
    Kubernetes(Box<PodTarget>),
}

impl Running {
    /// Prepares a program to be started in its group.
    pub fn process(manifest: Manifest, program: Program, group: Group, cores: Vec<usize>, home: PathBuf) -> Self {
        Self { manifest, kind: Kind::Process(Box::new(ProcessTarget::new(program, group, cores, home))) }
    }

    /// Prepares a container to be started.
    pub fn container(manifest: Manifest, prepared: Prepared) -> Self {
        Self { manifest, kind: Kind::Container(Box::new(ContainerTarget::new(prepared))) }
    }

    /// Prepares a virtual machine to be started.
    pub fn vm(manifest: Manifest, guest: VmTarget) -> Self {
        Self { manifest, kind: Kind::Vm(Box::new(guest)) }
    }

    /// Prepares to use a server that already runs.
    pub fn url(manifest: Manifest, remote: Remote) -> Self {
        Self { manifest, kind: Kind::Url(UrlTarget::new(remote)) }
    }

    /// Prepares a Pod to be created.
    pub fn kubernetes(manifest: Manifest, prepared: kubernetes::Prepared) -> Self {
        Self { manifest, kind: Kind::Kubernetes(Box::new(PodTarget::new(prepared))) }
    }

    /// Returns what identifies it, and facts about its files. Many files take a moment to read, so this runs outside
    /// the runtime's threads.
    pub async fn identity(&self, fingerprints: &Arc<Fingerprints>) -> Result<Identified, Failure> {
        let (manifest, fingerprints) = (self.manifest.clone(), Arc::clone(fingerprints));
        let identify = move || {
            fingerprints.forget_outputs();
            identify(&manifest, &neighbours(&manifest.provided), &fingerprints)
        };
        let computed = tokio::task::spawn_blocking(identify).await;
        let computed = computed.map_err(|error| format!("failed to compute the fingerprint: {error}")).flatten();
        computed.map_err(Failure::by(Cause::Other)).map_err(|failure| self.with_target_name(failure))
    }

    /// Starts it on an address of this machine and waits until it serves. It can be stopped and its log read even if
    /// this fails or is cancelled. `progress` is called with a sentence when a step takes long.
    pub async fn start(&mut self, address: IpAddr, progress: impl Fn(String)) -> Result<Serving, Failure> {
        let started = match &mut self.kind {
            Kind::Process(started) => started.start(&self.manifest, address).await,
            Kind::Container(contained) => contained.start(&self.manifest, address, progress).await,
            Kind::Vm(guest) => guest.start(&self.manifest, address).await,
            Kind::Url(reached) => reached.start(&self.manifest).await.map_err(Failure::by(Cause::TargetNotReady)),
            Kind::Kubernetes(scheduled) => Box::pin(scheduled.start(&self.manifest, progress)).await,
        };
        started.map_err(|failure| self.with_target_name(failure))
    }

    /// Returns how its manifest lets it be profiled.
    pub fn profile(&self) -> Option<&Profile> {
        self.manifest.profile.as_ref()
    }

    /// Waits until it has exited; forever if it was not started.
    pub async fn wait(&mut self) {
        match &mut self.kind {
            Kind::Process(started) => started.wait().await,
            Kind::Container(contained) => contained.wait().await,
            Kind::Vm(guest) => guest.wait().await,
            Kind::Url(_) => std::future::pending().await,
            Kind::Kubernetes(scheduled) => scheduled.wait().await,
        }
    }

    /// Whether it was started and has exited.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.kind {
            Kind::Process(started) => started.has_ended(),
            Kind::Container(contained) => contained.has_ended(),
            Kind::Vm(guest) => guest.has_ended(),
            Kind::Url(_) => false,
            Kind::Kubernetes(scheduled) => scheduled.has_ended(),
        }
    }

    /// Describes why it exited while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let Failure { reason, cause } = match &mut self.kind {
            Kind::Process(started) => started.exit_report(when).await,
            Kind::Container(contained) => contained.exit_report(when).await,
            Kind::Vm(guest) => guest.exit_report(when).await,
            Kind::Url(_) => Failure::by(Cause::Other)("was not started".to_owned()),
            Kind::Kubernetes(scheduled) => Box::pin(scheduled.exit_report(when)).await,
        };
        Failure { reason: format!("target {} {reason}", self.manifest.name), cause }
    }

    /// Returns a handle to sample its CPU time, memory and processes; `None` if nothing shows them.
    pub fn source(&self) -> Option<Source> {
        match &self.kind {
            Kind::Process(started) => Some(Source::Group(Box::new(started.watch()))),
            Kind::Container(contained) => contained.watch().map(|watch| Source::Group(Box::new(watch))),
            Kind::Vm(guest) => Some(guest.source()),
            Kind::Url(reached) => reached.metrics().map(Source::Metrics),
            Kind::Kubernetes(scheduled) => scheduled.replicas().map(Source::Pods),
        }
    }

    /// Returns a snapshot of its processes.
    pub fn processes(&self) -> Snapshot {
        match &self.kind {
            Kind::Process(started) => started.processes(),
            Kind::Container(contained) => contained.processes(),
            Kind::Vm(guest) => guest.processes(),
            Kind::Url(reached) => reached.metrics().map(|metrics| metrics.processes()).unwrap_or_default(),
            Kind::Kubernetes(_) => Snapshot::default(),
        }
    }

    /// Stops it, killing it after `grace`, and removes its group. A server that was running already keeps running.
    pub async fn stop(self, grace: Duration) -> Ended {
        match self.kind {
            Kind::Process(started) => started.stop(grace).await,
            Kind::Container(contained) => contained.stop(grace).await,
            Kind::Vm(guest) => guest.stop(grace).await,
            Kind::Url(_) => Ended::default(),
            Kind::Kubernetes(scheduled) => Box::pin(scheduled.stop()).await,
        }
    }

    fn with_target_name(&self, Failure { reason, cause }: Failure) -> Failure {
        Failure { reason: format!("target {}: {reason}", self.manifest.name), cause }
    }
}
