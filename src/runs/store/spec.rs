//! The columns of `run` that hold its spec. Nothing else names all of them. What no statement names has no column: it
//! is JSON in the column `spec`, so that a new field needs nothing here.

use brewbench_wire::{job::Size, run_spec::RunSpec};
use rusqlite::types::FromSql;
use serde_json::{Map, Value, json};
use sqlx::{Sqlite, query::Query, sqlite::SqliteArguments};

use crate::{
    app::db::decode,
    runs::{load, store::row::integer},
};

/// Lists the columns once: as fields, in reading order, and for a statement.
macro_rules! columns {
    ($first:ident: $type:ty, $($column:ident: $types:ty,)*) => {
        /// A spec as stored, one field per column.
        #[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
        pub struct SpecColumns {
            pub(crate) $first: $type,
            $(pub(crate) $column: $types,)*
        }

        /// The columns in reading order.
        pub const COLUMNS: &str = concat!(stringify!($first) $(, ", ", stringify!($column))*);

        /// Their parameters in a statement, in the same order.
        pub const PARAMETERS: &str = concat!("?" $(, parameter!($column))*);

        impl SpecColumns {
            /// Reads the columns that follow in a row of a statement with [`COLUMNS`].
            pub fn read(columns: &mut Columns<'_>) -> rusqlite::Result<Self> {
                Ok(Self { $first: columns.read()?, $($column: columns.read()?,)* })
            }

            /// Binds the columns to the next parameters of a statement.
            pub fn bind(self, query: Query<'_, Sqlite, SqliteArguments>) -> Query<'_, Sqlite, SqliteArguments> {
                query.bind(self.$first)$(.bind(self.$column))*
            }
        }
    };
}

/// Returns the parameter of a column.
macro_rules! parameter {
    ($column:ident) => {
        ", ?"
    };
}

columns! {
    target: String,
    size_name: Option<String>,
    vcpus: Option<f64>,
    memory_bytes: Option<i64>,
    replicas: u32,
    scenario: Option<String>,
    scenario_sha256: Option<String>,
    parameters: String,
    load: Option<String>,
    vus: Option<i64>,
    duration_ms: Option<i64>,
    warm_up_ms: Option<i64>,
    profiled: i64,
    generators: String,
    cluster_generators: u32,
    spec: String,
}

/// Reads the columns of a row by position, because a lookup by name would take longer than the read.
pub struct Columns<'r> {
    row: &'r rusqlite::Row<'r>,
    at: usize,
}

impl<'r> Columns<'r> {
    /// Begins with the first column of a row.
    pub fn new(row: &'r rusqlite::Row<'r>) -> Self {
        Self { row, at: 0 }
    }

    /// Reads the next column.
    pub fn read<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }
}

impl TryFrom<SpecColumns> for RunSpec {
    type Error = sqlx::Error;

    fn try_from(columns: SpecColumns) -> sqlx::Result<Self> {
        let SpecColumns { size_name, vcpus, memory_bytes, replicas, .. } = columns;
        let size = match (size_name, vcpus, integer(memory_bytes)?) {
            (Some(name), Some(vcpus), Some(memory_bytes)) => Some(Size { name, vcpus, memory_bytes, replicas }),
            _ => None,
        };
        let seconds = |ms: Option<i64>| ms.map(|ms| ms as f64 / 1_000.0);
        Ok(Self {
            target: columns.target,
            size,
            scenario: columns.scenario,
            scenario_sha256: columns.scenario_sha256,
            parameters: serde_json::from_str(&columns.parameters).map_err(decode)?,
            load: columns.load.as_deref().map(load::read).transpose().map_err(decode)?,
            vus: integer(columns.vus)?,
            duration_s: seconds(columns.duration_ms),
            warm_up_s: seconds(columns.warm_up_ms),
            profiled: columns.profiled != 0,
            generators: serde_json::from_str(&columns.generators).map_err(decode)?,
            cluster_generators: columns.cluster_generators,
            ..rest(&columns.spec).map_err(decode)?
        })
    }
}

impl From<&RunSpec> for SpecColumns {
    fn from(spec: &RunSpec) -> Self {
        let RunSpec {
            target,
            size,
            scenario,
            scenario_sha256,
            parameters,
            load,
            vus,
            duration_s,
            warm_up_s,
            profiled,
            generators,
            cluster_generators,
            ..
        } = spec.clone();
        let size_name = size.as_ref().map(|size| size.name.clone());
        #[expect(clippy::cast_possible_truncation, reason = "a load and a warm-up last some days at most")]
        let milliseconds = |seconds: f64| (seconds * 1_000.0).round() as i64;
        Self {
            target,
            size_name,
            vcpus: size.as_ref().map(|size| size.vcpus),
            memory_bytes: size.as_ref().map(|size| size.memory_bytes.cast_signed()),
            replicas: spec.replicas(),
            scenario,
            scenario_sha256,
            parameters: json!(parameters).to_string(),
            load: load.as_ref().map(load::to_json),
            vus: vus.map(i64::from),
            duration_ms: duration_s.map(milliseconds),
            warm_up_ms: warm_up_s.map(milliseconds),
            profiled: profiled.into(),
            generators: json!(generators).to_string(),
            cluster_generators,
            spec: rest_of(spec),
        }
    }
}

