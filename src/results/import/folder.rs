//! A folder of results with an `index.json` that describes each file. Pure.
//!
//! The index is a list with one object per file:
//!
//! | field | meaning |
//! |---|---|
//! | `file` | name of a file beside the index; required |
//! | `target` | name of the target; required |
//! | `version` | its version |
//! | `tool` | `k6` or `wrk`; refused if the file is of another tool |
//! | `vcpus`, `memory_mib` | machine size of the target: both or neither |
//! | `machine` | the machine, if no machine size was enforced |
//! | `scenario` | name of the scenario |
//! | `payload` | what was requested, if it distinguishes loads, e.g. `10K` |
//! | `vus` | virtual users, constant |
//! | `connections`, `threads` | of wrk; a connection waits for its response like a virtual user |
//! | `duration_s` | planned duration of the load |
//! | `repetition` | repetition of its cell, from 1; counted in the order of the index if absent |
//! | `order` | position in the order of measurement, from 1; for all files or none |
//! | `source` | origin of the file; a label of the run |
//! | `note` | a note as Markdown |
//!
//! Unknown fields are refused, because a typo would otherwise be lost. Values that both file and index have must agree.
//! Files count as measured in turn only if their `order` proves it (`in_turn`). `machine`, `payload` and `threads`
//! become parameters: runs that differ in them are not repetitions.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::reports::{
    archive::ArchivedFile,
    summary::{Shape, Summary},
};
use serde::Deserialize;

use crate::{
    catalog::model::size_name,
    results::import::{
        about::About,
        in_turn::{self, Placed},
    },
    runs::model::{RunSize, RunSpec},
};

/// File name of the index.
pub const INDEX: &str = "index.json";

/// Maximum number of files of one import.
pub const MAX_FILES: usize = 500;

const MIB: u64 = 1024 * 1024;

/// One file's entry in the index.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexEntry {
    file: String,
    target: String,
    version: Option<String>,
    tool: Option<Tool>,
    vcpus: Option<f64>,
    memory_mib: Option<u64>,
    machine: Option<String>,
    scenario: Option<String>,
    payload: Option<String>,
    vus: Option<u64>,
    connections: Option<u64>,
    threads: Option<u64>,
    duration_s: Option<f64>,
    repetition: Option<u32>,
    order: Option<u32>,
    source: Option<String>,
    note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tool {
    K6,
    Wrk,
}

/// A file that was read, with its metadata.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its name.
    pub name: String,
    /// Metadata from the index.
    pub about: About,
    /// Its parsed content.
    pub summary: Summary,
}

/// A folder that was read.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its files.
    pub found: Vec<FoundFile>,
    /// Why they do not count as measured in turn; None if they do.
    pub order_fault: Option<String>,
}

/// Reads a folder; the error names the place: the index or one of its files. Files that the index does not name are
/// ignored.
pub fn read(index: &str, files: &[ArchivedFile]) -> Result<Folder, String> {
    let entries: Vec<IndexEntry> =
        serde_json::from_str(index.trim_start_matches('\u{feff}')).map_err(|fault| format!("{INDEX}: {fault}"))?;
    if entries.is_empty() || entries.len() > MAX_FILES {
        return Err(format!("{INDEX}: {} files; one import takes 1 to {MAX_FILES}", entries.len()));
    }
    let (mut named, mut repetitions) = (BTreeSet::new(), BTreeMap::new());
    let mut orders = Vec::with_capacity(entries.len());
    let mut found = Vec::with_capacity(entries.len());
    for (place, entry) in entries.into_iter().enumerate() {
        let at = |what: String| format!("{INDEX}: entry {} ({}): {what}", place + 1, quoted(&entry.file));
        if !named.insert(entry.file.clone()) {
            return Err(at("file: listed twice".to_owned()));
        }
        let file = files.iter().find(|file| file.path == entry.file);
        let file = file.ok_or_else(|| at("file: not in the folder".to_owned()))?;
        let summary = brewbench_wire::reports::read::parse(&file.bytes)
            .map_err(|fault| format!("{}: {fault}", quoted(&entry.file)))?;
        let mut about = entry.to_about().map_err(&at)?;
        entry.check_against(&summary).map_err(&at)?;
        // Connections are in the files, whether or not the index has them, too.
        let vus = entry.vus.and_then(|vus| u32::try_from(vus).ok());
        let cell = (RunSpec { vus, ..about.spec.clone() }.plan_key(), about.version.clone());
        let count: &mut u32 = repetitions.entry(cell).or_default();
        *count = entry.repetition.unwrap_or(*count + 1);
        about.repetition = *count;
        orders.push(entry.order);
        found.push(FoundFile { name: entry.file, about, summary });
    }
    let order_fault = order_fault(&found, &orders)?;
    for file in &mut found {
        file.about.interleaved = order_fault.is_none();
    }
    Ok(Folder { found, order_fault })
}

