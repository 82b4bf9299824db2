//! The image of a container: found, or pulled from its registry.

use std::time::{Duration, Instant};

use bollard::body_full;
use bollard::errors::Error;
use bollard::models::{CreateImageInfo, ImageInspect};
use bollard::query_parameters::CreateImageOptionsBuilder;
use brewbench_wire::manifest::{Container, Pull};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::engine::{Engine, describe_error};

/// Maximum silence of a registry.
const SILENCE: Duration = Duration::from_secs(30);

/// Maximum silence of an engine that has all layers: it reports nothing while it unpacks one, which can take minutes.
const UNPACKING: Duration = Duration::from_mins(10);

/// How often progress is reported.
const PACE: Duration = Duration::from_millis(500);

/// An image on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its id, which identifies its content: a digest with its algorithm.
    pub id: String,
    /// Its names with a digest, as registries know it.
    pub digests: Vec<String>,
}

/// Returns the image of a container, pulled as its manifest says. `progress` is called with a sentence while it is
/// pulled. The error is a sentence.
pub async fn find(engine: &Engine, container: &Container, progress: impl Fn(String)) -> Result<Image, String> {
    let name = &container.image;
    let present = match container.pull {
        Pull::Always => None,
        Pull::Never | Pull::Missing => inspect(engine, name).await?,
    };
    let image = match (present, container.pull) {
        (Some(image), _) => image,
        (None, Pull::Never) => {
            return Err(format!("container.image: {name} is not on this machine, and container.pull is never"));
        }
        (None, Pull::Missing | Pull::Always) => {
            pull(engine, name, progress).await.map_err(|fault| format!("can't pull {name}: {fault}"))?;
            let pulled = inspect(engine, name).await?;
            pulled.ok_or_else(|| format!("can't pull {name}: the engine does not find it afterwards"))?
        }
    };
    fits(&image, std::env::consts::ARCH).map_err(|fault| format!("container.image: {name} {fault}"))?;
    let ImageInspect { id, repo_digests, .. } = image;
    let id = id.ok_or_else(|| format!("container.image: the engine reports no id of {name}"))?;
    Ok(Image { id: with_algorithm(id), digests: repo_digests.unwrap_or_default() })
}

async fn inspect(engine: &Engine, name: &str) -> Result<Option<ImageInspect>, String> {
    match engine.docker.inspect_image(name).await {
        Ok(image) => Ok(Some(image)),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(format!("container.image: {name}: {}", describe_error(&error))),
    }
}

/// Pulls an image. Dropping this stops the engine.
async fn pull(engine: &Engine, name: &str, progress: impl Fn(String)) -> Result<(), String> {
    let options = CreateImageOptionsBuilder::default().from_image(&tagged(name)).build();
    let mut stream = engine.docker.create_image(Some(options), None, None);
    let (mut layers, mut reported) = (Layers::default(), Instant::now());
    progress(format!("Pulling {name}"));
    loop {
        let silence = if layers.are_complete() { UNPACKING } else { SILENCE };
        match timeout(silence, stream.next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(info))) => {
                if let Some(sentence) = layers.add(info)
                    && reported.elapsed() >= PACE
                {
                    reported = Instant::now();
                    progress(format!("Pulling {name}: {sentence}"));
                }
            }
            Ok(Some(Err(error))) => return Err(describe_error(&error)),
            Err(_) if layers.are_complete() => {
                return Err(format!("unpacking it takes more than {} min", UNPACKING.as_secs() / 60));
            }
            Err(_) => return Err(format!("the registry sent nothing for {} s", SILENCE.as_secs())),
        }
    }
}

/// Makes an image of the files of an archive. The error is a sentence.
pub async fn import(engine: &Engine, name: &str, archive: Vec<u8>) -> Result<(), String> {
    // Podman ignores a tag that is not part of the name.
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(name).build();
    let mut stream = engine.docker.create_image(Some(options), Some(body_full(archive.into())), None);
    while let Some(progress) = stream.next().await {
        progress.map_err(|error| format!("can't import {name}: {}", describe_error(&error)))?;
    }
    Ok(())
}

