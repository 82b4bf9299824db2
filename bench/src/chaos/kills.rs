//! Kills the agent, the server, k6 and the target (`kill -9`) at random moments of real runs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use brewbench::{app::ids::ExperimentId, runs::model::Run};
use brewbench_wire::Phase;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand::{Rng, rngs::StdRng};

use super::{
    ledger::Ledger,
    left::{Marked, Side},
    row::Row,
    world::{Half, World},
};

/// Short, so that all phases are hit about equally often.
pub const WARM_UP_S: f64 = 0.3;
pub const DURATION_S: f64 = 1.0;
pub const REPETITIONS: u32 = 2;
/// The kill happens within this time of the submission, which covers both repetitions.
const SPAN_MS: u64 = 5_000;
/// Timeout of an experiment.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long the agent may take to clean up after the end of all runs.
pub const CLEANUP_TIMEOUT: Duration = Duration::from_secs(15);

/// The process to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The agent or the server, which is restarted.
    Half(Half),
    /// A process of the run.
    Side(Side),
}

impl Victim {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Half(Half::Agent), Self::Half(Half::Server), Self::Side(Side::Generator), Self::Side(Side::Target)];

    fn name(self) -> &'static str {
        match self {
            Self::Half(Half::Agent) => "the agent",
            Self::Half(Half::Server) => "the server",
            Self::Side(Side::Generator) => "k6",
            Self::Side(Side::Target) => "the target",
        }
    }
}

/// Kills one victim `times` times and returns a row of the table.
pub async fn kill_often(world: &mut World, victim: Victim, times: u32, dice: &mut StdRng) -> anyhow::Result<Row> {
    let mut row = Row::new(format!("`kill -9` of {}", victim.name()));
    let mut ledger = Ledger::default();
    let marked = Marked::new(&world.state())?;
    while row.times < times {
        let experiment = world.submit(REPETITIONS, WARM_UP_S, DURATION_S).await?;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..SPAN_MS))).await;
        let before = world.experiment_with_runs(&experiment).await?;
        ledger.note(&before);
        let phase = before.runs.iter().find(|run| run.phase != Phase::Queued && !run.has_ended());
        let phase = phase.map_or("nothing", |run| run.phase.as_str()).to_owned();
        let Some(since) = strike(world, victim, &marked, dice).await? else {
            settle(world, &experiment, &mut ledger).await?;
            continue;
        };
        settle(world, &experiment, &mut ledger).await?;
        let took = since.elapsed();
        wait_until_clean(&marked, &mut row).await;
        let audit = ledger.audit(world, &experiment).await?;
        row.add(audit, took);
        let (name, times) = (victim.name(), row.times);
        eprintln!("  {name} {times}: killed in {phase}, settled in {:.1} s", took.as_secs_f64());
    }
    Ok(row)
}

/// Kills the victim and restarts it if nothing else does. Returns when it was back; `None` without a process to kill.
async fn strike(
    world: &mut World,
    victim: Victim,
    marked: &Marked,
    dice: &mut StdRng,
) -> anyhow::Result<Option<Instant>> {
    match victim {
        Victim::Half(half) => {
            world.kill(half).await?;
            tokio::time::sleep(Duration::from_millis(dice.random_range(0..1_000))).await;
            let back = world.restart(half).await?;
            world.until_connected().await?;
            Ok(Some(back))
        }
        Victim::Side(side) => {
            let Some(pid) = marked.one(side) else { return Ok(None) };
            // The process may have just ended by itself.
            Ok(kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok().then(Instant::now))
        }
    }
}

/// Waits until all runs of an experiment have ended.
pub async fn settle(world: &World, experiment: &ExperimentId, ledger: &mut Ledger) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let current = world.experiment_with_runs(experiment).await?;
        ledger.note(&current);
        if current.progress.ended == current.progress.total && current.runs.iter().all(Run::has_ended) {
            return Ok(());
        }
        let phases = || current.runs.iter().map(|run| run.phase.as_str()).collect::<Vec<_>>().join(", ");
        ensure!(started.elapsed() < PATIENCE, "experiment {experiment} does not end: {}", phases());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the agent has cleaned up and counts what stays behind.
pub async fn wait_until_clean(marked: &Marked, row: &mut Row) {
    let started = Instant::now();
    let mut left = marked.left();
    while !left.is_empty() && started.elapsed() < CLEANUP_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = marked.left();
    }
    if !left.is_empty() {
        eprintln!("    left: {}", left.join(", "));
    }
    row.left += left.len();
}
