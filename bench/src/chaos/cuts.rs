//! Failures of the link between agent and server: cut for a while in every phase of a run, flapping, slow, lossy.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use brewbench::app::ids::ExperimentId;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    Row, check_all,
    kills::{settle, wait_until_clean},
    ledger::Ledger,
    left::Marked,
    load,
    wire::{SERVER, Wire},
    world::{Place, Programs, World},
};

const CUTS_S: [u64; 3] = [1, 10, 60];
const WARM_UP_S: f64 = 2.0;
const DURATION_S: f64 = 3.0;

/// When the link is cut: the phase and the ms after its start. The last ones hit collection, spooling and upload.
const MOMENTS: [(&str, u64); 6] = [
    ("leased", 0),
    ("preparing", 100),
    ("warming_up", 500),
    ("measuring", 500),
    ("measuring", 2_900),
    ("measuring", 3_400),
];

/// Prints the rows of the table about network failures.
pub async fn run(manifests: &Path, seed: u64, machines: &str) -> anyhow::Result<()> {
    let mut dice = StdRng::seed_from_u64(seed);
    let wire = Wire::create(machines).await?;
    let programs = Programs::beside(manifests)?;
    let mut world = World::start(&programs, Place::Apart(SERVER, wire.holder()?)).await?;
    let mut rows = Vec::new();
    let cuts = CUTS_S.map(|seconds| (Cut::Both, seconds)).into_iter().chain([(Cut::ToAgent, 10)]);
    for (cut, seconds) in cuts {
        let mut row = Row::new(format!("{} cut for {seconds} s, in every phase", cut.name()));
        for (phase, after_ms) in MOMENTS {
            let after = Duration::from_millis(after_ms + dice.random_range(0..200));
            cut_at(&world, &wire, (phase, after), (cut, Duration::from_secs(seconds)), &mut row).await?;
        }
        row.print();
        rows.push(row);
    }
    rows.push(flap(&world, &wire, &mut dice).await?);
    wire.slow_down(64_000).await?;
    rows.push(several(&world, "64 kbit/s, with packets that wait longer than 0.3 s dropped").await?);
    wire.speed_up().await?;
    load::run(&mut world, &wire).await?;
    wire.lose(20).await?;
    rows.push(several(&world, "20 % packet loss in both directions").await?);
    check_all(&rows)
}

/// The directions that are cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Both,
    ToAgent,
}

impl Cut {
    fn name(self) -> &'static str {
        match self {
            Self::Both => "the link",
            Self::ToAgent => "the direction from server to agent",
        }
    }
}

/// Submits a run and cuts the link at a moment of it.
async fn cut_at(
    world: &World,
    wire: &Wire,
    (phase, after): (&str, Duration),
    (cut, length): (Cut, Duration),
    row: &mut Row,
) -> anyhow::Result<()> {
    world.until_connected().await?;
    let experiment = world.submit(1, WARM_UP_S, DURATION_S).await?;
    wait_for_phase(world, &experiment, phase).await?;
    tokio::time::sleep(after).await;
    match cut {
        Cut::Both => wire.cut().await?,
        Cut::ToAgent => wire.cut_one_way().await?,
    }
    tokio::time::sleep(length).await;
    wire.join().await?;
    let back = Instant::now();
    let took = finish(world, &experiment, back, row).await?.as_secs_f64();
    eprintln!("  cut for {} s, {after:?} into {phase}: settled in {took:.1} s", length.as_secs());
    Ok(())
}

/// Waits for the end of an experiment, adds it to the row and returns how long that took.
async fn finish(world: &World, experiment: &ExperimentId, since: Instant, row: &mut Row) -> anyhow::Result<Duration> {
    let mut ledger = Ledger::default();
    settle(world, experiment, &mut ledger).await?;
    let took = since.elapsed();
    wait_until_clean(&Marked::new(&world.state())?, row).await;
    row.add(ledger.audit(world, experiment).await?, took);
    Ok(took)
}

/// Waits until a run of an experiment has reached a phase.
pub async fn wait_for_phase(world: &World, experiment: &ExperimentId, phase: &str) -> anyhow::Result<()> {
    const ORDER: [&str; 6] = ["queued", "leased", "preparing", "warming_up", "measuring", "collecting"];
    let rank = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    let started = Instant::now();
    while world.experiment_with_runs(experiment).await?.runs.iter().all(|run| rank(run.phase.as_str()) < rank(phase)) {
        ensure!(started.elapsed() < Duration::from_mins(1), "no run reaches {phase}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Cuts and restores the link repeatedly during runs.
async fn flap(world: &World, wire: &Wire, dice: &mut StdRng) -> anyhow::Result<Row> {
    let mut row = Row::new("a flapping link, up to 2 s down and up to 2 s up".to_owned());
    world.until_connected().await?;
    let experiment = world.submit(5, 0.5, 1.0).await?;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..2_000))).await;
        wire.cut().await?;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..2_000))).await;
        wire.join().await?;
    }
    let back = Instant::now();
    finish(world, &experiment, back, &mut row).await?;
    row.print();
    Ok(row)
}

/// Submits several runs over the link in its current state.
async fn several(world: &World, what: &str) -> anyhow::Result<Row> {
    let mut row = Row::new(what.to_owned());
    world.until_connected().await?;
    let experiment = world.submit(5, 0.5, 1.0).await?;
    let started = Instant::now();
    finish(world, &experiment, started, &mut row).await?;
    row.print();
    Ok(row)
}
