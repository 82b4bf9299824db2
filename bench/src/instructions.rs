//! CPU instructions per page, counted by valgrind, which a busy machine does not change. The counted program is server
//! and client in one, once with few requests and once with more; the difference gives the instructions per request.

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

/// The committed counts, by name.
const COMMITTED: &str = "bench/instructions.json";
/// An increase above this is a regression.
const TOLERANCE: f64 = 0.10;
/// Stored runs.
const RUNS: u32 = 2_000;
/// Requests of the two counts, enough to hide the server's periodic work.
const TIMES: [u32; 2] = [5, 205];
/// The same for pages that take a hundred times as many instructions.
const TIMES_COSTLY: [u32; 2] = [2, 22];
/// Requests an import in place of a page.
const IMPORT: &str = "import";

/// Counts everything and compares it with the committed counts, or writes them.
pub async fn check(write: bool) -> anyhow::Result<()> {
    let counted = measure().await?;
    if write {
        std::fs::write(COMMITTED, serde_json::to_string_pretty(&counted)? + "\n")?;
        println!("wrote {COMMITTED}");
        return Ok(());
    }
    let text =
        std::fs::read_to_string(COMMITTED).with_context(|| format!("{COMMITTED}: run this in the project's folder"))?;
    let committed: BTreeMap<String, u64> = serde_json::from_str(&text)?;
    println!("| what | instructions | committed | ÷ |\n|---|---|---|---|");
    let mut regressions = Vec::new();
    for (what, count) in &counted {
        let Some(before) = committed.get(what) else { bail!("{COMMITTED} has no {what}; add it with --write") };
        let ratio = *count as f64 / *before as f64;
        println!("| {what} | {count} | {before} | {ratio:.3} |");
        if ratio > 1.0 + TOLERANCE {
            regressions.push(what.as_str());
        }
    }
    ensure!(
        regressions.is_empty(),
        "more than {:.0} % above the committed counts: {}",
        TOLERANCE * 100.0,
        regressions.join("; ")
    );
    Ok(())
}

async fn measure() -> anyhow::Result<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let (server, _) = site::start(&data).await?;
    drop(server);
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join("brewbench.db"))).await?;
    history::fill(&pool, RUNS).await?;
    // Skips the first page, which takes so few instructions that other work distorts the count.
    let mut requests: Vec<(&str, String)> =
        history::pages(&pool).await?.into_iter().skip(1).map(|page| (page.what, page.path)).collect();
    pool.close().await;
    requests.push(("an imported summary", IMPORT.to_owned()));
    let mut counted = BTreeMap::new();
    for (what, path) in requests {
        let [few, more] = if path.contains(history::ROUND) { TIMES_COSTLY } else { TIMES };
        let each =
            (count(&data, &path, more).await?.saturating_sub(count(&data, &path, few).await?)) / u64::from(more - few);
        eprintln!("  {what}: {each}");
        counted.insert(what.to_owned(), each);
    }
    Ok(counted)
}

/// Counts the instructions of a server process with `times` requests.
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
        .context("valgrind")?;
    let output = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{path}: {output}");
    let line = output.lines().find_map(|line| line.split_once("Collected :")).with_context(|| output.to_string())?;
    Ok(line.1.trim().parse()?)
}

/// Serves a data folder, sends the same request repeatedly, and ends. Arguments: folder, path, number of requests.
pub async fn run_child(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let data = PathBuf::from(arguments.next().context("name the data folder")?);
    let mut word = || arguments.next().and_then(|word| word.into_string().ok());
    let (path, times) =
        (word().context("name the path")?, word().context("name the number of requests")?.parse::<usize>()?);
    let (server, client) = site::start(&data).await?;
    let shutdown = server.state.shutdown.clone();
    let serving = tokio::spawn(server.serve());
    for number in 0..times {
        if path == IMPORT {
            let request = client.request(Method::POST, "api/v1/runs/import").query(&[("target", "bench")]);
            client.send(request.body(ingest::summary())).await?;
        } else {
            history::request_ms(&client, &path.replace(history::ROUND, &number.to_string())).await?;
        }
    }
    shutdown.cancel();
    Ok(serving.await??)
}
