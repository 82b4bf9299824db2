//! Whether this machine can do a job: it has the size and the target. Whatever can't be done is a sentence.

use std::sync::Arc;

use crate::host::machine;
use crate::run::execute::Workbench;
use crate::sandbox::cores;
use crate::target::{self, Manifest};
use crate::wire::job::Job;

/// Whether the machine has what the job's size asks for.
pub fn check_size(job: &Job) -> Result<(), String> {
    let size = &job.size;
    let (cores, memory) = (cores::allowed().len(), machine::memory_bytes());
    if !(size.vcpus > 0.0 && size.vcpus <= cores as f64) {
        return Err(format!("this machine can't give {} vCPUs for the size {}: it has {cores}", size.vcpus, size.name));
    }
    if size.memory_bytes == 0 || size.memory_bytes > memory {
        let (wanted, has) = (size.memory_bytes >> 20, memory >> 20);
        return Err(format!(
            "this machine can't give {wanted} MiB of memory for the size {}: it has {has} MiB",
            size.name
        ));
    }
    Ok(())
}

/// The manifest of the job's target, as it is now.
pub fn find_target(name: &str, bench: &Workbench) -> Result<Manifest, String> {
    let (manifests, errors) = target::manifest::load(&bench.targets);
    manifests.into_iter().find(|manifest| manifest.name == name).ok_or_else(|| {
        let broken: Vec<String> = errors.iter().map(|error| format!("; {error}")).collect();
        format!("this agent has no target {name:?} in {}{}", bench.targets.display(), broken.concat())
    })
}

/// SHA-256 in hex of the target's program. Reading a large program takes a moment, which the runtime's threads shall
/// not be kept for.
pub async fn fingerprint(manifest: &Manifest, bench: &Workbench) -> Result<String, String> {
    let (copy, fingerprints) = (manifest.clone(), Arc::clone(&bench.fingerprints));
    let computed = tokio::task::spawn_blocking(move || copy.fingerprint(&fingerprints)).await;
    let computed = computed.map_err(|error| format!("the fingerprint was lost: {error}"))?;
    computed.map_err(|reason| format!("target {}: {reason}", manifest.name))
}
