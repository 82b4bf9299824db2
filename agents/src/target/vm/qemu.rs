//! The command of a QEMU that the agent drives.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use brewbench_wire::hex;
use brewbench_wire::manifest::{HOST, MEMORY_MIB, PORT, Sandbox, VCPUS};
use sha2::{Digest, Sha256};

use crate::host::environment::Facts;
use crate::sandbox::process::find_program;
use crate::target::fingerprint::Fingerprints;
use crate::target::manifest::Program;
use crate::target::manifest::Qemu;

/// The program.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// QEMU's name of the balloon, which reports the guest's memory.
pub const BALLOON: &str = "/machine/peripheral/balloon";

/// Options of every machine. The console is on the standard output; a reset, as after a panic, ends it.
const COMMON: &str = "-machine q35 -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -device virtio-rng-pci -device virtio-balloon-pci,id=balloon";

/// With KVM the guest has the machine's CPU.
const KVM: &str = "-accel kvm -cpu host";

/// Without a limit, the cache of translated code grows to 1 GiB.
const TCG: &str = "-accel tcg,tb-size=64 -cpu max";

/// Start of the kernel's command line: the console is the log, and a panic ends the guest.
const APPEND: &str = "console=ttyS0 panic=-1";

/// How the first bytes of a qcow2 image read.
const QCOW2: &[u8] = b"QFI\xfb";

impl Qemu {
    /// Returns the program, with the placeholders of a launcher. It connects to the agent at `control`.
    pub(super) fn program(&self, has_kvm: bool, control: &Path) -> Program {
        let mut command = vec![PROGRAM.to_owned()];
        let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
        add(&if has_kvm { KVM } else { TCG }.split(' ').collect::<Vec<_>>());
        add(&["-smp", VCPUS, "-m", MEMORY_MIB]);
        add(&COMMON.split_whitespace().collect::<Vec<_>>());
        add(&["-chardev", &format!("socket,id=control,path={}", escaped(control))]);
        add(&["-mon", "chardev=control,mode=control"]);
        let network = match &self.tap {
            Some(tap) => format!("tap,id=net,ifname={},script=no,downscript=no", tap.interface),
            None => format!("user,id=net,restrict=on,hostfwd=tcp:{HOST}:{PORT}-:{}", self.port),
        };
        add(&["-netdev", &network, "-device", "virtio-net-pci,netdev=net"]);
        if let Some(kernel) = &self.kernel {
            let append = format!("{APPEND} {}", self.append);
            add(&["-kernel", &kernel.display().to_string(), "-append", append.trim_end()]);
        }
        if let Some(initrd) = &self.initrd {
            add(&["-initrd", &initrd.display().to_string()]);
        }
        if let Some(disk) = &self.disk {
            // Changes go to a temporary file that ends with QEMU.
            add(&["-drive", &format!("file={},format={},if=virtio,snapshot=on", escaped(disk), format_of(disk))]);
        }
        if let Some(seed) = &self.seed {
            add(&["-drive", &drive_of_seed(seed)]);
        }
        let Sandbox { mut read, mut write } = self.sandbox.clone();
        read.extend(self.files().map(|(_, file)| file.to_owned()));
        write.push(control.to_owned());
        write.extend(has_kvm.then(|| PathBuf::from("/dev/kvm")));
        write.extend(self.tap.as_ref().map(|_| PathBuf::from("/dev/net/tun")));
        Program { command, env: [].into(), sandbox: Sandbox { read, write }, folder: self.folder.clone() }
    }

    /// Returns what it boots: fields and files, or a folder.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let Self { kernel, initrd, disk, seed, .. } = self;
        let files = [("kernel", kernel), ("initrd", initrd), ("disk", disk), ("seed", seed)];
        files.into_iter().filter_map(|(field, file)| Some((field, file.as_deref()?)))
    }

    /// Returns a digest of everything that it boots. The error is a sentence.
    pub(super) fn fingerprint(&self, fingerprints: &Fingerprints) -> Result<String, String> {
        if find_program(Path::new(PROGRAM)).is_none() {
            return Err(format!(
                "vm: {PROGRAM} not found; install QEMU (Debian: qemu-system-x86), or write vm.command"
            ));
        }
        let mut all = Sha256::new();
        all.update(format!("{} {}", self.port, self.append));
        for (field, path) in self.files() {
            for file in files_of(path).map_err(|error| format!("vm.{field}: {}: {error}", path.display()))? {
                let sha256 = fingerprints.compute(&file);
                let sha256 = sha256.map_err(|error| format!("vm.{field}: can't read {}: {error}", file.display()))?;
                all.update(format!("{field} {sha256}"));
            }
        }
        Ok(hex(&all.finalize()))
    }

    /// Returns the facts that are known before the start.
    pub fn facts(&self) -> Facts {
        let mut facts: Facts =
            self.files().map(|(field, file)| (format!("target.{field}"), file.display().to_string())).collect();
        if self.kernel.is_some() {
            facts.insert("target.kernel_options".to_owned(), format!("{APPEND} {}", self.append).trim_end().to_owned());
        }
        facts
    }

    /// Describes it in a line.
    pub fn describe(&self) -> String {
        let mut text = "QEMU".to_owned();
        for (field, file) in self.files() {
            let _ = write!(text, ", {field} {}", file.display());
        }
        text
    }
}

/// A comma in a value of an option is written twice.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn format_of(disk: &Path) -> &'static str {
    let mut start = [0; QCOW2.len()];
    let read = std::fs::File::open(disk).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    if read.is_ok() && start == QCOW2 { "qcow2" } else { "raw" }
}

/// cloud-init looks for a file system with this label; QEMU makes one of a folder.
fn drive_of_seed(seed: &Path) -> String {
    if seed.is_dir() {
        format!("driver=vvfat,dir={},label=CIDATA,if=virtio,read-only=on", escaped(seed))
    } else {
        format!("file={},format=raw,if=virtio,read-only=on", escaped(seed))
    }
}

/// Returns a file, or the files of a folder in order.
fn files_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries: Vec<_> = std::fs::read_dir(path)?.collect::<Result<_, _>>()?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}
