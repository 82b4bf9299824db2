//! A guest for QEMU: Debian's cloud kernel, and an initial RAM disk with drivers, a first process and a target.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{podman::libraries, public_copy, public_folder, skip};

/// Size of a disk: room for a kernel and a RAM disk.
const DISK_BYTES: u64 = 64 << 20;
/// Modes of a folder and of a program.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Files of a guest that QEMU boots.
#[derive(Debug)]
pub struct Guest {
    folder: tempfile::TempDir,
    kernel: PathBuf,
}

impl Guest {
    /// Makes a guest whose target is the bundled Go server; `None`, with a printed reason, without QEMU or its kernel.
    ///
    /// # Panics
    /// If it can't be built.
    #[must_use]
    pub fn build() -> Option<Self> {
        // Built once a process.
        static TARGET: OnceLock<Vec<u8>> = OnceLock::new();
        Self::new(|| {
            let go = TARGET.get_or_init(|| go(&repository().join("agents/targets/go-nethttp")));
            vec![("target".to_owned(), go.clone())]
        })
    }

    /// Makes a guest whose target is this program, with its shared libraries.
    ///
    /// # Panics
    /// If it can't be built.
    #[must_use]
    pub fn of(program: &Path) -> Option<Self> {
        Self::new(|| {
            let read = |path: &Path| fs::read(path).expect("a file");
            let libraries = libraries(program).into_iter();
            let libraries = libraries.map(|path| (path.trim_start_matches('/').to_owned(), read(Path::new(&path))));
            libraries.chain([("target".to_owned(), read(program))]).collect()
        })
    }

