//! SQL of the search. Every statement returns at most `limit` rows.

use sqlx::SqlitePool;

use crate::{
    app::ids::{ExperimentId, RunId},
    search::rank::Query,
};

fn json(words: &[String]) -> sqlx::Result<String> {
    serde_json::to_string(words).map_err(|fault| sqlx::Error::Encode(fault.into()))
}

/// The first text after all texts with a prefix of hexadecimal digits and hyphens.
fn after(prefix: &str) -> String {
    format!("{prefix}g")
}

/// Returns the names of targets that contain all words: exact names first, then those that begin with the query.
pub async fn targets(pool: &SqlitePool, query: &Query, limit: i64) -> sqlx::Result<Vec<String>> {
    let (words, text) = (json(query.words())?, query.text().as_str());
    // Every target has a colour, also one that was only imported.
    sqlx::query_scalar!(
        "select name from target_colour
         where not exists (select 1 from json_each(?1) where instr(lower(name), value) = 0)
         order by lower(name) <> lower(?2), instr(lower(name), lower(?2)) <> 1, name limit ?3",
        words,
        text,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Returns experiments whose name contains all words: exact names first, then those that begin with the query, then the
/// newest.
pub async fn experiments(pool: &SqlitePool, query: &Query, limit: i64) -> sqlx::Result<Vec<ExperimentId>> {
    let (words, text) = (json(query.words())?, query.text().as_str());
    sqlx::query_scalar!(
        r#"select id as "id: ExperimentId" from experiment indexed by experiment_by_name
           where not exists (select 1 from json_each(?1) where instr(lower(name), value) = 0)
           order by lower(name) <> lower(?2), instr(lower(name), lower(?2)) <> 1, id desc limit ?3"#,
        words,
        text,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Returns experiments whose id begins with a text, newest first.
pub async fn experiments_by_id(pool: &SqlitePool, prefix: &str, limit: i64) -> sqlx::Result<Vec<ExperimentId>> {
    let after = after(prefix);
    sqlx::query_scalar!(
        r#"select id as "id: ExperimentId" from experiment where id >= ? and id < ? order by id desc limit ?"#,
        prefix,
        after,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Returns runs whose id, or its last part, begins with a text, newest first.
pub async fn runs(pool: &SqlitePool, prefix: &str, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let after = after(prefix);
    sqlx::query_scalar!(
        r#"select id as "id!: RunId" from (
               select * from (
                   select id from run where id >= ?1 and id < ?2 and deleted_at is null order by id desc limit ?3
               )
               union
               select * from (
                   select id from run where substr(id, -12) >= ?1 and substr(id, -12) < ?2 and deleted_at is null limit ?3
               )
           ) order by id desc limit ?3"#,
        prefix,
        after,
        limit
    )
    .fetch_all(pool)
    .await
}
