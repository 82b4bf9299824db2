//! Builds an image from a folder, by the container engine.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::errors::Error;
use bollard::query_parameters::{BuildImageOptionsBuilder, RemoveImageOptions};
use futures_util::StreamExt;
use tokio::task::spawn_blocking;
use tokio_util::io::ReaderStream;

use super::engine::{Containers, describe_error};
use crate::sandbox::process::last_lines;

/// Bytes of the output that are kept.
const OUTPUT: usize = 64 << 10;

/// What an image is built from.
#[derive(Clone, Copy, Debug)]
pub struct ImageBuild<'a> {
    /// Name of the image, with a tag.
    pub name: &'a str,
    /// The folder with everything that it is made of.
    pub context: &'a Path,
    /// Path of the file with the instructions, relative to the folder.
    pub containerfile: &'a str,
    /// Whether its commands may use the network.
    pub network: bool,
    /// Longest silence of the engine.
    pub patience: Duration,
}

impl Containers {
    /// Builds an image. `show` gets each line of the output. The error is the end of a sentence. Dropping this stops the
    /// engine.
    pub async fn build(&self, what: ImageBuild<'_>, mut show: impl FnMut(&str)) -> Result<(), String> {
        let engine = self.connect_patiently(|_| {}).await?;
        if engine.is_podman() && !what.network {
            return Err("Podman's API builds with the network of the host: allow it with build.network".to_owned());
        }
        is_own_file(what.context, what.containerfile)?;
        let archive = archive(what.context).await.map_err(|error| format!("can't pack the repository: {error}"))?;
        let options = BuildImageOptionsBuilder::default().t(what.name).dockerfile(what.containerfile);
        let options = options.rm(true).forcerm(true);
        let options = if what.network { options } else { options.networkmode("none") };
        let body = body_try_stream(ReaderStream::new(tokio::fs::File::from_std(archive)));
        let docker = engine.docker.clone().with_timeout(what.patience);
        let mut steps = docker.build_image(options.build(), None, Some(body));
        let mut output = String::new();
        while let Some(step) = steps.next().await {
            let failed = |why: &str| format!("{why}: {}", last_lines(&output));
            let step = step.map_err(|error| failed(&describe_error(&error)))?;
            if let Some(detail) = step.error_detail {
                return Err(failed(detail.message.as_deref().unwrap_or("the engine does not say why")));
            }
            let text = step.stream.unwrap_or_default();
            text.lines().filter(|line| !line.trim().is_empty()).for_each(&mut show);
            output += &text;
            let kept = output.floor_char_boundary(output.len().saturating_sub(OUTPUT));
            output.drain(..kept);
        }
        if self.has_image(what.name).await? {
            Ok(())
        } else {
            Err(format!("there is no image: {}", last_lines(&output)))
        }
    }

    /// Whether the engine has an image.
    pub async fn has_image(&self, name: &str) -> Result<bool, String> {
        let engine = self.connect_patiently(|_| {}).await?;
        match engine.docker.inspect_image(name).await {
            Ok(_) => Ok(true),
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
            Err(error) => Err(describe_error(&error)),
        }
    }

    /// Removes an image. The error is a sentence.
    pub async fn remove_image(&self, name: &str) -> Result<(), String> {
        let engine = self.connect().await?;
        let removed = engine.docker.remove_image(name, None::<RemoveImageOptions>, None).await;
        removed.map(drop).map_err(|error| format!("can't remove the image {name}: {}", describe_error(&error)))
    }
}

/// Fails unless a path leads to a file without any link: an engine may follow links to files of its machine.
fn is_own_file(folder: &Path, path: &str) -> Result<(), String> {
    let mut place = folder.to_owned();
    for part in Path::new(path).components() {
        place.push(part);
        let is_link = std::fs::symlink_metadata(&place).map_err(|error| format!("{path}: {error}"))?.is_symlink();
        if is_link {
            return Err(format!("{path} is a link"));
        }
    }
    if place.is_file() { Ok(()) } else { Err(format!("{path} is no file")) }
}

/// Packs a folder. Links stay links, so that nothing outside of it is read.
async fn archive(folder: &Path) -> std::io::Result<File> {
    let folder = folder.to_owned();
    let pack = move || {
        let mut archive = tar::Builder::new(tempfile::tempfile_in(folder.parent().unwrap_or(&folder))?);
        archive.follow_symlinks(false);
        archive.append_dir_all(".", &folder)?;
        let mut file = archive.into_inner()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    };
    spawn_blocking(pack).await.map_err(std::io::Error::other)?
}
