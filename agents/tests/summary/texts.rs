//! Text output: real reports of k6 and outputs of wrk, complete, truncated at each byte, and damaged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::summary::{Fault, Figures, Latency, Shape, Summary};
use proptest::prelude::*;

use super::fixture;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../samples/published")
}

fn published(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns all files of the sample, by name.
fn all() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: BTreeSet<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    let is_text = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "txt");
    let texts: Vec<_> = names.into_iter().filter(is_text).map(|name| (name.clone(), published(&name))).collect();
    assert_eq!(texts.len(), 22);
    texts
}

fn read(text: &str) -> Summary {
    parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn figures(name: &str) -> Figures {
    read(&published(name)).figures()
}

fn rejection(text: &str) -> Fault {
    parse(text.as_bytes()).expect_err("rejected")
}

#[test]
fn each_published_file_has_the_tool_in_its_name() {
    for (name, text) in all() {
        let shape = read(&text).shape;
        let is_wrk = matches!(shape, Shape::Other(other) if other.format == "wrk");
        assert!(if name.starts_with("wrk") { is_wrk } else { shape == Shape::TextReport }, "{name}: {shape:?}");
    }
}

#[test]
fn a_text_is_read_through_the_prefixes_of_a_log() {
    const PREFIXES: [&str; 5] =
        ["2026-11-25T10:00:00Z ", "2026-11-25T10:00:00.123+01:00 ", "k6_1  | ", "> ", "k6-1  | 2026-11-25T10:00:00Z "];
    for name in ["k6-servy-workstation.txt", "wrk-kcup-go-nethttp-10K.txt"] {
        let plain = published(name);
        for prefix in PREFIXES {
            let lines: Vec<String> = plain.lines().map(|line| [prefix, line].concat()).collect();
            assert_eq!(read(&lines.join("\n")), read(&plain), "{name} after {prefix:?}");
        }
        assert_eq!(read(&format!("2026 run of the night\n{plain}")), read(&plain), "{name}");
    }
}

#[test]
fn a_text_in_utf_16_is_decoded() {
    let plain = published("k6-servy-workstation.txt");
    let units: Vec<u16> = ["\u{feff}", &plain].concat().encode_utf16().collect();
    for write in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| write(*unit)).collect();
        assert_eq!(parse(&bytes).expect("a report"), read(&plain));
    }
}

#[test]
fn a_report_whose_marks_were_lost_is_refused_and_one_with_others_is_restored() {
    let report = fixture("stdout-v1.8.1.txt");
    assert!(read(&report).figures().thresholds.is_some_and(|count| count > 0), "thresholds");
    let with =
        |[passed, failed, block]: [&str; 3]| report.replace('✓', passed).replace('✗', failed).replace('█', block);
    // What ✓, ✗ and █ become in the code pages 437 and 1252.
    for marks in [["Γ£ô", "Γ£ù", "Γûê"], ["âœ“", "âœ—", "â–ˆ"]] {
        assert_eq!(read(&with(marks)), read(&report), "{marks:?}");
    }
    // Where they can't be written.
    for marks in [["?", "?", "?"], ["", "", ""]] {
        let lost = with(marks);
        let fault = rejection(&lost).to_string();
        assert!(fault.contains("k6's marks are not readable"), "{marks:?}: {fault}");
    }
}

#[test]
fn connections_that_wrk_could_not_open_make_no_load() {
    let real = published("wrk-kcup-go-nethttp-10K.txt");
    let errors = "Socket errors: connect 4785, read 3, write 0, timeout 7\nRequests/sec";
    let wrk = real.replace("and 400 connections", "and 5000 connections").replace("Requests/sec", errors);
    let Figures { vus_max, closed_connections, connections, requests, failed, .. } = read(&wrk).figures();
    assert_eq!((vus_max, closed_connections), (Some(215), Some(215)));
    assert_eq!(connections.map(|it| (it.requested, it.failed)), Some((5_000, 4_785)));
    // Failed connects and reads had no response; timeouts are among the responses.
    assert_eq!((requests, failed), (335_015 + 4_788, Some(4_795)));
    let all = read(&real).figures();
    assert_eq!((all.vus_max, all.failed), (Some(400), Some(0)));
    let again = wrk.replace("and 5000", "and 400");
    assert_eq!((read(&again).figures().vus_max, read(&again).figures().closed_connections), (None, None));
}

