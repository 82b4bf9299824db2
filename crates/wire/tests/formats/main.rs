//! Results of every format, read as files: figures, what surrounds them, what must not be believed, damage.

mod believed;
mod collections;
mod damaged;
mod dashboard;
mod figures;
mod mixed;
mod sound;
mod surrounded;

use std::collections::BTreeSet;
use std::path::PathBuf;

use brewbench_wire::reports::formats::FORMATS;
use brewbench_wire::reports::read::{Contents, read};
use brewbench_wire::reports::report::Report;

/// Fixtures of texts among other text.
const TEXTS: [&str; 9] = [
    "wrk.txt",
    "ab.txt",
    "hey.txt",
    "oha.txt",
    "bombardier.txt",
    "vegeta.txt",
    "h2load.txt",
    "autocannon.txt",
    "k6.txt",
];

/// Where the fixtures are.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn contents(bytes: &[u8]) -> Contents {
    read(bytes).unwrap_or_else(|fault| panic!("{fault}\n{}", String::from_utf8_lossy(bytes)))
}

/// Reads a file with one report.
fn one(bytes: &[u8]) -> Report {
    let mut reports = contents(bytes).reports;
    assert_eq!(reports.len(), 1, "{reports:?}");
    reports.remove(0)
}

fn fault(bytes: &[u8]) -> String {
    match read(bytes) {
        Ok(contents) => panic!("was read: {contents:?}"),
        Err(fault) => fault.to_string(),
    }
}

fn warnings(report: &Report) -> Vec<String> {
    report.warnings.iter().map(ToString::to_string).collect()
}

/// All fixtures by name, without the file that describes them.
fn fixtures() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "README.md");
    names.sort();
    names
}

#[test]
fn each_format_has_a_name_of_its_own_and_a_fixture() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(names.len(), FORMATS.len());
    let read: BTreeSet<&str> = fixtures()
        .iter()
        .filter_map(|name| read(&bytes(name)[..]).ok())
        .flat_map(|contents| contents.reports.into_iter().map(|report| report.format))
        .collect();
    assert_eq!(read, names);
}

#[test]
fn the_documentation_lists_each_format() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/importing.md");
    let chapter = std::fs::read_to_string(path).expect("the chapter");
    for format in FORMATS {
        let row = format!("| {} | {} |", format.title, format.limits);
        assert!(chapter.contains(&row), "docs/guide/importing.md: {row}");
    }
}
