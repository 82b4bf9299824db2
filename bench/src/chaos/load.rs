//! Runs whose load comes from another machine: cuts the link between target and k6 during a measurement, and kills the
//! agent of either side. Such a run must not be valid.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use brewbench::runs::{model::Run, verdict::Verdict};
use tokio::process::Child;

use super::{
    cuts::wait_for_phase,
    kills::{settle, wait_until_clean},
    ledger::Ledger,
    left::Marked,
    row::Row,
    wire::{TARGET, Wire},
    world::{AGENT, Half, World},
};

/// Duration of a measurement.
const DURATION_S: f64 = 6.0;
const TIMES: u32 = 3;
/// The agent that runs the target; the load comes from the world's agent, over the link.
const HOST: &str = "host";

/// A failure during a measurement.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Cut(Duration),
    KillGenerator,
    KillHost,
}

impl Failure {
    const ALL: [Self; 4] =
        [Self::Cut(Duration::from_secs(1)), Self::Cut(Duration::from_secs(10)), Self::KillGenerator, Self::KillHost];

    fn name(self) -> String {
        match self {
            Self::Cut(length) => format!("link between target and k6 cut for {} s", length.as_secs()),
            Self::KillGenerator => "`kill -9` of the generator's agent".to_owned(),
            Self::KillHost => "`kill -9` of the target's agent".to_owned(),
        }
    }

    async fn inject(self, world: &mut World, wire: &Wire, host: &mut Child) -> anyhow::Result<()> {
        match self {
            Self::Cut(length) => {
                wire.cut_second().await?;
                tokio::time::sleep(length).await;
                wire.join_second().await
            }
            Self::KillGenerator => {
                world.kill(Half::Agent).await?;
                world.restart(Half::Agent).await?;
                world.until_connected().await
            }
            Self::KillHost => {
                host.kill().await?;
                *host = world.join(HOST, TARGET).await?;
                Ok(())
            }
        }
    }
}

/// Injects each failure and prints a table.
pub async fn run(world: &mut World, wire: &Wire) -> anyhow::Result<()> {
    wire.create_second().await?;
    let mut host = world.join(HOST, TARGET).await?;
    let undisturbed = measure_one(world, wire, &mut host, None).await?.0;
    let usual = undisturbed.figures.rps.context("the undisturbed run has no figures")?;
    eprintln!("  undisturbed: {}", describe(&undisturbed));
    println!();
    println!(
        "| load from another machine, failure | runs | valid | requests/s ÷ undisturbed, max | left behind | \
        ended after, max s |"
    );
    println!("|---|---|---|---|---|---|");
    let mut bad = Vec::new();
    for failure in Failure::ALL {
        let mut row = Row::new(failure.name());
        let mut valid = 0;
        let mut fastest: Option<f64> = None;
        for _ in 0..TIMES {
            let (run, took) = measure_one(world, wire, &mut host, Some(failure)).await?;
            eprintln!("  {}: {}, settled in {:.1} s", failure.name(), describe(&run), took.as_secs_f64());
            valid += u32::from(run.verdict == Some(Verdict::Valid));
            fastest = run.figures.rps.map(|rps| rps / usual).into_iter().chain(fastest).reduce(f64::max);
            row.slowest = row.slowest.max(took);
            for state in [world.state(), world.state_of(HOST)] {
                wait_until_clean(&Marked::new(&state)?, &mut row).await;
            }
        }
        let fastest = fastest.map_or("–".to_owned(), |fastest| format!("{fastest:.2}"));
        let (what, slowest) = (&row.what, row.slowest.as_secs_f64());
        println!("| {what} | {TIMES} | {valid} | {fastest} | {} | {slowest:.1} |", row.left);
        if valid > 0 || row.left > 0 {
            bad.push(row.what);
        }
    }
    ensure!(bad.is_empty(), "valid, or left something behind: {}", bad.join("; "));
    Ok(())
}

/// Measures one run with a failure during its measurement; returns the run and how long after the failure it ended.
async fn measure_one(
    world: &mut World,
    wire: &Wire,
    host: &mut Child,
    failure: Option<Failure>,
) -> anyhow::Result<(Run, Duration)> {
    let experiment = world.submit_distributed(HOST, AGENT, DURATION_S).await?;
    if let Some(failure) = failure {
        wait_for_phase(world, &experiment, "measuring").await?;
        // The target's agent reports this phase once k6 has started.
        tokio::time::sleep(Duration::from_secs(2)).await;
        failure.inject(world, wire, host).await?;
    }
    let injected = Instant::now();
    settle(world, &experiment, &mut Ledger::default()).await?;
    let took = injected.elapsed();
    let run = world.experiment_with_runs(&experiment).await?.runs.into_iter().next().context("one run")?;
    Ok((run, took))
}

fn describe(run: &Run) -> String {
    let reasons: Vec<&str> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
    format!("{} {:?} ({}), {:?} requests/s", run.phase, run.verdict, reasons.join(", "), run.figures.rps)
}