#[test]
fn a_report_of_k6_is_read_exactly() {
    let figures = figures("k6-gosherve-old-1vcpu-256mb.txt");
    let latency = Latency {
        avg_ms: Some(7.57),
        min_ms: Some(0.049_54),
        p50_ms: Some(7.71),
        p90_ms: Some(9.42),
        p95_ms: Some(10.65),
        p99_ms: None,
        p999_ms: None,
        max_ms: Some(143.13),
    };
    assert_eq!(figures.latency, latency);
    assert_eq!(figures.ok_latency, latency);
    assert_eq!((figures.requests, figures.failed), (23_322, Some(0)));
    assert!(
        (figures.rps - 776.881_114).abs() < 1e-9 && (figures.measured_ms - 30_020.037_35).abs() < 0.01,
        "{figures:?}"
    );
    assert_eq!((figures.data_received_bytes, figures.received_per_s), (Some(2_600_000_000), Some(86e6)));
    assert_eq!(figures.data_sent_bytes, Some(3_100_000));
    assert!(figures.blocked_ms.is_some_and(|ms| (ms - 0.002_41).abs() < 1e-12), "{:?}", figures.blocked_ms);
    assert_eq!((figures.checks_passed, figures.checks_failed), (Some(23_322), Some(0)));
    assert_eq!((figures.iterations, figures.dropped_iterations, figures.vus_max), (Some(138), None, Some(1)));
    assert_eq!((figures.thresholds, figures.thresholds_failed), (Some(0), Some(0)));
}

#[test]
fn an_output_of_wrk_is_read_exactly_with_binary_units() {
    let figures = figures("wrk-kcup-go-fasthttp-10K.txt");
    let latency = Latency {
        avg_ms: Some(21.43),
        p50_ms: Some(6.7),
        p90_ms: Some(28.56),
        p99_ms: Some(523.14),
        max_ms: Some(1_320.0),
        ..Latency::default()
    };
    assert_eq!((figures.latency, figures.ok_latency), (latency, Latency::default()));
    assert_eq!((figures.requests, figures.failed), (1_308_339, Some(0)));
    assert!((figures.rps - 43_514.39).abs() < 1e-9 && (figures.measured_ms - 30_070.0).abs() < 1e-9, "{figures:?}");
    let received = figures.received_per_s.expect("known");
    assert!((received - 430.67 * 1024.0 * 1024.0).abs() < 1.0, "{received}");
    // Responses of 10 kB each: sum and rate agree only with binary units.
    let bytes = figures.data_received_bytes.expect("known") as f64;
    assert!((bytes / 30.07 / received - 1.0).abs() < 0.001, "{bytes}");
    assert_eq!((figures.vus_max, figures.iterations, figures.thresholds), (Some(400), None, None));
    assert_eq!((figures.checks_passed, figures.data_sent_bytes), (None, None));
}

#[test]
fn socket_errors_and_timeouts_of_wrk_count_as_failed() {
    let ruined = figures("wrk-kcup-go-fasthttp-1M.txt");
    assert_eq!((ruined.requests, ruined.failed), (235 + 1_302 + 13_538_217, Some(1_302 + 13_538_217 + 7)));
    assert!((ruined.rps - 7.81).abs() < 1e-9, "{}", ruined.rps);
    let late = figures("wrk-kcup-go-fasthttp-100K.txt");
    assert_eq!((late.requests, late.failed), (43_736, Some(1_654)));
    let summary = read(&published("wrk-kcup-go-fasthttp-1M.txt"));
    let count = |name: &str| summary.metrics[name].values["value"];
    assert!((count("failed_write") - 13_538_217.0).abs() < 0.5 && (count("failed_timeout") - 7.0).abs() < 0.5);
    let with =
        published("wrk-kcup-rust-10K.txt").replace("Requests/sec", "  Non-2xx or 3xx responses: 12\nRequests/sec");
    assert_eq!(read(&with).figures().failed, Some(12));
}

