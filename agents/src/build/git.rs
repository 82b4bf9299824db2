//! The repository of a target: a mirror of the refs that may be built, updated with the system's Git.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use brewbench_wire::manifest::Source;
use brewbench_wire::outcome::Cause;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::commit::{Commit, FORMAT};
use super::refs::{self, Refs};
use crate::run::failure::Failure;
use crate::sandbox::cage::{environment, user};
use crate::sandbox::process::last_lines;

/// Time for one command. A first fetch can take minutes.
const LIMIT: Duration = Duration::from_mins(20);

/// Name of the mirror's folder.
const MIRROR: &str = "repository.git";

/// Settings that no repository and no user can change: no hooks, no helpers of a transport, no submodules, nothing that
/// goes on in the background.
const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.sharedRepository=0644",
];

/// Variable with which a commit's files are its own: a ref of the repository can't replace them.
pub const NO_REPLACED: (&str, &str) = ("GIT_NO_REPLACE_OBJECTS", "1");

/// The repository of a target, and the agent's mirror of it.
#[derive(Debug)]
pub struct Repository<'a> {
    source: &'a Source,
    mirror: PathBuf,
}

impl<'a> Repository<'a> {
    /// The mirror is in the folder of the target's builds.
    pub fn new(source: &'a Source, folder: &Path) -> Self {
        Self { source, mirror: folder.join(MIRROR) }
    }

    /// Returns the folder of the mirror.
    pub fn mirror(&self) -> &Path {
        &self.mirror
    }

    /// Returns a commit that the mirror has.
    pub async fn commit(&self, id: &str) -> Result<Commit, String> {
        let text = self.in_mirror(&["show", "--no-patch", "--no-show-signature", FORMAT, id], "").await?;
        Commit::read(&text).ok_or_else(|| format!("Git does not describe the commit {id}"))
    }

    /// Returns the commit that a revision means now, and fetches it. The reason of a failure is the end of a sentence.
    pub async fn resolve(&self, revision: &str) -> Result<Commit, Failure> {
        let (other, refused) = (Failure::by(Cause::Other), Failure::by(Cause::Build));
        let (all, branch) = self.list().await.map_err(other)?;
        let allowed = refs::allowed(&all, &self.source.refs);
        let revision = if revision == "HEAD" { branch.as_deref().unwrap_or(revision) } else { revision };
        let id = refs::find(&allowed, revision).map_err(refused)?.map(str::to_owned);
        self.fetch(&allowed).await.map_err(other)?;
        match id {
            Some(id) => self.commit(&id).await.map_err(other),
            None => self.reachable(revision).await.map_err(refused),
        }
    }

    /// Returns all refs, and the default branch.
    async fn list(&self) -> Result<(Refs, Option<String>), String> {
        let text = git(&["ls-remote", "--symref", "--", &self.source.repository], "").await?;
        let head = text.lines().find_map(|line| line.strip_prefix("ref: ")?.strip_suffix("\tHEAD"));
        Ok((refs::read(&text), head.map(str::to_owned)))
    }

    /// Fetches refs, and forgets those that are no longer there. A mirror that can't be updated is replaced, once another
    /// one is complete.
    async fn fetch(&self, refs: &Refs) -> Result<(), String> {
        if self.mirror.exists() && self.update(refs).await.is_ok() {
            return Ok(());
        }
        let new = Self { mirror: self.mirror.with_extension("new"), ..*self };
        let failed = |error: io::Error| format!("can't use {}: {error}", self.mirror.display());
        remove(&new.mirror).map_err(failed)?;
        git(&["init", "--bare", "--quiet", "--template=", &new.mirror.display().to_string()], "").await?;
        user::open_path(&new.mirror).map_err(failed)?;
        new.update(refs).await?;
        remove(&self.mirror).and_then(|()| fs::rename(&new.mirror, &self.mirror)).map_err(failed)
    }

    async fn update(&self, refs: &Refs) -> Result<(), String> {
        let known = self.in_mirror(&["for-each-ref", "--format=%(refname)"], "").await?;
        let gone = known.lines().filter(|name| !refs.contains_key(*name));
        let gone: Vec<_> = gone.map(|name| format!("delete {name}\n")).collect();
        if !gone.is_empty() {
            self.in_mirror(&["update-ref", "--stdin"], &gone.concat()).await?;
        }
        let wanted: Vec<_> = refs.keys().map(|name| format!("+{name}:{name}\n")).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let fetch = ["fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        let all = [&fetch[..], &["--stdin", "--", &self.source.repository]].concat();
        self.in_mirror(&all, &wanted.concat()).await.map(drop)
    }

    /// Returns a commit by its id, if a ref that may be built leads to it.
    async fn reachable(&self, revision: &str) -> Result<Commit, String> {
        let unknown = || {
            let patterns = self.source.refs.join(", ");
            format!("{revision:?} is no branch, tag or commit among those that may be built: {patterns}")
        };
        let is_id = (7..=64).contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(unknown());
        }
        let object = format!("{revision}^{{commit}}");
        let id = self.in_mirror(&["rev-parse", "--verify", "--quiet", "--end-of-options", &object], "").await;
        let id = id.map_err(|_| unknown())?.trim().to_owned();
        let leading = self.in_mirror(&["for-each-ref", "--count=1", "--contains", &id], "").await?;
        if leading.trim().is_empty() { Err(unknown()) } else { self.commit(&id).await }
    }

    async fn in_mirror(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let folder = format!("--git-dir={}", self.mirror.display());
        git(&[&[folder.as_str()], arguments].concat(), input).await
    }
}

/// Removes a folder, if it exists.
pub fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Runs Git as the agent's user, with that user's logins. The error is Git's own.
async fn git(arguments: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting])).args(arguments);
    command.env_clear().envs(environment::passed_on()).env("LC_ALL", "C");
    command.envs(["HOME", "SSH_AUTH_SOCK"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs([NO_REPLACED, ("GIT_TERMINAL_PROMPT", "0")]).env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let run = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let name = arguments.iter().find(|word| !word.starts_with('-')).unwrap_or(&"git");
    let output = timeout(LIMIT, run).await.map_err(|_| format!("`git {name}` timed out"))?;
    let output = output.map_err(|error| format!("can't run Git: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("`git {name}`: {}", last_lines(&String::from_utf8_lossy(&output.stderr))))
}
