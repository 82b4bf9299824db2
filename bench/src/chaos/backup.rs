//! Kills the server during a backup: a partial backup must not look complete, and a complete one must be valid.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use rand::{Rng, rngs::StdRng};
use tokio::process::Command;

use super::{
    kills::{settle, wait_until_clean},
    ledger::Ledger,
    left::Marked,
    row::Row,
    world::{Half, World},
};

/// The kill happens within this time; a backup takes less.
const SPAN_MS: u64 = 600;

/// Kills the server `times` times, each during a run, and returns a row of the table.
pub async fn kill_while_copying(world: &mut World, times: u32, dice: &mut StdRng) -> anyhow::Result<Row> {
    let mut row = Row::new("`kill -9` of the server during `brewbench backup`".to_owned());
    let marked = Marked::new(&world.state())?;
    let folder = tempfile::tempdir()?;
    let (mut ledger, mut complete) = (Ledger::default(), 0);
    for time in 0..times {
        let experiment = world.submit(1, 0.3, 1.0).await?;
        let file = folder.path().join(format!("{time}.db"));
        let copying = world.backup(&file)?;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..SPAN_MS))).await;
        world.kill(Half::Server).await?;
        let copied = copying.wait_with_output().await?.status.success();
        ensure!(copied == file.exists(), "an incomplete backup has the name of a complete one");
        complete += u32::from(copied);
        let back = world.restart(Half::Server).await?;
        world.until_connected().await?;
        settle(world, &experiment, &mut ledger).await?;
        let took = back.elapsed();
        wait_until_clean(&marked, &mut row).await;
        row.add(ledger.audit(world, &experiment).await?, took);
        ensure!(
            !copied || is_valid(world, &file, folder.path()).await?,
            "a backup that was reported as complete is invalid"
        );
    }
    let drafts = std::fs::read_dir(folder.path())?.flatten();
    row.left += drafts.filter(|entry| entry.path().extension().is_none_or(|end| end != "db")).count();
    eprintln!("  backups: {complete} of {times} were complete before the kill");
    Ok(row)
}

/// Returns whether a backup can be restored and passes the integrity check.
async fn is_valid(world: &World, file: &Path, folder: &Path) -> anyhow::Result<bool> {
    let data = folder.join("restored.d");
    let started = Instant::now();
    let restored = Command::new(world.program()).arg("restore").arg(file).arg("--data").arg(&data).output().await?;
    let checked = Command::new(world.program()).arg("check").arg("--data").arg(&data).output().await?;
    std::fs::remove_dir_all(&data)?;
    eprintln!("  restored and checked in {:.1} s", started.elapsed().as_secs_f64());
    Ok(restored.status.success() && checked.status.success())
}
