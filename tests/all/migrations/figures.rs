//! Figures of databases in which each had a column of its own, as the versions before them read those columns.

use std::collections::BTreeMap;

use brewbench::{
    app::{db, ids::RunId},
    metrics::Figures,
    runs::filter::Filter,
};
use serde_json::{Map, Value, json};
use sqlx::{
    AssertSqlSafe, Connection, Row, SqliteConnection,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use super::{data_with, fixtures};
use crate::harness::root;

/// The last migration with a column for each figure.
const BEFORE: i64 = 58;

const INTEGERS: [&str; 15] = [
    "requests",
    "failed",
    "iterations",
    "dropped_iterations",
    "checks_passed",
    "checks_failed",
    "thresholds",
    "thresholds_failed",
    "target_cpu_us",
    "target_memory_bytes",
    "idle_memory_bytes",
    "min_new_connections",
    "max_new_connections",
    "warmed_up_ms",
    "warm_up_steady",
];
const REALS: [&str; 15] = [
    "rps",
    "measured_ms",
    "avg_ms",
    "min_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "data_received_bytes",
    "data_sent_bytes",
    "received_per_s",
    "throttled_share",
    "startup_ms",
];
const TEXTS: [&str; 3] = ["statuses", "protocols", "counters"];

/// Reads the figures of a run from its columns.
fn figures(row: &SqliteRow) -> Figures {
    let integer = |name: &str| row.get::<Option<i64>, _>(name).map(|count| u64::try_from(count).expect("a count"));
    let real = |name: &str| row.get::<Option<f64>, _>(name);
    let parsed = |name: &str| row.get::<Option<&str>, _>(name).map(|text| serde_json::from_str(text).expect("JSON"));
    let requests = integer("requests").filter(|requests| *requests > 0).map(|requests| requests as f64);
    let per_request = |value: Option<f64>| value.zip(requests).map(|(value, requests)| value / requests);
    let seconds = real("measured_ms").filter(|ms| *ms > 0.0).map(|ms| ms / 1_000.0);
    let received = real("data_received_bytes");
    let counted = integer("min_new_connections").filter(|least| Some(*least) == integer("max_new_connections"));
    let iterations = integer("iterations").filter(|count| *count > 0).map(|count| count as f64);
    let mut known: Map<String, Value> = Map::new();
    let mut add = |name: &str, value: Value| known.insert(name.to_owned(), value);
    for name in INTEGERS.into_iter().filter(|name| *name != "warm_up_steady") {
        add(name, json!(integer(name)));
    }
    for name in REALS {
        add(name, json!(real(name)));
    }
    add("error_rate", json!(per_request(integer("failed").map(|count| count as f64))));
    add("measured_s", json!(real("measured_ms").map(|ms| ms / 1_000.0)));
    add("cpu_ms_per_request", json!(per_request(integer("target_cpu_us").map(|us| us as f64 / 1_000.0))));
    let rate = received.zip(seconds).map(|(bytes, seconds)| bytes / seconds);
    add("received_per_s", json!(real("received_per_s").or(rate)));
    add("warmed_up_s", json!(integer("warmed_up_ms").map(|ms| ms as f64 / 1_000.0)));
    add("warm_up_steady", json!(integer("warm_up_steady").map(|is| is != 0)));
    let counters: BTreeMap<String, u64> =
        parsed("counters").map(|all| serde_json::from_value(all).expect("counts")).unwrap_or_default();
    for (name, count) in counters {
        add(&format!("{name}_per_request"), json!(per_request(Some(count as f64))));
    }
    let work = json!({
        "requests_per_iteration": requests.zip(iterations).map(|(requests, iterations)| requests / iterations),
        "bytes_per_request": per_request(received),
        "sent_bytes_per_request": per_request(real("data_sent_bytes")),
        "new_connections": counted,
        "min_new_connections": integer("min_new_connections"),
        "max_new_connections": integer("max_new_connections"),
        "new_connection_share": per_request(counted.map(|count| count as f64)),
        "statuses": parsed("statuses"),
        "protocols": parsed("protocols"),
    });
    add("work", work);
    serde_json::from_value(Value::Object(known)).expect("figures")
}

/// Applies the migrations that a version had when each figure was a column.
async fn migrate(connection: &mut SqliteConnection) {
    let all = Migrator::new(root().join("migrations")).await.expect("migrations");
    all.run_to(BEFORE, connection).await.expect("a database of that version");
}

/// Adds runs whose columns have all kinds of values: numbers with many digits, zeros, and unknown ones.
async fn add_runs(connection: &mut SqliteConnection) {
    let columns: Vec<_> = INTEGERS.into_iter().chain(REALS).chain(TEXTS).collect();
    for number in 0..200_usize {
        let value = |(place, name): (usize, &&str)| {
            let seed = (number + 3) * (place + 7) * 7_919;
            match (number + place) % 5 {
                0 => "null".to_owned(),
                1 if !TEXTS.contains(name) => "0".to_owned(),
                _ if *name == "warm_up_steady" => (number % 2).to_string(),
                _ if *name == "target_memory_bytes" => ((1_u64 << 53) + seed as u64).to_string(),
                _ if *name == "counters" => format!("'{{\"cycles\":{seed},\"page_faults\":0}}'"),
                _ if TEXTS.contains(name) => format!("'{{\"200\":{seed},\"0\":1}}'"),
                _ if INTEGERS.contains(name) => seed.to_string(),
                _ => format!("{seed} / {}.0", 7 + place),
            }
        };
        let values: Vec<String> = columns.iter().enumerate().map(value).collect();
        let insert = format!(
            "insert into run (id, origin, target, repetition, created_by, phase, queued_at, phase_at, {})
             values ('added-{number}', 'import', 'added', 1, 'ada', 'finished', 1, 1, {})",
            columns.join(", "),
            values.join(", ")
        );
        sqlx::query(AssertSqlSafe(insert)).execute(&mut *connection).await.expect("a run");
    }
}

#[tokio::test]
async fn figures_of_earlier_versions_stay_the_same_to_the_last_bit() {
    for fixture in fixtures() {
        let folder = data_with(&fixture);
        let options = SqliteConnectOptions::new().filename(folder.path().join("brewbench.db")).foreign_keys(true);
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the database");
        migrate(&mut connection).await;
        add_runs(&mut connection).await;
        let rows = sqlx::query("select * from run where deleted_at is null").fetch_all(&mut connection).await;
        let rows = rows.expect("runs");
        let before: BTreeMap<RunId, Figures> = rows.iter().map(|row| (row.get("id"), figures(row))).collect();
        connection.close().await.expect("closed");

        let db = db::open(folder.path()).await.expect("the migrated database");
        let runs = brewbench::runs::store::list(&db.rows, &Filter::default(), 1_000).await.expect("runs");
        let after: BTreeMap<RunId, Figures> = runs.into_iter().map(|run| (run.id, run.figures)).collect();
        assert_eq!(before.len(), after.len());
        for (id, figures) in &before {
            assert_eq!(figures, &after[id], "{}: {id}", fixture.display());
        }
        assert!(after.values().filter(|figures| figures.rps.is_some()).count() > 100);
        let unknown = sqlx::query_scalar::<_, i64>("select count(*) from run where figures like '%null%'");
        assert_eq!(unknown.fetch_one(&db.read).await.expect("a count"), 0, "what is not known is absent");
    }
}
