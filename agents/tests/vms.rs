//! Runs on virtual machines, with a real QEMU, a real kernel and a real k6.

use std::time::Duration;

use brewbench_agent::run::execute;
use brewbench_agent::sandbox::ProgramRole;
use brewbench_agent::sandbox::cage::user::User;
use brewbench_agent::target::vm::check_kvm;
use brewbench_testing::Guest;
use brewbench_wire::job::{Job, Size};
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::target::Identity;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, vus};

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
             [ready]\npath = \"/health\"\ntimeout_s = {timeout_s}\n[sandbox]\nread = [{:?}]\n",
            self.guest.folder().display().to_string(),
        );
        std::fs::write(self.bench.work.targets.join("guest.toml"), text).expect("a manifest");
    }

    /// Writes the manifest of a guest that QEMU boots; the accelerator is always TCG unless `table` names one: where
    /// KVM opens, it may still not work.
    fn offer_qemu(&self, table: &str) {
        let accelerator = if table.contains("accelerator") { "" } else { "accelerator = \"tcg\"\n" };
        let text = format!(
            "name = \"guest\"\nversion = \"1\"\n[vm]\n{accelerator}port = 8080\n{table}\n\
             [ready]\npath = \"/health\"\ntimeout_s = 60\n"
        );
        std::fs::write(self.bench.work.targets.join("guest.toml"), text).expect("a manifest");
    }

    /// Returns the fields of the kernel and its RAM disk.
    fn kernel(&self) -> String {
        format!("kernel = '{}'\ninitrd = '{}'\n", self.guest.kernel().display(), self.guest.ramdisk().display())
    }

    fn job(vcpus: f64) -> Job {
        let size = Size { name: format!("{vcpus}/128MiB"), vcpus, memory_bytes: 128 << 20, replicas: 1 };
        Job { spec: RunSpec { size: Some(size), ..job("guest").spec }, ..job("guest") }
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
    let Some(Identity::Vm { sha256, .. }) = &outcome.target else { panic!("{outcome:?}") };
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
async fn qemu_boots_a_kernel_and_reports_the_memory_of_the_guest() {
    let Some(site) = Site::new("vm qemu").await else { return };
    let seed = site.bench.work.targets.join("a, seed");
    std::fs::create_dir(&seed).expect("a folder");
    std::fs::write(seed.join("user-data"), "#cloud-config").expect("a file");
    site.offer_qemu(&format!("{}seed = \"a, seed\"", site.kernel()));
    let outcome = site.run(&Site::job(1.0)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(outcome.target_log.contains("has user-data: #cloud-config"), "{}", outcome.target_log);
    assert_eq!((outcome.enforced.cpu.as_str(), outcome.conditions.emulated), ("guest", Some(true)));
    let environment = &outcome.environment;
    for (fact, words) in [
        ("guest.monitor", "QEMU "),
        ("guest.memory_source", "guest"),
        ("guest.network", "virtio behind QEMU's user-mode network"),
        ("guest.vcpu_placement", "CPU"),
        ("target.kernel", "vmlinuz"),
    ] {
        assert!(environment[fact].contains(words), "{fact}: {}", environment[fact]);
    }
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let usage = series.measured.expect("a window").usage;
    // The monitor alone takes more from the host than the guest has.
    assert!(usage.iter().all(|usage| usage.target.memory_bytes < Some(128 << 20)), "{usage:?}");
    assert!(usage.iter().any(|usage| usage.target.memory_bytes > Some(8 << 20)), "{usage:?}");
    assert!(usage.iter().any(|usage| usage.target.held_memory_bytes > Some(8 << 20)), "{usage:?}");
    assert!(usage.iter().any(|usage| usage.target.cpu_us > Some(0)), "{usage:?}");
    let peak = outcome.observed.and_then(|observed| observed.peak_memory_bytes);
    assert!(peak > Some(8 << 20) && peak < Some(128 << 20), "{peak:?}");
}

#[tokio::test]
async fn qemu_boots_a_disk_and_never_changes_it() {
    let Some(site) = Site::new("vm disk").await else { return };
    let disk = site.guest.disk_image();
    let before = std::fs::read(&disk).expect("a disk");
    site.offer_qemu(&format!("disk = '{}'", disk.display()));
    let mut job = Site::job(1.0);
    let (name, memory_bytes) = ("1/256MiB".to_owned(), 256 << 20);
    job.spec.size = job.spec.size.map(|size| Size { name, memory_bytes, ..size });
    let outcome = site.run(&job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(outcome.target_log.contains("guest: /dev/vda is writable: true"), "{}", outcome.target_log);
    assert!(std::fs::read(&disk).expect("a disk") == before, "the disk was changed");
    assert_eq!(outcome.environment["guest.memory_source"], "guest");
}

#[tokio::test]
async fn a_guest_that_qemu_can_not_boot_says_why() {
    let Some(site) = Site::new("vm qemu faults").await else { return };
    let garbage = site.bench.work.targets.join("garbage");
    std::fs::write(&garbage, "no kernel").expect("a file");
    for (table, words, cause) in [
        (format!("kernel = '{}'", garbage.display()), "exited before it was ready", Cause::TargetDied),
        (
            format!("{}append = \"guest.fault=panic\"", site.kernel()),
            "in the guest: Kernel panic - not syncing: Attempted to kill init!",
            Cause::TargetDied,
        ),
        (
            format!("{}append = \"guest.poweroff=3s\"", site.kernel()),
            ": exit status 0; last output: ",
            Cause::TargetDied,
        ),
        (
            format!("{}append = \"nr_cpus=1\"", site.kernel()),
            "the guest has 1 CPU, but the size 2/128MiB has 2",
            Cause::TargetNotReady,
        ),
    ] {
        site.offer_qemu(&table);
        let job = Job { spec: RunSpec { load: Some(vus(1, 20_000)), ..Site::job(2.0).spec }, ..Site::job(2.0) };
        let (reason, found) = site.failure(&job).await;
        assert!(reason.starts_with("target guest") && reason.contains(words), "{table}: {reason}");
        assert_eq!(found, cause, "{reason}");
        if table.contains("poweroff") {
            assert!(reason.ends_with("; the guest powered off"), "{reason}");
        }
    }
}

#[tokio::test]
async fn kvm_is_used_only_where_guests_run_with_it() {
    let Some(site) = Site::new("vm kvm").await else { return };
    site.offer_qemu(&format!("{}accelerator = \"kvm\"", site.kernel()));
    match check_kvm().await {
        Ok(()) => assert_eq!(site.run(&Site::job(1.0)).await.conditions.emulated, Some(false)),
        Err(fault) => {
            let (reason, cause) = site.failure(&Site::job(1.0)).await;
            assert_eq!(reason, format!("target guest: vm.accelerator: KVM does not work here: {fault}"));
            assert_eq!(cause, Cause::Other);
            site.offer_qemu(&format!("{}accelerator = \"auto\"", site.kernel()));
            assert_eq!(site.run(&Site::job(1.0)).await.conditions.emulated, Some(true));
        }
    }
}

/// Makes `/dev/net/tun` what udev makes of it, in the mounts of this thread.
fn usable_tun() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let tun = folder.path().join("tun");
    let tun = tun.to_str().expect("a path");
    for command in [
        "mount --make-rprivate /".to_owned(),
        format!("mknod {tun} c 10 200"),
        format!("chmod 0666 {tun}"),
        format!("mount --bind {tun} /dev/net/tun"),
    ] {
        let mut words = command.split(' ');
        let done = std::process::Command::new(words.next().expect("a program")).args(words).status();
        assert!(done.expect("started").success(), "{command}");
    }
    folder
}

/// In a network of its own, with a tap interface as the machine's owner would set it up.
#[test]
fn a_guest_behind_a_tap_interface_is_loaded_directly() {
    if !rustix::process::geteuid().is_root() {
        return brewbench_testing::skip("a network of its own needs root");
    }
    std::thread::spawn(|| {
        use nix::sched::CloneFlags;
        nix::sched::unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).expect("a network and mounts");
        let user = User::for_role(ProgramRole::Target).map_or(0.into(), User::uid);
        let tuntap = format!("tuntap add dev bbtap0 mode tap user {user}");
        let _devices = usable_tun();
        for command in ["link set lo up", &tuntap, "addr add 10.0.2.2/24 dev bbtap0", "link set bbtap0 up"] {
            let done = std::process::Command::new("ip").args(command.split(' ')).status().expect("ip");
            assert!(done.success(), "ip {command}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let Some(site) = Site::new("vm tap").await else { return };
            let tap = "tap = { interface = \"bbtap0\", address = \"10.0.2.15\" }";
            site.offer_qemu(&format!("{}{tap}", site.kernel()));
            for _ in 0..2 {
                let outcome = site.run(&Site::job(1.0)).await;
                assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
                assert_eq!(outcome.environment["guest.network"], "virtio on the tap interface bbtap0");
            }
            site.offer_qemu(&format!("{}{}", site.kernel(), tap.replace("bbtap0", "nowhere0")));
            let (reason, cause) = site.failure(&Site::job(1.0)).await;
            assert!(reason.contains("nowhere0"), "{reason}");
            assert_eq!(cause, Cause::TargetDied, "{reason}");
        });
    })
    .join()
    .expect("no panic");
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
