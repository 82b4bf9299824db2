//! Targets that the agent builds from a real repository, with the system's Git, in a real cage.

use std::path::{Path, PathBuf};
use std::process::Command;

use brewbench_agent::run::{duet, execute};
use brewbench_agent::target::Containers;
use brewbench_testing::{Image, Podman, public_folder};
use brewbench_wire::engine::EngineKind;
use brewbench_wire::job::Job;
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::{REQUESTS, Scenario};
use brewbench_wire::target::Identity;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, unruly, vus};

/// A server that answers with the text of its commit.
const SERVER: &str = r#"#!/usr/bin/python3
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"TEXT"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *ignored):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// Counts the builds in a folder that stays.
const BUILD: &str = "#!/bin/sh\nset -e\nmkdir -p bin count\necho x >> count/builds\ncp server.py bin/api\n\
    chmod +x bin/api\necho built $(wc -l < count/builds)\n";

/// A repository and an agent that builds from it.
struct World {
    bench: Bench,
    repository: PathBuf,
    _folder: TempDir,
}

impl World {
    async fn new(test: &str, refs: &str) -> Option<Self> {
        let bench = Bench::new(test).await?;
        let folder = public_folder();
        let repository = folder.path().join("api");
        std::fs::create_dir(&repository).expect("a folder");
        let world = Self { bench, repository, _folder: folder };
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.commit(BUILD, "first");
        world.offer(refs, "");
        Some(world)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        let output = command.current_dir(&self.repository).output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits a server with a text; returns the commit.
    fn commit(&self, build: &str, text: &str) -> String {
        std::fs::write(self.repository.join("build.sh"), build).expect("a file");
        std::fs::write(self.repository.join("server.py"), SERVER.replace("TEXT", text)).expect("a file");
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Writes the manifest; `more` is added to `[build]`.
    fn offer(&self, refs: &str, more: &str) {
        self.offer_with("count", refs, more);
    }

    /// Writes a manifest that keeps a folder.
    fn offer_with(&self, kept: &str, refs: &str, more: &str) {
        let text = format!(
            "name = \"api\"\ncommand = [\"bin/api\", \"{{port}}\"]\n[source]\nrepository = \"{}\"\nrefs = {refs}\n\
             [build]\ncommand = [\"sh\", \"build.sh\"]\nartifacts = [\"bin/api\"]\ncache = [\"{kept}\"]\n{more}\n\
             [ready]\npath = \"/\"\n",
            self.repository.display()
        );
        std::fs::write(self.bench.work.targets.join("api.toml"), text).expect("a manifest");
    }

    async fn run_in(&self, experiment: Option<&str>, target: &str) -> Outcome {
        self.run_of(experiment, &[], target).await
    }

    /// Runs one of the targets of an experiment.
    async fn run_of(&self, experiment: Option<&str>, targets: &[&str], target: &str) -> Outcome {
        let usual = job(target);
        let targets = targets.iter().map(|&target| target.to_owned()).collect();
        let scenario = Scenario::of_script("test", "").with_file(REQUESTS, "[[request]]\npath = \"/\"\n");
        let spec = RunSpec { requested_engine: Some(EngineKind::Native), load: Some(vus(1, 1_000)), ..usual.spec };
        let job = Job { scenario, spec, targets, experiment: experiment.map(str::to_owned), ..usual };
        let outcome = execute::run(&job, &self.bench.work, &CancellationToken::new(), |_| {}).await;
        self.bench.assert_clean(job.run);
        outcome
    }

    async fn run(&self, target: &str) -> Outcome {
        self.run_in(None, target).await
    }

    /// Runs a target that can't be measured; returns why.
    async fn refused(&self, target: &str) -> (String, Cause) {
        match self.run(target).await.ended {
            Ended::Failed { reason, cause } => (reason, cause),
            other => panic!("{other:?}"),
        }
    }

    fn builds(&self) -> &Path {
        &self.bench.work.builds
    }

    /// Returns how many commits were built so far.
    fn build_count(&self) -> usize {
        let count = std::fs::read_to_string(self.builds().join("api/tree/count/builds"));
        count.map_or(0, |count| count.lines().count())
    }

    /// Offers all revisions with a toolchain that a build may read and update. Returns its file.
    fn with_toolchain(&self) -> PathBuf {
        let packages = self.repository.with_file_name("packages");
        let toolchain = packages.join("toolchain");
        std::fs::create_dir_all(&toolchain).expect("folders");
        for folder in [&packages, &toolchain] {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            std::fs::set_permissions(folder, open).expect("a mode");
        }
        let (read, write) = (toolchain.display(), packages.display());
        let sandbox = format!("[sandbox]\nread = [\"{read}\"]\nwrite = [\"{write}\"]");
        self.offer("[\"*\"]", &sandbox);
        toolchain.join("version")
    }
}

fn fact<'a>(outcome: &'a Outcome, name: &str) -> &'a str {
    outcome.environment.get(name).map_or("", String::as_str)
}

