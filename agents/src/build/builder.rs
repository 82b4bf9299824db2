//! Builds a commit: its files are checked out and its command runs in a cage, as the user of targets, in a control group.
//! An image is built by the container engine instead.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brewbench_wire::job::Job;
use brewbench_wire::manifest::Build;
use brewbench_wire::outcome::Cause;
use tokio::time::{Instant, interval, timeout_at};
use tokio_util::sync::CancellationToken;

use super::CANCELLED;
use super::commit::Commit;
use super::git::{NO_REPLACED, Repository, remove};
use crate::host::{disk, machine};
use crate::run::context::RunContext;
use crate::run::failure::Failure;
use crate::sandbox::cage::{Cage, user};
use crate::sandbox::process::{Plan, Process, describe, find_program, last_lines};
use crate::sandbox::{Group, ProgramRole};
use crate::series::live::Live;
use crate::target::manifest::SourceBuild;
use crate::target::{Containers, ImageBuild};

/// A build may not leave less than this of its disk.
const LEAST_FREE: u64 = 1 << 30;

/// How often that is checked.
const CHECK: Duration = Duration::from_secs(1);

const TIMED_OUT: &str = "it took longer than build.timeout_s";

const FULL: &str = "it leaves less than 1 GiB of the disk";

/// Variable of a build with the id of its commit: it has the files only, without their history.
const COMMIT: &str = "BREWBENCH_COMMIT";

/// File that says, by its time, when the last build succeeded; there is none after another end.
const SUCCEEDED: &str = "succeeded";

/// Settings of Git for a checkout, as in [`super::git`].
const SETTINGS: [&str; 6] = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.bare=false"];

/// What a build needs.
#[derive(Debug)]
pub struct Builder<'a> {
    /// The folder of the target's builds.
    pub folder: &'a Path,
    /// How it is built.
    pub how: &'a SourceBuild,
    /// What is built.
    pub commit: &'a Commit,
    /// Where its files are.
    pub repository: &'a Repository<'a>,
    /// Name of the image, if it is one.
    pub image: Option<&'a str>,
}

/// Where a build runs, and until when.
struct Place<'a> {
    /// The files of the commit; they stay from build to build.
    tree: &'a Path,
    /// Its home, which stays, too.
    home: &'a Path,
    /// The home of the checkout, with Git's index. The build itself has no access.
    index: &'a Path,
    group: &'a Group,
    deadline: Instant,
}

