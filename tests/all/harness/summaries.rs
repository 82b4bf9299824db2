//! Summaries of real k6, and modified ones.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::root;

/// All JSON files written by k6.
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

/// 51,230 requests, none failed: the summary of a valid run.
pub fn good() -> String {
    fixture("handle-summary-v1.8.1")
}

/// 60,684 requests at 30,336 per second and 0 ms, all failed: no target listened.
pub fn target_down() -> String {
    fixture("summary-export-target-down-v1.8.1")
}

/// Reads one of [`ALL`].
pub fn fixture(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// Returns the path of one of [`ALL`].
pub fn path(name: &str) -> PathBuf {
    root().join(format!("tests/fixtures/k6/{name}.json"))
}

/// Returns a summary with empty lines at its end, as many as no other has: the server refuses a file that it has.
pub fn distinct(summary: String) -> String {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    summary + &"\n".repeat(1 + GIVEN.fetch_add(1, Ordering::Relaxed))
}

/// [`good`] with a value of a metric changed.
pub fn good_with(metric: &str, value: &str, to: &Value) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    summary["metrics"][metric]["values"][value] = to.clone();
    summary.to_string()
}

/// [`good`] of a target that is `faster` times as fast: more requests, each shorter. Includes p99 and p99.9, as agents
/// request.
pub fn scaled(faster: f64) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    for metric in summary["metrics"].as_object_mut().expect("metrics").values_mut() {
        let (is_time, is_gauge) = (metric["contains"] == "time", metric["type"] == "gauge");
        let values = metric["values"].as_object_mut().expect("values");
        if is_time {
            let max = values["max"].as_f64().expect("a number");
            values
                .extend([("p(99)", max / 9.0), ("p(99.9)", max / 4.0)].map(|(name, ms)| (name.to_owned(), json!(ms))));
        }
        for (name, value) in values {
            let number = value.as_f64().expect("a number");
            match name.as_str() {
                _ if is_gauge => {}
                "count" | "passes" | "fails" => *value = json!((number * faster).round()),
                _ if is_time => *value = json!(number / faster),
                "rate" if number > 1.0 => *value = json!(number * faster),
                _ => {}
            }
        }
    }
    summary.to_string()
}

/// [`good`] with its only check under another name.
pub fn good_checking(name: &str) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    let check = &mut summary["root_group"]["checks"][0];
    (check["name"], check["path"]) = (json!(name), json!(format!("::{name}")));
    summary.to_string()
}