#[tokio::test]
async fn each_commit_is_built_once_and_is_the_version() {
    let Some(world) = World::new("built", "[\"main\", \"v*\"]").await else { return };
    let first = world.git(&["rev-parse", "HEAD"]);
    world.git(&["tag", "--annotate", "v1", "--message", "one"]);
    let outcome = world.run("api@main").await;
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.target_log);
    assert_eq!(outcome.target_version, first[..12]);
    assert_eq!((fact(&outcome, "target.revision"), fact(&outcome, "target.commit_subject")), (first.as_str(), "first"));
    assert!(fact(&outcome, "before.build").starts_with("built in "), "{:?}", outcome.environment);
    for same in ["api@v1", &format!("api@{}", &first[..8]), "api", "api@HEAD", "api@refs/heads/main"] {
        let again = world.run(same).await;
        assert_eq!((&again.ended, fact(&again, "before.build")), (&Ended::Finished, "cached"), "{same}");
        assert_eq!(again.target, outcome.target, "one identity");
    }
    let second = world.commit(BUILD, "second");
    let outcome = world.run("api@main").await;
    assert_eq!((outcome.target_version.as_str(), &outcome.ended), (&second[..12], &Ended::Finished));
    assert_ne!(outcome.target, world.run("api@v1").await.target, "another program");
    let count = std::fs::read_to_string(world.builds().join("api/tree/count/builds")).expect("kept");
    assert_eq!(count.lines().count(), 2, "two commits");
    std::fs::write(world.repository.join("NOTES"), "reworded").expect("a file");
    let third = world.commit(BUILD, "second");
    let same = world.run("api@main").await;
    assert_eq!((same.target_version.as_str(), &same.target), (&third[..12], &outcome.target), "the same program");
}

#[tokio::test]
async fn an_experiment_measures_the_commit_with_which_it_began() {
    let Some(world) = World::new("pinned", "[\"main\"]").await else { return };
    let first = world.git(&["rev-parse", "HEAD"]);
    assert_eq!(world.run_in(Some("e1"), "api@main").await.target_version, first[..12]);
    // A push that removes the first commit from the branch.
    world.git(&["checkout", "--quiet", "--orphan", "other"]);
    let other = world.commit(BUILD, "other");
    world.git(&["branch", "--force", "main", &other]);
    assert_eq!(world.run_in(Some("e2"), "api@main").await.target_version, other[..12]);
    let outcome = world.run_in(Some("e1"), "api@main").await;
    assert_eq!((outcome.target_version.as_str(), outcome.ended), (&first[..12], Ended::Finished));
    let (reason, _) = world.refused(&format!("api@{first}")).await;
    assert!(reason.contains("is no branch, tag or commit among those that may be built: main"), "{reason}");
}

#[tokio::test]
async fn an_experiment_keeps_the_builds_with_which_it_began() {
    let Some(world) = World::new("kept builds", "[\"*\"]").await else { return };
    let version = world.with_toolchain();
    world.git(&["tag", "v1"]);
    world.commit(BUILD, "second");
    let both = ["api@v1", "api@main"];
    let run = async |experiment: &str, target: &str| world.run_of(Some(experiment), &both, target).await;
    let began = run("e1", "api@v1").await;
    assert_eq!(began.ended, Ended::Finished, "{}", began.target_log);
    assert!(fact(&began, "before.build").starts_with("built in "), "{:?}", began.environment);
    assert_eq!(world.build_count(), 2, "both sides are built before one is measured");
    std::fs::write(&version, "an update of the packages").expect("a file");
    for (target, subject) in [("api@main", "second"), ("api@v1", "first")] {
        let later = run("e1", target).await;
        assert_eq!((&later.ended, fact(&later, "before.build")), (&Ended::Finished, "cached"), "{target}");
        assert_eq!(fact(&later, "target.commit_subject"), subject);
        assert_eq!(later.target == began.target, target == "api@v1", "the program of its commit");
    }
    assert_eq!(run("e2", "api@main").await.ended, Ended::Finished);
    assert_eq!(world.build_count(), 4, "another experiment has the present packages");
    std::fs::remove_dir_all(world.builds().join("api/done")).expect("removed");
    let Ended::Failed { reason, cause } = run("e1", "api@v1").await.ended else { panic!("its build is gone") };
    assert!(cause == Cause::Build && reason.contains("can't be built as the experiment began"), "{reason}");
    assert_eq!(run("e2", "api@v1").await.ended, Ended::Finished, "built again with the same packages");
    assert_eq!(world.build_count(), 5);
}

