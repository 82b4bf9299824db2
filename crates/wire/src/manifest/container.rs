//! A container that the agent starts: its image, and how. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::file::bad_variable;
use super::{HOST, PORT, VERSION};
use crate::target::Identity;

/// `[container]`: an image, and how it is started. There is no way to ask for privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// Name of its image, with a tag or a digest; [`BUILT`] if it is built from a repository.
    #[serde(default = "built")]
    pub image: String,
    /// Arguments instead of those of the image; `{port}` and `{host}` are replaced with the address to listen on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The port it always listens on; null if it takes `{port}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `host`, the default, or `bridge`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Network,
    /// When the image is pulled: `never`, `missing`, the default, or `always`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pull: Pull,
    /// `default`, `unconfined` or the path of a profile; null for `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<String>,
    /// User and group instead of those of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Files and folders of the agent's machine that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Name of the images that are built from a repository; each has its own tag.
pub const BUILT: &str = "localhost/brewbench-build";

fn built() -> String {
    BUILT.to_owned()
}

/// The network of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// That of the host: no translation of addresses.
    #[default]
    Host,
    /// The engine's default bridge; the port is published.
    Bridge,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Bridge => "bridge",
        })
    }
}

/// When an image is pulled from its registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// Never: it must be there.
    Never,
    /// If it is not there.
    #[default]
    Missing,
    /// Before each run.
    Always,
}

/// A file or folder of the host that a container may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its path on the machine, absolute or relative to the manifest's folder.
    #[schema(value_type = String)]
    pub source: PathBuf,
    /// Its path in the container.
    pub target: String,
}

impl Container {
    /// Whether each run names the version of its image.
    pub fn has_versions(&self) -> bool {
        self.image.contains(VERSION)
    }

    /// Returns the container of a version. The error is a sentence.
    pub fn of_version(self, version: &str) -> Result<Self, String> {
        let is_tag = version.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
        if !is_tag || version.is_empty() || version.len() > 128 || version.starts_with(['.', '-']) {
            return Err(format!("{version:?} is no version of an image: letters, digits, '.', '_' and '-'"));
        }
        Ok(Self { image: self.image.replace(VERSION, version), ..self })
    }

    /// Whether it can listen on other addresses than loopback.
    pub fn listens_anywhere(&self) -> bool {
        self.network == Network::Bridge || self.texts().any(|text| text.contains(HOST))
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        self.command.iter().chain(self.env.values())
    }

    /// Explains what is wrong; the sentence starts with the field.
    pub fn fault(&self) -> Option<String> {
        let Self { image, command, port, seccomp, user, mounts, env, .. } = self;
        if let Some(fault) = (Identity::Container { image: image.clone(), id: None, settings: None }).fault() {
            return Some(fault);
        }
        if let Some(word) = command.iter().find(|word| word.contains('\0')) {
            return Some(format!("container.command: {word:?} contains the character NUL"));
        }
        if let Some(fault) = env.iter().find_map(|(name, value)| bad_variable(name, value)) {
            return Some(format!("container.{fault}"));
        }
        let has_placeholder = self.texts().any(|text| text.contains(PORT));
        match port {
            Some(0) => return Some("container.port: must be 1 to 65535".to_owned()),
            Some(_) if has_placeholder => return Some(format!("container.port: remove it, or {PORT}")),
            None if !has_placeholder => {
                return Some(format!("container.port: missing; or write {PORT} in container.command or container.env"));
            }
            Some(_) | None => {}
        }
        if seccomp.as_ref().is_some_and(String::is_empty) {
            return Some("container.seccomp: default, unconfined, or the path of a profile".to_owned());
        }
        let is_user = |user: &String| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_graphic());
        if user.as_ref().is_some_and(|user| !is_user(user)) {
            return Some("container.user: a user, or user:group".to_owned());
        }
        mounts.iter().find_map(Mount::fault)
    }
}

impl Mount {
    fn fault(&self) -> Option<String> {
        let Self { source, target } = self;
        let odd = |text: &str| text.contains([':', '\0']);
        if !target.starts_with('/') || target == "/" || odd(target) {
            return Some(format!("container.mounts: target {target:?} must be an absolute path below / without ':'"));
        }
        let source = source.to_string_lossy();
        (source.is_empty() || odd(&source))
            .then(|| format!("container.mounts: source {source:?} must be a path without ':'"))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn container(text: &str) -> Result<Container, String> {
        let container: Container = toml::from_str(text).map_err(|error| error.to_string())?;
        match container.fault() {
            Some(fault) => Err(fault),
            None => Ok(container),
        }
    }

    #[test]
    fn an_image_and_a_port_are_enough() {
        let least = container("image = \"ghcr.io/acme/shop:1\"\nport = 8080").expect("a container");
        assert_eq!((least.network, least.pull), (Network::Host, Pull::Missing));
        assert!(!least.listens_anywhere());
        let bridged = container("image = \"x\"\nport = 80\nnetwork = \"bridge\"").expect("a container");
        assert!(bridged.listens_anywhere());
        assert!(container("image = \"x\"\ncommand = [\"{host}:{port}\"]").expect("a container").listens_anywhere());
    }

    #[test]
    fn a_run_names_the_version_of_an_image() {
        let shop = container("image = \"ghcr.io/acme/shop:{version}\"\nport = 8080").expect("a container");
        assert!(shop.has_versions());
        assert_eq!(shop.clone().of_version("v1.3").map(|shop| shop.image), Ok("ghcr.io/acme/shop:v1.3".to_owned()));
        for bad in ["", "../x", "a b", "x@sha256:1", "-x", &"x".repeat(129)] {
            assert!(shop.clone().of_version(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_fault_names_its_field() {
        for (text, word) in [
            ("image = \"\"\nport = 1", "container.image"),
            ("image = \"a b\"\nport = 1", "container.image"),
            ("image = \"x\"", "container.port: missing"),
            ("image = \"x\"\nport = 0", "container.port"),
            ("image = \"x\"\nport = 1\ncommand = [\"{port}\"]", "container.port: remove it"),
            ("image = \"x\"\nport = 1\ncommand = [\"a\\u0000\"]", "container.command"),
            ("image = \"x\"\nport = 1\n[env]\n\"A=B\" = \"1\"", "container.env"),
            ("image = \"x\"\nport = 1\nuser = \"a b\"", "container.user"),
            ("image = \"x\"\nport = 1\nnetwork = \"none\"", "network"),
            ("image = \"x\"\nport = 1\nprivileged = true", "privileged"),
            ("image = \"x\"\nport = 1\ncap_add = [\"SYS_ADMIN\"]", "cap_add"),
        ] {
            let fault = container(text).expect_err(text);
            assert!(fault.contains(word), "{text}: {fault}");
        }
    }
}
