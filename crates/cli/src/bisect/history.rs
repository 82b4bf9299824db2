//! The commits between two revisions, from the Git repository at hand.

use std::path::Path;

use anyhow::{Context, bail};
use tokio::process::Command;

/// Characters of an id that names a revision of a target.
const SHORT: usize = 12;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The start of its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

/// Returns the commits from `good` to `bad`, along first parents: a merge counts with all that it brings.
pub async fn commits(repository: &Path, good: &str, bad: &str) -> anyhow::Result<Vec<Commit>> {
    let [good, bad] = [resolve(repository, good).await?, resolve(repository, bad).await?];
    if git(repository, &["merge-base", "--is-ancestor", &good, &bad]).await.is_err() {
        bail!("{good} is not an ancestor of {bad}");
    }
    let mut all = vec![commit(&git(repository, &["show", "--no-patch", FORMAT, &good]).await?)?];
    let range = format!("{good}..{bad}");
    let list = git(repository, &["log", "--first-parent", "--reverse", FORMAT, &range]).await?;
    if let Some((first, _)) = list.split_once(' ')
        && resolve(repository, &format!("{first}^1")).await? != good
    {
        bail!("{good} was merged into {bad} from another branch; name the commit at which that branched off");
    }
    for line in list.lines() {
        all.push(commit(line)?);
    }
    if all.len() < 2 {
        bail!("{good} and {bad} are the same commit");
    }
    Ok(all)
}

const FORMAT: &str = "--format=%H %s";

fn commit(line: &str) -> anyhow::Result<Commit> {
    let (id, subject) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let id = id.get(..SHORT).with_context(|| format!("Git names a commit {id:?}"))?;
    Ok(Commit { id: id.to_owned(), subject: subject.to_owned() })
}

async fn resolve(repository: &Path, revision: &str) -> anyhow::Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let id = git(repository, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
    id.map(|id| id.trim().to_owned())
        .with_context(|| format!("no commit {revision:?} in the Git repository {}", repository.display()))
}

async fn git(repository: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").arg("-C").arg(repository).args(arguments).output().await;
    let output = output.context("cannot run git")?;
    if !output.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
