//! Databases of earlier versions. `tests/fixtures/db/NNNN.db` was written by the version whose newest migration is
//! NNNN, and must open forever. Before a release that changes the schema, add one with
//! `NEW_FIXTURE=tests/fixtures/db/NNNN.db cargo test --test all new_fixture`.

mod agents;
mod figures;

use std::path::{Path, PathBuf};

use brewbench::{
    app::{db, db::Db},
    catalog::store::scenarios,
    runs::filter::Filter,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Row};
use tempfile::TempDir;

use crate::harness::{
    Agent, Answer, App, root,
    submit::{plan_with, submit, vus},
    summaries::{good, target_down},
};

fn fixtures() -> Vec<PathBuf> {
    let folder = root().join("tests/fixtures/db");
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "db")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// A data folder with a copy of a database in it.
fn data_with(database: &Path) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(database, folder.path().join("brewbench.db")).expect("a copy");
    folder
}

/// The definitions of all tables and indexes, as stored by SQLite.
async fn schema(db: &Db) -> Vec<String> {
    let query =
        "select sql from sqlite_master where sql is not null and name not like '\\_sqlx%' escape '\\' order by name";
    let rows = sqlx::query(query).fetch_all(&db.read).await.expect("a schema");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn applied(db: &Db) -> Vec<(i64, Vec<u8>)> {
    let rows = sqlx::query("select version, checksum from _sqlx_migrations order by version").fetch_all(&db.read).await;
    rows.expect("migrations").iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn every_scenario_keeps_its_revisions_and_can_be_run() {
    for database in fixtures() {
        let folder = data_with(&database);
        let db = db::open(folder.path()).await.expect("opened");
        // Of a scenario that was refused.
        let refused = sqlx::query("insert into scenario_content (key, bytes) values ('00', x'00')");
        refused.execute(&db.write).await.expect("stored");
        scenarios::clean_up(&db.write).await.expect("cleaned up");
        let others = "select count(*) from scenario_content where length(key) <> 64";
        let others: i64 = sqlx::query_scalar(others).fetch_one(&db.read).await.expect("a count");
        assert_eq!(others, 0, "{}", database.display());
        for scenario in scenarios::scenarios(&db.read).await.expect("scenarios") {
            for revision in scenarios::revisions(&db.read, &scenario.name).await.expect("revisions") {
                let stored = scenarios::revision(&db.read, &scenario.name, &revision.sha256).await.expect("read");
                let stored = stored.expect("a scenario");
                assert_eq!((stored.sha256(), stored.fault()), (revision.sha256, None), "{}", database.display());
                assert!(!stored.script().is_empty(), "{}: {}", database.display(), scenario.name);
            }
        }
        db.close().await;
    }
}

#[tokio::test]
async fn a_database_opened_several_times_at_once_is_migrated_once() {
    for folder in [data_with(&fixtures()[0]), tempfile::tempdir().expect("a folder")] {
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let folder = folder.path().to_owned();
            opening.spawn(async move { db::open(&folder).await.map(|_| ()) });
        }
        while let Some(opened) = opening.join_next().await {
            opened.expect("no panic").unwrap_or_else(|fault| panic!("{fault}"));
        }
    }
}

#[tokio::test]
async fn databases_of_all_earlier_versions_are_migrated_to_the_current_schema() {
    let empty = tempfile::tempdir().expect("a folder");
    let new = db::open(empty.path()).await.expect("a new database");
    for fixture in fixtures() {
        let folder = data_with(&fixture);
        // Fails if an applied migration has been edited.
        let old = db::open(folder.path()).await.unwrap_or_else(|fault| panic!("{}: {fault}", fixture.display()));
        assert_eq!(schema(&old).await, schema(&new).await, "{}", fixture.display());
        assert_eq!(applied(&old).await, applied(&new).await, "{}", fixture.display());
        let runs = brewbench::runs::store::list(&old.rows, &Filter::default(), 100).await.expect("runs");
        assert!(runs.len() >= 3, "{}", fixture.display());
        old.close().await;
        let number = fixture.file_stem().expect("a number").to_string_lossy().into_owned();
        let copy = folder.path().join(format!("brewbench.db.before-update-{number}"));
        if number.parse::<i64>().is_ok_and(|number| number < db::newest()) {
            let copy = db::open_existing(&copy).await.expect("a copy");
            let newest = sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(&copy).await;
            assert_eq!(newest.ok(), number.parse::<i64>().ok(), "{}", fixture.display());
        } else {
            assert!(!copy.exists(), "{}", fixture.display());
        }
    }
}

/// The cell key as databases computed it before the program stored the key of the plan.
const EARLIER_KEY: &str = "iif(replicas = 1,
        json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
            json_remove(load, '$.duration_s'), vus),
        json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters),
            json_remove(load, '$.duration_s'), vus, replicas))
    || ' ' || coalesce(engine, '') || iif(coalesce(target_kind, 'process') = 'process', '', ' ' || target_kind)
    || iif(cluster_generators = 0, '', ' ' || cluster_generators || ' generators')";

