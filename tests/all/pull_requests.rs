//! The GitHub action, step by step as a runner executes it, with a real agent that builds each commit.
//!
//! Only GitHub is not real: a program in `PATH` keeps the comments in a folder.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    bisect::BuiltSite,
    harness::{
        program::{Output, PROGRAM, isolated},
        root,
    },
};

/// Longest measurement.
const LIMIT: Duration = Duration::from_mins(5);

/// `gh api`, as far as the action uses it: one pull request, whose comments are files.
const GH: &str = r#"#!/bin/bash
set -euo pipefail
body() { for word in "$@"; do case "$word" in body=@*) cat "${word#body=@}";; esac; done; }
case "$*" in
  "api repos/acme/api/compare/"*"--jq .merge_base_commit.sha") git -C "$REPOSITORY" merge-base main "${2##*...}";;
  "api user --jq .login") echo '{"message":"Resource not accessible by integration"}'; exit 1;;
  "api --paginate repos/acme/api/issues/7/comments --jq .[] | select(.user.login == \"github-actions[bot]\" and "*) ls "$GITHUB" ;;
  "api --silent --method PATCH repos/acme/api/issues/comments/"*) test -f "$GITHUB/${5##*/}"; body "$@" > "$GITHUB/${5##*/}";;
  "api --silent repos/acme/api/issues/7/comments"*) body "$@" > "$GITHUB/$(date +%s%N)";;
  *) echo "unknown: gh $*" >&2; exit 1;;
esac
"#;

/// A step of the action: its script, and the variables that it gets.
struct Step {
    script: String,
    variables: BTreeMap<String, String>,
}

/// Reads the steps of the action that run a script.
fn steps() -> Vec<Step> {
    let action = fs::read_to_string(root().join("action/action.yml")).expect("an action");
    let (_, all) = action.split_once("  steps:\n").expect("steps");
    all.split("    - name: ").skip(1).filter_map(step).collect()
}

fn step(text: &str) -> Option<Step> {
    let (head, script) = text.split_once("      run: ")?;
    let script = script.strip_prefix("|\n").unwrap_or(script);
    let variables = head.lines().filter_map(|line| line.strip_prefix("        ")?.split_once(": "));
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Some(Step { script: script.replace("\n        ", "\n").trim().to_owned(), variables })
}

/// A site that builds a repository, and a runner.
struct World {
    site: BuiltSite,
}

impl World {
    async fn new() -> Option<Self> {
        let site = BuiltSite::start(10.0).await?;
        for name in ["github", "bin", "runner"] {
            fs::create_dir(site.path(name)).expect("a folder");
        }
        fs::write(site.path("bin/gh"), GH).expect("a program");
        fs::set_permissions(site.path("bin/gh"), fs::Permissions::from_mode(0o755)).expect("a program");
        Some(Self { site })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.site.path(name)
    }

    /// The value of an expression of GitHub in the action.
    fn value(&self, expression: &str, head: &str, code: &str) -> String {
        let known = [
            ("inputs.url", self.site.address.clone()),
            ("inputs.token", self.site.user.secret().to_owned()),
            ("inputs.target", "api".to_owned()),
            (
                "inputs.run",
                "--size 1/1GiB --scenario get --vus 2 --duration 1s\n--warm-up 0.2s --repeat 6 --accept-suspect --until-decided"
                    .to_owned(),
            ),
            ("inputs.fail-on", "rps<-50%\np50>100%\n".to_owned()),
            ("inputs.base", String::new()),
            ("inputs.head", head.to_owned()),
            ("inputs.name", "benchmark".to_owned()),
            ("inputs.github-token", "none".to_owned()),
            ("github.repository", "acme/api".to_owned()),
            ("github.event.pull_request.number", "7".to_owned()),
            ("github.event.pull_request.base.sha", self.site.repository.git(&["rev-parse", "main"])),
            ("steps.measure.outputs.code", code.to_owned()),
        ];
        let filled = known
            .iter()
            .fold(expression.to_owned(), |text, (name, value)| text.replace(&format!("${{{{ {name} }}}}"), value));
        assert!(!filled.contains("${{"), "{filled}");
        filled
    }

