//! Consistency of the registry.

use std::collections::BTreeSet;

use sqlx::AssertSqlSafe;

use super::{figures::tests::all_known, *};
use crate::app::db;

#[test]
fn each_metric_has_its_index_and_unique_names() {
    for (place, def) in METRICS.iter().enumerate() {
        assert_eq!(def.metric as usize, place, "{}", def.key);
        assert_eq!(serde_json::to_value(def.metric).expect("a word"), def.key);
    }
    let keys: BTreeSet<_> = METRICS.iter().map(|def| def.key).collect();
    let list_keys: BTreeSet<_> = METRICS.iter().filter_map(|def| def.list_key).collect();
    assert_eq!((keys.len(), list_keys.len()), (METRICS.len(), METRICS.len()));
}

#[test]
fn compared_metrics_come_first() {
    let compared = compared().count();
    assert!(METRICS[..compared].iter().all(|def| def.role >= Role::Compared));
    assert_eq!(judged().next(), Some(Metric::Rps), "the primary metric");
}

/// Sorting and showing must agree, or a page would continue at the wrong run.
#[tokio::test]
async fn every_metric_is_sorted_by_the_figure_that_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = db::open(folder.path()).await.expect("a database");
    let figures = all_known();
    let insert = "insert into run (id, origin, target, repetition, created_by, phase, queued_at, phase_at, figures)
        values ('a', 'import', 'servy', 1, 'ada', 'finished', 1, 1, ?)";
    let stored = figures.to_stored().expect("JSON");
    sqlx::query(insert).bind(stored).execute(&db.write).await.expect("a run");
    for MetricDef { key, sql, index, get, .. } in METRICS {
        let index = index.map_or("not indexed".to_owned(), |index| format!("indexed by {index}"));
        let select = format!("select cast({sql} as real) from run {index} where {sql} is not null order by {sql}");
        let sorted_by: f64 = sqlx::query_scalar(AssertSqlSafe(select)).fetch_one(&db.read).await.expect("a figure");
        assert_eq!(get(&figures), Some(sorted_by), "{key}");
    }
}
