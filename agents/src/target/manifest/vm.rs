//! How a virtual machine is started, with the files that its manifest names.

use std::path::{Path, PathBuf};

use brewbench_wire::manifest::{Accelerator, Sandbox, Tap, VmFile};

use super::Program;

/// How a virtual machine is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// By this program, with the placeholders of a size.
    Launcher(Program),
    /// By QEMU.
    Qemu(Qemu),
}

/// What QEMU boots. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// Kernel.
    pub kernel: Option<PathBuf>,
    /// Initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// Added to the kernel's command line.
    pub append: String,
    /// Disk image.
    pub disk: Option<PathBuf>,
    /// Files of cloud-init.
    pub seed: Option<PathBuf>,
    /// Port of the server in the guest.
    pub port: u16,
    /// What runs its CPUs.
    pub accelerator: Accelerator,
    /// Its network interface.
    pub tap: Option<Tap>,
    /// Additional files that its sandbox allows.
    pub sandbox: Sandbox,
    /// The manifest's folder.
    pub folder: PathBuf,
}

/// Resolves the paths. Fails with a sentence if one does not exist.
pub(super) fn resolve(vm: VmFile, folder: PathBuf, sandbox: Sandbox) -> Result<Machine, String> {
    let VmFile { command, env, kernel, initrd, append, disk, seed, port, accelerator, tap } = vm;
    let sandbox = super::resolve_sandbox(sandbox, &folder)?;
    if !command.is_empty() {
        return Ok(Machine::Launcher(Program { command, env, sandbox, folder }));
    }
    let path = |field: &str, path: Option<PathBuf>| found(&folder, field, path);
    Ok(Machine::Qemu(Qemu {
        kernel: path("kernel", kernel)?,
        initrd: path("initrd", initrd)?,
        append,
        disk: path("disk", disk)?,
        seed: path("seed", seed)?,
        port: port.unwrap_or_default(),
        accelerator,
        tap,
        sandbox,
        folder,
    }))
}

fn found(folder: &Path, field: &str, path: Option<PathBuf>) -> Result<Option<PathBuf>, String> {
    let Some(path) = path else { return Ok(None) };
    let absolute = folder.join(&path).canonicalize();
    absolute.map(Some).map_err(|error| format!("vm.{field}: {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_beside_the_manifest() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("vmlinuz"), "k").expect("a file");
        let file = VmFile { kernel: Some("vmlinuz".into()), port: Some(80), ..VmFile::default() };
        let resolved = resolve(file.clone(), folder.path().to_owned(), Sandbox::default()).expect("a machine");
        let Machine::Qemu(qemu) = resolved else { panic!("QEMU") };
        assert!(qemu.kernel.is_some_and(|kernel| kernel.is_absolute()));
        let missing = VmFile { initrd: Some("nowhere".into()), ..file };
        let missing = resolve(missing, folder.path().to_owned(), Sandbox::default());
        assert!(missing.is_err_and(|fault| fault.starts_with("vm.initrd: nowhere: ")));
    }
}
