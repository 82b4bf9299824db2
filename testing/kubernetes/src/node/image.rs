//! Images made of files of this machine, because tests have no registry.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::process::run;

/// What `command` of a container finds its programs in.
const SEARCH_PATH: &str = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/// Debian's `busybox`, and programs of this machine with their libraries.
#[derive(Clone, Debug, Default)]
pub struct Image {
    entrypoint: Vec<String>,
    arguments: Vec<String>,
    files: Vec<(PathBuf, String)>,
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

    /// Adds a file of this machine at a path of the container, with the libraries that it is linked to.
    ///
    /// For example, `("target/debug/server", "/usr/bin/server")` lets manifests run `server`.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<PathBuf>, path: &str) -> Self {
        self.files.push((file.into(), path.to_owned()));
        self
    }

    /// Writes an archive that containerd imports under this name. Equal images have equal digests.
    pub(super) fn write(&self, name: &str, archive: &Path) -> io::Result<()> {
        let folder = tempfile::tempdir_in(archive.parent().unwrap_or(Path::new("/")))?;
        let (root, layer) = (folder.path().join("root"), folder.path().join("layer.tar"));
        self.write_files(&root)?;
        let reproducible = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0"];
        tar(&layer, &root, &[&reproducible[..], &["."]].concat())?;
        let sum = Command::new("sha256sum").arg(&layer).output()?;
        let digest = String::from_utf8_lossy(&sum.stdout).split(' ').next().unwrap_or_default().to_owned();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": self.entrypoint, "Cmd": self.arguments, "Env": [SEARCH_PATH]},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{digest}")]},
        });
        let manifest = json!([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]);
        fs::write(folder.path().join("config.json"), config.to_string())?;
        fs::write(folder.path().join("manifest.json"), manifest.to_string())?;
        tar(archive, folder.path(), &["manifest.json", "config.json", "layer.tar"])
    }

    fn write_files(&self, root: &Path) -> io::Result<()> {
        for folder in ["bin", "sbin", "usr/bin", "usr/sbin", "etc", "tmp", "root"] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::copy("/bin/busybox", root.join("bin/busybox"))?;
        run("chroot", &[&root.display().to_string(), "/bin/busybox", "--install", "-s"])?;
        for (file, path) in &self.files {
            copy(file, root, path)?;
            for library in libraries(file)? {
                copy(Path::new(&library), root, &library)?;
            }
        }
        Ok(())
    }
}

/// Copies a file to a path below a folder.
fn copy(file: &Path, root: &Path, path: &str) -> io::Result<()> {
    let target = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(target.parent().unwrap_or(root))?;
    fs::copy(file, target).map(drop).map_err(|error| io::Error::other(format!("{}: {error}", file.display())))
}

fn tar(archive: &Path, folder: &Path, rest: &[&str]) -> io::Result<()> {
    let (archive, folder) = (archive.display().to_string(), folder.display().to_string());
    run("tar", &[&["--create", "--file", &archive, "--directory", &folder][..], rest].concat())
}

/// Returns the libraries that the loader opens for a program; none for a static one or a script.
fn libraries(program: &Path) -> io::Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}
