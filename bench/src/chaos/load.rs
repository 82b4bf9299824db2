//! Runs whose load comes from another machine: the line between target and k6 cut in the middle of a measurement, and the
//! agent of either side killed. Whatever comes of that must not count for what it would without.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use brewbench::runs::{model::Run, verdict::Verdict};
use tokio::process::Child;

use super::{
    Row,
    cuts::until_in,
    kills::{settle, tidy},
    ledger::Ledger,
    left::Marked,
    wire::{TARGET, Wire},
    world::{AGENT, Half, World},
};

/// How long a measurement is.
const DURATION_S: f64 = 6.0;
const TIMES: u32 = 3;
/// Where the target runs; its load comes from the agent of the world, on the far side of the line.
const HOST: &str = "host";

/// What happens in the middle of a measurement.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Cut(Duration),
    KillGenerator,
    KillHost,
}

impl Blow {
    const ALL: [Self; 4] =
        [Self::Cut(Duration::from_secs(1)), Self::Cut(Duration::from_secs(10)), Self::KillGenerator, Self::KillHost];

    fn name(self) -> String {
        match self {
            Self::Cut(length) => format!("the line between target and k6 cut for {} s", length.as_secs()),
            Self::KillGenerator => "`kill -9` of the agent that makes the load".to_owned(),
            Self::KillHost => "`kill -9` of the agent of the target".to_owned(),
        }
    }

    async fn strike(self, world: &mut World, wire: &Wire, host: &mut Child) -> anyhow::Result<()> {
        match self {
            Self::Cut(length) => {
                wire.cut_second().await?;
                tokio::time::sleep(length).await;
                wire.join_second().await
            }
            Self::KillGenerator => {
                world.kill(Half::Agent).await?;
                world.start_anew(Half::Agent).await?;
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

/// Does it; prints a table of its own.
pub async fn break_it(world: &mut World, wire: &Wire) -> anyhow::Result<()> {
    wire.lay_second().await?;
    let mut host = world.join(HOST, TARGET).await?;
    let whole = one(world, wire, &mut host, None).await?.0;
    let usual = whole.figures.rps.context("the run that nobody disturbs has figures")?;
    eprintln!("  undisturbed: {}", told(&whole));
    println!();
    println!(
        "| load from another machine, while measured | runs | counted as valid | requests/s ÷ undisturbed, at most | \
         left behind | ended after, s |"
    );
    println!("|---|---|---|---|---|---|");
    let mut bad = Vec::new();
    for blow in Blow::ALL {
        let mut row = Row::new(blow.name());
        let mut valid = 0;
        let mut fastest: Option<f64> = None;
        for _ in 0..TIMES {
            let (run, took) = one(world, wire, &mut host, Some(blow)).await?;
            eprintln!("  {}: {}, settled in {:.1} s", blow.name(), told(&run), took.as_secs_f64());
            valid += u32::from(run.verdict == Some(Verdict::Valid));
            fastest = run.figures.rps.map(|rps| rps / usual).into_iter().chain(fastest).reduce(f64::max);
            row.slowest = row.slowest.max(took);
            for state in [world.state(), world.state_of(HOST)] {
                tidy(&Marked::of(&state)?, &mut row).await;
            }
        }
        let fastest = fastest.map_or("–".to_owned(), |fastest| format!("{fastest:.2}"));
        let (what, slowest) = (&row.what, row.slowest.as_secs_f64());
        println!("| {what} | {TIMES} | {valid} | {fastest} | {} | {slowest:.1} |", row.left);
        if valid > 0 || row.left > 0 {
            bad.push(row.what);
        }
    }
    ensure!(bad.is_empty(), "counted as valid, or left something behind: {}", bad.join("; "));
    Ok(())
}

/// One run and a blow in the middle of its measurement; gives how long after it the run had ended.
async fn one(world: &mut World, wire: &Wire, host: &mut Child, blow: Option<Blow>) -> anyhow::Result<(Run, Duration)> {
    let experiment = world.submit_from_afar(HOST, AGENT, DURATION_S).await?;
    if let Some(blow) = blow {
        until_in(world, &experiment, "measuring").await?;
        // k6 has begun when the target's agent says so.
        tokio::time::sleep(Duration::from_secs(2)).await;
        blow.strike(world, wire, host).await?;
    }
    let struck = Instant::now();
    settle(world, &experiment, &mut Ledger::default()).await?;
    let took = struck.elapsed();
    let run = world.look(&experiment).await?.runs.into_iter().next().context("one run")?;
    Ok((run, took))
}

fn told(run: &Run) -> String {
    let why: Vec<&str> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
    format!("{} {:?} ({}), {:?} requests/s", run.phase, run.verdict, why.join(", "), run.figures.rps)
}
