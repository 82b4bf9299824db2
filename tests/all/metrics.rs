//! The docs say of each metric what the registry says.

use std::{fmt::Write, fs, path::Path};

use brewbench::metrics::{
    METRICS,
    definition::{Better, MetricDef, Role, Unit},
};

fn row(def: &MetricDef) -> String {
    let unit = match def.unit {
        Unit::RequestsPerS => "requests/s",
        Unit::Ms => "ms",
        Unit::Seconds => "s",
        Unit::Share => "share, 0 to 1",
        Unit::Bytes => "bytes",
        Unit::BytesPerS => "bytes/s",
        Unit::Count => "count",
    };
    let better = match def.better {
        Some(Better::Higher) => "higher",
        Some(Better::Lower) => "lower",
        None => "–",
    };
    let role = match def.role {
        Role::Listed => "–",
        Role::Compared => "shown",
        Role::Judged => "judged",
    };
    let least = def.min_requests.map_or_else(|| "–".to_owned(), |least| least.to_string());
    let sort = def.list_key.map_or_else(|| "–".to_owned(), |key| format!("`{key}`"));
    format!("| `{}` | {} | {unit} | {better} | {role} | {least} | {sort} |\n", def.key, def.title)
}

#[test]
fn the_docs_have_every_metric() {
    let table = METRICS.iter().fold(String::new(), |mut table, def| {
        let _ = write!(table, "{}", row(def));
        table
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let docs = fs::read_to_string(&path).expect("the docs");
    assert!(docs.contains(&table), "docs/metrics.md lacks this table:\n{table}");
}