    fn new(files_of_target: impl FnOnce() -> Vec<(String, Vec<u8>)>) -> Option<Self> {
        let files = repository().join(".tools/guest");
        let kernel = files.join("vmlinuz");
        if !kernel.exists() || Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
            skip("no QEMU, or no kernel for a guest: make guest");
            return None;
        }
        let folder = public_folder();
        let kernel = public_copy(&kernel, folder.path());
        let guest = Self { folder, kernel };
        fs::write(guest.ramdisk(), ramdisk(&files, files_of_target())).expect("a file");
        Some(guest)
    }

    /// Returns the command of a launcher, for `vm.command` of a manifest. `append` is added to the kernel's command
    /// line. The accelerator is always TCG: where KVM opens, it may still not work.
    #[must_use]
    pub fn command(&self, smp: &str, memory: &str, append: &str) -> String {
        let (kernel, disk) = (self.kernel.display().to_string(), self.ramdisk().display().to_string());
        let words = Self::words([smp, memory, "{host}:{port}"], append, &kernel, &disk);
        let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("[{}]", quoted.join(", "))
    }

    /// Returns the kernel.
    #[must_use]
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// Writes a qcow2 image with a boot loader that boots the same kernel and RAM disk; returns its path.
    ///
    /// # Panics
    /// If it can't be written.
    #[must_use]
    pub fn disk_image(&self) -> PathBuf {
        let at = |name: &str| self.folder.path().join(name);
        let (raw, image) = (at("disk.raw"), at("disk.qcow2"));
        let options = "SERIAL 0 115200\nDEFAULT go\nPROMPT 0\nTIMEOUT 1\nLABEL go\nKERNEL vmlinuz\n\
            APPEND initrd=initrd.cpio console=ttyS0 panic=-1\n";
        fs::write(at("syslinux.cfg"), options).expect("a file");
        fs::File::create(&raw).and_then(|file| file.set_len(DISK_BYTES)).expect("a file");
        run(Command::new("/sbin/mkfs.vfat").arg(&raw));
        let files = [&at("syslinux.cfg"), &self.kernel, &self.ramdisk()];
        run(Command::new("mcopy").arg("-i").arg(&raw).args(files).arg("::/"));
        run(Command::new("syslinux").arg("--install").arg(&raw));
        run(Command::new("qemu-img").args(["convert", "-O", "qcow2"]).arg(&raw).arg(&image));
        image
    }

    /// Writes a launcher, and the files that it needs beside it: a script that takes the number of vCPUs, MiB of
    /// memory, and where the guest is reached.
    ///
    /// # Panics
    /// If it can't be written.
    pub fn install(&self, launcher: &Path) {
        let beside = |name: &str| launcher.with_file_name(name);
        fs::copy(&self.kernel, beside("vmlinuz")).expect("a copy");
        fs::copy(self.ramdisk(), beside("initrd.cpio")).expect("a copy");
        let words = Self::words(["$1", "$2", "$3"], "", "vmlinuz", "initrd.cpio");
        let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        fs::write(launcher, format!("#!/bin/sh\nexec {}\n", quoted.join(" "))).expect("a file");
        fs::set_permissions(launcher, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn words([smp, memory, at]: [&str; 3], append: &str, kernel: &str, disk: &str) -> Vec<String> {
        let words = [
            "qemu-system-x86_64",
            "-accel",
            "tcg,tb-size=64",
            "-machine",
            "q35",
            "-smp",
            smp,
            "-m",
            memory,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
            "-kernel",
            kernel,
            "-initrd",
            disk,
            "-append",
            &format!("console=ttyS0 panic=-1 {append}"),
            "-netdev",
            &format!("user,id=n0,restrict=on,hostfwd=tcp:{at}-:8080"),
            "-device",
            "virtio-net-pci,netdev=n0",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Returns the folder of its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns its RAM disk.
    #[must_use]
    pub fn ramdisk(&self) -> PathBuf {
        self.folder.path().join("initrd.cpio")
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the repository, by its lock file above the working folder of a test. A path from the build would be that of
/// another clone that shares the build cache.
fn repository() -> PathBuf {
    let here = std::env::current_dir().expect("a working folder");
    here.ancestors().find(|folder| folder.join("Cargo.lock").exists()).expect("a repository").to_owned()
}

/// Returns the RAM disk: drivers, the first process, and the files of the target.
fn ramdisk(drivers: &Path, target: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    static INIT: OnceLock<Vec<u8>> = OnceLock::new();
    let mut archive = Cpio::default();
    for folder in ["dev", "proc", "sys", "modules"] {
        archive.add(folder, FOLDER, &[], (0, 0));
    }
    // For output before the devices are mounted.
    archive.add("dev/console", 0o020_600, &[], (5, 1));
    archive.add("init", PROGRAM, INIT.get_or_init(|| go(&repository().join("testing/guest"))), (0, 0));
    let mut folders = BTreeSet::new();
    for (path, content) in target {
        // Parents first.
        let parents: Vec<_> = Path::new(&path).ancestors().skip(1).map(Path::to_owned).collect();
        for folder in parents.into_iter().rev().filter(|folder| folder.iter().next().is_some()) {
            if folders.insert(folder.clone()) {
                archive.add(&folder.display().to_string(), FOLDER, &[], (0, 0));
            }
        }
        archive.add(&path, PROGRAM, &content, (0, 0));
    }
    let mut modules: Vec<_> = fs::read_dir(drivers).expect("a folder").flatten().map(|entry| entry.path()).collect();
    modules.sort();
    for module in modules.iter().filter(|path| path.extension().is_some_and(|extension| extension == "ko")) {
        let name = module.file_name().expect("a name").to_string_lossy();
        archive.add(&format!("modules/{name}"), 0o100_644, &fs::read(module).expect("a module"), (0, 0));
    }
    archive.finish()
}

/// Builds a static program.
fn go(folder: &Path) -> Vec<u8> {
    let output = tempfile::tempdir().expect("a folder");
    let program = output.path().join("program");
    let mut command = Command::new("go");
    command.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"]).arg(&program).arg(".");
    let built = command.current_dir(folder).env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local").output().expect("go");
    assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
    assert_ne!(fs::metadata(&program).expect("a program").permissions().mode() & 0o100, 0);
    fs::read(program).expect("a program")
}

/// An archive in the `newc` format, which the kernel unpacks.
#[derive(Default)]
struct Cpio {
    bytes: Vec<u8>,
    entries: u32,
}

impl Cpio {
    fn add(&mut self, name: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let length = |length: usize| u32::try_from(length).expect("a small file");
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            length(content.len()),
            0,
            0,
            device.0,
            device.1,
            length(name.len() + 1),
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }
}