impl Builder<'_> {
    /// Builds it; returns the folder with what it made. Nothing runs afterwards, whatever the build has started.
    pub async fn build(
        &self,
        job: &Job,
        context: &RunContext,
        live: &Live,
        cancel: &CancellationToken,
    ) -> Result<PathBuf, Failure> {
        let other = Failure::by(Cause::Other);
        let [tree, home, index] = self.folders().map_err(other)?;
        let group = context.sandbox.open(job.run, ProgramRole::Target);
        let group = group.map_err(|error| other(format!("can't create the control group of a build: {error}")))?;
        group.bound(machine::memory_bytes());
        let deadline = Instant::now() + Duration::from_secs_f64(self.how.build.timeout_s);
        let place = Place { tree: &tree, home: &home, index: &index, group: &group, deadline };
        let steps = Box::pin(async {
            self.check_out(&place).await?;
            match self.image {
                None => self.compile(&place, live).await,
                Some(name) => self.build_image(&place, name, &context.containers, live).await,
            }
        });
        let made = cancel.run_until_cancelled(steps).await.unwrap_or_else(|| Err(CANCELLED.to_owned()));
        let cleared = group.clear().await;
        cleared.map_err(|error| other(format!("a process of the build can't be killed: {error}")))?;
        let short = self.commit.short();
        // A full disk says nothing about the commit.
        let cause = if made.as_ref().is_err_and(|why| why.starts_with(FULL)) { Cause::Other } else { Cause::Build };
        made.map_err(|why| Failure::by(cause)(format!("commit {short} can't be built: {why}")))?;
        let noted = File::create(self.folder.join(SUCCEEDED));
        noted.map_err(|error| other(format!("can't write to {}: {error}", self.folder.display())))?;
        Ok(tree)
    }

    /// Creates the folders of the files, of the home and of Git's index. What is in them stays only if the last build
    /// succeeded, and not in the future: files that are half written or too new look up to date to the next build.
    fn folders(&self) -> Result<[PathBuf; 3], String> {
        let folders = ["tree", "home", "index"].map(|name| self.folder.join(name));
        let succeeded = self.folder.join(SUCCEEDED);
        let at = fs::metadata(&succeeded).and_then(|file| file.modified());
        let stays = at.is_ok_and(|at| at <= SystemTime::now());
        let forget = || -> io::Result<()> {
            if stays {
                fs::remove_file(&succeeded)?;
                return File::open(self.folder)?.sync_all();
            }
            folders.iter().try_for_each(|folder| remove(folder))
        };
        forget().map_err(|error| format!("can't clean {}: {error}", self.folder.display()))?;
        for folder in &folders {
            let created = fs::create_dir_all(folder).and_then(|()| user::give(folder, ProgramRole::Target));
            created.map_err(|error| format!("can't create {}: {error}", folder.display()))?;
        }
        Ok(folders)
    }

    /// Makes the files those of the commit, but for the folders that the manifest keeps. Only what differs is written, so
    /// that compilers see what has changed. The error is the end of a sentence.
    async fn check_out(&self, place: &Place<'_>) -> Result<(), String> {
        let [mirror, tree] = [self.repository.mirror(), place.tree].map(|path| path.display().to_string());
        let Build { artifacts, cache, .. } = &self.how.build;
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let git = |rest: Vec<String>| {
            [words(&SETTINGS), vec![format!("--git-dir={mirror}"), format!("--work-tree={tree}")], rest].concat()
        };
        let kept = cache.iter().flat_map(|path| ["--exclude".to_owned(), format!("/{path}")]);
        let pruned = cache.iter().flat_map(|path| words(&["-path", &format!("./{path}"), "-prune", "-o"]));
        let steps = [
            // Another commit's artifact would be taken for this one's if the build makes none.
            ("rm", [words(&["-rf", "--"]), artifacts.clone()].concat()),
            // Git leaves these alone, whatever they contain.
            (
                "find",
                [words(&["."]), pruned.collect(), words(&["-name", ".git", "-prune", "-exec", "rm", "-rf", "{}", "+"])]
                    .concat(),
            ),
            ("git", git(words(&["read-tree", "--reset", "-u", &self.commit.id]))),
            ("git", git(words(&["clean", "-ffdxq"]).into_iter().chain(kept).collect())),
        ];
        for (program, arguments) in steps {
            let program = find_program(Path::new(program)).ok_or_else(|| format!("there is no {program} in PATH"))?;
            let cage = Cage::target(&program, place.tree, place.index)
                .widened(&[self.repository.mirror().to_owned()], &[place.tree.to_owned()])
                .without_network();
            let mut plan = self.plan(place, program, arguments, cage);
            let index = place.index.join("index").display().to_string();
            plan.environment.insert("GIT_INDEX_FILE".to_owned(), index);
            run(plan, place, |_| {}).await?;
        }
        Ok(())
    }

    /// Runs the manifest's command. The error is the end of a sentence.
    async fn compile(&self, place: &Place<'_>, live: &Live) -> Result<(), String> {
        let build = &self.how.build;
        let (first, rest) = build.command.split_first().ok_or("it has no command")?;
        let name = Path::new(first);
        let program = if name.components().count() > 1 { place.tree.join(name) } else { name.to_owned() };
        let program = find_program(&program).ok_or_else(|| format!("program {first} not found"))?;
        let SourceBuild { sandbox, .. } = self.how;
        let cage = Cage::target(&program, place.tree, place.home)
            .widened(&[], &[place.tree.to_owned()])
            .widened(&sandbox.read, &sandbox.write);
        let cage = if build.network { cage } else { cage.without_network() };
        let mut plan = self.plan(place, program, rest.to_vec(), cage);
        plan.environment.extend(build.env.clone());
        run(plan, place, self.shown_in(live)).await
    }

    /// Lets the container engine build an image. The error is the end of a sentence.
    async fn build_image(&self, place: &Place<'_>, name: &str, engine: &Containers, live: &Live) -> Result<(), String> {
        let Build { containerfile, network, timeout_s, .. } = &self.how.build;
        let containerfile = containerfile.as_deref().ok_or("build.containerfile is missing")?;
        let patience = Duration::from_secs_f64(*timeout_s);
        let image = ImageBuild { name, context: place.tree, containerfile, network: *network, patience };
        let built = Box::pin(engine.build(image, self.shown_in(live)));
        tokio::select! {
            built = timeout_at(place.deadline, built) => built.unwrap_or_else(|_| Err(TIMED_OUT.to_owned())),
            () = nearly_full(place.tree) => Err(FULL.to_owned()),
        }
    }

    /// Returns what shows a line of the build's output.
    fn shown_in(&self, live: &Live) -> impl FnMut(&str) + Send + 'static {
        let (live, short, begun) = (live.clone(), self.commit.short().to_owned(), Instant::now());
        move |line| {
            let shown: String = line.trim().chars().take(120).collect();
            live.set_step(format!("Building {short}, {} s: {shown}", begun.elapsed().as_secs()));
        }
    }

    fn plan(&self, place: &Place<'_>, program: PathBuf, arguments: Vec<String>, cage: Cage) -> Plan {
        let environment = [
            // The system's settings can't be read here.
            ("GIT_CONFIG_NOSYSTEM", "1"),
            NO_REPLACED,
            (COMMIT, &self.commit.id),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Plan { program, arguments, environment, folder: place.tree.to_owned(), cores: Vec::new(), cage }
    }
}

/// Runs a command until it ends, its time is over or the disk is nearly full. `show` gets each line of its output. The
/// error is the end of a sentence.
async fn run(plan: Plan, place: &Place<'_>, mut show: impl FnMut(&str) + Send + 'static) -> Result<(), String> {
    let name = plan.program.file_name().unwrap_or_default().display().to_string();
    let observer = Box::new(move |line: &str| {
        show(line);
        true
    });
    let started = Process::start_observed(&plan, place.group, observer);
    let mut process = started.map_err(|error| format!("can't start {name}: {error}"))?;
    let ended = tokio::select! {
        ended = timeout_at(place.deadline, process.wait()) => Some(ended),
        () = nearly_full(place.tree) => None,
    };
    let stopped = match ended {
        Some(Ok(status)) => {
            let status = status.map_err(|error| format!("can't wait for {name}: {error}"))?;
            if status.success() {
                return Ok(());
            }
            format!("{name}: {}", describe(status))
        }
        Some(Err(_)) => TIMED_OUT.to_owned(),
        None => FULL.to_owned(),
    };
    process
        .stop(Duration::ZERO, place.group)
        .await
        .map_err(|error| format!("{stopped}; can't stop {name}: {error}"))?;
    Err(format!("{stopped}: {}", last_lines(&process.log().await)))
}

/// Waits until a folder's disk is nearly full.
async fn nearly_full(folder: &Path) {
    let mut checks = interval(CHECK);
    loop {
        checks.tick().await;
        if disk::free(folder).is_ok_and(|free| free < LEAST_FREE) {
            return;
        }
    }
}
