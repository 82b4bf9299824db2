//! A virtual machine: by a launcher of the owner, or by QEMU, which the agent drives. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::file::{bad_command, bad_variable};
use super::{MEMORY_MIB, PORT, VCPUS};

/// Longest name of a network interface.
const MAX_INTERFACE: usize = 15;

/// `[vm]` in the file: either a launcher, or what QEMU boots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VmFile {
    /// The launcher and its arguments; `{vcpus}`, `{memory_mib}`, `{host}` and `{port}` are replaced with the machine
    /// size and the address where the server is reached. Empty for QEMU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Additional environment variables of the launcher, with the same placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Kernel that QEMU boots; null for the boot loader of the disk. Paths are absolute or relative to the manifest's
    /// folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kernel: Option<PathBuf>,
    /// Initial RAM disk of the kernel; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub initrd: Option<PathBuf>,
    /// Added to the kernel's command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub append: String,
    /// Disk image, qcow2 or raw, which is never changed; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub disk: Option<PathBuf>,
    /// cloud-init files: a folder with `user-data` and `meta-data`, or an image; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub seed: Option<PathBuf>,
    /// Port of the server in the guest that QEMU boots; null for a launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What runs the guest's CPUs: `auto`, the default, for KVM if guests start with it, `kvm`, or `tcg`, the
    /// emulation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accelerator: Accelerator,
    /// A tap interface of the agent's machine; null for QEMU's user-mode network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tap: Option<Tap>,
}

/// What runs the CPUs of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// KVM if guests start with it, otherwise TCG.
    #[default]
    Auto,
    /// KVM.
    Kvm,
    /// QEMU's emulation.
    Tcg,
}

/// A tap interface that the machine's owner has set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    /// Its name.
    pub interface: String,
    /// IP address of the guest behind it.
    #[schema(value_type = String)]
    pub address: IpAddr,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default(accelerator: &Accelerator) -> bool {
    *accelerator == Accelerator::default()
}

impl VmFile {
    /// Explains what is wrong; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        let boots = [("kernel", self.kernel.is_some()), ("disk", self.disk.is_some())];
        let boots = boots.into_iter().find_map(|(field, is_given)| is_given.then_some(field));
        match (self.command.is_empty(), boots) {
            (true, None) => {
                let choice = "write command (a launcher), or kernel or disk, which the agent boots with QEMU";
                Some(format!("vm.command: program is missing; {choice}"))
            }
            (false, Some(field)) => {
                Some(format!("vm.{field}: remove it; the launcher in vm.command decides what is booted"))
            }
            (false, None) => self.launcher_fault(),
            (true, Some(_)) => self.qemu_fault(),
        }
    }

    fn launcher_fault(&self) -> Option<String> {
        let Self { command, env, initrd, append, seed, port, accelerator, tap, .. } = self;
        let foreign = [
            ("initrd", initrd.is_some()),
            ("append", !append.is_empty()),
            ("seed", seed.is_some()),
            ("port", port.is_some()),
            ("accelerator", !is_default(accelerator)),
            ("tap", tap.is_some()),
        ];
        if let Some((field, _)) = foreign.into_iter().find(|(_, is_given)| *is_given) {
            return Some(format!("vm.{field}: remove it; the launcher in vm.command decides it"));
        }
        if let Some(fault) = bad_command(command) {
            return Some(format!("vm.{fault}"));
        }
        if let Some(fault) = env.iter().find_map(|(name, value)| bad_variable(name, value)) {
            return Some(format!("vm.{fault}"));
        }
        let is_missing =
            |placeholder: &&str| !command.iter().chain(env.values()).any(|text| text.contains(*placeholder));
        let missing = [VCPUS, MEMORY_MIB, PORT].into_iter().find(is_missing)?;
        Some(format!("vm.command: {missing} is missing in command and env"))
    }

    fn qemu_fault(&self) -> Option<String> {
        let Self { env, kernel, initrd, append, port, tap, .. } = self;
        if !env.is_empty() {
            return Some("vm.env: remove it; it is for a launcher in vm.command".to_owned());
        }
        let for_kernel = [("initrd", initrd.is_some()), ("append", !append.is_empty())];
        if let Some((field, _)) = for_kernel.into_iter().find(|(_, is_given)| *is_given && kernel.is_none()) {
            return Some(format!("vm.{field}: only together with vm.kernel"));
        }
        if append.chars().any(char::is_control) {
            return Some("vm.append: contains a control character".to_owned());
        }
        match port {
            None => return Some("vm.port: missing; which port of the guest does the server listen on?".to_owned()),
            Some(0) => return Some("vm.port: 0 is not a port".to_owned()),
            Some(_) => {}
        }
        let interface = &tap.as_ref()?.interface;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let is_good = (1..=MAX_INTERFACE).contains(&interface.len()) && interface.chars().all(is_name);
        (!is_good).then(|| format!("vm.tap.interface: {interface:?} is not the name of a network interface"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_must_get_the_size_and_the_port() {
        let fault = |words: &[&str]| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            VmFile { command, ..VmFile::default() }.fault()
        };
        assert_eq!(fault(&["run", "{vcpus}", "{memory_mib}", "{port}"]), None);
        assert!(fault(&[]).is_some_and(|fault| fault.starts_with("vm.command: program is missing")));
        let without = fault(&["run", "{vcpus}", "{port}"]);
        assert_eq!(without.as_deref(), Some("vm.command: {memory_mib} is missing in command and env"));
    }

    #[test]
    fn every_fault_of_a_machine_names_its_field() {
        let vm = |text: &str| toml::from_str::<VmFile>(text).map_err(|error| error.to_string());
        let fault = |text: &str| vm(text).map_or_else(Some, |file| file.fault());
        for good in ["kernel = \"k\"\nport = 80", "disk = \"d\"\nseed = \"s\"\nport = 80\naccelerator = \"tcg\""] {
            assert_eq!(fault(good), None, "{good}");
        }
        let launcher = "command = [\"run\", \"{vcpus}\", \"{memory_mib}\", \"{port}\"]";
        for (text, words) in [
            ("kernel = \"k\"", "vm.port: missing"),
            ("kernel = \"k\"\nport = 0", "vm.port: 0"),
            ("disk = \"d\"\nport = 80\ninitrd = \"i\"", "vm.initrd: only together with vm.kernel"),
            ("disk = \"d\"\nport = 80\nappend = \"quiet\"", "vm.append: only together with vm.kernel"),
            ("kernel = \"k\"\nport = 80\nappend = \"a\\u0000\"", "vm.append: contains a control character"),
            ("kernel = \"k\"\nport = 80\nenv = { A = \"1\" }", "vm.env: remove it"),
            ("kernel = \"k\"\nport = 80\naccelerator = \"hvf\"", "unknown variant `hvf`"),
            ("kernel = \"k\"\nport = 80\ntap = { interface = \"a,b\", address = \"10.0.0.2\" }", "vm.tap.interface"),
            ("kernel = \"k\"\nport = 80\ntap = { interface = \"t\", address = \"there\" }", "invalid IP address"),
            (&format!("{launcher}\nkernel = \"k\""), "vm.kernel: remove it"),
            (&format!("{launcher}\nport = 80"), "vm.port: remove it"),
        ] {
            assert!(fault(text).is_some_and(|fault| fault.contains(words)), "{text}: {:?}", fault(text));
        }
    }
}