    /// Runs the action for a commit. Returns the exit code of its last step, and its log.
    async fn run(&self, head: &str) -> (i32, String) {
        let runner = self.path("runner");
        fs::write(self.path("output"), "").expect("a file");
        let (mut last, mut log) = (0, String::new());
        let steps = steps();
        assert_eq!(steps.len(), 3, "measure, comment and exit");
        for step in steps {
            let output = fs::read_to_string(self.path("output")).expect("outputs");
            let code = output.trim().strip_prefix("code=").unwrap_or_default();
            let mut command = isolated("bash");
            command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script]).current_dir(&runner);
            let folders =
                [&self.path("bin"), Path::new(PROGRAM).parent().expect("a folder"), Path::new("/usr/bin:/bin")];
            command.env("PATH", folders.map(|folder| folder.display().to_string()).join(":"));
            command.env("GITHUB_OUTPUT", self.path("output")).env("GITHUB_STEP_SUMMARY", self.path("summary"));
            command.env("GITHUB", self.path("github")).env("REPOSITORY", self.path("api"));
            command.envs(step.variables.iter().map(|(name, value)| (name, self.value(value, head, code))));
            let Output { code, out, err } = Output::within(LIMIT, command).await;
            last = code.expect("an exit code");
            log.extend([out, err]);
            if last != 0 {
                break;
            }
        }
        (last, log)
    }

    /// The comments of the pull request.
    fn comments(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("github")).expect("a folder");
        let text = |file: &Path| fs::read_to_string(file).expect("a comment");
        // A name is no mention of a user.
        files.map(|file| text(&file.expect("a file").path()).replace('\u{2060}', "")).collect()
    }
}

#[tokio::test]
async fn the_action_fails_a_slower_commit_and_keeps_one_comment() {
    let Some(world) = World::new().await else { return };
    let base = world.site.repository.git(&["rev-parse", "main"]);
    let same = world.site.repository.pull_request(7, "Reword the notes", 10.0);
    // The base moves on: a pull request is compared with the commit at which it branched off.
    world.site.repository.commit("Be much faster", 2.0);
    let (code, log) = world.run(&same).await;
    assert_eq!(code, 0, "{log}");
    let comments = world.comments();
    let [comment] = comments.as_slice() else { panic!("{comments:?}") };
    let (base, same) = (&base[..12], &same[..12]);
    assert!(comment.starts_with("<!-- brewbench: benchmark -->\n### ✅ No regression"), "{comment}");
    assert!(comment.contains(&format!("api@{same} against api@{base}")), "{comment}");
    assert!(comment.contains("same binary") && comment.contains("●"), "{comment}");
    assert!(log.contains("queued 12 runs") && log.contains(", about "), "{log}");

    let slow = world.site.repository.pull_request(7, "Sleep for longer", 60.0);
    let (code, log) = world.run(&slow).await;
    assert_eq!(code, 1, "{log}");
    let comments = world.comments();
    let [comment] = comments.as_slice() else { panic!("{comments:?}") };
    assert!(comment.contains("### ❌ Regression: throughput −") && !comment.contains("same binary"), "{comment}");
    let read = |name: &str| fs::read_to_string(world.path("runner").join(name)).expect("a file");
    assert!(read("gate.svg").contains("</svg>") && !read("gate.xml").contains("time=\"0.000\""));
    assert_eq!(fs::read_to_string(world.path("summary")).expect("a file").matches("### ").count(), 2);

    let (code, log) = world.run("nothing").await;
    let comments = world.comments();
    let [comment] = comments.as_slice() else { panic!("{comments:?}") };
    assert!(code == 64 && comment.contains("No result") && !comment.contains("Regression"), "{code} {comment} {log}");
}
