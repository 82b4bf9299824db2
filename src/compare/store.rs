//! SQL of comparisons.

use sqlx::SqlitePool;

use crate::compare::cache::Version;

/// How often the inputs of comparisons have changed.
pub async fn version(pool: &SqlitePool) -> sqlx::Result<Version> {
    sqlx::query_scalar!("select changes from comparison_inputs").fetch_one(pool).await.map(Version)
}
