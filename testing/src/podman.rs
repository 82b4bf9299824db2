//! A Podman service for one test, with storage of its own and images made from programs, without a registry.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use crate::skip;

/// How long a service may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running Podman service. Dropping it removes its containers, its storage and itself.
#[derive(Debug)]
pub struct Podman {
    folder: tempfile::TempDir,
    service: Option<Child>,
}

impl Podman {
    /// Starts a service; `None`, with a printed reason, without Podman, runc or root.
    ///
    /// # Panics
    /// If it can't be started.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_in(tempfile::tempdir().expect("a folder"))
    }

    /// Starts a service whose storage is on this disk.
    ///
    /// # Panics
    /// If it can't be started.
    #[must_use]
    pub fn start_on(disk: &Path) -> Option<Self> {
        Self::start_in(tempfile::tempdir_in(disk).expect("a folder"))
    }

    fn start_in(folder: tempfile::TempDir) -> Option<Self> {
        for program in ["podman", "runc", "conmon", "netavark", "iptables"] {
            let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/lib/podman", "/usr/libexec/podman"];
            if !places.iter().any(|place| Path::new(place).join(program).exists()) {
                skip(&format!("no {program}: make podman"));
                return None;
            }
        }
        if !is_root() {
            skip("the tests with Podman need root");
            return None;
        }
        let registries =
            "unqualified-search-registries = []\n[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n";
        fs::write(folder.path().join("registries.conf"), registries).expect("a file");
        // Limits below those of the machine, which may not allow Podman's own; locks apart from other services.
        let containers = format!(
            "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\nlog_driver = \"k8s-file\"\n\
             [engine]\nlock_type = \"file\"\nevents_logger = \"file\"\nimage_copy_tmp_dir = \"{}\"\n\
             [network]\nnetwork_backend = \"netavark\"\n",
            folder.path().display()
        );
        fs::write(folder.path().join("containers.conf"), containers).expect("a file");
        let mut podman = Self { folder, service: None };
        podman.restart();
        Some(podman)
    }

    /// Starts the service, again if it was killed.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn restart(&mut self) {
        self.kill();
        let address = format!("unix://{}", self.socket().display());
        let log = fs::File::create(self.folder.path().join("service.log")).expect("a file");
        let mut command = self.podman(&["system", "service", "--time", "0", &address]);
        self.service = Some(command.stdout(Stdio::null()).stderr(log).spawn().expect("podman"));
        let begun = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            let log = || fs::read_to_string(self.folder.path().join("service.log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "podman does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the service, as a crash would. Containers keep running.
    pub fn kill(&mut self) {
        if let Some(mut service) = self.service.take() {
            let _ = service.kill();
            let _ = service.wait();
        }
    }

    /// Returns the service's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("podman.sock")
    }

    /// Loads an image as `localhost/NAME`.
    ///
    /// # Panics
    /// If Podman refuses it.
    pub fn load(&self, name: &str, image: &Image) {
        let archive = self.folder.path().join("image.tar");
        fs::write(&archive, image.archive(&format!("localhost/{name}"))).expect("a file");
        self.run(&["load", "-q", "-i", &archive.display().to_string()]);
        fs::remove_file(archive).expect("removed");
    }

    /// Returns the names of all containers.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        let output = self.run(&["ps", "--all", "--external", "--format", "{{.Names}}"]);
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Returns what is left of containers: their names, mounts and processes.
    ///
    /// # Panics
    /// If the machine can't be read.
    #[must_use]
    pub fn leftovers(&self) -> Vec<String> {
        let own = self.folder.path().display().to_string();
        let mounts = fs::read_to_string("/proc/mounts").expect("mounts");
        let mounts = mounts.lines().filter(|line| line.contains(&own) && line.contains("/merged"));
        let processes = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
            let command = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
            (command.contains("conmon") && command.contains(&own)).then_some(command)
        });
        self.containers().into_iter().chain(mounts.map(str::to_owned)).chain(processes).collect()
    }

    /// Runs a command of Podman on the same storage.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.podman(arguments).output().expect("podman");
        assert!(output.status.success(), "podman {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn podman(&self, arguments: &[&str]) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new("podman");
        command.args(["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime", "runc"]);
        for (option, folder) in
            [("--root", "root"), ("--runroot", "run"), ("--tmpdir", "tmp"), ("--network-config-dir", "networks")]
        {
            command.arg(option).arg(at(folder));
        }
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("CONTAINERS_CONF", at("containers.conf")).env("TMPDIR", self.folder.path());
        command.env("CONTAINERS_REGISTRIES_CONF", at("registries.conf"));
        command
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.podman(&["rm", "--all", "--force", "--time", "0"]).output();
        self.kill();
        // The storage is mounted on itself.
        let _ = Command::new("umount").arg("--recursive").arg(self.folder.path().join("root/overlay")).output();
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// An image with one layer: a program and the libraries that it needs. The same content has the same id.
#[derive(Clone, Debug)]
pub struct Image {
    architecture: String,
    entry: Vec<String>,
    layer: Vec<u8>,
}

impl Image {
    /// Makes an image that runs this program with these words first.
    ///
    /// # Panics
    /// If the program can't be read.
    #[must_use]
    pub fn of(program: &Path, words: &[&str]) -> Self {
        let mut layer = Builder::new(Vec::new());
        add(&mut layer, "program", program);
        for library in libraries(program) {
            add(&mut layer, library.trim_start_matches('/'), Path::new(&library));
        }
        Self::new(layer, words)
    }

    fn new(layer: Builder<Vec<u8>>, words: &[&str]) -> Self {
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let entry = ["/program"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        Self { architecture: architecture.to_owned(), entry, layer: layer.into_inner().expect("a layer") }
    }

    /// Makes it say that it is for another architecture.
    #[must_use]
    pub fn for_architecture(self, architecture: &str) -> Self {
        Self { architecture: architecture.to_owned(), ..self }
    }

    /// Makes an image that is nothing but large.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn of_bytes(bytes: usize) -> Self {
        let mut layer = Builder::new(Vec::new());
        append(&mut layer, "program", &vec![7; bytes], 0o755);
        Self::new(layer, &[])
    }

    pub(crate) fn layer(&self) -> &[u8] {
        &self.layer
    }

    pub(crate) fn config(&self) -> Vec<u8> {
        let Self { architecture, entry, layer } = self;
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {"Entrypoint": entry},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(layer))]},
            "history": [{"created": "1970-01-01T00:00:00Z"}],
        });
        config.to_string().into_bytes()
    }

    /// Returns it in the format of `docker save`.
    fn archive(&self, name: &str) -> Vec<u8> {
        let config = self.config();
        let file = format!("{}.json", hex(&config));
        let manifest = json!([{"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}]).to_string();
        let mut archive = Builder::new(Vec::new());
        for (path, content) in [("manifest.json", manifest.as_bytes()), (&file, &config), ("layer.tar", &self.layer)] {
            append(&mut archive, path, content, 0o644);
        }
        archive.into_inner().expect("an archive")
    }
}

/// Returns the shared libraries of a program and its loader; none if it is static.
pub(crate) fn libraries(program: &Path) -> Vec<String> {
    let listed = Command::new("ldd").arg(program).output().expect("ldd");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.split_whitespace()
        .filter(|word| word.starts_with('/') && Path::new(word).exists())
        .map(str::to_owned)
        .collect()
}

fn add(layer: &mut Builder<Vec<u8>>, path: &str, file: &Path) {
    append(layer, path, &fs::read(file).expect("a file"), 0o755);
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, content: &[u8], mode: u32) {
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    archive.append_data(&mut header, path, content).expect("an entry");
}

pub(crate) fn hex(content: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
