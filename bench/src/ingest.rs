//! Imported summaries per second through the API, each committed before its response, compared with committed inserts
//! of the same bytes into a plain table. Both are measured in alternating rounds with the same number of clients.

use std::{path::Path, process::Stdio, time::Instant};

use anyhow::Context;
use brewbench::runs::model::RunList;
use brewbench_io::client::Client;
use brewbench_wire::RunId;
use reqwest::Method;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{process::Command, task::JoinSet};

use crate::{figures::Figure, site};

/// Rounds of both sides.
const ROUNDS: usize = 9;
/// Summaries per round.
const SUMMARIES: usize = 400;
/// Concurrent clients, each of which sends one summary after another.
const CLIENTS: usize = 4;

/// Files imported by the command.
const FILES: usize = 10_000;

/// A k6 summary of the scenario `hash`.
const SUMMARY: &str = include_str!("../../tests/fixtures/k6/summary-export-hash-v1.8.1.json");

/// Returns the summary as that of another measurement: the same file is imported once.
pub fn summary() -> String {
    SUMMARY.replacen('{', &format!("{{\"id\": \"{}\",", RunId::now()), 1)
}

/// Measures both sides in alternation.
pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    eprintln!("ingest: {ROUNDS} rounds of {SUMMARIES} summaries of {} bytes, and as many raw inserts", SUMMARY.len());
    // Both files are in one folder, so on one disk.
    let folder = tempfile::tempdir_in(".").context("a folder on the project's disk")?;
    let (server, token) = site::open(&folder.path().join("site"), 0).await?;
    let url = server.local_url();
    let client = Client::new(&url, Some(token.clone()))?;
    let shutdown = server.state.shutdown.clone();
    let serving = tokio::spawn(server.serve());
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("raw.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    // SQLite has one writer at a time, and waiting for one connection costs clients less than waiting for a lock.
    let raw = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false).connect_with(options).await?;
    sqlx::query("create table summary (id integer primary key, body blob not null) strict").execute(&raw).await?;

    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    // The first round is a warm-up.
    for round in 0..=ROUNDS {
        let imported = per_second(|| import(client.clone())).await?;
        let inserted = per_second(|| insert(raw.clone())).await?;
        if round > 0 {
            ratios.push(imported / inserted);
            rates.push(imported);
        }
    }
    let folder = folder.path().join("summaries");
    let files_per_s = files(&url, &token, &folder).await?;
    shutdown.cancel();
    serving.await??;
    Ok(vec![
        Figure::from_values("summaries ingested/s ÷ raw SQLite inserts/s", "ratio", &ratios).at_least(0.5),
        Figure::from_values("summaries ingested", "1/s", &rates),
        Figure::new(format!("`run import` of {FILES} files"), "1/s", files_per_s).at_least(1_000.0),
    ])
}

/// Returns the summaries per second of all clients together.
async fn per_second<F>(client: impl Fn() -> F) -> anyhow::Result<f64>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let start = Instant::now();
    let mut clients: JoinSet<_> = (0..CLIENTS).map(|_| client()).collect();
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(SUMMARIES as f64 / start.elapsed().as_secs_f64())
}

async fn import(client: Client) -> anyhow::Result<()> {
    for _ in 0..SUMMARIES / CLIENTS {
        let request = client.request(Method::POST, "api/v1/runs/import").query(&[("target", "bench")]).body(summary());
        let list: RunList = client.json(request).await?;
        anyhow::ensure!(list.runs.len() == 1, "one run a summary");
    }
    Ok(())
}

async fn insert(raw: SqlitePool) -> anyhow::Result<()> {
    for _ in 0..SUMMARIES / CLIENTS {
        sqlx::query("insert into summary (body) values (?)").bind(summary().into_bytes()).execute(&raw).await?;
    }
    Ok(())
}

/// Returns the files per second of `brewbench run import`; the program is in the folder of this one.
async fn files(url: &reqwest::Url, token: &str, folder: &Path) -> anyhow::Result<f64> {
    std::fs::create_dir(folder)?;
    let files: Vec<_> = (0..FILES).map(|number| folder.join(format!("{number}.json"))).collect();
    files.iter().try_for_each(|file| std::fs::write(file, summary()))?;
    let start = Instant::now();
    let status = Command::new(std::env::current_exe()?.with_file_name("brewbench"))
        .args(["run", "import", "--json", "--target", "bench", "--url", url.as_str()])
        .env("BREWBENCH_TOKEN", token)
        .args(files)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await?;
    anyhow::ensure!(status.success(), "run import: {status}");
    Ok(FILES as f64 / start.elapsed().as_secs_f64())
}
