//! Runs on containers, with a real Podman and a real k6.

use std::time::Duration;

use brewbench_agent::run::execute;
use brewbench_agent::series::live::Sent;
use brewbench_agent::target::Containers;
use brewbench_testing::{Image, Manner, Podman, Registry, SmallDisk};
use brewbench_wire::Phase;
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::series::Usage;
use brewbench_wire::target::Identity;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, unruly};

/// A bench with an engine that has the unruly target as `localhost/unruly:1`.
struct Site {
    bench: Bench,
    podman: Podman,
}

impl Site {
    async fn new(test: &str) -> Option<Self> {
        Self::with(test, Podman::start()?).await
    }

    async fn with(test: &str, podman: Podman) -> Option<Self> {
        let mut bench = Bench::new(test).await?;
        bench.work.containers = Containers::find(Some(&podman.socket()), &bench.agent);
        podman.load("unruly:1", &Image::of(&unruly(), &[]));
        Some(Self { bench, podman })
    }

    /// Writes the manifest of a container; `more` follows its port.
    fn offer(&self, manner: &str, more: &str) {
        let table = format!("image = \"localhost/unruly:1\"\ncommand = [\"{{port}}\", \"{manner}\"]\n{more}");
        self.offer_table(&table);
    }

    fn offer_table(&self, table: &str) {
        let text =
            format!("name = \"boxed\"\nversion = \"1\"\n[ready]\npath = \"/\"\ntimeout_s = 5\n[container]\n{table}\n");
        std::fs::write(self.bench.work.targets.join("boxed.toml"), text).expect("a manifest");
    }

    async fn run(&self) -> Outcome {
        let outcome = execute::run(&job("boxed"), &self.bench.work, &CancellationToken::new(), |_| {}).await;
        self.assert_clean(&outcome);
        outcome
    }

    /// Fails if anything stays behind. The monitor of a container takes a moment to exit after it.
    fn assert_clean(&self, outcome: &Outcome) {
        self.bench.assert_clean(outcome.run);
        let since = std::time::Instant::now();
        while !self.podman.leftovers().is_empty() && since.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(self.podman.leftovers(), Vec::<String>::new());
    }

    /// Runs a job that must fail, and returns why.
    async fn failure(&self) -> (String, Cause) {
        match self.run().await.ended {
            Ended::Failed { reason, cause } => (reason, cause),
            ended => panic!("ended as {ended:?}"),
        }
    }
}

#[tokio::test]
async fn a_run_names_the_tag_of_an_image() {
    let Some(site) = Site::new("container tags").await else { return };
    site.podman.load("unruly:2", &Image::of(&unruly(), &[]));
    let text = "name = \"boxed\"\n[ready]\npath = \"/\"\ntimeout_s = 5\n[container]\n\
                image = \"localhost/unruly:{version}\"\ncommand = [\"{port}\", \"good\"]\npull = \"never\"\n";
    std::fs::write(site.bench.work.targets.join("boxed.toml"), text).expect("a manifest");
    let run =
        async |target: &str| execute::run(&job(target), &site.bench.work, &CancellationToken::new(), |_| {}).await;
    for version in ["1", "2"] {
        let outcome = run(&format!("boxed@{version}")).await;
        assert_eq!((outcome.target_version.as_str(), &outcome.ended), (version, &Ended::Finished), "{outcome:?}");
        let Some(Identity::Container { image, .. }) = &outcome.target else { panic!("{outcome:?}") };
        assert_eq!(image, &format!("localhost/unruly:{version}"));
    }
    for (target, why) in [
        ("boxed", "name a version of target boxed: boxed@VERSION"),
        ("boxed@3", "localhost/unruly:3 is not on this machine"),
        ("boxed@1/../x", "is no version of an image"),
    ] {
        let Ended::Failed { reason, .. } = run(target).await.ended else { panic!("{target}") };
        assert!(reason.contains(why), "{reason}");
    }
}

