//! A virtual machine that the agent starts by a launcher. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::file::{bad_command, bad_variable};
use super::{MEMORY_MIB, PORT, VCPUS};

/// `[vm]` in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmFile {
    /// The launcher and its arguments, with the placeholders `{vcpus}`, `{memory_mib}`, `{host}` and `{port}`.
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl VmFile {
    /// Explains what is wrong; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { command, env } = self;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_must_get_the_size_and_the_port() {
        let fault = |words: &[&str]| {
            VmFile { command: words.iter().map(|word| (*word).to_owned()).collect(), env: BTreeMap::new() }.fault()
        };
        assert_eq!(fault(&["run", "{vcpus}", "{memory_mib}", "{port}"]), None);
        assert_eq!(fault(&[]).as_deref(), Some("vm.command: program is missing"));
        let without = fault(&["run", "{vcpus}", "{port}"]);
        assert_eq!(without.as_deref(), Some("vm.command: {memory_mib} is missing in command and env"));
    }
}
