//! What identifies a target: everything that decides how it behaves, as far as the agent can read it.
//!
//! Two runs are repetitions only if they measured the same code. So the identity of a program covers its file, its
//! interpreter, the files and folders that its command names, its variables, and the folder from which an interpreter
//! loads modules. Files that other manifests of the folder name belong to other targets: a change of one target must
//! not change the others. What can't be read makes the identity partial, and the run says so.

mod folder;
pub(super) mod output;
mod parts;
mod program;
mod python;
mod shell;
mod tree;

use brewbench_wire::manifest::Container;
use brewbench_wire::target::Identity;
use parts::Parts;

use super::fingerprint::Fingerprints;
use super::manifest::{self, Machine, Manifest, Provided};
use crate::host::environment::Facts;

/// What identifies a target, and facts about the files that it covers.
#[derive(Debug)]
pub struct Identified {
    /// What identifies it.
    pub identity: Identity,
    /// The digests of its most important files, by name.
    pub facts: Facts,
}

/// Returns what identifies a target, as far as it is known without starting it. `all` are the manifests of its folder.
/// The error is a sentence.
pub fn identify(manifest: &Manifest, all: &[Manifest], fingerprints: &Fingerprints) -> Result<Identified, String> {
    let mut parts = Parts::new(fingerprints);
    let identity = match &manifest.provided {
        Provided::Process(program) if let Some(built) = &manifest.source_build => {
            // No commit is built yet: how it is built identifies it until then.
            parts.text("source", &format!("{:?} {:?}", built.source, built.build));
            parts.settings(&program.command, &program.env);
            let code = parts.code();
            Identity::Process { sha256: code.sha256, code: None }
        }
        Provided::Process(program) => {
            let sha256 = program.fingerprint(fingerprints)?;
            program::read(&mut parts, program, manifest, all);
            Identity::Process { sha256, code: Some(parts.code()) }
        }
        Provided::Vm(machine) => {
            let sha256 = machine.fingerprint(fingerprints)?;
            parts.text("files", &sha256);
            if let Machine::Launcher(program) = machine {
                parts.settings(&program.command, &program.env);
            }
            Identity::Vm { sha256, code: Some(parts.code()) }
        }
        Provided::Url(remote) => Identity::Url { base: remote.base.clone() },
        Provided::Container(container) => {
            let has_settings = read_container(&mut parts, container);
            let settings = has_settings.then(|| parts.code());
            Identity::Container { image: container.image.clone(), id: None, settings }
        }
        Provided::Kubernetes(workload) => {
            parts.text("template", &workload.template.to_string());
            Identity::Kubernetes { image: workload.image.clone(), id: None, settings: Some(parts.code()) }
        }
    };
    Ok(Identified { facts: parts.facts(identity.code()), identity })
}

/// Reads the manifests of a target's folder, to identify one of them.
pub fn neighbours(provided: &Provided) -> Vec<Manifest> {
    match provided {
        Provided::Process(program) => manifest::load(&program.folder).0,
        Provided::Container(_) | Provided::Vm(_) | Provided::Url(_) | Provided::Kubernetes(_) => Vec::new(),
    }
}

/// Adds what a manifest changes of an image; returns whether it changes anything.
fn read_container(parts: &mut Parts<'_>, container: &Container) -> bool {
    let Container { image: _, command, port: _, network: _, pull: _, seccomp, user, mounts, env } = container;
    parts.settings(command, env);
    parts.text("user", user.as_deref().unwrap_or_default());
    parts.text("seccomp", seccomp.as_deref().unwrap_or_default());
    for mount in mounts {
        let place = format!("mount {}", mount.target);
        if mount.source.is_dir() {
            parts.folder(&place, &mount.source, &|_| false);
        } else {
            parts.file(&place, &mount.source);
        }
    }
    !(command.is_empty() && env.is_empty() && user.is_none() && seccomp.is_none() && mounts.is_empty())
}

#[cfg(test)]
mod tests;
