//! Runs on containers, with a real Podman and a real k6.

mod support;

use brewbench_agent::run::execute;
use brewbench_agent::target::Containers;
use brewbench_agent::wire::outcome::{Cause, Ended, Outcome};
use brewbench_agent::wire::target::Identity;
use brewbench_testing::Podman;
use support::{Bench, job, unruly};
use tokio_util::sync::CancellationToken;

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
        podman.load("unruly:1", &unruly(), &[]);
        Some(Self { bench, podman })
    }

    /// Writes the manifest of a container; `more` follows its port.
    fn offer(&self, manner: &str, more: &str) {
        let table = format!("image = \"localhost/unruly:1\"\ncommand = [\"{{port}}\", \"{manner}\"]\n{more}");
        self.offer_table(&table);
    }

    fn offer_table(&self, table: &str) {
        let text = format!(
            "name = \"boxed\"\nversion = \"1\"\n[ready]\npath = \"/\"\ntimeout_s = 5\n[container]\n{table}\n"
        );
        std::fs::write(self.bench.work.targets.join("boxed.toml"), text).expect("a manifest");
    }

    async fn run(&self) -> Outcome {
        let outcome = execute::run(&job("boxed"), &self.bench.work, &CancellationToken::new(), |_| {}).await;
        self.assert_clean(&outcome);
        outcome
    }

    fn assert_clean(&self, outcome: &Outcome) {
        self.bench.assert_clean(outcome.run);
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
async fn a_container_is_measured_within_the_limits_of_its_size() {
    let Some(site) = Site::new("container host").await else { return };
    site.offer("good", "");
    let outcome = site.run().await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let Some(Identity::Container { image, id: Some(id) }) = &outcome.target else { panic!("{outcome:?}") };
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
    assert_eq!((environment["container.seccomp"].as_str(), environment["container.user"].as_str()), ("unconfined (off)", "1000"));
    assert_ne!(environment["container.netfilter_rules"], "0");
}

#[tokio::test]
async fn a_container_that_does_not_serve_says_why() {
    let Some(site) = Site::new("container faults").await else { return };
    for (manner, words, cause) in [
        ("dead", "exited before it was ready: exit status 3; last output: unruly is dead | no reason to live", Cause::TargetDied),
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
