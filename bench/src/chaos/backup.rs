//! `kill -9` of the server while its database is copied: half a copy must not look like one, and a whole one must be one.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use rand::{Rng, rngs::StdRng};
use tokio::process::Command;

use super::{
    Row,
    kills::{settle, tidy},
    ledger::Ledger,
    left::Marked,
    world::{Half, World},
};

/// A copy of the small database of this program, with the start of the command, takes less.
const SPAN_MS: u64 = 600;

/// Kills it so many times, each with a run under way; gives a row of the table.
pub async fn kill_while_copying(world: &mut World, times: u32, dice: &mut StdRng) -> anyhow::Result<Row> {
    let mut row = Row::new("`kill -9` of the server during `brewbench backup`".to_owned());
    let marked = Marked::of(&world.state())?;
    let folder = tempfile::tempdir()?;
    let (mut ledger, mut whole) = (Ledger::default(), 0);
    for time in 0..times {
        let experiment = world.submit(1, 0.3, 1.0).await?;
        let file = folder.path().join(format!("{time}.db"));
        let copying = world.backup(&file)?;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..SPAN_MS))).await;
        world.kill(Half::Server).await?;
        let copied = copying.wait_with_output().await?.status.success();
        ensure!(copied == file.exists(), "a copy that is not whole has the name of one");
        whole += u32::from(copied);
        let back = world.start_anew(Half::Server).await?;
        world.until_connected().await?;
        settle(world, &experiment, &mut ledger).await?;
        let took = back.elapsed();
        tidy(&marked, &mut row).await;
        row.add(ledger.audit(world, &experiment).await?, took);
        ensure!(!copied || is_whole(world, &file, folder.path()).await?, "a copy that is said to be whole is not");
    }
    let drafts = std::fs::read_dir(folder.path())?.flatten();
    row.left += drafts.filter(|entry| entry.path().extension().is_none_or(|end| end != "db")).count();
    eprintln!("  copies: {whole} of {times} were whole before the blow");
    Ok(row)
}

/// Whether a server's own check finds nothing wrong with a copy.
async fn is_whole(world: &World, file: &Path, folder: &Path) -> anyhow::Result<bool> {
    let data = folder.join("restored.d");
    let begun = Instant::now();
    let restored = Command::new(world.program()).arg("restore").arg(file).arg("--data").arg(&data).output().await?;
    let checked = Command::new(world.program()).arg("check").arg("--data").arg(&data).output().await?;
    std::fs::remove_dir_all(&data)?;
    eprintln!("  restored and checked in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(restored.status.success() && checked.status.success())
}
