//! Kills the agent, the container engine and the monitor of a virtual machine (`kill -9`) at random moments of runs in
//! containers and in guests.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use brewbench_testing::{Guest, Podman};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand::{Rng, rngs::StdRng};
use tempfile::TempDir;

use super::{
    kills::{CLEANUP_TIMEOUT, DURATION_S, REPETITIONS, WARM_UP_S, settle, wait_until_clean},
    ledger::Ledger,
    left::{Marked, Side},
    row::Row,
    world::{Half, Place, Programs, World},
};
use crate::manifests;

/// A size that every server has; a guest has whole vCPUs.
const SIZE: &str = "1 vCPU / 256 MiB";
/// Longest time between two runs of an experiment.
const NEXT_RUN_TIMEOUT: Duration = Duration::from_secs(3);

/// What is killed, and during the runs of which target.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    target: &'static str,
    victim: Victim,
    /// The kill happens within this time of the submission, which covers all repetitions.
    span_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Agent,
    Engine,
    Monitor,
}

const CASES: [Case; 4] = [
    Case { name: "`kill -9` of the agent of a container", target: "contained", victim: Victim::Agent, span_ms: 6_000 },
    Case { name: "`kill -9` of the container engine", target: "contained", victim: Victim::Engine, span_ms: 6_000 },
    Case { name: "`kill -9` of the agent of a guest", target: "guest", victim: Victim::Agent, span_ms: 14_000 },
    Case { name: "`kill -9` of a guest's monitor", target: "guest", victim: Victim::Monitor, span_ms: 14_000 },
];

/// Kills each victim `times` times and returns the rows of the table; none, with a printed reason, without Podman or
/// QEMU.
pub async fn kill_often(programs: &Programs, times: u32, dice: &mut StdRng) -> anyhow::Result<Vec<Row>> {
    let (Some(mut podman), Some(guest)) = (Podman::start(), Guest::build()) else { return Ok(Vec::new()) };
    let folder = offer(programs.manifests(), &podman, &guest)?;
    let programs = programs.clone().with_engine(folder.path(), podman.socket());
    let mut world = World::start(&programs, Place::Here).await?;
    let mut rows = Vec::new();
    for case in CASES {
        let mut row = Row::new(case.name.to_owned());
        let mut ledger = Ledger::default();
        while row.times < times {
            kill_once(&mut world, &mut podman, case, (&mut row, &mut ledger), dice).await?;
        }
        row.print();
        rows.push(row);
    }
    Ok(rows)
}

/// Writes the manifests of a container and of a guest.
fn offer(bundled: &Path, podman: &Podman, guest: &Guest) -> anyhow::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    manifests::load_image(podman, &bundled.join("bin/rust-hyper"));
    manifests::write(folder.path(), "contained", &manifests::container("bridge"))?;
    manifests::write(folder.path(), "guest", &manifests::vm(guest))?;
    Ok(folder)
}

async fn kill_once(
    world: &mut World,
    podman: &mut Podman,
    case: Case,
    (row, ledger): (&mut Row, &mut Ledger),
    dice: &mut StdRng,
) -> anyhow::Result<()> {
    let marked = Marked::new(&world.state())?;
    let experiment = world.submit_of(case.target, SIZE, (REPETITIONS, WARM_UP_S, DURATION_S)).await?;
    tokio::time::sleep(Duration::from_millis(dice.random_range(0..case.span_ms))).await;
    ledger.note(&world.experiment_with_runs(&experiment).await?);
    let pause = Duration::from_millis(dice.random_range(0..1_000));
    let since = match case.victim {
        Victim::Agent => {
            world.kill(Half::Agent).await?;
            tokio::time::sleep(pause).await;
            let back = world.restart(Half::Agent).await?;
            world.until_connected().await?;
            Some(back)
        }
        Victim::Engine => {
            podman.kill();
            tokio::time::sleep(pause).await;
            podman.restart();
            Some(Instant::now())
        }
        Victim::Monitor => kill_monitor(&marked).await,
    };
    settle(world, &experiment, ledger).await?;
    let audit = ledger.audit(world, &experiment).await?;
    let Some(since) = since else { return Ok(()) };
    let took = since.elapsed();
    wait_until_clean(&marked, row).await;
    row.left += containers_left(podman).await;
    row.add(audit, took);
    eprintln!("  {} {}: settled in {:.1} s", case.name, row.times, took.as_secs_f64());
    Ok(())
}

/// Kills the guest that runs, or the next one between two runs; `None` after the last run.
async fn kill_monitor(marked: &Marked) -> Option<Instant> {
    let started = Instant::now();
    while started.elapsed() < NEXT_RUN_TIMEOUT {
        // It may have just ended by itself.
        if marked.one(Side::Target).is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()) {
            return Some(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    None
}

/// Waits until no container is left, and counts what stays behind.
async fn containers_left(podman: &Podman) -> usize {
    let started = Instant::now();
    let mut left = podman.leftovers();
    while !left.is_empty() && started.elapsed() < CLEANUP_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(200)).await;
        left = podman.leftovers();
    }
    if !left.is_empty() {
        eprintln!("    left: {}", left.join(", "));
    }
    left.len()
}
