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
use crate::target::manifest::{self, Manifest, Program, Provided, SourceBuild};

/// The revision of a target that is named without one: the repository's default branch.
const DEFAULT: &str = "HEAD";

/// Most times that the targets of an experiment are built until the compilers are the same for all.
const MOST_ROUNDS: usize = 3;

/// Why a commit is not built for an experiment that has begun.
const CHANGED: &str = "can't be built as the experiment began: since then the system's packages or the manifest's [build] \
    have changed, and that build is gone; measure all targets in another experiment";

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
    let manifest = match SourceTarget::of(manifest, &job.spec.target) {
        Err(manifest) => *manifest,
        Ok(target) => {
            let _building = context.building.lock().await;
            return Box::pin(Builds { job, context, live, cancel }.first(target)).await;
        }
    };
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

/// A revision of a target that is built.
struct SourceTarget {
    /// The target as a plan names it.
    asked: String,
    revision: String,
    manifest: Manifest,
    how: SourceBuild,
}

impl SourceTarget {
    /// Returns the manifest if its target is not built.
    fn of(manifest: Manifest, asked: &str) -> Result<Self, Box<Manifest>> {
        let Some(how) = manifest.source_build.clone() else { return Err(Box::new(manifest)) };
        let revision = split_target(asked).1.unwrap_or(DEFAULT).to_owned();
        Ok(Self { asked: asked.to_owned(), revision, manifest, how })
    }

    /// Opens the folder for everything about its builds, and the cache in it.
    fn open(&self, context: &RunContext) -> Result<(PathBuf, BuildCache), Failure> {
        let opened = folder(context, &self.manifest.name);
        let opened = opened.and_then(|folder| Ok((folder.clone(), BuildCache::open(&folder)?)));
        opened.map_err(Failure::by(Cause::Other))
    }
}

/// The builds for a job.
struct Builds<'a> {
    job: &'a Job,
    context: &'a RunContext,
    live: &'a Live,
    cancel: &'a CancellationToken,
}

impl Builds<'_> {
    /// Returns the job's target. Before the first run of an experiment here, all its targets are built, with the same
    /// compilers: what changes in between makes them be built again. The experiment keeps these builds.
    async fn first(&self, own: SourceTarget) -> Result<ResolvedTarget, Failure> {
        let other = Failure::by(Cause::Other);
        let experiment = self.job.experiment.as_deref();
        if experiment.is_none() || own.open(self.context)?.1.pinned_recipe(experiment).is_some() {
            return self.get(&own).await;
        }
        let others = self.job.targets.iter().filter(|asked| **asked != own.asked);
        let manifests = manifest::load(&self.context.targets).0;
        let find = |asked: &String| {
            let manifest = manifests.iter().find(|manifest| manifest.name == split_target(asked).0)?;
            SourceTarget::of(manifest.clone(), asked).ok()
        };
        let others: Vec<_> = others.filter_map(find).collect();
        let recipes = || [&own].into_iter().chain(&others).map(|target| cache::recipe(&target.how)).collect::<Vec<_>>();
        for _ in 0..MOST_ROUNDS {
            let before = recipes();
            let target = self.get(&own).await?;
            for one in &others {
                // If it can't be built, its own runs say why.
                drop(self.get(one).await);
            }
            if self.cancel.is_cancelled() {
                return Err(other(CANCELLED.to_owned()));
            }
            if before == recipes() {
                for (one, recipe) in [&own].into_iter().chain(&others).zip(before) {
                    one.open(self.context)?.1.pin_recipe(experiment, &recipe).map_err(other)?;
                }
                return Ok(target);
            }
        }
        Err(other("the system's packages changed during all builds".to_owned()))
    }

    /// Returns a target, and builds it if it has to be.
    async fn get(&self, target: &SourceTarget) -> Result<ResolvedTarget, Failure> {
        let Self { job, context, cancel, .. } = self;
        let SourceTarget { asked, revision, manifest, how } = target;
        let other = Failure::by(Cause::Other);
        let (folder, cache) = target.open(context)?;
        let repository = Repository::new(&how.source, &folder);
        let experiment = job.experiment.as_deref();
        let commit = commit_of(&repository, revision, cache.pinned(experiment, revision), self.live);
        let commit = cancel.run_until_cancelled(commit).await.unwrap_or_else(|| Err(other(CANCELLED.to_owned())));
        let commit = commit.map_err(|Failure { cause, reason }| {
            let reason = format!("target {asked}: {reason}");
            Failure { reason, cause }
        })?;
        cache.pin(experiment, revision, &commit.id).map_err(other)?;
        let now = cache::recipe(how);
        let recipe = cache.pinned_recipe(experiment).unwrap_or_else(|| now.clone());
        let key = cache::key(&commit.id, &recipe);
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
            cache.failed(experiment, &key).map_or(Ok(()), |why| Err(Failure::by(Cause::Build)(why)))?;
            if recipe != now {
                return Err(Failure::by(Cause::Build)(format!("commit {} {CHANGED}", commit.short())));
            }
            let builder =
                Builder { folder: &folder, how, commit: &commit, repository: &repository, image: image.as_deref() };
            let begun = Instant::now();
            self.build(&builder, &cache, &key).await?;
            took = format!("built in {:.1} s", begun.elapsed().as_secs_f64());
        }
        let place = cache.get(&key).ok_or_else(|| other("the build is not in the cache".to_owned()))?;
        Ok(ResolvedTarget {
            manifest: started_from(manifest.clone(), &commit, place, image),
            facts: commit.facts(&took, &how.source),
        })
    }

    /// Builds what is not in the cache.
    async fn build(&self, builder: &Builder<'_>, cache: &BuildCache, key: &str) -> Result<(), Failure> {
        let Self { job, context, live, cancel } = self;
        let put = |tree: PathBuf| match builder.image {
            Some(image) => cache.put_image(key, image),
            None => cache.put(key, &tree, &builder.how.build.artifacts),
        };
        let built = builder.build(job, context, live, cancel).await;
        let built = built.and_then(|tree| put(tree).map_err(Failure::by(Cause::Build)));
        if let Err(Failure { cause: Cause::Build, reason }) = &built
            && !cancel.is_cancelled()
        {
            cache.fail(job.experiment.as_deref(), key, reason).map_err(Failure::by(Cause::Other))?;
        }
        for old in built? {
            // One that is in use stays.
            if let Err(fault) = context.containers.remove_image(&old).await {
                tracing::warn!("{fault}");
            }
        }
        Ok(())
    }
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
