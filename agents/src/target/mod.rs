//! Targets: found in manifests, started, checked for readiness. The rest of the agent uses a [`Running`]; how a target
//! is started, watched, identified and stopped depends on its kind: [`process`], [`container`], [`vm`], [`url`] or
//! [`kubernetes`].

mod answer;
pub mod container;
mod fingerprint;
mod identity;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(not(feature = "kubernetes"))]
pub(crate) use crate::no_kubernetes as kubernetes;
pub mod manifest;
mod offered;
pub mod process;
mod ready;
mod running;
mod runtime;
mod serving;
pub mod url;
pub mod vm;

use std::path::Path;

pub use answer::ReferenceResponse;
pub use container::{Containers, ImageBuild};
pub use fingerprint::Fingerprints;
pub(crate) use identity::{Identified, identify, neighbours};
pub use kubernetes::{Cluster, Replicas};
pub use manifest::{Manifest, ManifestError, Provided};
pub use offered::Offered;
pub(crate) use ready::{Server, client as direct_client, server_of};
pub use running::Running;
pub use serving::{Ended, Serving};
pub use url::Scraper;
pub use vm::Monitor;

use brewbench_wire::messages::TargetOffer;
use brewbench_wire::offer::{MAX_TARGETS, target_fault};
use brewbench_wire::profile::ProfileSource;

use crate::profile::offer::offer;

/// Version of a target that is built once a run names a revision.
const SOURCE: &str = "from source";

/// Version of a target whose runs name the tag of its image.
const NAMED: &str = "any tag";

/// Why an agent does not offer a Pod.
const NO_CLUSTER: &str = "the agent uses no cluster: start it with --kubernetes";

/// Returns the targets that an agent can start from a folder of manifests, and the errors of the others. `profilers`
/// may attach to them.
pub fn offers(
    folder: &Path,
    fingerprints: &Fingerprints,
    containers: &Containers,
    has_cluster: bool,
    profilers: &[ProfileSource],
) -> (Vec<TargetOffer>, Vec<ManifestError>) {
    let (manifests, mut errors) = manifest::load(folder);
    let mut offers = Vec::new();
    for manifest in &manifests {
        let possible = match &manifest.provided {
            Provided::Container(_) => containers.socket().map(drop).map_err(ToString::to_string),
            Provided::Kubernetes(_) if !has_cluster => Err(NO_CLUSTER.to_owned()),
            Provided::Process(_) | Provided::Vm(_) | Provided::Url(_) | Provided::Kubernetes(_) => Ok(()),
        };
        match possible.and_then(|()| identity::identify(manifest, &manifests, fingerprints)) {
            Ok(Identified { identity, .. }) => {
                let anywhere = match &manifest.provided {
                    Provided::Process(program) => program.listens_anywhere(),
                    Provided::Vm(machine) => machine.listens_anywhere(),
                    Provided::Container(container) => container.listens_anywhere(),
                    // Only its own agent may reach it, as the manifest says.
                    Provided::Url(_) | Provided::Kubernetes(_) => false,
                };
                let compiles_at_run_time = runtime::compiles_at_run_time(&manifest.provided);
                let Manifest { name, version, description, profile, source_build, .. } = manifest.clone();
                let profile = Some(offer(profile.as_ref(), profilers));
                let (version, revisions) = match (source_build, &manifest.provided) {
                    (Some(built), _) => (SOURCE.to_owned(), built.source.refs),
                    (None, Provided::Container(container)) if container.has_versions() => {
                        (NAMED.to_owned(), vec!["*".to_owned()])
                    }
                    (None, _) => (version, Vec::new()),
                };
                let offer = TargetOffer {
                    name,
                    version,
                    description,
                    identity,
                    anywhere,
                    profile,
                    compiles_at_run_time,
                    revisions,
                };
                match target_fault(&offer) {
                    None => offers.push(offer),
                    Some(message) => errors.push(ManifestError { file: folder.join(offer.name), message }),
                }
            }
            Err(message) => errors.push(ManifestError { file: folder.join(&manifest.name), message }),
        }
    }
    for offer in offers.drain(offers.len().min(MAX_TARGETS)..) {
        let message = format!("an agent can offer at most {MAX_TARGETS} targets");
        errors.push(ManifestError { file: folder.join(offer.name), message });
    }
    (offers, errors)
}