#[tokio::test]
async fn a_container_is_measured_within_the_limits_of_its_size() {
    let Some(site) = Site::new("container host").await else { return };
    site.offer("good", "");
    let outcome = site.run().await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let Some(Identity::Container { image, id: Some(id), .. }) = &outcome.target else { panic!("{outcome:?}") };
    assert_eq!(image, "localhost/unruly:1");
    assert!(id.starts_with("sha256:") && id.len() == 71, "{id}");
    let environment = &outcome.environment;
    for (name, value) in [
        ("target.image", "localhost/unruly:1"),
        ("target.image_id", id.as_str()),
        ("container.network", "host"),
        ("container.storage_driver", "overlay"),
        ("container.seccomp", "default (on)"),
        ("container.user", "0"),
        ("container.cpus", "1"),
        ("container.user_namespace", "host"),
    ] {
        assert_eq!(environment.get(name).map(String::as_str), Some(value), "{environment:?}");
    }
    assert!(environment["container.engine"].starts_with("Podman 4"), "{environment:?}");
    assert!(environment["container.runtime"].starts_with("runc 1"), "{environment:?}");
    assert!(environment["container.netfilter_rules"].parse::<usize>().is_ok(), "{environment:?}");
    if site.bench.limits_memory() {
        let expected = site.bench.work.sandbox.mechanisms();
        assert_eq!(outcome.enforced, expected, "read back from the kernel");
        let observed = outcome.observed.expect("counters");
        assert!(observed.cpu_us > Some(0) && observed.peak_memory_bytes > Some(0), "{observed:?}");
        assert_eq!(observed.oom_kills, Some(0));
    }
    assert_eq!((outcome.conditions.processes, outcome.conditions.processes_gone), (Some(1), Some(0)));
    assert!(outcome.conditions.startup_ms.is_some_and(|ms| ms > 0.0), "{:?}", outcome.conditions);
    assert_eq!(outcome.target_log, "unruly is good\n");
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let usage = series.measured.expect("a window").usage;
    assert!(usage.iter().any(|usage| usage.target.cpu_us > Some(0)), "{usage:?}");
    assert!(usage.iter().all(|usage| usage.target.memory_bytes > Some(0)), "{usage:?}");
    let is_told_apart = |usage: &Usage| {
        let target = usage.target;
        target.held_memory_bytes > Some(0) && target.file_cache_bytes.is_some()
    };
    assert!(!site.bench.limits_memory() || usage.iter().all(is_told_apart), "{usage:?}");
}

#[tokio::test]
async fn another_image_under_the_same_tag_is_another_target() {
    let Some(site) = Site::new("container tag").await else { return };
    site.offer("good", "");
    let identity = async || {
        let outcome = site.run().await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        outcome.target.expect("an identity").text()
    };
    let first = identity().await;
    assert_eq!(identity().await, first);
    let folder = tempfile::tempdir().expect("a folder");
    let changed = folder.path().join("unruly");
    let mut program = std::fs::read(unruly()).expect("a program");
    program.push(0);
    std::fs::write(&changed, program).expect("a program");
    std::fs::set_permissions(&changed, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    site.podman.load("unruly:1", &Image::of(&changed, &[]));
    let second = identity().await;
    assert!(second != first && second.starts_with("sha256:"), "{first} {second}");
    site.offer("good", "env = { LEVEL = \"debug\" }");
    let third = identity().await;
    assert!(third != second && third[..71] == second[..71], "{second} {third}");
}

#[tokio::test]
async fn a_container_behind_a_bridge_is_reached_by_its_published_port() {
    let Some(site) = Site::new("container bridge").await else { return };
    site.offer_table(
        "image = \"localhost/unruly:1\"\ncommand = [\"0.0.0.0:8080\", \"good\"]\nport = 8080\nnetwork = \"bridge\"\n\
         seccomp = \"unconfined\"\nuser = \"1000:1000\"",
    );
    let outcome = site.run().await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let environment = &outcome.environment;
    assert_eq!(environment["container.network"], "bridge");
    assert_eq!(
        (environment["container.seccomp"].as_str(), environment["container.user"].as_str()),
        ("unconfined (off)", "1000")
    );
    assert_ne!(environment["container.netfilter_rules"], "0");
}

#[tokio::test]
async fn a_container_that_does_not_serve_says_why() {
    let Some(site) = Site::new("container faults").await else { return };
    for (manner, words, cause) in [
        (
            "dead",
            "exited before it was ready: exit status 3; last output: unruly is dead | no reason to live",
            Cause::TargetDied,
        ),
        // With the process that it started, the container is gone, and the daemon in it.
        ("daemon", "exited before it was ready: exit status 0", Cause::TargetDied),
        ("deaf", "connections are refused", Cause::TargetNotReady),
        ("hungry-at-start", "exited before it was ready: OOM-killed", Cause::TargetOutOfMemory),
        ("mortal", "exited during the ", Cause::TargetDied),
    ] {
        site.offer(manner, "");
        let (reason, actual) = site.failure().await;
        assert!(reason.starts_with("target boxed") && reason.contains(words), "{manner}: {reason}");
        assert_eq!(actual, cause, "{manner}: {reason}");
    }
}

#[tokio::test]
async fn an_image_that_is_not_there_says_why() {
    let Some(site) = Site::new("container images").await else { return };
    let free =
        std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let image = || Image::of(&unruly(), &[]);
    let (silent, refusing) = (Registry::start(Manner::Silent, image()), Registry::start(Manner::Refusing, image()));
    site.podman.load("foreign:1", &image().for_architecture("riscv64"));
    for (name, pull, words) in [
        (
            "localhost/none:1".to_owned(),
            "never",
            "localhost/none:1 is not on this machine, and container.pull is never",
        ),
        (format!("{free}/shop:1"), "missing", "connection refused"),
        (refusing.image(), "missing", "403 (Forbidden)"),
        ("localhost/foreign:1".to_owned(), "missing", "is for linux/riscv64, this machine is linux/"),
        (silent.image(), "missing", "the registry sent nothing for 30 s"),
    ] {
        site.offer_table(&format!("image = \"{name}\"\nport = 8080\npull = \"{pull}\""));
        let (reason, cause) = site.failure().await;
        assert!(reason.starts_with("target boxed: ") && reason.contains(&name), "{reason}");
        assert!(reason.contains(words), "{reason}");
        assert_eq!(cause, Cause::TargetNotReady, "{reason}");
    }
}

#[tokio::test]
async fn an_image_is_pulled_before_the_run_and_its_digest_is_kept() {
    let Some(site) = Site::new("container pull").await else { return };
    let registry = Registry::start(Manner::Good, Image::of(&unruly(), &[]));
    let image = registry.image();
    for pull in ["missing", "never", "always"] {
        let command = "[\"{port}\", \"good\"]";
        site.offer_table(&format!("image = \"{image}\"\ncommand = {command}\npull = \"{pull}\""));
        let outcome = site.run().await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        let digests = &outcome.environment["target.image_digests"];
        assert!(digests.contains("/shop@sha256:"), "{digests}");
    }
}

#[tokio::test]
async fn a_disk_that_is_full_while_pulling_is_named() {
    let Some(disk) = SmallDisk::mount("24M") else { return };
    let Some(podman) = Podman::start_on(disk.path()) else { return };
    let Some(mut bench) = Bench::new("container disk").await else { return };
    bench.work.containers = Containers::find(Some(&podman.socket()), &bench.agent);
    let site = Site { bench, podman };
    let registry = Registry::start(Manner::Good, Image::of_bytes(40 << 20));
    site.offer_table(&format!("image = \"{}\"\nport = 8080", registry.image()));
    let (reason, _) = site.failure().await;
    assert!(reason.contains("can't pull") && reason.contains("no space left on device"), "{reason}");
}

#[tokio::test]
async fn a_run_survives_the_death_of_its_engine() {
    let Some(mut site) = Site::new("container engine").await else { return };
    site.offer("good", "");
    let podman = std::cell::RefCell::new(&mut site.podman);
    let outcome = execute::run(&job("boxed"), &site.bench.work, &CancellationToken::new(), |phase| {
        if phase == Phase::Measuring {
            podman.borrow_mut().kill();
        }
    })
    .await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(outcome.observed.is_some_and(|observed| observed.cpu_us > Some(0)), "{:?}", outcome.observed);
    site.bench.assert_clean(outcome.run);
    let (reason, cause) =
        match execute::run(&job("boxed"), &site.bench.work, &CancellationToken::new(), |_| {}).await.ended {
            Ended::Failed { reason, cause } => (reason, cause),
            ended => panic!("ended as {ended:?}"),
        };
    assert!(reason.contains("the container engine at ") && reason.contains("does not respond"), "{reason}");
    assert_eq!(cause, Cause::Other);
    // An idle agent removes what the run could not.
    site.podman.restart();
    assert_eq!(site.podman.containers().len(), 1);
    let begun = std::time::Instant::now();
    // On a busy machine, one attempt may not be enough.
    while !site.podman.leftovers().is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(5), "{:?}", site.podman.leftovers());
        site.bench.work.containers.sweep_again().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(site.run().await.ended, Ended::Finished);
}