#[test]
fn an_output_of_wrk_may_lack_latencies_and_responses() {
    let bare = "Running 2m test @ http://127.0.0.1/\n  1 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
        \x20   Latency     1.02m   100.00us   1.50m    68.04%\n    Req/Sec     1.20M     1.00k     1.30M    67.47%\n\
        \x20 240 requests in 2.00m, 2.00KB read\nRequests/sec:      2.00\nTransfer/sec:      17.07B\n";
    let figures = read(bare).figures();
    assert_eq!(
        (figures.latency.avg_ms, figures.latency.max_ms, figures.latency.p50_ms),
        (Some(61_200.0), Some(90_000.0), None)
    );
    assert_eq!((figures.data_received_bytes, figures.received_per_s), (Some(2_048), Some(17.0)));
    let none = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
        \x20   Latency     0.00us    0.00us   0.00us    -nan%\n    Req/Sec     0.00      0.00     0.00      -nan%\n\
        \x20 0 requests in 1.00s, 0.00B read\n  Socket errors: connect 10, read 0, write 0, timeout 0\n\
        Requests/sec:      0.00\nTransfer/sec:       0.00B\n";
    let figures = read(none).figures();
    assert_eq!((figures.requests, figures.failed, figures.latency), (10, Some(10), Latency::default()));
    assert!(figures.rps.abs() < 1e-9);
    let late = none
        .replace("0 requests in 1.00s, 0.00B", "9 requests in 1.00s, 90.00B")
        .replace("Requests/sec:      0.00", "Requests/sec:      9.00")
        .replace("Transfer/sec:       0.00B", "Transfer/sec:       90.00B")
        .replace("connect 10, read 0, write 0, timeout 0", "connect 0, read 0, write 0, timeout 9");
    let figures = read(&late).figures();
    assert_eq!(
        (figures.requests, figures.failed, figures.latency),
        (9, Some(9), Latency::default()),
        "all were too late"
    );
}

#[test]
fn missing_values_of_a_text_are_listed() {
    let missing = |name: &str| read(&published(name)).missing();
    assert_eq!(missing("k6-servy-2vcpu-4gb.txt"), ["p99", "p99.9", "tool version"]);
    assert_eq!(
        missing("wrk-kcup-rust-10K.txt"),
        [
            "minimum latency",
            "p95",
            "p99.9",
            "latency of successful requests",
            "iterations",
            "data sent",
            "checks",
            "thresholds",
            "tool version"
        ]
    );
}

/// Compares report and JSON of the same run.
#[test]
fn the_report_of_a_newer_k6_agrees_with_its_json() {
    let text = read(&fixture("stdout-v1.8.1.txt"));
    let json = read(&fixture("summary-export-v1.8.1.json")).figures();
    let figures = text.figures();
    let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.01 * other,
        (one, other) => one == other,
    };
    for (ours, theirs) in [(figures.latency, json.latency), (figures.ok_latency, json.ok_latency)] {
        let all = |latency: Latency| {
            let Latency { avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms } = latency;
            [avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms]
        };
        assert!(all(ours).into_iter().zip(all(theirs)).all(|(one, other)| near(one, other)), "{ours:?} {theirs:?}");
    }
    let counts = |figures: &Figures| {
        let Figures { requests, failed, iterations, dropped_iterations, checks_passed, checks_failed, .. } = *figures;
        let thresholds = (figures.thresholds, figures.thresholds_failed);
        (
            (requests, failed, iterations, dropped_iterations),
            (checks_passed, checks_failed, figures.vus_max),
            thresholds,
        )
    };
    assert_eq!(counts(&figures), counts(&json));
    assert!((figures.rps - json.rps).abs() < 1e-3, "{} {}", figures.rps, json.rps);
    assert!(text.metrics.contains_key("body_size") && text.metrics.contains_key("http_req_duration{phase:open}"));
}

