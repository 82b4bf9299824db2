//! A program or an image that its agent builds from a repository: which, and how. Pure.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::file::{bad_command, bad_variable};

/// Longest build, seconds, by default.
const TIMEOUT_S: f64 = 1_800.0;

/// `[source]`: where the commits are. A server can only name a revision of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// URL or path of a Git repository. The agent's Git knows how to log in.
    pub repository: String,
    /// The branches and tags that may be built, with `*` for any part of a name: `main`, `v*`, `refs/pull/*/head`.
    /// Commits must be reachable from one of them.
    pub refs: Vec<String>,
    /// URL of the changes between two commits, with `{base}` and `{head}`:
    /// `https://github.com/acme/api/compare/{base}...{head}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_url: Option<String>,
}

/// `[build]`: how a commit becomes a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The program and its arguments, run in the root of the repository; empty for an image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Files and folders to keep, relative to the root. The target's `command` finds them by the same paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// For a target with `[container]`: the file in the repository from which the container engine builds its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerfile: Option<String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Folders in the repository that are kept for the next build, such as `target`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<String>,
    /// Whether it may use the network, to download dependencies. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Longest build, 30 minutes by default.
    #[serde(default = "timeout_s", skip_serializing_if = "is_timeout_s")]
    pub timeout_s: f64,
}

fn timeout_s() -> f64 {
    TIMEOUT_S
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_timeout_s(seconds: &f64) -> bool {
    seconds.total_cmp(&timeout_s()).is_eq()
}

impl Source {
    /// Explains why it is invalid; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { repository, refs, compare_url } = self;
        let is_plain = |text: &str| !text.is_empty() && !text.starts_with('-') && !text.chars().any(char::is_control);
        if !is_plain(repository) {
            return Some("source.repository: must be the URL or the path of a Git repository".to_owned());
        }
        let login = repository.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.split_once('@'));
        if login.is_some_and(|(user, _)| user.contains(':')) {
            return Some("source.repository: has a password; give it to Git on the agent's machine instead".to_owned());
        }
        if refs.is_empty() {
            return Some("source.refs: name a branch or tag; `refs = [\"*\"]` allows all".to_owned());
        }
        let is_link = |url: &String| {
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            is_web && is_plain(url) && ["{base}", "{head}"].iter().all(|part| url.contains(part))
        };
        if !compare_url.as_ref().is_none_or(is_link) {
            return Some("source.compare_url: must be a URL with {base} and {head}".to_owned());
        }
        let bad = refs.iter().find(|pattern| revision_fault(&pattern.replace('*', "x")).is_some())?;
        Some(format!("source.refs: {bad:?} is no name of a branch or tag"))
    }
}

impl Build {
    /// Explains why it is invalid; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { command, artifacts, containerfile, env, cache, network: _, timeout_s } = self;
        if let Some(file) = containerfile {
            let given = [
                ("command", command.len()),
                ("artifacts", artifacts.len()),
                ("env", env.len()),
                ("cache", cache.len()),
            ];
            if let Some((field, _)) = given.into_iter().find(|(_, count)| *count > 0) {
                return Some(format!("build.{field}: remove it; an image is built by its build.containerfile"));
            }
            if !is_below(file) {
                return Some(format!("build.containerfile: {file:?} must be a path in the repository"));
            }
        } else if let Some(fault) = bad_command(command) {
            return Some(format!("build.{fault}"));
        } else if artifacts.is_empty() {
            return Some("build.artifacts: name the program that the build makes".to_owned());
        }
        for (field, paths) in [("artifacts", artifacts), ("cache", cache)] {
            if let Some(bad) = paths.iter().find(|path| !is_below(path)) {
                return Some(format!("build.{field}: {bad:?} must be a path in the repository"));
            }
        }
        if !(*timeout_s >= 1.0 && *timeout_s <= 86_400.0) {
            return Some(format!("build.timeout_s: {timeout_s} must be at least 1 and at most 86400"));
        }
        env.iter().find_map(|(name, value)| bad_variable(name, value)).map(|fault| format!("build.{fault}"))
    }
}

fn is_below(path: &str) -> bool {
    let names = Path::new(path).components().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
    names && !path.is_empty() && !path.contains('\0')
}

/// Splits the name of a target with a revision: `api@main`.
pub fn split_target(target: &str) -> (&str, Option<&str>) {
    target.split_once('@').map_or((target, None), |(name, revision)| (name, Some(revision)))
}

