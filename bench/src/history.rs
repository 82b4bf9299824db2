//! What a page of a long history costs: 100,000 runs of 50 targets, and beside them a page that asks the database nothing.
//! Pages are asked for in turn, so that all of them see the same machine; then many of them at once.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::ensure;
use brewbench_agent::connection::client::Client;
use reqwest::Method;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::{recorded, site::Site};

/// Runs that are stored unless another number is asked for.
pub const RUNS: u32 = 100_000;
/// How often each page is asked for.
pub const TIMES: usize = 200;
/// How many pages a second are asked for when it gets busy.
pub const RATE: u32 = 200;
/// For how long.
pub const BUSY: Duration = Duration::from_mins(1);

/// The page without a query.
const BARE: &str = "login";
/// Stands in an address for a number that is another one each time, so that nobody has seen the page before.
pub const ROUND: &str = "ROUND";
/// More than there are rounds: comparisons of the mix are others than those before it.
const BEFORE_MIX: usize = 1_000;

/// What came of it.
pub struct History {
    /// One page after the other; the first is the one without a query.
    pub pages: Vec<Page>,
    /// All of them mixed, [`RATE`] a second: with comparisons that nobody has seen before, and with the same again and again.
    pub busy: [Busy; 2],
}

/// What came of one page.
pub struct Page {
    /// What it shows.
    pub what: &'static str,
    /// Half of the answers came within this, ms.
    pub p50_ms: f64,
    /// 99 of 100 answers came within this, ms.
    pub p99_ms: f64,
}

/// What came of many pages at once.
pub struct Busy {
    /// Answers that were no pages.
    pub errors: usize,
    /// Half of the answers came within this, ms.
    pub p50_ms: f64,
    /// 99 of 100 answers came within this, ms.
    pub p99_ms: f64,
    /// CPU time of the server for one page, ms.
    pub cpu_ms: f64,
    /// The most memory that the server held for itself, MiB.
    pub peak_mib: f64,
}

/// Asks for each page [`TIMES`] times, after a few to warm up, and then for all of them at [`RATE`].
pub async fn measure(runs: u32) -> anyhow::Result<History> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let server = Site::start(&data).await?;
    let file = SqliteConnectOptions::new().filename(data.join("brewbench.db"));
    let pool = SqlitePool::connect_with(file).await?;
    fill(&pool, runs).await?;
    let pages = pages(&pool).await?;
    pool.close().await;
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(TIMES); pages.len()];
    for round in 0..TIMES + 10 {
        for ((_, path), times) in pages.iter().zip(&mut times) {
            let took = ask(&server.client, &path.replace(ROUND, &round.to_string())).await?;
            if round >= 10 {
                times.push(took);
            }
        }
    }
    let whats = pages.iter().map(|(what, _)| *what);
    let told = whats.zip(times).map(|(what, times)| {
        let [p50_ms, p99_ms] = quantiles(times);
        Page { what, p50_ms, p99_ms }
    });
    let told = told.collect();
    let paths: Vec<String> = pages.into_iter().map(|(_, path)| path).collect();
    let busy = [busy(&server, &paths, true).await?, busy(&server, &paths, false).await?];
    server.process.stop().await?;
    Ok(History { pages: told, busy })
}

/// How long an answer took, ms.
pub async fn ask(client: &Client, path: &str) -> anyhow::Result<f64> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let started = Instant::now();
    let answer = client.send(client.request(Method::GET, path).query(&pairs)).await?;
    let bytes = answer.bytes().await?;
    ensure!(!bytes.is_empty(), "{path} is empty");
    Ok(started.elapsed().as_secs_f64() * 1_000.0)
}

/// Half and 99 of 100 were at most this.
pub fn quantiles(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[times.len() * 99 / 100]]
}

