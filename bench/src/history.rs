//! Cost of pages with a long history: 100,000 runs of 50 targets, beside a page without queries. Pages are requested in
//! turn, so that all of them see the same machine, and then concurrently.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::ensure;
use brewbench_io::client::Client;
use reqwest::Method;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::{
    figures::{Figure, p50_p99},
    recorded,
    site::Site,
};

/// Default number of stored runs.
pub const RUNS: u32 = 100_000;
/// How often each page is requested.
const TIMES: usize = 200;
/// Pages per second of the two mixes, and their duration.
const RATES: [u32; 2] = [200, 500];
const BUSY: Duration = Duration::from_mins(1);

/// Placeholder in a path for a number that changes with each request, so that the page is not cached.
pub const ROUND: &str = "ROUND";
/// First number of the mix, above those of the rounds before it.
const BEFORE_MIX: usize = 1_000;

/// Returns the title of the table.
pub fn title(runs: u32) -> String {
    format!("pages, with {runs} stored runs")
}

/// Requests each page [`TIMES`] times, after a few to warm up, and then all of them at each of [`RATES`].
pub async fn measure(runs: u32) -> anyhow::Result<Vec<Figure>> {
    eprintln!("history: {runs} runs, each page {TIMES} times, then all of them at {RATES:?} a second for {BUSY:?}");
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let server = Site::start(&data).await?;
    let file = SqliteConnectOptions::new().filename(data.join("brewbench.db"));
    let pool = SqlitePool::connect_with(file).await?;
    fill(&pool, runs).await?;
    let pages = pages(&pool).await?;
    let bytes_per_run = recorded::bytes_per_run(&pool).await?;
    pool.close().await;
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(TIMES); pages.len()];
    for round in 0..TIMES + 10 {
        for (PageRequest { path, .. }, times) in pages.iter().zip(&mut times) {
            let took = request_ms(&server.client, &path.replace(ROUND, &round.to_string())).await?;
            if round >= 10 {
                times.push(took);
            }
        }
    }
    let mut figures = Vec::new();
    for (PageRequest { what, goal_ms, .. }, times) in pages.iter().zip(times) {
        figures.extend(p50_p99(what, &times, *goal_ms));
    }
    let mut mix = Mix { server: &server, pages, rounds: BEFORE_MIX };
    for rate in RATES {
        figures.extend(mix.figures(rate, true).await?);
        figures.extend(mix.figures(rate, false).await?);
    }
    let size = "database per run of 30 s with series and evidence, without its summary";
    figures.push(Figure::new(size, "kB", bytes_per_run / 1e3).at_most(12.0));
    server.process.stop().await?;
    Ok(figures)
}

/// Requests a page and returns how long that took, ms.
pub async fn request_ms(client: &Client, path: &str) -> anyhow::Result<f64> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let started = Instant::now();
    let answer = client.send(client.request(Method::GET, path).query(&pairs)).await?;
    let bytes = answer.bytes().await?;
    ensure!(!bytes.is_empty(), "{path} is empty");
    Ok(started.elapsed().as_secs_f64() * 1_000.0)
}

/// Concurrent requests of all pages.
struct Mix<'a> {
    server: &'a Site,
    pages: Vec<PageRequest>,
    /// Numbers that were already used for [`ROUND`].
    rounds: usize,
}