#[test]
fn colours_marks_and_surrounding_text_are_ignored() {
    let plain = published("k6-servy-workstation.txt");
    let around = format!(
        "\u{1b}[0m     execution: local\n        script: x.js\n\nrunning (0m30.0s), 00/10 VUs\ndefault ✓ [ 100% ] 10 VUs  30s\n\n{}\nERRO[0030] thresholds on metrics 'http_req_duration' have been crossed",
        plain.replace("http_req_duration....", "\u{1b}[31m✗\u{1b}[0m http_req_duration....")
    );
    let (one, other) = (read(&plain).figures(), read(&around).figures());
    assert_eq!((other.thresholds, other.thresholds_failed), (Some(1), Some(1)));
    assert_eq!(Figures { thresholds: one.thresholds, thresholds_failed: one.thresholds_failed, ..other }, one);
}

#[test]
fn inconsistent_and_duplicate_values_are_rejected_with_their_line() {
    let k6 = published("k6-servy-1vcpu-256mb.txt");
    let wrk = published("wrk-kcup-rust-100K.txt");
    let cases = [
        (k6.replace("✗ 148213", "✗ 148212"), "metrics.http_req_failed: covers 148212 requests"),
        (k6.replace("http_reqs", "http_reqz"), "metrics.http_reqs: is missing"),
        (format!("{k6}{k6}"), "the file: has 2 reports: put each into a file of its own"),
        (k6.replace("max=55.59ms", "max=0.01ms"), "metrics.http_req_duration.max"),
        (k6.replace("avg=928.79µs", "avg=928.79"), "line 6: http_req_duration is not in k6's format"),
        (k6.replace("16 GB ", "16 GiB "), "line 2: data_received is not in k6's format"),
        (k6.replace("max=1\n", "max=0\n"), "vus"),
        (k6.replace("100.00% ✓ 148213", "99.00% ✓ 148213"), "line 1: checks is not in k6's format"),
        (wrk.replace("466302 requests", "4663020 requests"), "the text was modified"),
        (wrk.replace("timeout 94", "timeout"), "line 13: is not in wrk's format"),
        (wrk.replace("44.51GB read", "44.51 read"), "line 12: is not in wrk's format"),
        (format!("{wrk}{wrk}"), "the file: has 2 reports: put each into a file of its own"),
        (wrk.replace("Transfer", "Transport"), "\"Transfer/sec\" is missing"),
        (wrk.replace("99%  195.05ms", "99%  1.05ms"), "latency: p99 of 1.05 ms is below p90 of "),
    ];
    for (text, expected) in cases {
        let fault = rejection(&text).to_string();
        assert!(fault.contains(expected) && fault.len() < 300, "{expected}: {fault}");
    }
}

/// Whether all values of a part equal those of the complete text.
fn is_part(part: &Figures, complete: &Figures) -> bool {
    fn within(part: &serde_json::Value, complete: &serde_json::Value) -> bool {
        match (part, complete) {
            (serde_json::Value::Null, _) => true,
            (serde_json::Value::Object(part), serde_json::Value::Object(complete)) => {
                part.iter().all(|(name, value)| within(value, &complete[name]))
            }
            _ => part == complete,
        }
    }
    let value = |figures: &Figures| serde_json::to_value(figures).expect("it serialises");
    within(&value(part), &value(complete))
}

