//! Runs with complete series and evidence: 30 seconds each, of two targets at three sizes.

use std::collections::BTreeMap;

use brewbench::results::{blob, evidence::Evidence};
use brewbench_wire::{
    histogram::Histogram,
    series::{Consumption, Packed, Second, Series, Usage, Window},
};
use sqlx::{SqliteConnection, SqlitePool};

/// Number of runs.
pub const RUNS: u32 = 60;

/// Earlier experiments of the same cells.
const PAST: u32 = 10;

/// Stores the runs and their past, and returns the ids of the runs.
pub async fn store(pool: &SqlitePool) -> anyhow::Result<Vec<String>> {
    let mut transaction = pool.begin().await?;
    cells(&mut transaction, "past", PAST * RUNS).await?;
    with_series(&mut transaction, "recorded", RUNS).await?;
    transaction.commit().await?;
    Ok((0..RUNS).map(|number| format!("recorded-{number}")).collect())
}

/// Returns the bytes per run in the database.
pub async fn bytes_per_run(pool: &SqlitePool) -> anyhow::Result<f64> {
    const MANY: u32 = 6_000;
    let size = "select page_count * page_size from pragma_page_count, pragma_page_size";
    let before: i64 = sqlx::query_scalar(size).fetch_one(pool).await?;
    let mut transaction = pool.begin().await?;
    with_series(&mut transaction, "many", MANY).await?;
    transaction.commit().await?;
    let after: i64 = sqlx::query_scalar(size).fetch_one(pool).await?;
    Ok((after - before) as f64 / f64::from(MANY))
}

/// Inserts runs with their series and evidence.
async fn with_series(connection: &mut SqliteConnection, name: &str, count: u32) -> anyhow::Result<()> {
    cells(connection, name, count).await?;
    let evidence = blob::pack(&serde_json::to_vec(&evidence())?);
    for (table, body) in [("run_series", series().as_bytes()), ("run_evidence", evidence.as_slice())] {
        let insert = format!("insert into {table} (run_id, body) select id, ? from run where id like ? || '-%'");
        sqlx::query(sqlx::AssertSqlSafe(insert)).bind(body).bind(name).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Inserts runs; every [`RUNS`] of them make an experiment.
async fn cells(connection: &mut SqliteConnection, name: &str, count: u32) -> anyhow::Result<()> {
    let agent = "insert or ignore into agent (name, key_hash, created_at) values ('bench-01', x'01', 0)";
    sqlx::query(agent).execute(&mut *connection).await?;
    sqlx::query(
        "with recursive n(i) as (select 0 union all select i + 1 from n where i < ?1 - 1)
         insert into run (id, experiment_id, origin, target, version, size_name, vcpus, memory_bytes, scenario, parameters, load, vus,
             duration_ms, warm_up_ms, repetition, created_by, agent_id, phase, queued_at, phase_at, started_at, finished_at,
             verdict, figures)
         select printf('%s-%d', ?2, i), printf('%s-%d', ?2, i / ?3), 'agent', 'recorded-' || (i % 2), '1.0', (1 + i % 3) || ' vCPU / 4 GiB', 1 + i % 3,
             4294967296, 'hash', '{}', '{\"kind\":\"vus\",\"vus\":10,\"duration_s\":30.0}', 10, 30000, 2000, 1 + i / 6,
             'ada', (select id from agent where name = 'bench-01'), 'finished', 1800000000000, 1800000000000, 1800000000000, 1800000032000, 'valid',
             json_object('requests', 300000, 'failed', 0, 'error_rate', 0, 'rps', 10000 + i * 7919 % 101, 'measured_s', 30,
                 'avg_ms', 1 + i * 7919 % 101 / 1000.0, 'min_ms', 0.1, 'p50_ms', 0.9 + i * 7919 % 101 / 1000.0, 'p90_ms', 2,
                 'p95_ms', 3, 'p99_ms', 9 + i * 7919 % 101 / 100.0, 'p999_ms', 15, 'max_ms', 30,
                 'cpu_ms_per_request', 0.1, 'held_memory_bytes', 20000000 + i)
         from n",
    )
    .bind(count)
    .bind(name)
    .bind(RUNS)
    .execute(&mut *connection)
    .await?;
    let keys = "update run set plan_key = json_array(target, vcpus, memory_bytes, scenario) where plan_key = ''";
    sqlx::query(keys).execute(connection).await?;
    Ok(())
}

/// Returns 30 seconds of 10,000 requests each, in about 50 buckets that vary from second to second.
fn series() -> Packed {
    let buckets = |number: u32| {
        (0..50).map(move |place| {
            (place - 60 + i32::from(number.is_multiple_of(3)), 400 - 7 * u64::from(place.unsigned_abs()))
        })
    };
    let second = |number: u32| Second {
        until_ms: number * 1_000,
        vus: Some(10),
        iterations: 10_000,
        received_bytes: 2_000_000,
        sent_bytes: 1_000_000,
        succeeded: Histogram::new(3, 0, 10_000_000_000, buckets(number)).unwrap_or_default(),
        ..Second::default()
    };
    let consumption =
        |cpu_us| Consumption { cpu_us: Some(cpu_us), held_memory_bytes: Some(20 << 20), ..Consumption::default() };
    let usage = |number: i32| Usage {
        at_ms: number * 1_000,
        target: consumption(990_000),
        generator: consumption(700_000),
        ..Usage::default()
    };
    let seconds = (1..=30).map(second).collect();
    let measured =
        Window { start_ms: 1_800_000_002_000, seconds, usage: (0..=30).map(usage).collect(), ..Window::default() };
    Packed::pack(&Series { warm_up: None, measured: Some(measured) })
}

/// Returns evidence with a hundred facts and some log lines.
fn evidence() -> Evidence {
    let facts: BTreeMap<String, String> =
        (0..100).map(|number| (format!("net.core.fact_{number}"), format!("{}", number * 7919 % 1_000))).collect();
    Evidence { target_log: "listening on 127.0.0.1:8080\n".repeat(20), environment: facts, ..Evidence::default() }
}
