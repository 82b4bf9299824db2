//! Damaged files: no reader panics, and what is read could have been measured.

use brewbench_wire::reports::read::read;
use proptest::prelude::*;

use super::sound::check;
use super::{TEXTS, bytes, fixtures};

fn try_to_read(bytes: &[u8]) {
    if let Ok(contents) = read(bytes) {
        contents.reports.iter().for_each(|report| check(report).expect("a sound report"));
    }
}

#[test]
fn no_reader_panics_on_a_truncated_file() {
    for name in fixtures() {
        let all = bytes(&name);
        for length in (0..all.len()).step_by(1 + all.len() / 300) {
            try_to_read(all.get(..length).unwrap_or_default());
        }
    }
}

#[test]
fn a_truncated_text_is_refused_or_has_fewer_values_but_never_others() {
    for name in TEXTS {
        let all = bytes(name);
        let whole = read(&all[..]).expect("a report").reports.remove(0);
        for length in 0..all.len() {
            let Ok(contents) = read(all.get(..length).unwrap_or_default()) else { continue };
            let report = &contents.reports[0];
            let place = format!("{name} until byte {length}");
            assert!(report.requests.is_none() || report.requests == whole.requests, "{place}: {report:?}");
            assert!(report.rate_per_s.is_none() || report.rate_per_s == whole.rate_per_s, "{place}");
            for one in &report.latency.percentiles {
                assert_eq!(whole.latency.percentile(one.percent), Some(one.time), "{place}");
            }
            let ends = [(report.latency.max, whole.latency.max), (report.latency.mean, whole.latency.mean)];
            assert!(ends.iter().all(|(found, whole)| found.is_none() || found == whole), "{place}");
        }
    }
}

/// A change of one byte, or of a digit to a longer number.
#[derive(Clone, Debug)]
enum Change {
    Byte(usize, u8),
    Insert(usize, &'static str),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn any_change() -> impl Strategy<Value = Change> {
    const TEXTS: [&str; 16] = [
        "-",
        "1e308",
        "99999999999999999999",
        "NaN",
        "null",
        "\"",
        "\n",
        "\r",
        "\t",
        ",",
        "é",
        "\0",
        "[[",
        "}{",
        "%",
        "│",
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), proptest::sample::select(&TEXTS[..])).prop_map(|(at, text)| Change::Insert(at, text)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<usize>(), 1..400_usize).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = bytes.len().max(1);
        let end = |at: usize, by: usize| (at + by).min(bytes.len());
        match *change {
            Change::Byte(at, byte) => {
                if let Some(found) = bytes.get_mut(at % length) {
                    *found = byte;
                }
            }
            Change::Insert(at, text) => drop(bytes.splice(at % length..at % length, text.bytes())),
            Change::Remove(at, by) => drop(bytes.drain(at % length..end(at % length, by))),
            Change::Repeat(at, by) => {
                let part = bytes.get(at % length..end(at % length, by)).unwrap_or_default().to_vec();
                bytes.splice(at % length..at % length, part);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_reader_panics_on_a_damaged_file(file in any::<usize>(), changes in proptest::collection::vec(any_change(), 1..6)) {
        let names = fixtures();
        try_to_read(&changed(bytes(&names[file % names.len()]), &changes));
    }

    #[test]
    fn no_reader_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        try_to_read(&bytes);
    }
}

#[test]
fn too_many_reports_in_one_file_are_refused() {
    let wrk = "Thread Stats   Avg\nRequests/sec: 1.00\n".repeat(20_001);
    assert_eq!(super::fault(wrk.as_bytes()), "the file: has more than 20000 reports");
    assert_eq!(super::fault("{}\n".repeat(20_001).as_bytes()), "the file: has more than 20000 documents");
}