#[test]
fn a_truncated_text_is_rejected_or_has_fewer_values() {
    let mut texts = all();
    texts.push(("stdout".to_owned(), fixture("stdout-v1.8.1.txt")));
    for (name, text) in texts {
        let complete = read(&text).figures();
        let mut accepted = 0;
        for end in 0..text.len() {
            if let Ok(part) = parse(&text.as_bytes()[..end]) {
                accepted += 1;
                assert!(is_part(&part.figures(), &complete), "{name} up to byte {end}: {:?}", part.figures());
            }
        }
        assert!(accepted * 3 < text.len(), "{name}: {accepted} of {} truncated texts are accepted", text.len());
    }
}

/// Strings with a meaning in these texts.
const PIECES: [&str; 24] = [
    "✓ ",
    "✗ 0",
    "█ TOTAL RESULTS",
    "█ THRESHOLDS",
    "http_reqs.....: ",
    "http_req_duration..: ",
    "avg=",
    "p(90)=1ms",
    "1m2s",
    "9e99",
    "NaN",
    "-1",
    "∞",
    "12 requests in 1.00s, ",
    "Requests/sec: ",
    "Latency Distribution",
    "Latency ",
    "50% ",
    "100%",
    "Socket errors: ",
    "{ a:b }...: ",
    "\n",
    "\u{1b}[",
    "'",
];

#[derive(Clone, Debug)]
enum Damage {
    Byte(prop::sample::Index, u8),
    Piece(prop::sample::Index, &'static str),
    Cut(prop::sample::Index, usize),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (at(), prop::sample::select(PIECES.to_vec())).prop_map(|(at, piece)| Damage::Piece(at, piece)),
        (at(), 1..60_usize).prop_map(|(at, length)| Damage::Cut(at, length)),
        (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
    ]
}

fn damaged(text: &str, all: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for damage in all {
        match damage {
            Damage::Byte(at, byte) => *at.get_mut(&mut bytes) = *byte,
            Damage::Piece(at, piece) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, piece.bytes());
            }
            Damage::Cut(at, length) => {
                let start = at.index(bytes.len());
                let end = (start + length).min(bytes.len() - 1);
                bytes.drain(start.min(end)..end);
            }
            Damage::Swap(one, other) => {
                let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                let (one, other) = (one.index(lines.len()), other.index(lines.len()));
                lines.swap(one, other);
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}

/// Asserts invariants of all accepted summaries.
fn assert_plausible(figures: &Figures) {
    let Figures { requests, failed, rps, measured_ms, latency, received_per_s, .. } = figures;
    assert!(measured_ms.is_finite() && *measured_ms > 0.0 && rps.is_finite() && *rps >= 0.0, "{figures:?}");
    assert!(
        failed.is_none_or(|failed| failed <= *requests)
            && received_per_s.is_none_or(|rate| rate.is_finite() && rate >= 0.0)
    );
    let Latency { avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms } = latency;
    let rising: Vec<f64> =
        [min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms].into_iter().flatten().copied().collect();
    assert!(rising.iter().chain(avg_ms).all(|ms| ms.is_finite() && *ms >= 0.0));
    assert!(rising.is_sorted_by(|low, high| low - high <= high.max(*low) * 1e-5), "{rising:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,300}") {
        if let Ok(summary) = parse(text.as_bytes()) {
            assert_plausible(&summary.figures());
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(summary) = parse(&bytes) {
            assert_plausible(&summary.figures());
        }
    }

    #[test]
    fn a_damaged_text_is_rejected_or_remains_plausible(
        which in any::<prop::sample::Index>(),
        damages in proptest::collection::vec(damage(), 1..5),
    ) {
        let texts = all();
        let (_, text) = which.get(&texts);
        match parse(&damaged(text, &damages)) {
            Ok(summary) => assert_plausible(&summary.figures()),
            Err(fault) => {
                let sentence = fault.to_string();
                prop_assert!(sentence.len() < 600 && !sentence.chars().any(char::is_control), "{}", sentence);
            }
        }
    }
}
