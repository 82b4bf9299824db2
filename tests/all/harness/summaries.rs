//! Summaries that real k6 wrote, and some made from them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// All JSON that k6 wrote.
pub const ALL: [&str; 9] = [
    "handle-summary-odd-v1.8.1",
    "handle-summary-v0.52.0",
    "handle-summary-v1.8.1",
    "machine-readable-odd-v1.8.1",
    "machine-readable-v1.8.1",
    "summary-export-odd-v1.8.1",
    "summary-export-target-down-v1.8.1",
    "summary-export-v1.8.1",
    "summary-export-zero-requests-v1.8.1",
];

/// 51,230 requests, none failed: a run with it is valid.
pub fn good() -> String {
    fixture("handle-summary-v1.8.1")
}

/// 60,684 requests at 30,336 a second and 0 ms, all failed: nobody listened.
pub fn target_down() -> String {
    fixture("summary-export-target-down-v1.8.1")
}

/// One of [`ALL`].
pub fn fixture(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// Where it lies.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/k6/{name}.json"))
}

/// [`good`] with a value of a metric changed.
pub fn good_with(metric: &str, value: &str, to: &Value) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    summary["metrics"][metric]["values"][value] = to.clone();
    summary.to_string()
}

/// [`good`] with its only check under another name.
pub fn good_checking(name: &str) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    let check = &mut summary["root_group"]["checks"][0];
    (check["name"], check["path"]) = (json!(name), json!(format!("::{name}")));
    summary.to_string()
}