#[tokio::test]
async fn both_sides_are_built_again_if_packages_change_before_both_are_built() {
    let Some(world) = World::new("changing packages", "[\"*\"]").await else { return };
    let version = world.with_toolchain();
    // The packages change while the second side is built.
    let update = format!("if [ \"$(wc -l < count/builds)\" = 2 ]; then echo update > {}; fi\n", version.display());
    let build = format!("{BUILD}{update}");
    world.commit(&build, "first");
    world.git(&["tag", "v1"]);
    world.commit(&build, "second");
    let both = ["api@v1", "api@main"];
    for (target, built) in [("api@v1", 4), ("api@main", 4)] {
        let outcome = world.run_of(Some("e1"), &both, target).await;
        assert_eq!((outcome.ended, world.build_count()), (Ended::Finished, built), "{}", outcome.target_log);
    }
    assert!(version.exists());
    // A side that can't be built does not keep the other one from being measured.
    world.commit("exit 1\n", "broken");
    for (target, is_built) in [("api@v1", true), ("api@main", false)] {
        let outcome = world.run_of(Some("e2"), &both, target).await;
        assert_eq!(outcome.ended == Ended::Finished, is_built, "{target}: {:?}", outcome.ended);
    }
}

#[tokio::test]
async fn where_a_build_is_stored_is_no_fact_of_the_target() {
    let Some(world) = World::new("place", "[\"main\"]").await else { return };
    let outcome = world.run("api@main").await;
    assert_eq!((fact(&outcome, "target.executable"), fact(&outcome, "target.folder")), ("bin/api", ""));
    let own = world.builds().display().to_string();
    let paths: Vec<_> = outcome.environment.iter().filter(|(_, value)| value.contains(&own)).collect();
    assert!(paths.is_empty(), "{paths:?}");
}

#[tokio::test]
async fn two_revisions_of_a_duet_are_built_one_after_the_other() {
    let Some(world) = World::new("built duet", "[\"*\"]").await else { return };
    world.git(&["tag", "v1"]);
    world.commit(BUILD, "second");
    let jobs = crate::duet::jobs(["api@v1", "api@main"]);
    let outcomes = duet::run(jobs.each_ref(), &world.bench.work, &CancellationToken::new(), |_, _| {}).await;
    for outcome in &outcomes {
        assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.target_log);
    }
    let [subjects, versions] =
        ["target.commit_subject", "target.revision"].map(|name| outcomes.each_ref().map(|outcome| fact(outcome, name)));
    assert_eq!(subjects, ["first", "second"]);
    assert_ne!(versions[0], versions[1]);
}

