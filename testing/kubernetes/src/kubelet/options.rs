//! What a node looks like, and which images it has.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use sha2::{Digest, Sha256};

/// A node and its images.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Name of the node.
    pub name: String,
    /// Cores that the scheduler may give to Pods.
    pub cpus: u32,
    /// Memory that the scheduler may give to Pods.
    pub memory_bytes: u64,
    /// Labels besides those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Images by the name that manifests use. All others can't be pulled.
    pub images: BTreeMap<String, Image>,
    /// `cpuManagerPolicy` in `/configz`. It is reported only; nothing is pinned.
    pub cpu_manager_policy: String,
    /// How long the answers of `/stats/summary` and `/metrics/cadvisor` are repeated. A kubelet measures every ten to
    /// fifteen seconds; zero is for tests that are about something else.
    pub stats_interval: Duration,
}

impl NodeOptions {
    /// A node with two cores, 4 GiB and no images.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cpus: 2,
            memory_bytes: 4 << 30,
            labels: BTreeMap::new(),
            images: BTreeMap::new(),
            cpu_manager_policy: "none".to_owned(),
            stats_interval: Duration::ZERO,
        }
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, name: &str, image: Image) -> Self {
        self.images.insert(name.to_owned(), image);
        self
    }
}

/// The root file system of this machine, with files added, as an image.
///
/// A container sees this machine's files through an overlay: what it writes is lost with it.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub(crate) entrypoint: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) files: Vec<(PathBuf, String)>,
}

impl Image {
    /// An image that runs this program with these words first.
    ///
    /// `command` of a container replaces both.
    pub fn new(entrypoint: &[&str]) -> Self {
        Self { entrypoint: entrypoint.iter().map(|&word| word.to_owned()).collect(), ..Self::default() }
    }

    /// Sets the arguments, which `command` and `args` of a container replace.
    #[must_use]
    pub fn with_arguments(self, arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(|&word| word.to_owned()).collect(), ..self }
    }

    /// Adds a file of this machine at a path of the container.
    ///
    /// For example, `("target/debug/server", "/usr/bin/server")` lets manifests run `server`.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<PathBuf>, path: &str) -> Self {
        self.files.push((file.into(), path.to_owned()));
        self
    }

    /// Returns a digest that differs between images, as a registry's would.
    pub(crate) fn digest(&self, name: &str) -> String {
        use std::fmt::Write;
        let bytes = Sha256::digest(format!("{name} {self:?}"));
        bytes.iter().fold("sha256:".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