impl Mix<'_> {
    /// Requests pages at a constant rate (open loop), so that a slow server does not slow down its visitors.
    /// Comparisons are new each time, or always the same.
    async fn figures(&mut self, rate: u32, new: bool) -> anyhow::Result<Vec<Figure>> {
        let count = rate as usize * usize::try_from(BUSY.as_secs())?;
        let times = Arc::new(Mutex::new(Vec::with_capacity(count)));
        let mut clock = tokio::time::interval(Duration::from_secs(1) / rate);
        clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let process = &self.server.process;
        let before = process.cpu_s()?;
        let (mut visitors, mut peak_mib) = (JoinSet::new(), 0.0_f64);
        for (number, PageRequest { path, .. }) in self.pages.iter().cycle().take(count).enumerate() {
            let due = clock.tick().await;
            let round = if new { self.rounds + number / self.pages.len() } else { 0 };
            let (client, path, times) =
                (self.server.client.clone(), path.replace(ROUND, &round.to_string()), Arc::clone(&times));
            peak_mib = peak_mib.max(process.anonymous_mib()?);
            visitors.spawn(async move {
                if request_ms(&client, &path).await.is_ok() {
                    let took = due.elapsed().as_secs_f64() * 1_000.0;
                    times.lock().expect("no visitor panics").push(took);
                }
            });
        }
        while visitors.join_next().await.is_some() {}
        self.rounds += count;
        let cpu_ms = (process.cpu_s()? - before) * 1_000.0 / count as f64;
        let times = std::mem::take(&mut *times.lock().expect("no visitor panics"));
        let what =
            format!("all mixed, {rate}/s, comparisons {}", if new { "never seen before" } else { "seen before" });
        let errors = Figure::new(format!("{what}: errors"), "", (count - times.len()) as f64).at_most(0.0);
        let goal_ms = if rate > RATES[0] { 100.0 } else { 20.0 };
        let cpu = Figure::new(format!("{what}: server CPU per page"), "ms", cpu_ms).at_most(2.0);
        let memory = Figure::new(format!("{what}: most anonymous memory of the server"), "MiB", peak_mib).at_most(64.0);
        Ok([errors].into_iter().chain(p50_p99(&what, &times, Some(goal_ms))).chain([cpu, memory]).collect())
    }
}

/// Inserts runs into the database in one transaction. One run in 20 has no figures.
pub async fn fill(pool: &SqlitePool, runs: u32) -> anyhow::Result<()> {
    let mut transaction = pool.begin().await?;
    let agents = "insert into agent (name, key_hash, created_at)
         select 'bench-0' || value, cast(value as blob), 0 from json_each('[0,1,2,3]')";
    sqlx::query(agents).execute(&mut *transaction).await?;
    sqlx::query(
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < ? - 1), r as (
             select i, i * 7919 % 100003 as x, case when i % 20 = 19 then 'failed' else 'finished' end as phase from n)
         insert into run (id, experiment_id, origin, target, version, size_name, vcpus, memory_bytes, scenario, parameters,
             vus, duration_ms, warm_up_ms, repetition, created_by, agent_id, phase, queued_at, phase_at, started_at,
             finished_at, error, verdict, figures, note)
         select printf('%08x-0000-7000-8000-%012x', i, i), 'e' || (i / 30), 'agent', 'target-' || (x % 50),
             '1.' || (x % 7), (1 + x % 3) || ' vCPU / 4 GiB', 1 + x % 3, 4294967296,
             case when x % 4 = 0 then 'hash' else 'site-mix' end, '{}', 10, 10000, 2000, 1 + i % 5, 'person-' || (x % 9),
             (select id from agent where name = 'bench-0' || (x % 4)), phase, 1700000000000 + i * 60000, 1700000000000 + i * 60000, 1700000000000 + i * 60000,
             1700000015000 + i * 60000, case phase when 'failed' then 'the target died' end,
             case phase when 'finished' then case when x % 100 = 0 then 'invalid' when x % 10 = 0 then 'suspect'
                 else 'valid' end end,
             case phase when 'finished' then json_object('requests', 100000 + x, 'failed', x % 30 / 25,
                 'error_rate', x % 30 / 25 * 1.0 / (100000 + x), 'rps', 1000 + x / 7.0,
                 'measured_s', (10000 + x % 50) / 1000.0, 'avg_ms', 5 + x / 9999.0, 'min_ms', 0.1,
                 'p50_ms', 4 + x / 9999.0, 'p90_ms', 8 + x / 9999.0, 'p95_ms', 9 + x / 9999.0, 'p99_ms', 16 + x / 9999.0,
                 'p999_ms', 20 + x / 9999.0, 'max_ms', 30 + x / 9999.0) end,
             case when i % 500 = 0 then 'after the upgrade of the kernel' end
         from r",
    )
    .bind(runs)
    .execute(&mut *transaction)
    .await?;
    let keys = "update run set plan_key = json_array(target, vcpus, memory_bytes, scenario) where plan_key = ''";
    sqlx::query(keys).execute(&mut *transaction).await?;
    sqlx::query(
        "insert into run_label (label, run_seq) select 'release-' || (seq % 10), seq from run where seq % 40 = 0",
    )
    .execute(&mut *transaction)
    .await?;
    let summary = include_bytes!("../../tests/fixtures/k6/summary-export-hash-v1.8.1.json");
    let summary = brewbench::results::blob::pack(summary);
    sqlx::query(
        "insert into run_summary (run_id, body) select id, ? from run where seq = (select max(seq) - 5 from run)",
    )
    .bind(summary)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// Returns the path of a comparison with a different minimum effect each time.
