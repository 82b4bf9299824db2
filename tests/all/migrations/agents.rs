//! Databases in which rows named their agents, as the versions before them read those names.

use std::collections::BTreeMap;

use brewbench::{
    app::{db, ids::RunId},
    runs::filter::Filter,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection, migrate::Migrator, sqlite::SqliteConnectOptions};

use super::{data_with, fixtures};
use crate::harness::root;

/// The last migration with names.
const BEFORE: i64 = 61;

/// Runs of agents that exist and of others that were removed, alone and together; one waits for a removed agent.
const ADDED: [&str; 5] = [
    "insert or ignore into agent (name, key_hash, created_at) values ('it''s \"here\"', x'01', 1), ('gen 1', x'02', 1)",
    "insert into run (id, origin, target, repetition, created_by, phase, queued_at, phase_at, plan_key, agent,
         required_agent, generators)
     values ('one', 'agent', 'added', 1, 'ada', 'finished', 1, 1, 'key', 'it''s \"here\"', 'gen 1', '[]'),
         ('two', 'agent', 'added', 2, 'ada', 'measuring', 1, 1, 'key', 'gone', null, '[\"gen 2\",\"gen 1\",\"gone too\"]'),
         ('three', 'agent', 'added', 3, 'ada', 'queued', 1, 1, 'key', null, 'never', '[]')",
    "insert into run_part (run_id, place, agent) values ('two', 0, 'gone'), ('two', 1, 'gen 2'), ('two', 2, 'gen 1')",
    "insert into lease (run_id, agent, expires_at) values ('two', 'gone', 7), ('two', 'gen 1', 8)",
    "insert into experiment (id, name, plan, created_by, created_at)
     values ('both', 'both', '{\"agent\":\"gone\",\"generators\":[\"gen 2\",\"gen 1\"],\"retries\":1}', 'ada', 1)",
];

/// Reads one JSON value for each row.
async fn read(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn runs_parts_leases_and_plans_of_earlier_versions_keep_their_agents() {
    for fixture in fixtures() {
        let folder = data_with(&fixture);
        let options = SqliteConnectOptions::new().filename(folder.path().join("brewbench.db")).foreign_keys(true);
        let mut old = SqliteConnection::connect_with(&options).await.expect("the database");
        let all = Migrator::new(root().join("migrations")).await.expect("migrations");
        all.run_to(BEFORE, &mut old).await.expect("a database of that version");
        for sql in ADDED {
            sqlx::query(sql).execute(&mut old).await.expect("rows");
        }
        let run = "select json_array(id, agent, json(generators), cell_key, json(figures)) from run order by seq";
        let runs = read(&mut old, run).await;
        let rest = [
            "select json_array(id, required_agent) from run order by seq",
            "select json_array(run_id, place, agent) from run_part order by run_id, place",
            "select json_array(run_id, agent, expires_at) from lease order by run_id, expires_at",
            "select json_array(id, plan ->> '$.agent', json(coalesce(plan -> '$.generators', '[]'))) from experiment
             order by id",
        ];
        let mut before = Vec::new();
        for sql in rest {
            before.push(read(&mut old, sql).await);
        }
        let present = read(&mut old, "select name from agent order by name").await;
        old.close().await.expect("closed");

        let db = db::open(folder.path()).await.expect("the migrated database");
        let shown = brewbench::runs::store::list(&db.rows, &Filter::default(), 1_000).await.expect("runs");
        let shown: BTreeMap<RunId, String> = shown
            .into_iter()
            .map(|run| {
                let figures = serde_json::to_value(&run.figures).expect("figures");
                let shown = json!([run.id, run.agent, run.spec.generators, run.cell_key(), figures]);
                (run.id, shown.to_string())
            })
            .collect();
        assert_eq!(shown.len(), runs.len(), "{}", fixture.display());
        let mut connection = db.write.acquire().await.expect("a connection");
        let after = [
            "select json_array(id, (select name from agent where agent.id = required_agent_id)) from run order by seq",
            "select json_array(run_id, place, (select name from agent where agent.id = agent_id)) from run_part
             order by run_id, place",
            "select json_array(run_id, (select name from agent where agent.id = agent_id), expires_at) from lease
             order by run_id, expires_at",
            "select json_array(id, (select name from agent where agent.id = agent_id), (
                 select json_group_array(name) from (select agent.name from json_each(experiment.generators) as named
                     join agent on agent.id = named.value order by named.key))) from experiment order by id",
        ];
        for (sql, before) in after.into_iter().zip(before) {
            assert_eq!(read(&mut connection, sql).await, before, "{}", fixture.display());
        }
        let agents = brewbench::fleet::store::agents(&db.read).await.expect("agents");
        assert_eq!(
            agents.into_iter().map(|agent| agent.name).collect::<Vec<_>>(),
            present,
            "removed ones are not listed"
        );
        let (one, two) = (&shown[&"one".to_owned().into()], &shown[&"two".to_owned().into()]);
        assert!(one.contains(r#"it's \"here\""#) && two.contains(r#""gone",["gen 2","gen 1","gone too"]"#), "{two}");
    }
}
