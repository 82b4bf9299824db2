//! The record of k6's web dashboard: its values against the summary of the same run, and what it lacks.

use brewbench_wire::reports::report::{Definition, Latencies, Population, Report};
use brewbench_wire::reports::time::Time;
use serde_json::{Value, json};

use super::{bytes, fault, one, text, warnings};

const RECORD: &str = "k6-dashboard.ndjson";
const PAGE: &str = "k6-dashboard.html";

/// Checks that a time is that of k6, cut to five digits.
fn is_cut(name: &str, time: Option<Time>, k6: &Value) {
    let time = time.unwrap_or_else(|| panic!("{name} is missing"));
    let k6 = k6.as_f64().unwrap_or_else(|| panic!("{name} is missing in the summary"));
    assert!(time.ms <= k6 && k6 - time.ms <= time.error_ms, "{name}: {time:?} instead of {k6}");
    assert!(time.error_ms <= 1e-3, "{name}: {time:?}");
}

fn are_cut(name: &str, found: &Latencies, k6: &Value) {
    for (aggregate, time) in [("min", found.min), ("avg", found.mean), ("max", found.max)] {
        is_cut(&format!("{name} {aggregate}"), time, &k6[aggregate]);
    }
    for (aggregate, percent) in [("med", 50.0), ("p(90)", 90.0), ("p(95)", 95.0)] {
        is_cut(&format!("{name} {aggregate}"), found.percentile(percent), &k6[aggregate]);
    }
}

#[test]
fn each_value_is_that_of_the_summary() {
    let report = one(&bytes(RECORD));
    let summary: Value = serde_json::from_slice(&bytes("k6-dashboard-summary.json")).expect("JSON");
    let k6 = &summary["metrics"];
    are_cut("http_req_duration", &report.latency, &k6["http_req_duration"]);
    are_cut("http_req_waiting", &report.first_byte, &k6["http_req_waiting"]);
    let counts = [
        (report.requests, &k6["http_reqs"]["count"]),
        (report.failed, &k6["http_req_failed"]["passes"]),
        (report.received_bytes, &k6["data_received"]["count"]),
        (report.sent_bytes, &k6["data_sent"]["count"]),
        (report.starts, &k6["iterations"]["count"]),
        (report.load.connections, &k6["vus_max"]["max"]),
    ];
    for (found, k6) in counts {
        assert_eq!(found, k6.as_u64());
    }
    assert_eq!((report.dropped, report.started_ms), (None, Some(1_795_837_509_174)));
    assert_eq!((report.latency.of, report.latency.definition), (Population::All, Definition::Interpolated));
    let near = |found: Option<f64>, k6: &Value| {
        let (found, k6) = (found.expect("a value"), k6.as_f64().expect("a value"));
        assert!((found - k6).abs() < 0.005 * k6, "{found} instead of {k6}");
    };
    near(report.rate_per_s, &k6["http_reqs"]["rate"]);
    near(report.blocked_ms, &k6["http_req_blocked"]["avg"]);
    near(report.others.get("iteration_duration_ms").copied(), &k6["iteration_duration"]["avg"]);
    near(report.others.get("checks_passed_share").copied(), &k6["checks"]["value"]);
    assert_eq!(warnings(&report), [""; 0]);
    // As the summary of another tool: both are shown in the same way.
    let figures = report.figures().expect("figures");
    let own = one(&bytes("k6-dashboard-summary.json")).figures().expect("figures");
    assert_eq!((figures.requests, figures.failed, figures.vus_max), (own.requests, own.failed, own.vus_max));
    assert_eq!((figures.iterations, figures.data_sent_bytes), (own.iterations, own.data_sent_bytes));
    assert!((figures.measured_ms - own.measured_ms).abs() < 20.0, "{figures:?}");
}

#[test]
fn the_page_has_the_same_record() {
    let report = one(&bytes(RECORD));
    assert_eq!(one(&bytes(PAGE)), report);
    // Style and program of a whole page stand before the record.
    let style = format!("<title>k6 report</title>\n<style>{}</style>", "a{color:red}\n".repeat(10_000));
    assert_eq!(one(text(PAGE).replace("<title>k6 report</title>", &style).as_bytes()), report);
    let page = text(PAGE);
    let cut = |from: &str| page.split_once(from).map_or("", |(before, _)| before);
    let faults = [
        (cut("<script"), "the page: has no record: it is truncated, or a browser saved it without"),
        (cut("</script>"), "the page: ends within the record: it is truncated"),
        (&page.replace("; gzip", ""), "the page: has a record that is not compressed with gzip and encoded in base64"),
    ];
    for (page, expected) in faults {
        assert_eq!(fault(page.as_bytes()), expected);
    }
    assert!(fault(page.replace(">H4s", ">!!!").as_bytes()).starts_with("the page: has a record that is not encoded"));
    let damaged = fault(page.replace(">H4sI", ">H4sJ").as_bytes());
    assert!(damaged.starts_with("the record in the page: the file: can't be read: "), "{damaged}");
}

