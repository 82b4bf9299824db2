//! Real control groups, if this machine allows them, and leftovers of an earlier agent process.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use brewbench_agent::host::cleanup;
use brewbench_agent::sandbox::cage::Cage;
use brewbench_agent::sandbox::process::{Plan, Process, find_program};
use brewbench_agent::sandbox::{CGROUP_ROOT, ProgramRole, Sandbox};
use brewbench_testing::{public_folder, skip};
use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::outcome::Mechanism;

use crate::support::{groups_of, is_on_disk, processes_with};

/// Detects a sandbox; `None`, with a printed reason, if control groups can't be used.
fn sandbox(test: &str) -> Option<Sandbox> {
    let agent = format!("test {test} {}", std::process::id());
    let sandbox = Sandbox::detect(Path::new(CGROUP_ROOT), &agent);
    assert_eq!(groups_of(&agent), Vec::<std::path::PathBuf>::new(), "detection leaves nothing behind");
    if sandbox.mechanisms().cpu == Mechanism::None || sandbox.mechanisms().memory == Mechanism::None {
        skip("control groups can't be used here");
        return None;
    }
    Some(sandbox)
}

fn shell(script: &str) -> Plan {
    Plan {
        program: find_program(Path::new("sh")).expect("a shell"),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: [].into(),
        folder: "/".into(),
        cores: Vec::new(),
        cage: Cage::target(Path::new("/"), Path::new("/"), Path::new("/")),
    }
}

#[tokio::test]
async fn cpu_time_is_limited_and_counted() {
    let Some(sandbox) = sandbox("cpu") else { return };
    let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
    let size = Size { name: String::new(), vcpus: 0.1, memory_bytes: 64 << 20, replicas: 1 };
    assert_eq!(group.limit(&size), sandbox.mechanisms());
    let mut process = Process::start(&shell("i=0; while :; do i=$((i+1)); done"), &group).expect("a shell");
    // With a quota of a tenth, it is throttled several times within 50 ms of CPU time.
    loop {
        let observed = group.observed().expect("observations");
        if observed.cpu_us.is_some_and(|used| used > 50_000) && observed.throttled_us.is_some_and(|us| us > 100_000) {
            break;
        }
        assert!(process.ended().is_none(), "the loop never ends");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    process.stop(std::time::Duration::ZERO, &group).await.expect("stopped");
    assert!(group.processes().is_empty());
    group.clear().await.expect("removed");
    assert!(groups_of(sandbox.agent()).is_empty());
}

#[tokio::test]
async fn a_limit_refused_by_the_kernel_is_not_reported_as_enforced() {
    let Some(sandbox) = sandbox("refused") else { return };
    let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
    // Below the kernel's smallest quota.
    let size = Size { name: String::new(), vcpus: 0.001, memory_bytes: 64 << 20, replicas: 1 };
    let enforced = group.limit(&size);
    assert_eq!((enforced.cpu, enforced.memory), (Mechanism::None, sandbox.mechanisms().memory));
    group.clear().await.expect("removed");
}

#[tokio::test]
async fn files_that_a_program_reads_and_writes_are_not_memory_that_it_holds() {
    const FILE: u64 = 32 << 20;
    let home = public_folder();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let Some(sandbox) = sandbox("files").filter(|_| is_on_disk(home.path())) else { return };
    let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
    group.limit(&Size { name: String::new(), vcpus: 1.0, memory_bytes: 256 << 20, replicas: 1 });
    let script =
        "cd $HOME && head -c 33554432 /dev/zero >file && cat file file >/dev/null && echo >done; exec sleep 600";
    let cage = Cage::target(Path::new("/"), Path::new("/"), home.path());
    let mut process = Process::start(&Plan { cage, ..shell(script) }, &group).expect("a shell");
    while !home.path().join("done").exists() {
        assert!(process.ended().is_none(), "it sleeps");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let memory = group.watch().memory();
    assert!(memory.file_cache_bytes >= Some(FILE), "{memory:?}");
    assert!(memory.working_set_bytes > Some(FILE), "files that are used again count: {memory:?}");
    assert!(memory.held_bytes > Some(0) && memory.held_bytes < Some(FILE / 4), "{memory:?}");
    process.stop(std::time::Duration::ZERO, &group).await.expect("stopped");
    group.clear().await.expect("removed");
}

#[tokio::test]
async fn a_fork_bomb_is_killed() {
    let Some(sandbox) = sandbox("forks") else { return };
    let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
    group.limit(&Size { name: String::new(), vcpus: 1.0, memory_bytes: 256 << 20, replicas: 1 });
    let plan = shell("f() { while :; do (sleep 5) & (exit) ; done; }; f & f & f & f");
    let mut process = Process::start(&plan, &group).expect("a shell");
    while group.processes().len() < 50 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    process.stop(std::time::Duration::ZERO, &group).await.expect("stopped");
    // The group can be used again.
    let mut next = Process::start(&shell("echo a | cat"), &group).expect("a shell");
    assert!(next.wait().await.expect("an exit status").success());
    drop(next);
    group.clear().await.expect("removed");
    assert!(groups_of(sandbox.agent()).is_empty());
}

#[tokio::test]
async fn leftovers_of_an_earlier_process_are_removed_and_reported() {
    let agent = format!("test leftovers {}", std::process::id());
    let sandbox = Sandbox::detect(Path::new(CGROUP_ROOT), &agent);
    let work = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(work.path().join("run-x/scenario")).expect("a folder");
    std::fs::create_dir(work.path().join("spool")).expect("a folder");
    let start = |marked: bool| {
        let mut command = Command::new("sleep");
        command.arg("600").process_group(0);
        if marked {
            command.env("BREWBENCH_AGENT", &agent);
        } else {
            command.env("BREWBENCH_AGENT", format!("{agent}x"));
        }
        command.spawn().expect("sleep")
    };
    let (mut ours, mut other) = (start(true), start(false));
    let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
    let mut grouped = start(false);
    for mut entrance in group.entrances().expect("entrances") {
        std::io::Write::write_all(&mut entrance, grouped.id().to_string().as_bytes()).expect("moved");
    }
    let limited = !groups_of(&agent).is_empty();
    // As if the agent had been killed without cleaning up.
    std::mem::forget(group);

    let left = cleanup::remove(&sandbox, work.path()).await;
    assert_eq!(left.folders, [work.path().join("run-x")]);
    assert!(work.path().join("spool").exists());
    assert!(left.processes.iter().any(|(_, pid)| u32::try_from(*pid) == Ok(ours.id())), "{left:?}");
    assert!(!ours.wait().expect("an exit status").success());
    if limited {
        assert!(!left.groups.is_empty());
        assert!(!grouped.wait().expect("an exit status").success());
        assert!(groups_of(&agent).is_empty());
    } else {
        skip("control groups can't be used here");
        grouped.kill().expect("killed");
        grouped.wait().expect("an exit status");
    }
    assert!(other.try_wait().expect("a status").is_none(), "another agent's process keeps running");
    other.kill().expect("killed");
    other.wait().expect("an exit status");
    assert!(cleanup::remove(&sandbox, work.path()).await.is_empty());
    assert!(processes_with(&agent).is_empty());
}
