//! Targets: found in manifests, started in their group, checked for readiness. The rest of the agent uses a
//! [`Running`]; how a target is started and identified depends on its kind, which is [`process`] for all so far.

mod answer;
mod fingerprint;
pub mod manifest;
pub mod process;
mod ready;
mod running;
mod watch;

use std::path::Path;

pub use answer::Known;
pub use fingerprint::Fingerprints;
pub use manifest::{Manifest, ManifestError, Sandbox};
pub(crate) use ready::{Server, client as direct_client, server_of};
pub use running::{Ended, Running, Serving};
pub use watch::watch_folder;

use crate::wire::messages::TargetOffer;
use crate::wire::offer::{MOST_TARGETS, target_fault};

/// Returns the targets that an agent can start from a folder of manifests, and the errors of the others.
pub fn offers(folder: &Path, fingerprints: &Fingerprints) -> (Vec<TargetOffer>, Vec<ManifestError>) {
    let (manifests, mut errors) = manifest::load(folder);
    let mut offers = Vec::new();
    for manifest in manifests {
        match manifest.fingerprint(fingerprints) {
            Ok(sha256) => {
                let anywhere = manifest.listens_anywhere();
                let Manifest { name, version, description, .. } = manifest;
                let offer = TargetOffer { name, version, description, sha256, anywhere };
                match target_fault(&offer) {
                    None => offers.push(offer),
                    Some(message) => errors.push(ManifestError { file: folder.join(offer.name), message }),
                }
            }
            Err(message) => errors.push(ManifestError { file: folder.join(manifest.name), message }),
        }
    }
    for offer in offers.drain(offers.len().min(MOST_TARGETS)..) {
        let message = format!("an agent can offer at most {MOST_TARGETS} targets");
        errors.push(ManifestError { file: folder.join(offer.name), message });
    }
    (offers, errors)
}
