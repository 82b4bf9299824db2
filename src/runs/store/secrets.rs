//! SQL of parameters that are secrets. Plans, runs, pages and JSON have a reference instead of the value; only jobs have
//! the value. Equal values have one reference, so runs with the same secret stay in one cell.

use std::collections::BTreeMap;

use brewbench_wire::variables::is_secret;
use sqlx::{SqliteConnection, SqlitePool};
use uuid::Uuid;

use crate::app::error::{Error, Result};

/// How a reference begins.
const PREFIX: &str = "secret:";

/// Whether a value is a reference to a stored secret.
pub fn is_reference(value: &str) -> bool {
    value.starts_with(PREFIX)
}

/// Stores the secrets among parameters, and replaces them by references.
pub async fn keep(to: &mut SqliteConnection, parameters: &mut BTreeMap<String, String>) -> Result<()> {
    for (name, value) in parameters.iter_mut().filter(|(name, value)| is_secret(name) && !value.is_empty()) {
        if is_reference(value) {
            let known = sqlx::query_scalar!("select id from secret_parameter where id = ?", &*value);
            if known.fetch_optional(&mut *to).await?.is_none() {
                return Err(Error::Invalid(format!("parameters: {name} refers to a secret that is not stored here")));
            }
            continue;
        }
        let id = format!("{PREFIX}{}", &Uuid::new_v4().simple().to_string()[..12]);
        sqlx::query!("insert or ignore into secret_parameter (id, value) values (?, ?)", id, &*value)
            .execute(&mut *to)
            .await?;
        let stored = sqlx::query_scalar!("select id from secret_parameter where value = ?", &*value);
        *value = stored.fetch_one(&mut *to).await?;
    }
    Ok(())
}

/// Replaces references by their values.
pub async fn reveal(pool: &SqlitePool, parameters: &mut BTreeMap<String, String>) -> Result<()> {
    for (name, value) in parameters.iter_mut().filter(|(name, value)| is_secret(name) && is_reference(value)) {
        let stored = sqlx::query_scalar!("select value from secret_parameter where id = ?", &*value);
        *value =
            stored.fetch_optional(pool).await?.ok_or_else(|| Error::NotFound(format!("secret {value:?} of {name}")))?;
    }
    Ok(())
}
