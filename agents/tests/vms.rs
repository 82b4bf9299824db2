//! Runs on virtual machines, with a real QEMU, a real kernel and a real k6.

mod support;

use std::time::Duration;

use brewbench_agent::run::execute;
use brewbench_agent::wire::job::{Job, Size};
use brewbench_agent::wire::outcome::{Cause, Ended, Outcome};
use brewbench_agent::wire::target::Identity;
use brewbench_testing::Guest;
use support::{Bench, job};
use tokio_util::sync::CancellationToken;

/// A bench and a guest.
struct Site {
    bench: Bench,
    guest: Guest,
}

impl Site {
    async fn new(test: &str) -> Option<Self> {
        Some(Self { guest: Guest::build()?, bench: Bench::new(test).await? })
    }

    fn offer(&self, smp: &str, memory: &str, append: &str, timeout_s: u32) {
        let command = self.guest.command(smp, memory, append);
        let text = format!(
            "name = \"guest\"\nversion = \"1\"\n[vm]\ncommand = {command}\nenv = {{ SIZE = \"{{vcpus}} {{memory_mib}}\" }}\n\
             [ready]\npath = \"/health\"\ntimeout_s = {timeout_s}\n[sandbox]\nread = [{:?}, {:?}]\n",
            self.guest.folder().display().to_string(),
            self.guest.kernel_folder().display().to_string(),
        );
        std::fs::write(self.bench.work.targets.join("guest.toml"), text).expect("a manifest");
    }

    fn job(vcpus: f64) -> Job {
        let size = Size { name: format!("{vcpus}/128MiB"), vcpus, memory_bytes: 128 << 20 };
        Job { size, ..job("guest") }
    }

    async fn run(&self, job: &Job) -> Outcome {
        let outcome = execute::run(job, &self.bench.work, &CancellationToken::new(), |_| {}).await;
        self.bench.assert_clean(job.run);
        outcome
    }

    async fn failure(&self, job: &Job) -> (String, Cause) {
        match self.run(job).await.ended {
            Ended::Failed { reason, cause } => (reason, cause),
            ended => panic!("ended as {ended:?}"),
        }
    }
}

#[tokio::test]
async fn a_guest_that_proves_its_size_is_measured() {
    let Some(site) = Site::new("vm").await else { return };
    site.offer("{vcpus}", "{memory_mib}", "", 60);
    let outcome = site.run(&Site::job(1.0)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let Some(Identity::Vm { sha256 }) = &outcome.target else { panic!("{outcome:?}") };
    assert_eq!(sha256.len(), 64);
    assert_eq!((outcome.enforced.cpu.as_str(), outcome.enforced.memory.as_str()), ("guest", "guest"));
    assert_eq!(outcome.conditions.emulated, Some(true));
    let environment = &outcome.environment;
    assert_eq!(
        (environment["guest.accelerator"].as_str(), environment["guest.cpus"].as_str()),
        ("none: emulated", "1")
    );
    assert!(environment["guest.kernel"].contains("cloud"), "{environment:?}");
    let memory: u64 = environment["guest.memory_bytes"].parse().expect("bytes");
    assert!((64 << 20..128 << 20).contains(&memory), "{memory}");
    assert!(outcome.target_log.contains("brewbench-guest: cpus=1"), "{}", outcome.target_log);
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let usage = series.measured.expect("a window").usage;
    assert!(usage.iter().any(|usage| usage.target.cpu_us > Some(0)), "what it takes from the host: {usage:?}");
}

#[tokio::test]
async fn a_guest_that_is_not_as_it_should_be_is_refused_with_the_reason() {
    let Some(site) = Site::new("vm faults").await else { return };
    for (smp, memory, append, words) in [
        ("{vcpus}", "{memory_mib}", "nr_cpus=1", "the guest has 1 CPU, but the size 2/128MiB has 2"),
        ("{vcpus}", "256", "", "but the size 2/128MiB has 128 MiB"),
        (
            "{vcpus}",
            "{memory_mib}",
            "guest.fault=panic",
            "in the guest: Kernel panic - not syncing: Attempted to kill init!",
        ),
        ("{vcpus}", "{memory_mib}", "guest.fault=hang", "no response to GET /health with status 200 within 8 s"),
    ] {
        let timeout_s = if append == "guest.fault=hang" { 8 } else { 60 };
        // A launcher must take the size even if it ignores it.
        site.offer(smp, memory, append, timeout_s);
        let (reason, cause) = site.failure(&Site::job(2.0)).await;
        assert!(reason.starts_with("target guest") && reason.contains(words), "{append}: {reason}");
        let expected = if append.contains("panic") { Cause::TargetDied } else { Cause::TargetNotReady };
        assert_eq!(cause, expected, "{reason}");
    }
    let (reason, _) = site.failure(&Site::job(0.5)).await;
    assert!(reason.contains("the size 0.5/128MiB has 0.5 vCPUs, but a virtual machine needs whole ones"), "{reason}");
}

#[tokio::test]
async fn a_cancelled_guest_leaves_nothing() {
    let Some(site) = Site::new("vm cancel").await else { return };
    site.offer("{vcpus}", "{memory_mib}", "", 60);
    for after_ms in [0, 50, 1_000, 2_500] {
        let (cancel, job) = (CancellationToken::new(), Site::job(1.0));
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            later.cancel();
        });
        let outcome = execute::run(&job, &site.bench.work, &cancel, |_| {}).await;
        assert_eq!(outcome.ended, Ended::Cancelled, "after {after_ms} ms");
        site.bench.assert_clean(job.run);
    }
}