#[tokio::test]
async fn an_image_is_built_by_the_engine_once_for_each_commit() {
    let (Some(mut world), Some(podman)) = (World::new("built image", "[\"main\"]").await, Podman::start()) else {
        return;
    };
    world.bench.work.containers = Containers::find(Some(&podman.socket()), &world.bench.agent);
    podman.load("unruly:1", &Image::of(&unruly(), &[]));
    let manifest = format!(
        "name = \"Api\"\n[container]\ncommand = [\"{{port}}\", \"good\"]\n[source]\nrepository = \"{}\"\nrefs = [\"*\"]\n\
         [build]\ncontainerfile = \"docker/Containerfile\"\nnetwork = true\n[ready]\npath = \"/\"\n",
        world.repository.display()
    );
    std::fs::write(world.bench.work.targets.join("image.toml"), manifest).expect("a manifest");
    let commit = |from: &str, text: &str| {
        std::fs::create_dir_all(world.repository.join("docker")).expect("a folder");
        let file = format!("FROM localhost/{from}\nCOPY server.py /server.py\nENV COMMIT={text}\n");
        std::fs::write(world.repository.join("docker/Containerfile"), file).expect("a file");
        world.commit(BUILD, text)
    };
    let first = commit("unruly:1", "first");
    let outcome = world.run("Api@main").await;
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.target_log);
    assert_eq!(outcome.target_version, first[..12]);
    let image = |outcome: &Outcome| match &outcome.target {
        Some(Identity::Container { image, id: Some(id), .. }) => (image.clone(), id.clone()),
        other => panic!("{other:?}"),
    };
    assert!(fact(&outcome, "before.build").starts_with("built in ") && image(&outcome).0.contains(&first));
    let again = world.run("Api").await;
    assert_eq!((fact(&again, "before.build"), image(&again)), ("cached", image(&outcome)));
    let second = commit("unruly:1", "second");
    let other = world.run("Api@main").await;
    assert!(other.target_version == second[..12] && image(&other).1 != image(&outcome).1, "{other:?}");
    // An image that is gone is built again.
    podman.run(&["rmi", "--force", &image(&outcome).0]);
    let again = world.run(&format!("Api@{first}")).await;
    assert!(again.ended == Ended::Finished && fact(&again, "before.build").starts_with("built in "), "{again:?}");
    commit("none:1", "third");
    let (reason, cause) = world.refused("Api@main").await;
    assert!(cause == Cause::Build && reason.contains("can't be built: ") && reason.contains("none:1"), "{reason}");
}

#[tokio::test]
async fn a_broken_mirror_is_replaced_and_a_missing_repository_loses_nothing() {
    let Some(world) = World::new("mirror", "[\"main\"]").await else { return };
    let mirror = world.builds().join("api/repository.git");
    assert_eq!(world.run_in(Some("e1"), "api@main").await.ended, Ended::Finished);
    std::fs::write(mirror.join("HEAD"), "damaged").expect("a file");
    assert_eq!(world.run_in(Some("e2"), "api@main").await.ended, Ended::Finished);
    std::fs::remove_dir_all(&mirror).expect("removed");
    assert_eq!(world.run_in(Some("e1"), "api@main").await.ended, Ended::Finished, "fetched again");
    std::fs::rename(&world.repository, world.repository.with_extension("away")).expect("away");
    let (reason, cause) = world.refused("api@main").await;
    assert!(cause == Cause::Other && reason.contains("target api@main: `git ls-remote`: "), "{reason}");
    assert!(mirror.exists());
    assert_eq!(world.run_in(Some("e1"), "api@main").await.ended, Ended::Finished, "of the cache");
}

#[tokio::test]
async fn what_the_owner_does_not_allow_is_never_executed() {
    let Some(world) = World::new("hostile", "[\"main\"]").await else { return };
    let marker = world.repository.join("executed");
    world.git(&["checkout", "--quiet", "-b", "evil"]);
    let evil = world.commit(&format!("#!/bin/sh\ntouch {}\n", marker.display()), "evil");
    world.git(&["checkout", "--quiet", "main"]);
    let revisions =
        ["evil", "refs/heads/evil", &evil, &evil[..8], "HEAD~1", "main..evil", "--upload-pack=x", "", "$(id)"];
    for revision in revisions {
        let (reason, cause) = world.refused(&format!("api@{revision}")).await;
        assert_eq!(cause, Cause::Build, "{revision}");
        assert!(reason.starts_with("target api@") && reason.contains("revision") | reason.contains("main"), "{reason}");
    }
    assert!(!marker.exists());
    std::fs::write(
        world.bench.work.targets.join("plain.toml"),
        "name = \"plain\"\nversion = \"1\"\ncommand = [\"sh\", \"{port}\"]\n[ready]\npath = \"/\"\n",
    )
    .expect("a manifest");
    assert_eq!(world.refused("plain@2").await.0, "target plain is version 1 here, not 2");
}