/// Pages by the clock, whether or not those before are answered: a slow server does not slow its visitors down. Comparisons
/// are others each time, or the same.
async fn busy(server: &Site, paths: &[String], first_seen: bool) -> anyhow::Result<Busy> {
    let asked = RATE as usize * usize::try_from(BUSY.as_secs())?;
    let times = Arc::new(Mutex::new(Vec::with_capacity(asked)));
    let mut clock = tokio::time::interval(Duration::from_secs(1) / RATE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let before = server.process.cpu_s()?;
    let (mut visitors, mut peak_mib) = (JoinSet::new(), 0.0_f64);
    for (number, path) in paths.iter().cycle().take(asked).enumerate() {
        let due = clock.tick().await;
        let round = if first_seen { BEFORE_MIX + number / paths.len() } else { 0 };
        let (client, path, times) =
            (server.client.clone(), path.replace(ROUND, &round.to_string()), Arc::clone(&times));
        peak_mib = peak_mib.max(server.process.anonymous_mib()?);
        visitors.spawn(async move {
            if ask(&client, &path).await.is_ok() {
                let took = due.elapsed().as_secs_f64() * 1_000.0;
                times.lock().expect("no visitor panics").push(took);
            }
        });
    }
    while visitors.join_next().await.is_some() {}
    let cpu_ms = (server.process.cpu_s()? - before) * 1_000.0 / asked as f64;
    let times = std::mem::take(&mut *times.lock().expect("no visitor panics"));
    let errors = asked - times.len();
    ensure!(!times.is_empty(), "nothing was answered");
    let [p50_ms, p99_ms] = quantiles(times);
    Ok(Busy { errors, p50_ms, p99_ms, cpu_ms, peak_mib })
}

/// Straight into the store, in one transaction. Figures are spread; one run in 20 has none.
pub async fn fill(pool: &SqlitePool, runs: u32) -> anyhow::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query(
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < ? - 1), r as (
             select i, i * 7919 % 100003 as x, case when i % 20 = 19 then 'failed' else 'finished' end as phase from n)
         insert into run (id, experiment_id, origin, target, version, size_name, vcpus, memory_bytes, scenario, parameters,
             vus, duration_ms, warm_up_ms, repetition, created_by, agent, phase, queued_at, phase_at, started_at,
             finished_at, error, verdict, requests, failed, rps, measured_ms, avg_ms, min_ms, p50_ms, p90_ms, p95_ms,
             p99_ms, p999_ms, max_ms, note)
         select printf('%08x-0000-7000-8000-%012x', i, i), 'e' || (i / 30), 'agent', 'target-' || (x % 50),
             '1.' || (x % 7), (1 + x % 3) || ' vCPU / 4 GiB', 1 + x % 3, 4294967296,
             case when x % 4 = 0 then 'hash' else 'site-mix' end, '{}', 10, 10000, 2000, 1 + i % 5, 'person-' || (x % 9),
             'bench-0' || (x % 4), phase, 1700000000000 + i * 60000, 1700000000000 + i * 60000, 1700000000000 + i * 60000,
             1700000015000 + i * 60000, case phase when 'failed' then 'the target died' end,
             case phase when 'finished' then case when x % 100 = 0 then 'invalid' when x % 10 = 0 then 'suspect'
                 else 'valid' end end,
             case phase when 'finished' then 100000 + x end, case phase when 'finished' then x % 30 / 25 end,
             case phase when 'finished' then 1000 + x / 7.0 end, case phase when 'finished' then 10000.0 + x % 50 end,
             case phase when 'finished' then 5 + x / 9999.0 end, case phase when 'finished' then 0.1 end,
             case phase when 'finished' then 4 + x / 9999.0 end, case phase when 'finished' then 8 + x / 9999.0 end,
             case phase when 'finished' then 9 + x / 9999.0 end, case phase when 'finished' then 16 + x / 9999.0 end,
             case phase when 'finished' then 20 + x / 9999.0 end, case phase when 'finished' then 30 + x / 9999.0 end,
             case when i % 500 = 0 then 'after the upgrade of the kernel' end
         from r",
    )
    .bind(runs)
    .execute(&mut *transaction)
    .await?;
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

/// The address of a comparison with another minimum effect each time.
fn first_seen(comparison: String) -> String {
    comparison + "&min_effect=rps:0." + ROUND
}

/// What people look at, as (words, path).
pub async fn pages(pool: &SqlitePool) -> anyhow::Result<Vec<(&'static str, String)>> {
    let one: String = sqlx::query_scalar("select run_id from run_summary").fetch_one(pool).await?;
    let deep: String = sqlx::query_scalar("select id from run where rps is not null order by rps limit 1 offset 50000")
        .fetch_one(pool)
        .await?;
    let eight: Vec<String> =
        sqlx::query_scalar("select id from run where phase = 'finished' order by seq desc limit 8")
            .fetch_all(pool)
            .await?;
    let recorded = recorded::store(pool).await?;
    let mut compare = "compare?runs=".to_owned();
    write!(compare, "{}", eight.join(","))?;
    Ok(vec![
        ("`/login`, no query", BARE.to_owned()),
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
        ("`/compare` of 8 runs", first_seen(compare)),
        ("`/compare` of 8 runs with series", first_seen(format!("compare?runs={}", recorded[..8].join(",")))),
        ("`/compare` of 60 runs with series", first_seen(format!("compare?runs={}", recorded.join(",")))),
        ("the same, seen before", format!("compare?runs={}", recorded.join(","))),
        ("the report of these 60", first_seen(format!("api/v1/report?runs={}", recorded.join(",")))),
    ])
}