#[test]
fn a_record_without_an_end_is_incomplete() {
    let all = text(RECORD);
    let (lines, _) = all.split_once("{\"event\":\"stop\"").expect("an end");
    let report = one(lines.as_bytes());
    assert_eq!(warnings(&report), ["the record has no end: the test was interrupted"]);
    assert_eq!((report.requests, report.duration.map(|time| time.ms)), (Some(7_009), Some(12_017.0)));
    let report = one(all.get(..lines.len() - 20).expect("a part").as_bytes());
    assert_eq!(warnings(&report), ["line 16, the last one, is truncated: the test was interrupted"]);
    assert_eq!((report.requests, report.duration.map(|time| time.ms)), (Some(7_000), Some(12_004.0)));
    let start = all.split_once("{\"event\":\"cumulative\"").map_or("", |(start, _)| start);
    assert_eq!(fault(start.as_bytes()), "the record: has no totals: the test ended before the first period did");
}

/// Writes a record with these metrics, one event for each, and then their values.
fn record(metrics: &[(&str, &str, &[f64])]) -> String {
    let mut lines = vec![
        json!({"event": "param", "data": {"period": 1_000}}),
        json!({"event": "metric", "data": {"time": {"type": "gauge", "contains": "time"}}}),
        json!({"event": "start", "data": [[1_000_000]]}),
    ];
    lines.extend(metrics.iter().map(|(name, kind, _)| json!({"event": "metric", "data": {*name: {"type": kind}}})));
    let mut values: Vec<(&str, &[f64])> = metrics.iter().map(|(name, _, values)| (*name, *values)).collect();
    values.push(("time", &[1_001_000.0]));
    values.sort_unstable_by_key(|(name, _)| *name);
    let values: Vec<&[f64]> = values.into_iter().map(|(_, values)| values).collect();
    lines.push(json!({"event": "cumulative", "data": values}));
    lines.push(json!({"event": "stop", "data": [[1_002_000]]}));
    // The order of keys is k6's.
    let line = |line: &Value| format!("{{\"event\":{},\"data\":{}}}\n", line["event"], line["data"]);
    lines.iter().map(line).collect()
}

const TIMES: &[f64] = &[2.0, 9.0, 1.5, 1.0, 3.0, 4.0, 5.0];

fn of_failures(requests: u32, failed: u32) -> Report {
    let share = (f64::from(failed) / f64::from(requests) * 1e5).trunc() / 1e5;
    let reqs = [f64::from(requests), f64::from(requests)];
    one(record(&[
        ("http_reqs", "counter", &reqs),
        ("http_req_failed", "rate", &[share]),
        ("http_req_duration", "trend", TIMES),
    ])
    .as_bytes())
}

#[test]
fn failures_are_counted_by_their_share() {
    for requests in [1, 3, 7_009, 65_536, 90_001, 99_991] {
        for failed in (0..=requests).step_by(1 + requests as usize / 50).chain([1, requests]) {
            assert_eq!(of_failures(requests, failed).failed, Some(u64::from(failed)), "{failed} of {requests}");
        }
    }
    let failed = of_failures(1_000_000, 123_456).failed.expect("failures");
    assert!((123_446..=123_456).contains(&failed), "{failed}");
    assert_eq!(warnings(&of_failures(5, 5)), ["all 5 requests failed"]);
}

#[test]
fn metrics_are_found_by_the_order_of_their_names() {
    let successful = "http_req_duration{expected_response:true}";
    let report = one(record(&[
        ("zulu", "counter", &[-1.5, -0.5]),
        ("http_reqs", "counter", &[10.0, 5.0]),
        ("alpha", "histogram", &[1.0, 2.0, 3.0, 4.0]),
        (successful, "trend", &[1.0, 2.0, 1.0, 0.5, 1.5, 1.6, 1.7]),
        ("http_req_duration", "trend", TIMES),
        ("http_req_waiting", "trend", &[]),
        ("dropped_iterations", "counter", &[4.0, 2.0]),
    ])
    .as_bytes());
    assert_eq!((report.requests, report.dropped, report.failed), (Some(10), Some(4), None));
    assert_eq!(report.latency.percentile(99.0).map(|time| time.ms), Some(5.0));
    assert_eq!(report.ok_latency.max.map(|time| time.ms), Some(2.0));
    assert!(report.first_byte.is_empty(), "{:?}", report.first_byte);
    assert_eq!((report.duration.map(|time| time.ms), warnings(&report)), (Some(2_000.0), Vec::new()));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let all = text(RECORD);
    let cases = [
        (all.repeat(2), "line 20: starts another record: put each into a file of its own"),
        (all.replace("\"vus\":{\"type\":\"gauge\"},", ""), "line 5: has values of 17 metrics, but 16 were declared"),
        (all.replace("\"p(99)\"]", "\"p(99)\",\"p(99.9)\"]"), "iteration_duration: has 7 values, but 8 were declared"),
        (
            all.replace("\"http_reqs\"", "\"x\""),
            "http_reqs: is missing: a record without HTTP requests can't be compared",
        ),
        (all.replace("[7009,582.7]", "[7009.5,582.7]"), "http_reqs.count: 7009.5 is not a count"),
        (all.replace("[7009,582.7]", "[-1,582.7]"), "http_reqs.count: -1 is not a count"),
        (all.replace("13.451],[0],", "13.451],[1.5],"), "http_req_failed.rate: 1.5 is not between 0 and 1"),
        (all.replace("[[1795837521193]]", "[[1795837521193],[1]]"), "line 17: is not the only value of the event"),
        (all.replace("[[1795837521193]]", "[[1795837500000]]"), "the duration: -9174 ms is not a plausible duration"),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text.as_bytes()), expected);
    }
}