#[tokio::test]
async fn a_build_that_fails_hangs_or_leaves_processes_ends_with_its_last_lines() {
    let Some(world) = World::new("broken", "[\"main\"]").await else { return };
    world.offer("[\"main\"]", "timeout_s = 2.0");
    let secret = world.bench.work.targets.join("secret");
    std::fs::write(&secret, "words of the agent").expect("a file");
    for (build, why) in [
        ("echo error: no such crate >&2\nexit 3\n".to_owned(), "sh: exit status 3: error: no such crate"),
        ("sleep 60\n".to_owned(), "it took longer than build.timeout_s: "),
        ("echo nothing\n".to_owned(), "the artifact bin/api: No such file or directory (os error 2)"),
        (
            "mkdir bin count\nln -s /etc/hostname bin/api\n".to_owned(),
            "the artifact bin/api: it leads out of the repository",
        ),
        (format!("cat {} >&2 && echo x > ../escaped\nexit 1\n", secret.display()), "Permission denied"),
    ] {
        let commit = world.commit(&build, "broken");
        let (reason, cause) = world.refused("api@main").await;
        assert!(reason.contains(why), "{build}: {reason}");
        assert!(cause == Cause::Build && !reason.contains("words of the agent"), "{reason}");
        assert!(reason.contains(&commit[..12]) || reason.starts_with("the artifact"), "{reason}");
    }
    assert!(!world.builds().join("api/escaped").exists());
    let commit = world.commit("mkdir -p count\necho x >> count/tries\nexit 1\n", "again");
    for _ in 0..3 {
        let Ended::Failed { reason, .. } = world.run_in(Some("e1"), "api@main").await.ended else { panic!("failed") };
        assert!(reason.starts_with(&format!("commit {} can't be built: ", &commit[..12])), "{reason}");
    }
    let tries = std::fs::read_to_string(world.builds().join("api/tree/count/tries")).expect("kept");
    assert_eq!(tries.lines().count(), 1, "once in an experiment");
    let daemon = format!("(setsid sleep 1234 &) >/dev/null 2>&1\n{BUILD}");
    world.commit(&daemon, "daemon");
    assert_eq!(world.run("api@main").await.ended, Ended::Finished);
}

/// What a build leaves behind must not be taken for the result, or the files, of another commit.
#[tokio::test]
async fn what_a_build_leaves_does_not_reach_another_commit() {
    let Some(world) = World::new("left over", "[\"main\"]").await else { return };
    world.offer_with("bin", "[\"main\"]", "");
    let ignoring = format!("{BUILD}mkdir -p .git sub/.git\ncp server.py bin/api\n");
    std::fs::create_dir(world.repository.join("sub")).expect("a folder");
    std::fs::write(world.repository.join("sub/file"), "").expect("a file");
    world.commit(&ignoring, "first");
    assert_eq!(world.run("api@main").await.ended, Ended::Finished);
    let tree = world.builds().join("api/tree");
    assert!(tree.join("bin/api").exists() && tree.join("sub/.git").exists());
    let look = "for path in .git sub/.git; do [ ! -e $path ] || exit 8; done\n\
                for path in ../repository.git/HEAD ../index/index; do ! cat $path || exit 9; done\n";
    world.commit(&format!("{look}echo makes nothing\n"), "second");
    let (reason, _) = world.refused("api@main").await;
    assert!(reason.contains("the artifact bin/api: No such file or directory"), "{reason}");
}

#[tokio::test]
async fn a_build_begins_afresh_after_one_that_was_interrupted_or_is_from_the_future() {
    let Some(world) = World::new("afresh", "[\"main\"]").await else { return };
    let builds_so_far = || {
        let count = std::fs::read_to_string(world.builds().join("api/tree/count/builds"));
        count.map_or(0, |count| count.lines().count())
    };
    let next = async |text: &str| {
        world.commit(BUILD, text);
        assert_eq!(world.run("api@main").await.ended, Ended::Finished);
        builds_so_far()
    };
    assert_eq!((next("1").await, next("2").await), (1, 2), "kept");
    let succeeded = world.builds().join("api/succeeded");
    std::fs::remove_file(&succeeded).expect("a build that was killed");
    std::fs::write(world.builds().join("api/index/index.lock"), "").expect("a checkout that was killed");
    assert_eq!((next("3").await, next("4").await), (1, 2), "after an interruption");
    let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_hours(24);
    let file = std::fs::File::options().write(true).open(&succeeded).expect("a file");
    file.set_modified(tomorrow).expect("a time");
    assert_eq!(next("5").await, 1, "after the clock was set back");
}

#[tokio::test]
async fn a_build_has_no_network_unless_the_owner_allows_it() {
    let Some(world) = World::new("offline", "[\"main\"]").await else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connect =
        format!("set -e\npython3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'\n{BUILD}");
    world.commit(&connect, "online");
    let (reason, cause) = world.refused("api@main").await;
    assert!(cause == Cause::Build && reason.contains("can't be built: sh: exit status 1"), "{reason}");
    world.offer("[\"main\"]", "network = true");
    assert_eq!(world.run("api@main").await.ended, Ended::Finished);
}
