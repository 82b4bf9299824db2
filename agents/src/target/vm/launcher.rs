//! A virtual machine that a launcher of its owner starts.

use brewbench_wire::hex;
use brewbench_wire::job::Size;
use brewbench_wire::manifest::{MEMORY_MIB, VCPUS};
use sha2::{Digest, Sha256};

use crate::target::fingerprint::Fingerprints;
use crate::target::manifest::Program;

impl Program {
    /// Returns the launcher with the placeholders of a size replaced.
    pub(super) fn sized(self, size: &Size) -> Self {
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

    use brewbench_wire::manifest::Sandbox;

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
        let sized = program.sized(&Size { name: String::new(), vcpus: 2.0, memory_bytes: 512 << 20, replicas: 1 });
        assert_eq!((sized.command[1].as_str(), sized.command[2].as_str()), ("-smp=2", "512M"));
        assert_eq!(sized.env["CPUS"], "2");
    }
}
