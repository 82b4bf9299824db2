//! Manifests of the bundled `rust-hyper` in a container and of a virtual machine.

use std::{fs, path::Path};

use brewbench_testing::{Guest, Image, Podman};

const LISTEN: &str = "\"--listen\", \"{host}:{port}\"";
/// A guest that is emulated takes seconds to boot.
const CHECKS: &str = "[ready]\npath = \"/health\"\ntimeout_s = 60\n[verify]\npath = \"/hash\"\ncontains = \"hash\"\n";

/// Makes the image of the containers.
pub fn load_image(podman: &Podman, program: &Path) {
    podman.load("rust-hyper:1", &Image::of(program, &[]));
}

/// Returns the part that starts a program.
pub fn process(program: &Path) -> String {
    format!("command = [{:?}, {LISTEN}]\n", program.display().to_string())
}

/// Returns the part that starts a container in this network.
pub fn container(network: &str) -> String {
    format!("[container]\nimage = \"localhost/rust-hyper:1\"\nnetwork = \"{network}\"\ncommand = [{LISTEN}]\n")
}

/// Returns the part that boots a guest. Where KVM opens, guests may still not start with it.
pub fn vm(guest: &Guest) -> String {
    let (kernel, initrd) = (guest.kernel().display().to_string(), guest.ramdisk().display().to_string());
    format!("[vm]\nkernel = {kernel:?}\ninitrd = {initrd:?}\nport = 8080\naccelerator = \"tcg\"\n")
}

/// Writes a manifest into a folder.
pub fn write(folder: &Path, name: &str, provided: &str) -> std::io::Result<()> {
    let manifest = format!("name = \"{name}\"\nversion = \"1\"\n{provided}{CHECKS}");
    fs::write(folder.join(format!("{name}.toml")), manifest)
}
