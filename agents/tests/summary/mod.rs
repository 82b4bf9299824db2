//! Summaries: those of real k6 are read exactly, others are rejected with a message.

mod faults;
mod properties;
mod real;
mod texts;

use std::path::PathBuf;

/// Files in `tests/fixtures/k6`, written by real k6.
const FIXTURES: [&str; 9] = [
    "handle-summary-v0.52.0.json",
    "handle-summary-v1.8.1.json",
    "handle-summary-odd-v1.8.1.json",
    "machine-readable-v1.8.1.json",
    "machine-readable-odd-v1.8.1.json",
    "summary-export-v1.8.1.json",
    "summary-export-odd-v1.8.1.json",
    "summary-export-target-down-v1.8.1.json",
    "summary-export-zero-requests-v1.8.1.json",
];

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k6").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
