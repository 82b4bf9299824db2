//! `kill -9` of the agent, the server, k6 and the target at random moments of real runs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use brewbench::{app::ids::ExperimentId, runs::model::Run};
use brewbench_agent::wire::Phase;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand::{Rng, rngs::StdRng};

use super::{
    Row,
    ledger::Ledger,
    left::{Marked, Side},
    world::{Half, World},
};

/// Short, so that every phase is hit as often as every other.
const WARM_UP_S: f64 = 0.3;
const DURATION_S: f64 = 1.0;
const REPETITIONS: u32 = 2;
/// From the submission to the end of both repetitions, and a little more.
const SPAN_MS: u64 = 5_000;
/// After this something hangs.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long acknowledged outcomes may take to leave the agent's disk once all is over.
const TIDYING: Duration = Duration::from_secs(15);

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The agent or the server, which somebody starts anew.
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

/// Kills one victim so many times; gives a row of the table.
pub async fn kill_often(world: &mut World, victim: Victim, times: u32, dice: &mut StdRng) -> anyhow::Result<Row> {
    let mut row = Row::new(format!("`kill -9` of {}", victim.name()));
    let mut ledger = Ledger::default();
    let marked = Marked::of(&world.state())?;
    while row.times < times {
        let experiment = world.submit(REPETITIONS, WARM_UP_S, DURATION_S).await?;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..SPAN_MS))).await;
        let before = world.look(&experiment).await?;
        ledger.note(&before);
        let phase = before.runs.iter().find(|run| run.phase != Phase::Queued && !run.has_ended());
        let phase = phase.map_or("nothing", |run| run.phase.as_str()).to_owned();
        let Some(since) = strike(world, victim, &marked, dice).await? else {
            settle(world, &experiment, &mut ledger).await?;
            continue;
        };
        settle(world, &experiment, &mut ledger).await?;
        let took = since.elapsed();
        tidy(&marked, &mut row).await;
        let audit = ledger.audit(world, &experiment).await?;
        row.add(audit, took);
        let (name, times) = (victim.name(), row.times);
        eprintln!("  {name} {times}: killed in {phase}, settled in {:.1} s", took.as_secs_f64());
    }
    Ok(row)
}

/// Kills, and starts anew what nobody else would. Gives since when everybody is back; none if there was nothing to kill.
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
            let back = world.start_anew(half).await?;
            world.until_connected().await?;
            Ok(Some(back))
        }
        Victim::Side(side) => {
            let Some(pid) = marked.one(side) else { return Ok(None) };
            // It may end by itself at this very moment.
            Ok(kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok().then(Instant::now))
        }
    }
}

/// Waits until every run of an experiment has ended.
pub async fn settle(world: &World, experiment: &ExperimentId, ledger: &mut Ledger) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let whole = world.look(experiment).await?;
        ledger.note(&whole);
        if whole.progress.ended == whole.progress.total && whole.runs.iter().all(Run::has_ended) {
            return Ok(());
        }
        let told = || whole.runs.iter().map(|run| run.phase.as_str()).collect::<Vec<_>>().join(", ");
        ensure!(begun.elapsed() < PATIENCE, "experiment {experiment} does not end: {}", told());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until nothing is left, and counts what stays.
pub async fn tidy(marked: &Marked, row: &mut Row) {
    let begun = Instant::now();
    let mut left = marked.left();
    while !left.is_empty() && begun.elapsed() < TIDYING {
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = marked.left();
    }
    if !left.is_empty() {
        eprintln!("    left: {}", left.join(", "));
    }
    row.left += left.len();
}