/// Returns why files do not count as measured in turn, by the `order` and `repetition` of the index.
fn order_fault(found: &[FoundFile], orders: &[Option<u32>]) -> Result<Option<String>, String> {
    if orders.iter().all(Option::is_none) {
        return Ok(Some("the index has no order".to_owned()));
    }
    if let Some(missing) = orders.iter().position(Option::is_none) {
        return Err(format!("{INDEX}: entry {}: order: missing; set it for all files or for none", missing + 1));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = orders.iter().flatten().find(|order| !seen.insert(**order)) {
        return Err(format!("{INDEX}: order: {twice} occurs twice"));
    }
    let placed = found.iter().zip(orders).filter_map(|(FoundFile { about, .. }, order)| {
        let About { spec, version, repetition, .. } = about;
        let target = &spec.target;
        Some(Placed {
            row: RunSpec { target: String::new(), ..spec.clone() }.plan_key(),
            side: version.as_ref().map_or_else(|| target.clone(), |version| format!("{target} {version}")),
            repetition: *repetition,
            order: (*order)?,
        })
    });
    Ok(in_turn::fault(placed.collect()))
}

impl IndexEntry {
    fn to_about(&self) -> Result<About, String> {
        let size = match (self.vcpus, self.memory_mib) {
            (None, None) => None,
            (Some(vcpus), Some(mib)) if (0.01..=4096.0).contains(&vcpus) && (1..=1 << 30).contains(&mib) => {
                Some(RunSize { name: size_name(vcpus, mib * MIB, 1), vcpus, memory_bytes: mib * MIB, replicas: 1 })
            }
            (Some(_), Some(_)) => return Err("vcpus, memory_mib: not a valid machine size".to_owned()),
            _ => return Err("vcpus, memory_mib: a machine size needs both".to_owned()),
        };
        if self.duration_s.is_some_and(|seconds| !(0.001..=864_000.0).contains(&seconds)) {
            return Err("duration_s: not a valid duration of a load".to_owned());
        }
        if self.repetition == Some(0) {
            return Err("repetition: must be at least 1".to_owned());
        }
        let parameters = [("machine", &self.machine), ("payload", &self.payload)];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let spec = RunSpec {
            target: self.target.clone(),
            size,
            scenario: self.scenario.clone(),
            parameters: parameters.chain(self.threads.map(|count| ("threads".to_owned(), count.to_string()))).collect(),
            vus: self.vus.or(self.connections).and_then(|vus| u32::try_from(vus).ok()),
            duration_s: self.duration_s,
            ..RunSpec::default()
        };
        Ok(About {
            spec,
            version: self.version.clone(),
            repetition: 1,
            interleaved: false,
            labels: self.source.iter().cloned().collect(),
            note: self.note.clone(),
        })
    }

    /// Checks that index and file agree.
    fn check_against(&self, summary: &Summary) -> Result<(), String> {
        let is_wrk = matches!(summary.shape, Shape::Other(other) if other.format == "wrk");
        if self.tool.is_some_and(|tool| (tool == Tool::Wrk) != is_wrk) {
            return Err(format!("tool: the file is {}", summary.shape.name()));
        }
        if !is_wrk && (self.connections.is_some() || self.threads.is_some()) {
            return Err(format!("connections, threads: only for wrk, the file is {}", summary.shape.name()));
        }
        let figures = summary.figures();
        let users = figures.connections.map(|connections| connections.requested).or(figures.vus_max);
        for (field, stated) in [("vus", self.vus), ("connections", self.connections)] {
            if let (Some(stated), Some(found)) = (stated, users)
                && stated != found
            {
                return Err(format!("{field}: {stated}, but the file has {found}"));
            }
        }
        let threads = summary.metrics.get("threads").and_then(|metric| metric.values.get("value").copied());
        match (self.threads, threads) {
            #[expect(clippy::float_cmp, reason = "whole numbers: both are exact")]
            (Some(stated), Some(found)) if stated as f64 != found => {
                Err(format!("threads: {stated}, but the file has {found}"))
            }
            _ => Ok(()),
        }
    }
}

/// Quotes and shortens a name from outside for a message.
fn quoted(name: &str) -> String {
    format!("{:?}", name.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 30s test @ http://x/\n  12 threads and 400 connections\n  10 requests in 2.00s, 1.00KB read\n\
        Requests/sec:      5.00\nTransfer/sec:     512.00B\n";

    fn file(path: &str, text: &str) -> ArchivedFile {
        ArchivedFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    fn files(text: &str) -> [ArchivedFile; 2] {
        ["a.txt", "b.txt"].map(|path| file(path, text))
    }

    #[test]
    fn an_index_describes_each_file_and_repetitions_are_counted() {
        let index = r#"[
            {"file": "a.txt", "tool": "wrk", "target": "t", "payload": "10K", "threads": 12, "connections": 400,
             "vcpus": 2, "memory_mib": 100, "duration_s": 2, "source": "a post"},
            {"file": "b.txt", "target": "t", "payload": "10K", "threads": 12, "vcpus": 2, "memory_mib": 100}]"#;
        let found = read(index, &files(WRK)).expect("two files").found;
        let [one, other] = found.as_slice() else { panic!("two") };
        assert_eq!(one.about.spec.size.as_ref().map(|size| size.name.as_str()), Some("2 vCPU / 100 MiB"));
        assert_eq!(
            one.about.spec.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            ["payload=10K", "threads=12"]
        );
        assert_eq!((one.about.spec.vus, one.about.labels.as_slice()), (Some(400), &["a post".to_owned()][..]));
        assert_eq!((one.about.repetition, other.about.repetition), (1, 2));
    }

    #[test]
    fn only_a_balanced_order_counts_as_measured_in_turn() {
        let judged = |pattern: [&str; 12]| {
            let index = pattern
                .iter()
                .zip(1..)
                .map(|(target, order)| format!(r#"{{"file": "{order}.txt", "target": "{target}", "order": {order}}}"#));
            let files: Vec<_> = (1..=12).map(|order| file(&format!("{order}.txt"), WRK)).collect();
            read(&format!("[{}]", index.collect::<Vec<_>>().join(",")), &files).expect("twelve files")
        };
        let mirrored = judged(["A", "B", "B", "A", "B", "A", "A", "B", "A", "B", "B", "A"]);
        assert!(mirrored.order_fault.is_none() && mirrored.found.iter().all(|file| file.about.interleaved));
        let blocked = judged(["A", "A", "B", "B", "A", "A", "B", "B", "A", "A", "B", "B"]);
        let fault = blocked.order_fault.expect("unbalanced");
        assert!(fault.starts_with("A was measured earlier than B too often"), "{fault}");
        assert!(blocked.found.iter().all(|file| !file.about.interleaved));
        let unknown = read(r#"[{"file": "a.txt", "target": "t"}]"#, &files(WRK)).expect("one file");
        assert_eq!(unknown.order_fault.as_deref(), Some("the index has no order"));
    }

    #[test]
    fn errors_name_their_place() {
        let cases = [
            ("", "index.json: EOF while parsing a value at line 1 column 0"),
            ("{}", "index.json: invalid type: map, expected a sequence at line 1 column 0"),
            ("[]", "index.json: 0 files"),
            (r#"[{"file": "a.txt"}]"#, "index.json: missing field `target` at line 1 column 18"),
            ("[\n{\"file\": \"a.txt\", \"target\": \"t\", \"vcpu\": 1}]", "index.json: unknown field `vcpu`"),
            (r#"[{"file": "c.txt", "target": "t"}]"#, "index.json: entry 1 (\"c.txt\"): file: not in the folder"),
            (r#"[{"file": "../a.txt", "target": "t"}]"#, "file: not in the folder"),
            (
                r#"[{"file": "a.txt", "target": "t"}, {"file": "a.txt", "target": "t"}]"#,
                "entry 2 (\"a.txt\"): file: listed twice",
            ),
            (r#"[{"file": "a.txt", "target": "t", "vcpus": 1}]"#, "needs both"),
            (r#"[{"file": "a.txt", "target": "t", "vcpus": 1e9, "memory_mib": 1}]"#, "not a valid machine size"),
            (r#"[{"file": "a.txt", "target": "t", "tool": "k6"}]"#, "tool: the file is wrk's output"),
            (r#"[{"file": "a.txt", "target": "t", "connections": 40}]"#, "connections: 40, but the file has 400"),
            (r#"[{"file": "a.txt", "target": "t", "threads": 2}]"#, "threads: 2, but the file has 12"),
            (r#"[{"file": "a.txt", "target": "t", "repetition": 0}]"#, "repetition: must be at least 1"),
            (r#"[{"file": "a.txt", "target": "t", "duration_s": -1}]"#, "duration_s"),
        ];
        for (index, expected) in cases {
            let fault = read(index, &files(WRK)).expect_err(index);
            assert!(fault.contains(expected), "{index}: {fault}");
        }
        let index = r#"[{"file": "a.txt", "target": "t"}]"#;
        let cut = read(index, &files(&WRK[..WRK.len() - 3])).expect_err("cut off");
        assert!(cut.starts_with("\"a.txt\": line 5: "), "{cut}");
    }
}
