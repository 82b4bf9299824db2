//! Chaos tests: injects failures into real runs with a real server, agent, k6 and a bundled target.
//!
//! After each failure the killed process is restarted. Then all acknowledged results must be stored, no cell may count
//! twice, nothing may be left on the machine, and all runs must have ended. Prints a table.

mod backup;
mod cuts;
mod kills;
mod kinds;
mod ledger;
mod left;
mod load;
mod row;
pub mod soak;
mod wire;
mod world;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use kills::Victim;
use rand::{SeedableRng, rngs::StdRng};
use row::Row;
use world::{Place, Programs, World};

/// Default number of kills per victim.
pub const TIMES: u32 = 50;
/// The maximum number of kills during a backup.
const BACKUPS: u32 = 10;
/// The maximum number of kills of each victim during runs in containers and in guests, which take longer.
const KINDS: u32 = 20;

/// Runs all chaos tests. The program is in the parent folder of the manifests.
pub async fn all(manifests: &Path, times: u32, seed: Option<u64>) -> anyhow::Result<()> {
    let seed = seed.unwrap_or_else(rand::random);
    eprintln!("chaos: {times} kills of each victim, seed {seed}");
    let programs = Programs::beside(manifests)?;
    let mut dice = StdRng::seed_from_u64(seed);
    println!(
        "| what | times | runs | acknowledged and lost | counted twice | left behind | not measured | ended after, max s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut rows = Vec::new();
    if times > 0 {
        let mut world = World::start(&programs, Place::Here).await?;
        for victim in Victim::ALL {
            let row = kills::kill_often(&mut world, victim, times, &mut dice).await?;
            row.print();
            rows.push(row);
        }
        let row = backup::kill_while_copying(&mut world, times.min(BACKUPS), &mut dice).await?;
        row.print();
        rows.push(row);
        rows.extend(kinds::kill_often(&programs, times.min(KINDS), &mut dice).await?);
    }
    let succeeded = wire::run_in_namespace(manifests, seed).await?;
    check_all(&rows)?;
    ensure!(succeeded, "the network tests failed, see above");
    Ok(())
}

/// Runs the network tests in a network namespace. Arguments: folder of the manifests, seed, the machine's namespace.
pub async fn run_child(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let manifests = arguments.next().map(PathBuf::from).context("name the folder of the manifests")?;
    let seed = arguments.next().context("name the seed")?.to_string_lossy().parse()?;
    let machines = arguments.next().context("name the machine's own namespace")?;
    cuts::run(&manifests, seed, &machines.to_string_lossy()).await
}

/// Fails if a row shows a failure.
fn check_all(rows: &[Row]) -> anyhow::Result<()> {
    let bad: Vec<&str> = rows.iter().filter(|row| !row.is_good()).map(|row| row.what.as_str()).collect();
    ensure!(bad.is_empty(), "something was lost, counted twice or left behind: {}", bad.join("; "));
    Ok(())
}
