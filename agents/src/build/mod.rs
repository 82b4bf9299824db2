//! Programs that are built from a repository before they are measured: a revision becomes a commit, and each commit is
//! built once.
//!
//! The manifest decides what may be built and how; a job only names a revision. [`git`] runs as the agent, so that it
//! can log in. Everything that a commit can influence runs in a cage, as the user of targets, in a control group.

mod artifacts;
mod commit;
mod git;
mod refs;
mod shelf;
mod workshop;

use std::path::PathBuf;
use std::time::Instant;

use brewbench_wire::job::Job;
use brewbench_wire::manifest::source::{revision_fault, split};
use brewbench_wire::outcome::Cause;
use commit::Commit;
use git::Repository;
use shelf::Shelf;
use tokio_util::sync::CancellationToken;
use workshop::Workshop;

use crate::host::environment::Facts;
use crate::run::admission::find_target;
use crate::run::context::RunContext;
use crate::run::failure::Failure;
use crate::series::live::Live;
use crate::target::manifest::{Manifest, Program, Provided};

/// The revision of a target that is named without one: the repository's default branch.
const DEFAULT: &str = "HEAD";

/// The error of what was cancelled.
const CANCELLED: &str = "it was cancelled";

/// A target that can be started.
#[derive(Debug)]
pub struct Found {
    /// Its manifest, with the version that was asked for.
    pub manifest: Manifest,
    /// What is known about its commit and its build.
    pub facts: Facts,
}

/// Finds the target of a job, and builds it if it has to be.
///
/// Once cancelled it fails; nothing is left of a build then.
pub async fn target(
    job: &Job,
    context: &RunContext,
    live: &Live,
    cancel: &CancellationToken,
) -> Result<Found, Failure> {
    let other = Failure::by(Cause::Other);
    let (name, revision) = split(&job.spec.target);
    let manifest = find_target(name, context).map_err(other)?;
    let Some(built) = manifest.built.clone() else {
        return match revision {
            Some(version) if version != manifest.version => {
                Err(other(format!("target {name} is version {} here, not {version}", manifest.version)))
            }
            _ => Ok(Found { manifest, facts: Facts::new() }),
        };
    };
    let revision = revision.unwrap_or(DEFAULT);
    if let Some(fault) = revision_fault(revision) {
        return Err(Failure::by(Cause::Build)(format!("target {}: {fault}", job.spec.target)));
    }
    let _building = context.building.lock().await;
    let folder = folder(context, name).map_err(other)?;
    let repository = Repository::new(&built.source, &folder);
    let shelf = Shelf::open(&folder).map_err(other)?;
    let pinned = shelf.pinned(job.experiment.as_deref(), revision);
    let commit = async {
        if let Some(id) = pinned {
            return repository.commit(&id).await;
        }
        live.set_step(format!("Fetching {revision} of {}", built.source.repository));
        repository.resolve(revision).await
    };
    let commit = cancel.run_until_cancelled(commit).await.unwrap_or_else(|| Err(CANCELLED.to_owned()));
    let commit = commit.map_err(|fault| Failure::by(Cause::Build)(format!("target {}: {fault}", job.spec.target)))?;
    shelf.pin(job.experiment.as_deref(), revision, &commit.id).map_err(other)?;
    let key = shelf::key(&commit.id, &built);
    let mut took = "cached".to_owned();
    if shelf.get(&key).is_none() {
        // It would fail for each repetition.
        shelf.failed(job.experiment.as_deref(), &key).map_or(Ok(()), |why| Err(Failure::by(Cause::Build)(why)))?;
        let workshop = Workshop { folder: &folder, built: &built, commit: &commit, repository: &repository };
        let begun = Instant::now();
        let put = |tree: PathBuf| shelf.put(&key, &tree, &built.build.artifacts).map_err(Failure::by(Cause::Build));
        let made = workshop.build(job, context, live, cancel).await.and_then(put);
        if let Err(Failure { cause: Cause::Build, reason }) = &made
            && !cancel.is_cancelled()
        {
            shelf.fail(job.experiment.as_deref(), &key, reason).map_err(other)?;
        }
        made?;
        took = format!("built in {:.1} s", begun.elapsed().as_secs_f64());
    }
    let place = shelf.get(&key).ok_or_else(|| other("the build is not in the cache".to_owned()))?;
    Ok(Found { manifest: started_from(manifest, &commit, place), facts: commit.facts(&took) })
}

/// Returns the manifest of a build, which is started where its artifacts are.
fn started_from(manifest: Manifest, commit: &Commit, place: PathBuf) -> Manifest {
    let provided = match manifest.provided {
        Provided::Process(program) => Provided::Process(Program { folder: place, ..program }),
        other => other,
    };
    Manifest { version: commit.short().to_owned(), revision: Some(commit.id.clone()), provided, ..manifest }
}

/// Creates the folder for everything about a target's builds. Its name can't leave the folder of all.
fn folder(context: &RunContext, name: &str) -> Result<PathBuf, String> {
    let folder = context.builds.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("can't create {}: {error}", folder.display()))?;
    for above in [&context.builds, &folder] {
        crate::sandbox::cage::user::open_path(above)
            .map_err(|error| format!("can't open {} to targets: {error}", above.display()))?;
    }
    Ok(folder)
}
