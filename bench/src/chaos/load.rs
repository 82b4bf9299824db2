//! The line between a target and the k6 that loads it from another machine, cut in the middle of a measurement: whatever
//! comes of that must not count for what it would without.

use std::time::Duration;

use anyhow::{Context, ensure};
use brewbench::runs::{Run, Verdict};

use super::{
    cuts::until_in,
    kills::settle,
    ledger::Ledger,
    wire::{TARGET, Wire},
    world::{AGENT, World},
};

/// How long a measurement is.
const DURATION_S: f64 = 6.0;
const CUTS_S: [u64; 2] = [1, 10];
const TIMES: u32 = 3;

/// What came of runs whose line was cut.
#[derive(Debug, Default)]
struct Told {
    /// Judged as if nothing had happened.
    valid: u32,
    /// Doubted, invalid or without a result.
    others: u32,
    /// The most requests a second, measured by those of whole runs.
    fastest: f64,
}

/// Does it with the agent on the far side of the line as the generator; prints a table of its own.
pub async fn cut(world: &World, wire: &Wire) -> anyhow::Result<()> {
    wire.lay_second().await?;
    let _host = world.join("host", TARGET).await?;
    let whole = one(world, None, wire).await?;
    let usual = whole.rps.context("the run that nobody disturbs has figures")?;
    println!();
    println!(
        "| line between target and k6, while measured | runs | counted as valid | requests/s ÷ undisturbed, at most |"
    );
    println!("|---|---|---|---|");
    let mut has_lied = false;
    for seconds in CUTS_S {
        let mut told = Told::default();
        for _ in 0..TIMES {
            let run = one(world, Some(Duration::from_secs(seconds)), wire).await?;
            let why: Vec<&str> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
            eprintln!(
                "  cut for {seconds} s: {} {:?} ({}), {:?} requests/s",
                run.phase,
                run.verdict,
                why.join(", "),
                run.rps
            );
            match run.verdict {
                Some(Verdict::Valid) => told.valid += 1,
                _ => told.others += 1,
            }
            told.fastest = told.fastest.max(run.rps.unwrap_or(0.0) / usual);
        }
        println!("| cut for {seconds} s | {} | {} | {:.2} |", told.valid + told.others, told.valid, told.fastest);
        has_lied |= told.valid > 0;
    }
    ensure!(!has_lied, "a run whose line was cut counts as valid");
    Ok(())
}

/// One run, cut for so long in the middle of its measurement.
async fn one(world: &World, length: Option<Duration>, wire: &Wire) -> anyhow::Result<Run> {
    let experiment = world.submit_from_afar("host", AGENT, DURATION_S).await?;
    if let Some(length) = length {
        until_in(world, &experiment, "measuring").await?;
        // k6 has begun when the target's agent says so.
        tokio::time::sleep(Duration::from_secs(2)).await;
        wire.cut_second().await?;
        tokio::time::sleep(length).await;
        wire.join_second().await?;
    }
    settle(world, &experiment, &mut Ledger::default()).await?;
    world.look(&experiment).await?.runs.into_iter().next().context("one run")
}
