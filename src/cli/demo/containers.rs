//! A container in the demo: the bundled `rust-hyper` again, to show what the container costs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};
use brewbench_agent::{connection::daemon::Options, target::Containers};

/// Name of the target.
pub const TARGET: &str = "rust-hyper-container";
/// The bundled program, in the folder of the manifests.
const PROGRAM: &str = "bin/rust-hyper";
/// Made on this machine, never pulled.
const IMAGE: &str = "localhost/brewbench-demo:rust-hyper";
const MANIFEST: &str = r#"name = "rust-hyper-container"
version = "0.1.0"
description = "rust-hyper in a container with the network of the host, made by the demo"

[container]
image = "localhost/brewbench-demo:rust-hyper"
command = ["/rust-hyper", "--listen", "{host}:{port}"]
pull = "never"

[ready]
path = "/health"

[verify]
path = "/hash"
contains = "\"hash\""
"#;

/// The offered container. Dropping this removes its manifest: without the image, an agent would report it as invalid.
pub struct Offered {
    file: PathBuf,
}

impl Drop for Offered {
    fn drop(&mut self) {
        // A manifest that stays is replaced by the next demo.
        let _ = fs::remove_file(&self.file);
    }
}

/// Makes the image and offers it as a target, if there is a container engine. If it is `required`, it is an error if
/// that fails.
pub async fn offer(options: &Options, required: bool) -> anyhow::Result<Option<Offered>> {
    let containers = Containers::find(options.container_engine.as_deref(), "demo");
    if !required && containers.socket().is_err() {
        return Ok(None);
    }
    match prepare(options, &containers).await {
        Ok(offered) => Ok(Some(offered)),
        Err(fault) if required => Err(fault.context("cannot measure a container")),
        Err(fault) => {
            eprintln!("no container is measured: {fault:#}");
            Ok(None)
        }
    }
}

async fn prepare(options: &Options, containers: &Containers) -> anyhow::Result<Offered> {
    let program = options.targets.join(PROGRAM);
    containers.import(IMAGE, archive(&program)?).await.map_err(anyhow::Error::msg)?;
    let offered = Offered { file: options.targets.join(format!("{TARGET}.toml")) };
    fs::write(&offered.file, MANIFEST).with_context(|| format!("cannot write {}", offered.file.display()))?;
    Ok(offered)
}

/// Returns the files of a program: itself and its shared libraries.
fn archive(program: &Path) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
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