/// What a spec is without values that are not usual, as stored.
const USUAL: &str = "{}";

/// The fields with columns of their own, by their names in JSON.
const WITH_COLUMNS: [&str; 12] = [
    "target",
    "size",
    "scenario",
    "scenario_sha256",
    "parameters",
    "load",
    "vus",
    "duration_s",
    "warm_up_s",
    "profiled",
    "generators",
    "cluster_generators",
];

/// Returns the fields without columns that are not usual, as JSON.
fn rest_of(spec: &RunSpec) -> String {
    let (mut fields, usual) = (json!(spec), json!(RunSpec::default()));
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|name, value| !WITH_COLUMNS.contains(&name.as_str()) && usual.get(name) != Some(&*value));
    }
    fields.to_string()
}

/// Reads what no column of a stored run has of its spec.
pub fn rest(text: &str) -> serde_json::Result<RunSpec> {
    if text == USUAL {
        return Ok(RunSpec::default());
    }
    let mut fields: Map<String, Value> = serde_json::from_str(text)?;
    fields.insert("target".to_owned(), json!(""));
    serde_json::from_value(fields.into())
}

#[cfg(test)]
mod tests {
    use brewbench_wire::{load::Load, run_spec::HttpVersion};
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::{
        app::{db, ids::RunId},
        runs::{
            load::tests::{rate, vus, vus_stages},
            store::{self, NewRun},
            testing,
        },
    };

    /// The plan key as databases computed it before the program did, of a run with one replica and no Pods.
    const EARLIER: &str = "json_array(target, vcpus, memory_bytes, scenario, scenario_sha256, json(parameters), \
        json_remove(load, '$.duration_s'), vus)";

    fn specs() -> Vec<RunSpec> {
        let spec = testing::spec("servy");
        let with = |vcpus| spec.size.clone().map(|size| Size { vcpus, ..size });
        let sizes =
            [0.1, 0.25, 1.0 / 3.0, 1.1, 16.0, 1_000.5].map(|vcpus| RunSpec { size: with(vcpus), ..spec.clone() });
        let loads = [Load::Script, rate(2_000, 10.5), vus(3, 1.0), vus_stages("1s:5,1500ms:0")];
        let loads = loads.map(|load| spec.clone().under(load));
        let parameters = [("ROUTE", "/a \"quoted\" \\ path"), ("SIZE", "größer\n")];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let odd = RunSpec { target: "it's \"odd\"".to_owned(), parameters, profiled: true, ..spec.clone() };
        let unsized_one = RunSpec { size: None, scenario: None, load: None, warm_up_auto: true, ..spec.clone() };
        let generators = vec!["one".to_owned(), "two".to_owned()];
        let distributed = RunSpec { generators, warm_up_s: Some(0.5), ..spec };
        [sizes.as_slice(), loads.as_slice(), &[odd, unsized_one, distributed]].concat()
    }

    #[test]
    fn what_has_no_column_is_stored_as_json_if_it_is_not_usual() {
        let usual = testing::spec("servy");
        assert_eq!(SpecColumns::from(&usual).spec, USUAL);
        let other = RunSpec { http_version: HttpVersion::Http1, warm_up_auto: true, ..usual };
        let columns = SpecColumns::from(&other);
        assert_eq!(columns.spec, r#"{"http_version":"1.1","warm_up_auto":true}"#);
        assert_eq!(RunSpec::try_from(columns).expect("a spec"), other);
    }

    #[tokio::test]
    async fn a_spec_is_stored_and_read_and_has_the_key_that_databases_gave_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = db::open(folder.path()).await.expect("a database");
        let mut connection = db.write.acquire().await.expect("a connection");
        for spec in &specs() {
            let id = RunId::now();
            let run = NewRun {
                id: id.clone(),
                experiment: None,
                spec,
                repetition: 1,
                retries: 0,
                required_agent: None,
                agent_label: None,
                block: 0,
                created_by: "ada",
                now: 1,
            };
            store::queue(&mut connection, &run).await.expect("queued");
            let stored = store::find(&db.rows, &id).await.expect("a row").expect("a run");
            assert_eq!(stored.spec, *spec);
            let keys = format!("select plan_key, cell_key, {EARLIER} from run where id = ?");
            let keys: (String, String, String) =
                sqlx::query_as(AssertSqlSafe(keys)).bind(&id).fetch_one(&mut *connection).await.expect("keys");
            assert_eq!(keys, (spec.plan_key(), stored.cell_key(), spec.plan_key()));
        }
    }
}