/// The layers of an image while it is pulled: id, bytes so far, bytes in total.
#[derive(Default)]
struct Layers(Vec<(String, i64, i64)>);

impl Layers {
    /// Whether all layers that were announced are here.
    fn are_complete(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(_, current, total)| current >= total)
    }

    /// Adds news; returns the progress if it has changed.
    fn add(&mut self, info: CreateImageInfo) -> Option<String> {
        let detail = info.progress_detail?;
        let (id, current, total) = (info.id?, detail.current?, detail.total.filter(|total| *total > 0)?);
        match self.0.iter_mut().find(|(known, ..)| *known == id) {
            // It counts from the start again while it unpacks the layer.
            Some((_, before, _)) if *before >= current => return None,
            Some((_, before, _)) => *before = current,
            None => self.0.push((id, current, total)),
        }
        let sum = |of: fn(&(String, i64, i64)) -> i64| self.0.iter().map(of).sum::<i64>();
        let mib = |bytes: i64| bytes >> 20;
        Some(format!("{} of {} MiB", mib(sum(|layer| layer.1)), mib(sum(|layer| layer.2))))
    }
}

/// Checks that an image is for this machine.
fn fits(image: &ImageInspect, machine: &str) -> Result<(), String> {
    let machine = match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let (os, architecture) = (image.os.as_deref().unwrap_or("linux"), image.architecture.as_deref().unwrap_or(machine));
    if (os, architecture) == ("linux", machine) {
        return Ok(());
    }
    Err(format!("is for {os}/{architecture}, this machine is linux/{machine}"))
}

/// Without a tag, Docker would pull all of them.
fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) { name.to_owned() } else { format!("{name}:latest") }
}

/// Docker says `sha256:…`, Podman in some places the bare digest.
fn with_algorithm(id: String) -> String {
    if id.contains(':') { id } else { format!("sha256:{id}") }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    #[test]
    fn an_image_for_another_machine_is_refused() {
        let image = |os: &str, architecture: &str| ImageInspect {
            os: Some(os.to_owned()),
            architecture: Some(architecture.to_owned()),
            ..ImageInspect::default()
        };
        assert_eq!(fits(&image("linux", "amd64"), "x86_64"), Ok(()));
        assert_eq!(fits(&image("linux", "arm64"), "aarch64"), Ok(()));
        let fault = fits(&image("linux", "arm64"), "x86_64").expect_err("a fault");
        assert_eq!(fault, "is for linux/arm64, this machine is linux/amd64");
        assert!(fits(&image("windows", "amd64"), "x86_64").is_err());
    }

    #[test]
    fn a_name_without_a_tag_means_the_latest() {
        for (name, expected) in [
            ("shop", "shop:latest"),
            ("localhost:5000/shop", "localhost:5000/shop:latest"),
            ("localhost:5000/shop:1", "localhost:5000/shop:1"),
            ("shop@sha256:ab", "shop@sha256:ab"),
        ] {
            assert_eq!(tagged(name), expected);
        }
    }

    #[test]
    fn progress_adds_up_the_layers_and_never_goes_back() {
        let mut layers = Layers::default();
        let mut add = |id: &str, current: i64, total: i64| {
            let progress_detail = Some(ProgressDetail { current: Some(current << 20), total: Some(total << 20) });
            layers.add(CreateImageInfo { id: Some(id.to_owned()), progress_detail, ..CreateImageInfo::default() })
        };
        assert_eq!(add("a", 1, 10).as_deref(), Some("1 of 10 MiB"));
        assert_eq!(add("b", 5, 2_000).as_deref(), Some("6 of 2010 MiB"));
        assert_eq!(add("a", 1, 10), None);
        assert_eq!(add("a", 10, 10).as_deref(), Some("15 of 2010 MiB"));
        assert_eq!(add("b", 2_000, 2_000).as_deref(), Some("2010 of 2010 MiB"));
        assert!(layers.are_complete() && !Layers::default().are_complete());
        assert_eq!(Layers::default().add(CreateImageInfo::default()), None);
    }
}
