//! Programs and images that are built from a repository before they are measured: a revision becomes a commit, and
//! each commit is built once.
//!
//! The manifest decides what may be built and how; a job only names a revision. [`git`] runs as the agent, so that it
//! can log in. Everything that a commit can influence runs in a cage, as the user of targets, in a control group.

mod artifacts;
mod builder;
mod cache;
mod commit;
mod git;
mod refs;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use brewbench_wire::job::Job;
use brewbench_wire::manifest::source::{revision_fault, split_target};
use brewbench_wire::manifest::{BUILT, Container, Pull};
use brewbench_wire::outcome::Cause;
use builder::Builder;
use cache::BuildCache;
use commit::Commit;
use git::Repository;
use tokio_util::sync::CancellationToken;

use crate::host::environment::Facts;
use crate::run::admission::find_target;
use crate::run::context::RunContext;
use crate::run::failure::Failure;
use crate::sandbox::cage::user;
use crate::series::live::Live;
use crate::target::manifest::{Manifest, Program, Provided, SourceBuild};

/// The revision of a target that is named without one: the repository's default branch.
const DEFAULT: &str = "HEAD";

/// The error of what was cancelled.
const CANCELLED: &str = "it was cancelled";

/// A target that can be started.
#[derive(Debug)]
pub struct ResolvedTarget {
    /// Its manifest, with the version that was asked for.
    pub manifest: Manifest,
    /// What is known about its commit and its build.
    pub facts: Facts,
}

/// Finds the target of a job, and builds it if it has to be.
///
/// Once cancelled it fails; nothing is left of a build then.
pub async fn resolve(
    job: &Job,
    context: &RunContext,
    live: &Live,
    cancel: &CancellationToken,
) -> Result<ResolvedTarget, Failure> {
    let other = Failure::by(Cause::Other);
    let (name, revision) = split_target(&job.spec.target);
    let manifest = find_target(name, context).map_err(other)?;
    if let Some(how) = manifest.source_build.clone() {
        let _building = context.building.lock().await;
        let revision = revision.unwrap_or(DEFAULT);
        return Box::pin(from_source(manifest, &how, revision, job, (context, live, cancel))).await;
    }
    if let Provided::Container(container) = &manifest.provided
        && container.has_versions()
    {
        let version = revision.ok_or_else(|| other(format!("name a version of target {name}: {name}@VERSION")))?;
        let container = container.clone().of_version(version).map_err(other)?;
        let (version, provided) = (version.to_owned(), Provided::Container(container));
        return Ok(ResolvedTarget { manifest: Manifest { version, provided, ..manifest }, facts: Facts::new() });
    }
    match revision {
        Some(version) if version != manifest.version => {
            Err(other(format!("target {name} is version {} here, not {version}", manifest.version)))
        }
        _ => Ok(ResolvedTarget { manifest, facts: Facts::new() }),
    }
}

async fn from_source(
    manifest: Manifest,
    how: &SourceBuild,
    revision: &str,
    job: &Job,
    (context, live, cancel): (&RunContext, &Live, &CancellationToken),
) -> Result<ResolvedTarget, Failure> {
    let (other, refused) = (Failure::by(Cause::Other), Failure::by(Cause::Build));
    let folder = folder(context, &manifest.name).map_err(other)?;
    let repository = Repository::new(&how.source, &folder);
    let cache = BuildCache::open(&folder).map_err(other)?;
    let experiment = job.experiment.as_deref();
    let commit = commit_of(&repository, revision, cache.pinned(experiment, revision), live);
    let commit = cancel.run_until_cancelled(commit).await.unwrap_or_else(|| Err(other(CANCELLED.to_owned())));
    let commit = commit.map_err(|Failure { cause, reason }| {
        let reason = format!("target {}: {reason}", job.spec.target);
        Failure { reason, cause }
    })?;
    cache.pin(experiment, revision, &commit.id).map_err(other)?;
    let key = cache::key(&commit.id, how);
    let image = how.build.containerfile.is_some().then(|| format!("{BUILT}:{}-{key}", manifest.name));
    if let Some(image) = &image
        && cache.get(&key).is_some()
        && !context.containers.has_image(image).await.map_err(other)?
    {
        cache.forget(&key);
    }
    let mut took = "cached".to_owned();
    if cache.get(&key).is_none() {
        // It would fail for each repetition.
        cache.failed(experiment, &key).map_or(Ok(()), |why| Err(refused(why)))?;
        let image = image.as_deref();
        let builder = Builder { folder: &folder, how, commit: &commit, repository: &repository, image };
        let begun = Instant::now();
        let put = |tree: PathBuf| match image {
            Some(image) => cache.put_image(&key, image),
            None => cache.put(&key, &tree, &how.build.artifacts),
        };
        let built = builder.build(job, context, live, cancel).await.and_then(|tree| put(tree).map_err(refused));
        if let Err(Failure { cause: Cause::Build, reason }) = &built
            && !cancel.is_cancelled()
        {
            cache.fail(experiment, &key, reason).map_err(other)?;
        }
        for old in built? {
            // One that is in use stays.
            if let Err(fault) = context.containers.remove_image(&old).await {
                tracing::warn!("{fault}");
            }
        }
        took = format!("built in {:.1} s", begun.elapsed().as_secs_f64());
    }
    let place = cache.get(&key).ok_or_else(|| other("the build is not in the cache".to_owned()))?;
    Ok(ResolvedTarget {
        manifest: started_from(manifest, &commit, place, image),
        facts: commit.facts(&took, &how.source),
    })
}

/// Returns the commit that a revision means. The reason of a failure is the end of a sentence.
async fn commit_of(
    repository: &Repository<'_>,
    revision: &str,
    pinned: Option<String>,
    live: &Live,
) -> Result<Commit, Failure> {
    if let Some(fault) = revision_fault(revision) {
        return Err(Failure::by(Cause::Build)(fault.to_owned()));
    }
    if let Some(id) = &pinned
        && let Ok(commit) = repository.commit(id).await
    {
        return Ok(commit);
    }
    live.set_step(format!("Fetching {revision}"));
    repository.resolve(pinned.as_deref().unwrap_or(revision)).await
}

/// Returns the manifest of a build: a program is started where its artifacts are, a container from its image.
fn started_from(manifest: Manifest, commit: &Commit, place: PathBuf, image: Option<String>) -> Manifest {
    let provided = match (manifest.provided, image) {
        (Provided::Process(program), _) => Provided::Process(Program { folder: place, ..program }),
        (Provided::Container(container), Some(image)) => {
            Provided::Container(Container { image, pull: Pull::Never, ..container })
        }
        (other, _) => other,
    };
    // What was built identifies it from now on.
    let source_build = None;
    Manifest {
        version: commit.short().to_owned(),
        revision: Some(commit.id.clone()),
        provided,
        source_build,
        ..manifest
    }
}

/// Creates the folder for everything about a target's builds. Its name can't leave the folder of all.
fn folder(context: &RunContext, name: &str) -> Result<PathBuf, String> {
    let folder = context.builds.join(name);
    let created = fs::create_dir_all(&folder)
        .and_then(|()| [context.builds.as_path(), &folder].into_iter().try_for_each(user::open_path));
    created.map_err(|error| format!("can't create {}: {error}", folder.display()))?;
    Ok(folder)
}
