//! How many instructions the server takes for a page, counted by valgrind: a figure that a busy machine does not move, so a
//! change that makes a page dearer is seen by its number. What is counted is this program as server and as its only client,
//! once with a few requests and once with more: the difference is what a request takes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, bail, ensure};
use reqwest::Method;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::process::Command;

use crate::{apart::What, history, ingest, site};

/// The figures that are compared with, by what they are of.
const COMMITTED: &str = "bench/instructions.json";
/// More than this above the committed figure is a regression.
const TOLERANCE: f64 = 0.10;
/// Runs that are stored.
const RUNS: u32 = 2_000;
/// Requests of the two counts: enough that the periodic work of the server does not matter.
const TIMES: [u32; 2] = [5, 205];
/// The same of pages that take a hundred times as many instructions.
const TIMES_COSTLY: [u32; 2] = [2, 22];
/// What is asked for in place of a page.
const IMPORT: &str = "import";

/// Counts everything and compares it with what is committed, or commits to it.
pub async fn check(write: bool) -> anyhow::Result<()> {
    let counted = measure().await?;
    if write {
        std::fs::write(COMMITTED, serde_json::to_string_pretty(&counted)? + "\n")?;
        println!("{COMMITTED} is written");
        return Ok(());
    }
    let text = std::fs::read_to_string(COMMITTED).with_context(|| format!("{COMMITTED}: run this in the project"))?;
    let committed: BTreeMap<String, u64> = serde_json::from_str(&text)?;
    println!("| what | instructions | committed | ÷ |\n|---|---|---|---|");
    let mut dearer = Vec::new();
    for (what, count) in &counted {
        let Some(before) = committed.get(what) else { bail!("{COMMITTED} has no {what}: add it with --write") };
        let ratio = *count as f64 / *before as f64;
        println!("| {what} | {count} | {before} | {ratio:.3} |");
        if ratio > 1.0 + TOLERANCE {
            dearer.push(what.as_str());
        }
    }
    ensure!(dearer.is_empty(), "takes over {:.0} % more than is committed: {}", TOLERANCE * 100.0, dearer.join("; "));
    Ok(())
}

async fn measure() -> anyhow::Result<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let (server, _) = site::start(&data).await?;
    drop(server);
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join("brewbench.db"))).await?;
    history::fill(&pool, RUNS).await?;
    // Without the first, which takes so few that anything beside it shows.
    let mut asked: Vec<(&str, String)> =
        history::pages(&pool).await?.into_iter().skip(1).map(|page| (page.what, page.path)).collect();
    pool.close().await;
    asked.push(("an imported summary", IMPORT.to_owned()));
    let mut counted = BTreeMap::new();
    for (what, path) in asked {
        let [few, more] = if path.contains(history::ROUND) { TIMES_COSTLY } else { TIMES };
        let each =
            (count(&data, &path, more).await?.saturating_sub(count(&data, &path, few).await?)) / u64::from(more - few);
        eprintln!("  {what}: {each}");
        counted.insert(what.to_owned(), each);
    }
    Ok(counted)
}

/// Instructions of a whole server that is asked so often.
async fn count(data: &Path, path: &str, times: u32) -> anyhow::Result<u64> {
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(What::Counted.words())
        .arg(data)
        .args([path, &times.to_string()])
        .stdin(Stdio::null())
        .output()
        .await
        .context("valgrind, which counts")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{path}: {said}");
    let line = said.lines().find_map(|line| line.split_once("Collected :")).with_context(|| said.to_string())?;
    Ok(line.1.trim().parse()?)
}

/// Serves a folder, asks for one thing so often, and ends.
pub async fn counted(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let data = PathBuf::from(arguments.next().context("name the data folder")?);
    let mut word = || arguments.next().and_then(|word| word.into_string().ok());
    let (path, times) = (word().context("what to ask for")?, word().context("how often")?.parse::<usize>()?);
    let (server, client) = site::start(&data).await?;
    let shutdown = server.state.shutdown.clone();
    let serving = tokio::spawn(server.serve());
    for number in 0..times {
        if path == IMPORT {
            let request = client.request(Method::POST, "api/v1/runs/import").query(&[("target", "bench")]);
            client.send(request.body(ingest::SUMMARY)).await?;
        } else {
            history::ask(&client, &path.replace(history::ROUND, &number.to_string())).await?;
        }
    }
    shutdown.cancel();
    Ok(serving.await??)
}
