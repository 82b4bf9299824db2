//! Ids of runs, experiments and agents. Each has a type of its own, so that one is never passed for the other.
//!
//! Those of runs and experiments are stored as text. New ones are version 7 UUIDs, so they sort by the time of submission.

use std::{collections::HashSet, fmt};

use rusqlite::{
    ToSql,
    types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identifies a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct RunId(String);

/// Identifies an experiment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct ExperimentId(String);

/// Identifies an agent: its row. Users and agents know its name, which may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct AgentId(i64);

/// Joins ids for a query string: `ID,ID`.
pub fn joined(ids: &[RunId]) -> String {
    ids.iter().map(RunId::as_str).collect::<Vec<_>>().join(",")
}

/// Parses comma-separated ids or names of a query string and removes duplicates.
pub fn listed<Id: From<String>>(parts: &[String]) -> Vec<Id> {
    let mut known = HashSet::new();
    let named = parts.iter().flat_map(|part| part.split(',')).map(str::trim).filter(|id| !id.is_empty());
    named.filter(|id| known.insert(*id)).map(|id| Id::from(id.to_owned())).collect()
}

impl RunId {
    /// Returns a new id that sorts after all earlier ones of this process.
    pub fn now() -> Self {
        Self(Uuid::now_v7().to_string())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as agents know it; fails if it is not a UUID.
    pub fn to_wire(&self) -> Result<brewbench_wire::RunId, uuid::Error> {
        self.0.parse()
    }
}

impl ExperimentId {
    /// Returns a new id that sorts after all earlier ones of this process.
    pub fn now() -> Self {
        Self(Uuid::now_v7().to_string())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<brewbench_wire::RunId> for RunId {
    fn from(id: brewbench_wire::RunId) -> Self {
        Self(id.to_string())
    }
}

impl From<String> for RunId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<String> for ExperimentId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<i64> for AgentId {
    fn from(id: i64) -> Self {
        Self(id)
    }
}

impl FromSql for RunId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value).map(Self)
    }
}

impl FromSql for ExperimentId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value).map(Self)
    }
}

impl ToSql for AgentId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
