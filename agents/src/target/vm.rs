//! The target kind `vm`: a virtual machine, started by a launcher of the agent's owner.
//!
//! The launcher and the monitor that it starts run in the target's group. They limit nothing: the guest has the cores
//! and the memory of the machine size, and proves it with a line on its console.

mod proof;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use proof::Proof;
use sha2::{Digest, Sha256};

use super::fingerprint::Fingerprints;
use super::manifest::{MEMORY_MIB, Manifest, Program, VCPUS};
use super::process::Started;
use super::running::{Ended, Serving};
use crate::host::environment::Facts;
use crate::host::process_snapshot::Snapshot;
use crate::host::procfs;
use crate::run::failure::Failure;
use crate::sandbox::{Group, Watch};
use crate::wire::job::{Size, hex};
use crate::wire::outcome::{Cause, Enforced, Mechanism};

/// How long the first try of a request may take: a port of a virtual machine accepts connections before the guest
/// listens, and forgets them.
const FIRST_TRY: Duration = Duration::from_millis(500);

/// A virtual machine, before it is started, while it runs, or after it has ended.
#[derive(Debug)]
pub struct Guest {
    started: Started,
    size: Size,
}

impl Guest {
    /// Prepares a virtual machine to be started. Fails with a sentence if it can't have this size.
    pub fn new(program: Program, group: Group, cores: Vec<usize>, home: PathBuf, size: Size) -> Result<Self, String> {
        if size.vcpus.fract() != 0.0 {
            return Err(format!(
                "the size {} has {} vCPUs, but a virtual machine needs whole ones",
                size.name, size.vcpus
            ));
        }
        let program = program.sized(&size);
        Ok(Self { started: Started::new(program, group, cores, home).retried(FIRST_TRY), size })
    }

    /// Starts it, waits until it serves, and checks the guest's size. It can be stopped and its console read even if
    /// this fails or is cancelled.
    pub async fn start(&mut self, manifest: &Manifest, address: IpAddr) -> Result<Serving, Failure> {
        let serving = match self.started.start(manifest, address).await {
            Ok(serving) => serving,
            Err(failure) => return Err(self.explained(failure).await),
        };
        let proof = Proof::find(&self.started.log().await);
        if let Some(proof) = &proof {
            proof.fits(&self.size).map_err(Failure::by(Cause::TargetNotReady))?;
        }
        let mechanism = if proof.is_some() { Mechanism::Guest } else { Mechanism::None };
        let is_emulated = !self.watch().processes().into_iter().any(procfs::has_kvm);
        let facts = facts(proof.as_ref(), is_emulated);
        let enforced = Some(Enforced { cpu: mechanism, memory: mechanism });
        Ok(Serving { enforced, emulated: Some(is_emulated), facts, ..serving })
    }

    /// Waits until the launcher has exited; forever if it was not started.
    pub async fn wait(&mut self) {
        self.started.wait().await;
    }

    /// Whether it was started and the launcher has exited.
    pub fn has_ended(&mut self) -> bool {
        self.started.has_ended()
    }

    /// Describes why it exited while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let report = self.started.exit_report(when).await;
        self.explained(report).await
    }

    /// Adds why the guest's kernel panicked, if it did: the end of its console is a stack.
    async fn explained(&mut self, Failure { reason, cause }: Failure) -> Failure {
        let log = self.started.log().await;
        let panic = log.lines().find_map(|line| Some(line[line.find("Kernel panic")?..].trim().to_owned()));
        let reason = panic.map_or(reason.clone(), |panic| format!("{reason}; in the guest: {panic}"));
        Failure { reason, cause }
    }

    /// Returns a handle to sample the CPU time, memory and processes that the virtual machine takes from its host.
    pub fn watch(&self) -> Watch {
        self.started.watch()
    }

    /// Returns a snapshot of its processes.
    pub fn processes(&self) -> Snapshot {
        self.started.processes()
    }

    /// Stops it, killing it after `grace`, and removes its group.
    pub async fn stop(self, grace: Duration) -> Ended {
        self.started.stop(grace).await
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

impl Program {
    /// Returns the launcher with the placeholders of a size replaced.
    fn sized(self, size: &Size) -> Self {
        let (vcpus, memory) = (size.vcpus.to_string(), (size.memory_bytes >> 20).to_string());
        let fill = |text: String| text.replace(VCPUS, &vcpus).replace(MEMORY_MIB, &memory);
        let env = self.env.into_iter().map(|(name, value)| (name, fill(value))).collect();
        Self { command: self.command.into_iter().map(fill).collect(), env, ..self }
    }

    /// Returns a digest of the launcher and of the files that its command names, such as a kernel and a disk.
    pub(super) fn fingerprint_with_files(&self, fingerprints: &Fingerprints) -> Result<String, String> {
        let mut all = Sha256::new();
        all.update(self.fingerprint(fingerprints)?);
        let words = self.command.iter().skip(1).flat_map(|word| word.split([',', '=']));
        for file in words.map(|word| self.folder.join(word)).filter(|path| path.is_file()) {
            let sha256 = fingerprints.compute(&file);
            all.update(sha256.map_err(|error| format!("vm.command: can't read {}: {error}", file.display()))?);
        }
        Ok(hex(&all.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::super::manifest::Sandbox;
    use super::*;

    #[test]
    fn a_changed_disk_is_another_target() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("disk.img", "1"), ("vmlinuz", "k")] {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let command = ["sh", "-kernel", "vmlinuz", "-drive", "file=disk.img,if=virtio", "-m", "{memory_mib}"];
        let program = Program {
            command: command.map(str::to_owned).to_vec(),
            env: BTreeMap::new(),
            sandbox: Sandbox::default(),
            folder: folder.path().to_owned(),
        };
        let digest = || program.fingerprint_with_files(&Fingerprints::default()).expect("a digest");
        let first = digest();
        assert_eq!((first.len(), digest()), (64, first.clone()));
        fs::write(folder.path().join("disk.img"), "22").expect("a file");
        assert_ne!(digest(), first);
    }

    #[test]
    fn a_launcher_gets_the_size() {
        let program = Program {
            command: vec!["run".to_owned(), "-smp={vcpus}".to_owned(), "{memory_mib}M".to_owned()],
            env: BTreeMap::from([("CPUS".to_owned(), "{vcpus}".to_owned())]),
            sandbox: Sandbox::default(),
            folder: "/".into(),
        };
        let sized = program.sized(&Size { name: String::new(), vcpus: 2.0, memory_bytes: 512 << 20 });
        assert_eq!((sized.command[1].as_str(), sized.command[2].as_str()), ("-smp=2", "512M"));
        assert_eq!(sized.env["CPUS"], "2");
    }
}