fn first_seen(comparison: String) -> String {
    comparison + "&min_effect=rps:0." + ROUND
}

/// A page to request.
pub struct PageRequest {
    /// What it shows.
    pub what: &'static str,
    /// Its path; [`ROUND`] in it changes with each request.
    pub path: String,
    /// Goal for the 99th percentile, ms.
    goal_ms: Option<f64>,
}

/// Returns all pages; the first needs no query.
pub async fn pages(pool: &SqlitePool) -> anyhow::Result<Vec<PageRequest>> {
    let one: String = sqlx::query_scalar("select run_id from run_summary").fetch_one(pool).await?;
    let deep: String = sqlx::query_scalar(
        "select id from run where rps is not null order by rps limit 1 offset (select count(*) from run) / 2",
    )
    .fetch_one(pool)
    .await?;
    let eight: Vec<String> =
        sqlx::query_scalar("select id from run where phase = 'finished' order by seq desc limit 8")
            .fetch_all(pool)
            .await?;
    let recorded = recorded::store(pool).await?;
    let (eight, with_series, all) = (eight.join(","), recorded[..8].join(","), recorded.join(","));
    let of = |goal_ms: Option<f64>| move |(what, path)| PageRequest { what, path, goal_ms };
    let bare = [("`/login`, no query", "login".to_owned())];
    let lists = [
        ("`/runs`", "runs".to_owned()),
        ("`/runs`, one target", "runs?target=target-7".to_owned()),
        ("`/runs`, target, verdict and agent", "runs?target=target-7&verdict=valid&agent=bench-01".to_owned()),
        ("`/runs`, by p99", "runs?sort=p99".to_owned()),
        ("`/runs`, by requests/s, page 1,000", format!("runs?sort=rps&before={deep}")),
        ("`/runs`, invalid ones by p99", "runs?verdict=invalid&sort=-p99".to_owned()),
        ("`/runs`, one target by requests/s", "runs?target=target-7&sort=-rps".to_owned()),
        ("`/runs`, one label", "runs?label=release-0".to_owned()),
        ("`/runs`, text in notes", "runs?q=upgrade".to_owned()),
        ("`/runs`, one day by p99", "runs?from=2023-12-01&to=2023-12-01&sort=p99".to_owned()),
        ("a run", format!("runs/{one}")),
    ];
    let of_eight = [
        ("`/compare` of 8 runs", first_seen(format!("compare?runs={eight}"))),
        ("`/compare` of 8 runs with series", first_seen(format!("compare?runs={with_series}"))),
    ];
    let of_all = [("`/compare` of 60 runs with series", first_seen(format!("compare?runs={all}")))];
    let again = [("the same, seen before", format!("compare?runs={all}"))];
    let report = [("the report of these 60", first_seen(format!("api/v1/report?runs={all}")))];
    Ok(bare
        .map(of(None))
        .into_iter()
        .chain(lists.map(of(Some(6.0))))
        .chain(of_eight.map(of(Some(8.0))))
        .chain(of_all.map(of(Some(15.0))))
        .chain(again.map(of(Some(1.0))))
        .chain(report.map(of(None)))
        .collect())
}
