//! Verdicts on files of real load generators, of which nothing else is known.

use std::{fs, path::Path};

use super::*;

fn judged(path: &Path) -> Judgement {
    let bytes = fs::read(path).expect("a file");
    let figures = brewbench_wire::reports::read::parse(&bytes).expect("a summary").figures();
    judge(&figures, None, &Limits::default())
}

fn of_folder(folder: &str, ending: &str) -> Vec<(String, Verdict, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|own| own == ending)).collect();
    paths.sort();
    let judged = |path: &std::path::PathBuf| {
        let Judgement { verdict, reasons } = judged(path);
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, verdict, reasons.into_iter().map(|reason| reason.code).collect())
    };
    paths.iter().map(judged).collect()
}

#[test]
fn published_results_are_suspect_for_failures_only() {
    let all = of_folder("samples/published", "txt");
    assert_eq!(all.len(), 22);
    for (name, verdict, codes) in all {
        let expected: (Verdict, &[&str]) = match name.as_str() {
            "wrk-kcup-go-fasthttp-100K" | "wrk-kcup-go-fasthttp-1M" | "wrk-kcup-rust-1M" => {
                (Verdict::Invalid, &["requests_failed", "latency_capped"])
            }
            "wrk-kcup-rust-100K" => (Verdict::Suspect, &["requests_failed"]),
            _ => (Verdict::Valid, &[]),
        };
        assert_eq!(
            (verdict, codes),
            (expected.0, expected.1.iter().map(|code| (*code).to_owned()).collect()),
            "{name}"
        );
    }
}

#[test]
fn users_that_wait_for_connections_make_an_import_suspect() {
    let fixture = |name: &str| {
        judged(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/k6/summary-export-{name}-v1.8.1.json")),
        )
    };
    let Judgement { verdict, reasons } = fixture("reconnects");
    let [reconnects] = reasons.as_slice() else { panic!("one reason: {reasons:?}") };
    assert_eq!((verdict, reconnects.code.as_str()), (Verdict::Suspect, "generator_held_back"));
    let text = reconnects.text.as_str();
    assert!(text.starts_with("of 10.0 virtual users that ran the script "), "{text}");
    assert!(reconnects.observed.is_some_and(|share| (0.25..0.5).contains(&share)), "{reconnects:?}");
    // Users that pause by their script were busy, and an open model keeps most of its users waiting.
    for name in ["pauses", "open", "hash"] {
        assert_eq!(fixture(name), valid(), "{name}");
    }
}

fn valid() -> Judgement {
    Vec::new().into()
}

const WRK: &str = "Running 30s test @ http://127.0.0.1:8080/\n  2 threads and 100 connections\n  Thread Stats   Avg      \
    Stdev     Max   +/- Stdev\n    Latency     AVG       1.00ms   20.00ms   90.00%\n    Req/Sec     5.00k     1.00     \
    6.00k    90.00%\n  300000 requests in 30.00s, 30.00MB read\nRequests/sec:  10000.00\nTransfer/sec:      1.00MB\n";

#[test]
fn connections_of_wrk_that_are_not_in_requests_make_an_import_suspect() {
    let judged = |text: &str| {
        let figures = brewbench_wire::reports::read::parse(text.as_bytes()).expect("wrk's output").figures();
        judge(&figures, None, &Limits::default())
    };
    let with_mean = |mean: &str| WRK.replace("AVG ", mean);
    for mean in ["9.90ms", "6.90ms", "5.10ms"] {
        assert_eq!(judged(&with_mean(mean)), valid());
    }
    let idle = judged(&with_mean("4.90ms"));
    let reason = &idle.reasons[0];
    assert_eq!((idle.verdict, reason.code.as_str()), (Verdict::Suspect, "generator_held_back"));
    assert_eq!(
        reason.text,
        "of 100 connections 49.0 were in requests on average, by throughput × latency: the rest of the time went into \
         new connections, pauses or wrk itself"
    );
    // wrk2 sends at a rate.
    let calibrated =
        with_mean("4.90ms").replace("  Thread Stats", "  Thread calibration: mean lat.: 1.1ms\n  Thread Stats");
    let recorded = with_mean("4.90ms")
        .replace("  300000 requests", "  Latency Distribution (HdrHistogram - Recorded Latency)\n  300000 requests");
    for text in [calibrated, recorded] {
        let Judgement { verdict, reasons } = judged(&text);
        let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!((verdict, codes), (Verdict::Valid, vec!["load_unknown"]));
    }
}