/// Explains why a text is no name of a branch, tag or commit.
pub fn revision_fault(revision: &str) -> Option<&'static str> {
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.strip_suffix(".lock").is_none();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-/+".contains(letter);
    match revision {
        _ if revision.len() > 100 => Some("a revision has at most 100 characters"),
        _ if !revision.chars().all(is_letter) || revision.contains("..") || !revision.split('/').all(is_part) => {
            Some("a revision is a branch, a tag or a commit: letters, digits, '.', '_', '-', '+' and '/'")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repository: &str, refs: &[&str]) -> Option<String> {
        let refs = refs.iter().map(|&pattern| pattern.to_owned()).collect();
        Source { repository: repository.to_owned(), refs, compare_url: None }.fault()
    }

    #[test]
    fn a_compare_url_leads_to_a_page_and_has_both_commits() {
        let of = |url: &str| {
            let (repository, refs) = ("/srv/api.git".to_owned(), vec!["main".to_owned()]);
            Source { repository, refs, compare_url: Some(url.to_owned()) }.fault()
        };
        assert_eq!(of("https://git.example.com/api/compare/{base}...{head}"), None);
        for bad in ["javascript:{base}{head}", "https://git.example.com/{head}", "{base}{head}"] {
            assert!(of(bad).is_some_and(|fault| fault.starts_with("source.compare_url: ")), "{bad}");
        }
    }

    #[test]
    fn what_git_could_take_for_an_option_or_a_secret_is_refused() {
        assert_eq!(source("https://github.com/x/api.git", &["main", "v*", "refs/pull/*/head"]), None);
        assert_eq!(source("git@github.com:x/api.git", &["*"]), None);
        assert_eq!(source("https://me@host/x", &["main"]), None);
        assert!(source("https://me:secret@host/x", &["main"]).is_some_and(|fault| !fault.contains("secret")));
        for (repository, refs, field) in [
            ("--upload-pack=touch /tmp/x", &["main"][..], "source.repository: "),
            ("", &["main"], "source.repository: "),
            ("/srv/api.git", &[], "source.refs: "),
            ("/srv/api.git", &["main", "--all"], "source.refs: "),
        ] {
            assert!(source(repository, refs).is_some_and(|fault| fault.starts_with(field)), "{repository} {refs:?}");
        }
    }

    #[test]
    fn a_revision_is_a_plain_name() {
        for good in ["main", "v1.3", "8f2c1", "refs/pull/7/head", "feature/a_b+c", "HEAD"] {
            assert_eq!(revision_fault(good), None, "{good}");
        }
        for bad in
            ["", "-x", "a..b", "a/../b", "a b", "a;b", "$(x)", "a@{1}", "x~1", "^x", "/a", "a/", ".git", "a.lock"]
        {
            assert!(revision_fault(bad).is_some(), "{bad}");
        }
        assert!(revision_fault(&"x".repeat(101)).is_some());
        assert_eq!(split_target("api@main"), ("api", Some("main")));
        assert_eq!(split_target("api"), ("api", None));
    }

    #[test]
    fn a_build_stays_in_its_repository() {
        let build = Build {
            command: vec!["make".to_owned()],
            artifacts: vec!["bin/api".to_owned()],
            containerfile: None,
            env: BTreeMap::new(),
            cache: Vec::new(),
            network: false,
            timeout_s: timeout_s(),
        };
        assert_eq!(build.fault(), None);
        for path in ["../x", "/etc/passwd", "", "a/../../b", ".git", "./x/.git/hooks"] {
            let bad = Build { artifacts: vec![path.to_owned()], ..build.clone() };
            assert!(bad.fault().is_some_and(|fault| fault.starts_with("build.artifacts: ")), "{path}");
            let bad = Build { cache: vec![path.to_owned()], ..build.clone() };
            assert!(bad.fault().is_some_and(|fault| fault.starts_with("build.cache: ")), "{path}");
        }
        let image = Build { command: Vec::new(), artifacts: Vec::new(), ..build.clone() };
        let image = |file: &str| Build { containerfile: Some(file.to_owned()), ..image.clone() };
        assert_eq!(image("docker/Containerfile").fault(), None);
        assert!(image("../Containerfile").fault().is_some_and(|fault| fault.starts_with("build.containerfile: ")));
        let both = Build { containerfile: Some("Containerfile".to_owned()), ..build.clone() };
        assert!(both.fault().is_some_and(|fault| fault.starts_with("build.command: remove it")));
        let bad = Build { timeout_s: f64::NAN, ..build };
        assert!(bad.fault().is_some_and(|fault| fault.starts_with("build.timeout_s: ")));
    }
}
