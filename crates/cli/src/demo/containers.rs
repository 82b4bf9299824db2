//! A container in the demo: the bundled `rust-hyper` again, to show what the container costs.

use std::{
    collections::BTreeMap,
    fs, io, iter,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, bail, ensure};
use brewbench_agent::{connection::daemon::Options, target::Containers};
use brewbench_wire::manifest::{Container, ManifestFile, Network, Pull};

const TARGET: &str = "rust-hyper-container";
/// The targets to compare: the program and its container.
pub const TARGETS: [&str; 2] = ["rust-hyper", TARGET];
/// The bundled program, in the folder of the manifests.
const PROGRAM: &str = "bin/rust-hyper";
/// Made on this machine, never pulled.
const IMAGE: &str = "localhost/brewbench-demo:rust-hyper";
/// The manifest of the bundled program, whose checks serve the container as well.
const BUNDLED: &str = "rust-hyper.toml";

/// Makes the image, and a folder with the manifests of the bundled targets and of the container, which the agent then
/// offers. Returns whether it does: not without a container engine, unless that is `required`.
pub async fn offer(options: &mut Options, folder: &Path, required: bool) -> anyhow::Result<bool> {
    let containers = Containers::find(options.container_engine.as_deref(), "demo");
    if !required && containers.socket().is_err() {
        return Ok(false);
    }
    match prepare(&options.targets, folder, &containers).await {
        Ok(folder) => {
            options.targets = folder;
            Ok(true)
        }
        Err(fault) if required => Err(fault.context("cannot measure a container")),
        Err(fault) => {
            eprintln!("no container is measured: {fault:#}");
            Ok(false)
        }
    }
}

async fn prepare(bundled: &Path, folder: &Path, containers: &Containers) -> anyhow::Result<PathBuf> {
    let bundled = bundled.canonicalize().with_context(|| format!("cannot find {}", bundled.display()))?;
    containers.import(IMAGE, archive(&bundled.join(PROGRAM))?).await.map_err(anyhow::Error::msg)?;
    fill(&bundled, folder).with_context(|| format!("cannot write {}", folder.display()))?;
    fs::write(folder.join(format!("{TARGET}.toml")), manifest(&bundled.join(BUNDLED))?)?;
    Ok(folder.canonicalize()?)
}

/// Links to the bundled targets from a new folder: theirs may belong to root.
fn fill(bundled: &Path, folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(bundled)? {
        let entry = entry?;
        symlink(entry.path(), folder.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the manifest of a container that is checked as the bundled program is.
fn manifest(bundled: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(bundled).with_context(|| format!("cannot read {}", bundled.display()))?;
    let program = ManifestFile::parse(&text).map_err(|fault| anyhow!("{}: {fault}", bundled.display()))?;
    let container = Container {
        image: IMAGE.to_owned(),
        command: iter::once("/rust-hyper".to_owned()).chain(program.command.into_iter().skip(1)).collect(),
        port: None,
        network: Network::Host,
        pull: Pull::Never,
        seccomp: None,
        user: None,
        mounts: Vec::new(),
        env: BTreeMap::new(),
    };
    let file = ManifestFile {
        name: TARGET.to_owned(),
        description: "rust-hyper in a container on the network of the host".to_owned(),
        command: Vec::new(),
        container: Some(container),
        ..program
    };
    file.to_toml().map_err(anyhow::Error::msg)
}

/// Returns the files of a program: itself and its shared libraries.
fn archive(program: &Path) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    // Engines do not read the format for files with holes.
    archive.sparse(false);
    let name = program.file_name().context("the program has no name")?;
    archive.append_path_with_name(program, name).with_context(|| format!("cannot read {}", program.display()))?;
    for library in libraries(program)? {
        let inside = library.strip_prefix("/")?;
        // What a link points to, under its name.
        let file = library.canonicalize().with_context(|| format!("cannot find {}", library.display()))?;
        archive.append_path_with_name(file, inside).with_context(|| format!("cannot read {}", library.display()))?;
    }
    Ok(archive.into_inner()?)
}

/// Returns the shared libraries of a program and its loader.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output().context("cannot start ldd")?;
    let text = String::from_utf8_lossy(&listed.stdout);
    ensure!(listed.status.success(), "ldd {}: {}", program.display(), String::from_utf8_lossy(&listed.stderr).trim());
    if let Some(missing) = text.lines().find(|line| line.contains("not found")) {
        bail!("ldd {}: {}", program.display(), missing.trim());
    }
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}