#[tokio::test]
async fn a_run_waits_for_an_engine_that_restarts() {
    let Some(mut site) = Site::new("container engine restart").await else { return };
    site.offer("good", "");
    site.podman.kill();
    let Site { bench, podman } = &mut site;
    let (job, stop, live) = (job("boxed"), CancellationToken::new(), bench.work.live.clone());
    let restarting = async {
        let (mut news, mut sent) = (live.listen(), Sent::default());
        loop {
            news.changed().await.expect("news");
            if live.step(&mut sent).is_some_and(|(_, step)| step.starts_with("Waiting: the container engine at ")) {
                return podman.restart();
            }
        }
    };
    let (outcome, ()) = tokio::join!(execute::run(&job, &bench.work, &stop, |_| {}), restarting);
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    site.assert_clean(&outcome);
}

#[tokio::test]
async fn a_cancelled_run_leaves_nothing_in_any_phase() {
    let Some(site) = Site::new("container cancel").await else { return };
    site.offer("good", "");
    for after_ms in [0, 20, 60, 100, 150, 250, 400, 700] {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            later.cancel();
        });
        let outcome = execute::run(&job("boxed"), &site.bench.work, &cancel, |_| {}).await;
        assert_eq!(outcome.ended, Ended::Cancelled, "after {after_ms} ms");
        site.assert_clean(&outcome);
    }
}

#[tokio::test]
async fn agents_on_one_engine_remove_only_their_own_containers() {
    let Some(site) = Site::new("container one").await else { return };
    let label = |agent: &str| format!("brewbench.agent={agent}");
    for (name, agent) in [("own", site.bench.agent.as_str()), ("other", "rack-2")] {
        let words = ["create", "--name", name, "--label", &label(agent), "localhost/unruly:1", "1", "deaf"];
        site.podman.run(&words);
    }
    let swept = site.bench.work.containers.sweep().await.expect("an engine");
    assert_eq!((swept, site.podman.containers()), (vec!["own".to_owned()], vec!["other".to_owned()]));
    let other = Containers::find(Some(&site.podman.socket()), "rack-2");
    assert_eq!(other.sweep().await, Ok(vec!["other".to_owned()]));
}