#[tokio::test]
async fn runs_of_earlier_versions_stay_in_their_cells() {
    for fixture in fixtures() {
        let folder = data_with(&fixture);
        let db = db::open(folder.path()).await.unwrap_or_else(|fault| panic!("{}: {fault}", fixture.display()));
        let counts = format!(
            "select count(*), count(distinct cell_key), count(distinct {EARLIER_KEY}), \
             count(distinct json_array(cell_key, {EARLIER_KEY})) from run"
        );
        let (runs, new, old, both): (u32, u32, u32, u32) =
            sqlx::query_as(AssertSqlSafe(counts)).fetch_one(&db.read).await.expect("counts");
        assert!(runs >= 3 && old >= 2, "{}: {runs} runs of {old} cells", fixture.display());
        assert_eq!((new, both), (old, old), "{}", fixture.display());
        for run in brewbench::runs::store::list(&db.rows, &Filter::default(), 1_000).await.expect("runs") {
            let stored = sqlx::query_as("select plan_key, cell_key from run where id = ?").bind(&run.id);
            let stored: (String, String) = stored.fetch_one(&db.read).await.expect("keys");
            assert_eq!(stored, (run.spec.plan_key(), run.cell_key()), "{}", fixture.display());
        }
    }
}

#[tokio::test]
async fn a_server_serves_the_runs_of_the_first_version() {
    let first = fixtures().remove(0);
    let app = App::on(data_with(&first), |_| ()).await;
    let reader = app.reader().await;
    let list = reader.get("/api/v1/runs").await.ok().json();
    let runs = list["runs"].as_array().expect("runs");
    let stored: Vec<_> =
        runs.iter().map(|run| json!([run["target"], run["phase"], run["verdict"], run["requests"]])).collect();
    let expected = [
        json!(["fast", "cancelled", null, null]),
        json!(["fast", "finished", "valid", 51_230]),
        json!(["down", "finished", "invalid", 60_684]),
        json!(["servy", "finished", "valid", 51_230]),
    ];
    assert_eq!(stored, expected);
    let experiment = &reader.get("/api/v1/experiments").await.ok().json()["experiments"][0]["experiment"];
    assert_eq!(experiment["plan"]["loads"], json!([vus(2, 1.0)]), "{experiment}");
    let id = experiment["id"].as_str().expect("an id");
    reader.clone().in_browser().get(&format!("/experiments/{id}")).await.ok();
    // Imported in this order before the agent connected.
    let colours = sqlx::query("select name from target_colour order by slot").fetch_all(&app.state.db.read).await;
    let colours: Vec<String> = colours.expect("colours").iter().map(|row| row.get(0)).collect();
    assert_eq!(colours, ["servy", "down", "fast", "slow"]);
    for run in runs {
        let id = run["id"].as_str().expect("an id");
        reader.clone().in_browser().get(&format!("/runs/{id}")).await.ok();
        let load = if run["origin"] == "import" { json!(null) } else { vus(2, 1.0) };
        assert_eq!(run["load"], load);
        if run["requests"] == 51_230 {
            assert_eq!(reader.get(&format!("/api/v1/runs/{id}/summary")).await.ok().text(), good());
        }
    }
}

#[tokio::test]
async fn a_server_serves_labels_baselines_and_shares_of_the_last_version() {
    let last = fixtures().pop().expect("one");
    let app = App::on(data_with(&last), |_| ()).await;
    let reader = app.reader().await;
    let runs = reader.get("/api/v1/runs?label=before").await.ok().json();
    let run = runs["runs"][0]["id"].as_str().expect("a run with a label").to_owned();
    let baseline = reader.get("/api/v1/baselines/main").await.ok().json();
    assert_eq!(baseline["baseline"]["runs"], json!([run]));
    assert_eq!(reader.get("/api/v1/shares").await.ok().json()["shares"][0]["runs"], json!([run]));
    reader.get(&format!("/api/v1/runs/{run}/series")).await.ok();
    reader.clone().in_browser().get(&format!("/compare?runs={run}")).await.ok();
}

#[tokio::test]
async fn opening_twice_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = db::open(folder.path()).await.expect("a database");
    let (before, migrations) = (schema(&first).await, applied(&first).await);
    let second = db::open(folder.path()).await.expect("the same database");
    assert_eq!((schema(&second).await, applied(&second).await), (before, migrations));
}

#[tokio::test]
async fn a_new_fixture_is_written_where_the_environment_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let requested = std::env::var_os("NEW_FIXTURE").map(|path| root().join(path));
    let fixture = requested.unwrap_or_else(|| folder.path().join("fixture.db"));
    let app = App::start().await;
    let user = app.user().await;
    for (target, summary) in [("servy", good()), ("down", target_down())] {
        let path = format!("/api/v1/runs/import?target={target}");
        Answer::to(user.request(&reqwest::Method::POST, &path).body(summary)).await.ok();
    }
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    user.post(&format!("/api/v1/runs/{}/cancel", runs[1]), &()).await.ok();
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    user.put(&format!("/api/v1/runs/{}/labels/before", runs[0]), &()).await.ok();
    user.put("/api/v1/baselines/main", &json!({"runs": [runs[0]]})).await.ok();
    user.post("/api/v1/shares", &json!({"query": format!("runs={}", runs[0])})).await.ok();
    let written = sqlx::query("vacuum into ?").bind(fixture.display().to_string()).execute(&app.state.db.write).await;
    written.expect("a new file");
    let copy = db::open(data_with(&fixture).path()).await.expect("a complete database");
    assert_eq!(brewbench::runs::store::list(&copy.rows, &Filter::default(), 100).await.expect("runs").len(), 4);
}
