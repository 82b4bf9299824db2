//! Builds a commit: its files are checked out and its command runs in a cage, as the user of targets, in a control group.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brewbench_wire::job::Job;
use brewbench_wire::outcome::Cause;
use tokio::time::{Instant, interval, timeout_at};
use tokio_util::sync::CancellationToken;

use super::CANCELLED;
use super::commit::Commit;
use super::git::Repository;
use crate::host::{disk, machine};
use crate::run::context::RunContext;
use crate::run::failure::Failure;
use crate::sandbox::cage::{Cage, user};
use crate::sandbox::process::{Plan, Process, describe, find_program, last_lines};
use crate::sandbox::{Group, ProgramRole};
use crate::series::live::Live;
use crate::target::manifest::Built;

/// A build may not leave less than this of its disk.
const LEAST_FREE: u64 = 1 << 30;

/// Variable of a build with the id of its commit: it has the files only, without their history.
const COMMIT: &str = "BREWBENCH_COMMIT";

/// How often that is checked.
const CHECK: Duration = Duration::from_secs(1);

/// What a build needs.
#[derive(Debug)]
pub struct Workshop<'a> {
    /// The folder of the target's builds.
    pub folder: &'a Path,
    /// How it is built.
    pub built: &'a Built,
    /// What is built.
    pub commit: &'a Commit,
    /// Where its files are.
    pub repository: &'a Repository<'a>,
}

impl Workshop<'_> {
    /// Builds it; returns the folder with what it made. Nothing runs afterwards, whatever the build has started.
    pub async fn build(
        &self,
        job: &Job,
        context: &RunContext,
        live: &Live,
        cancel: &CancellationToken,
    ) -> Result<PathBuf, Failure> {
        let other = Failure::by(Cause::Other);
        let [tree, home] = self.folders().map_err(other)?;
        let group = context.sandbox.open(job.run, ProgramRole::Target);
        let group = group.map_err(|error| other(format!("can't create the control group of a build: {error}")))?;
        group.bound(machine::memory_bytes());
        let made = cancel.run_until_cancelled(Box::pin(self.make(&tree, &home, &group, live))).await;
        let cleared = group.clear().await;
        cleared.map_err(|error| other(format!("a process of the build can't be killed: {error}")))?;
        let made = made.unwrap_or_else(|| Err(CANCELLED.to_owned()));
        let short = self.commit.short();
        made.map_err(|why| Failure::by(Cause::Build)(format!("commit {short} can't be built: {why}")))?;
        Ok(tree)
    }

    /// Creates the folders of the files and of the home, which stay from build to build.
    fn folders(&self) -> Result<[PathBuf; 2], String> {
        let folders = ["tree", "home"].map(|name| self.folder.join(name));
        for folder in &folders {
            let created = fs::create_dir_all(folder).and_then(|()| user::give(folder, ProgramRole::Target));
            created.map_err(|error| format!("can't create {}: {error}", folder.display()))?;
        }
        Ok(folders)
    }

    /// Checks the files out and runs the command. The error is the end of a sentence.
    async fn make(&self, tree: &Path, home: &Path, group: &Group, live: &Live) -> Result<(), String> {
        let build = &self.built.build;
        let deadline = Instant::now() + Duration::from_secs_f64(build.timeout_s);
        let git = find_program(Path::new("git")).ok_or("there is no git in PATH")?;
        let [copy, work] = [self.repository.copy(), tree].map(|path| path.display().to_string());
        let index = ("GIT_INDEX_FILE".to_owned(), home.join("index").display().to_string());
        let known = [
            // The system's settings can't be read here.
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
            (COMMIT.to_owned(), self.commit.id.clone()),
        ];
        let settings = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.bare=false"];
        let in_tree = [format!("--git-dir={copy}"), format!("--work-tree={work}")];
        let kept = build.cache.iter().flat_map(|path| ["--exclude".to_owned(), format!("/{path}")]);
        let checkout = ["read-tree", "--reset", "-u", &self.commit.id].map(str::to_owned);
        let clean = ["clean", "-ffdxq"].map(str::to_owned);
        let cage = |program: &Path| {
            let cage = Cage::target(program, tree, home);
            let cage = cage.widened(&[self.repository.copy().to_owned()], &[tree.to_owned()]);
            cage.widened(&self.built.sandbox.read, &self.built.sandbox.write)
        };
        let plan = |program: PathBuf, arguments: Vec<String>, environment: BTreeMap<String, String>| {
            let cage = cage(&program);
            Plan { program, arguments, environment, folder: tree.to_owned(), cores: Vec::new(), cage }
        };
        for words in [checkout.to_vec(), clean.into_iter().chain(kept).collect()] {
            let arguments = settings.iter().map(|&word| word.to_owned()).chain(in_tree.clone()).chain(words).collect();
            run(
                plan(git.clone(), arguments, known.clone().into_iter().chain([index.clone()]).collect()),
                group,
                deadline,
                |_| {},
            )
            .await?;
        }
        let (first, rest) = build.command.split_first().ok_or("it has no command")?;
        let name = Path::new(first);
        let program = if name.components().count() > 1 { tree.join(name) } else { name.to_owned() };
        let program = find_program(&program).ok_or_else(|| format!("program {first} not found"))?;
        let mut command = plan(program, rest.to_vec(), known.into_iter().chain(build.env.clone()).collect());
        if !build.network {
            command.cage = command.cage.without_network();
        }
        let (live, short, begun) = (live.clone(), self.commit.short().to_owned(), Instant::now());
        run(command, group, deadline, move |line| {
            let seconds = begun.elapsed().as_secs();
            live.set_step(format!(
                "Building {short}, {seconds} s: {}",
                line.trim().chars().take(120).collect::<String>()
            ));
        })
        .await
    }
}

/// Runs a command until it ends, its time is over or the disk is nearly full. The error is the end of a sentence.
async fn run(
    plan: Plan,
    group: &Group,
    deadline: Instant,
    show: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(), String> {
    let show = Arc::new(show);
    let observer = Box::new(move |line: &str| {
        show(line);
        true
    });
    let name = plan.program.file_name().unwrap_or_default().display().to_string();
    let started = Process::start_observed(&plan, group, observer);
    let mut process = started.map_err(|error| format!("can't start {name}: {error}"))?;
    let full = async {
        let mut checks = interval(CHECK);
        loop {
            checks.tick().await;
            if disk::free(&plan.folder).is_ok_and(|free| free < LEAST_FREE) {
                return;
            }
        }
    };
    let ended = tokio::select! {
        ended = timeout_at(deadline, process.wait()) => ended,
        () = full => {
            let stopped = process.stop(Duration::ZERO, group).await;
            return Err(stopped.map_or_else(|error| error.to_string(), |()| "it leaves less than 1 GiB of the disk".to_owned()));
        }
    };
    let Ok(status) = ended else {
        let _ = process.stop(Duration::ZERO, group).await;
        return Err(format!("it took longer than build.timeout_s: {}", last_lines(&process.log().await)));
    };
    let status = status.map_err(|error| format!("can't wait for {name}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}: {}", describe(status), last_lines(&process.log().await)))
}
