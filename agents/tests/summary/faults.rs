//! Rejected summaries and their error messages.

use brewbench_wire::load_time::LoadTime;
use brewbench_wire::reports::read::{parse, parse_own};
use brewbench_wire::reports::summary::Summary;
use serde_json::{Value, json};

use super::fixture;

/// A small summary in the shape of `handleSummary`.
fn good() -> Value {
    json!({
        "root_group": {"name": "", "path": "", "groups": [], "checks": []},
        "state": {"testRunDurationMs": 2000},
        "metrics": {
            "http_reqs": {"type": "counter", "contains": "default", "values": {"count": 10, "rate": 5}},
            "http_req_failed": {"type": "rate", "contains": "default", "values": {"rate": 0.1, "passes": 1, "fails": 9}},
            "http_req_duration": {
                "type": "trend",
                "contains": "time",
                "values": {"avg": 2, "min": 1, "med": 2, "p(90)": 3, "p(95)": 4, "max": 5}
            }
        }
    })
}

/// The same run as `--summary-export`.
fn export() -> Value {
    json!({
        "metrics": {
            "http_reqs": {"count": 10, "rate": 5},
            "http_req_failed": {"value": 0.1, "passes": 1, "fails": 9},
            "http_req_duration": {"avg": 2, "min": 1, "med": 2, "p(90)": 3, "p(95)": 4, "max": 5}
        }
    })
}

/// The same run with `--new-machine-readable-summary`.
fn machine() -> Value {
    json!({
        "config": {"duration": 2},
        "results": {"metrics": [
            {"name": "http_reqs", "type": "counter", "contains": "default", "values": {"count": 10}},
            {"name": "http_req_failed", "type": "rate", "contains": "default",
             "values": {"rate": 0.1, "matches": 1, "total": 10}},
            {"name": "http_req_duration", "type": "trend", "contains": "time",
             "values": {"avg": 2, "min": 1, "med": 2, "p90": 3, "p95": 4, "max": 5}}
        ]}
    })
}

fn message(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(_) => "accepted".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

fn accepted(value: &Value) -> Summary {
    parse(value.to_string().as_bytes()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Returns the document with the value at a JSON pointer replaced or added.
fn with(mut document: Value, pointer: &str, value: Value) -> String {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let key = key.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent).expect("the parent is there") {
        Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
        object => object[key] = value,
    }
    document.to_string()
}

fn without(mut document: Value, parent: &str, key: &str) -> String {
    document.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(key).expect("a key");
    document.to_string()
}

#[test]
fn the_examples_are_valid() {
    let [handle, export, machine] = [good(), export(), machine()].map(|value| accepted(&value).figures());
    assert_eq!((handle.requests, handle.rps, handle.measured_ms), (10, 5.0, 2000.0));
    assert_eq!(handle, export);
    assert_eq!(handle, machine);
}

#[test]
fn invalid_json_is_rejected() {
    let down = fixture("summary-export-target-down-v1.8.1.json");
    for (text, expected) in [
        ("", "the document: is empty"),
        (" \n\t", "the document: is empty"),
        (&down[..100], "line 5, column 38: the JSON is truncated (EOF while parsing a string)"),
        ("{\n", "line 2, column 0: the JSON is truncated (EOF while parsing an object)"),
        ("{\"metrics\": {}} x", "line 1, column 17: unexpected characters after the end of the JSON"),
        ("{\"metrics\": {\n\"a\": NaN}}", "line 2, column 6: NaN is not a JSON number"),
        ("{\"metrics\": Infinity}", "line 1, column 13: Infinity is not a JSON number"),
        ("{\"metrics\": -Infinity}", "line 1, column 14: -Infinity is not a JSON number"),
        ("{\"metrics\": -NaN}", "line 1, column 14: NaN is not a JSON number"),
        ("{\"metrics\": 1e999}", "line 1, column 17: a number too large for a 64-bit float"),
        ("{\"metrics\": {}, \"metrics\": {}}", "line 1, column 25: the key \"metrics\" is duplicated in one object"),
        (
            "{\"metrics\":{\"a\\u0007\":1,\n\"a\\u0007\":2}}",
            "line 2, column 9: the key \"a\\u{7}\" is duplicated in one object",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    assert_eq!(message(&"[".repeat(200)), "line 1, column 128: nested deeper than 128 levels");
    let invalid = parse(b"{\"metrics\": \"\xff\"}").map_err(|fault| fault.to_string());
    assert_eq!(invalid.expect_err("not UTF-8"), "line 1, column 14: invalid unicode code point");
    let crowd = format!("{{\"metrics\":[{}0]}}", "0,".repeat(1_000_001));
    assert!(message(&crowd).ends_with("more than 1000000 values in one summary"), "{}", message(&crowd));
}

#[test]
fn json_of_other_programs_is_rejected() {
    let expected = |what| {
        format!(
            "the document: is {what} of no known format: expected a result of k6, native, wrk, oha, hey, bombardier, \
             vegeta, ab, h2load, autocannon, siege, rewrk, fortio, nighthawk, locust, jmeter, gatling, artillery, hyperfoil, \
             crank, httparena"
        )
    };
    assert_eq!(message("[]"), expected("a list"));
    assert_eq!(message("null"), expected("null"));
    assert_eq!(message("{} {}"), format!("line 1: {}", expected("an object")));
    let text = expected("x").replace("the document: is x of", "line 1: \"http_reqs: 5\" is neither JSON nor of");
    assert_eq!(message("http_reqs: 5"), text.replace("of no known", "of a known"));
    assert_eq!(message("\"k6\""), expected("a string"));
    assert_eq!(message("{\"name\": \"package\"}"), expected("an object"));
    assert_eq!(message("{\"results\": {\"metrics\": {}}}"), expected("an object"));
    assert_eq!(message("{\"metrics\": []}"), "metrics: is a list, expected an object");
    let missing = "metrics.http_reqs: is missing: a summary without HTTP requests, gRPC calls and WebSocket messages can't be compared";
    assert_eq!(message("{\"metrics\": {}}"), missing);
}

#[test]
fn a_run_may_have_no_requests() {
    let idle = json!({"metrics": {"iterations": {"count": 4, "rate": 2}, "data_sent": {"count": 0, "rate": 0}}});
    let figures = parse_own(idle.to_string().as_bytes()).expect("a summary").figures();
    assert_eq!((figures.requests, figures.iterations, figures.measured_ms), (0, Some(4), 2_000.0));
    let aborted = json!({"metrics": {"data_sent": {"count": 0, "rate": 0}}}).to_string();
    let figures = parse_own(aborted.as_bytes()).expect("a summary").figures();
    assert_eq!((figures.requests, figures.measured_ms), (0, 0.0));
    let missing = "metrics.http_reqs: is missing: a summary without HTTP requests, gRPC calls and WebSocket messages can't be compared";
    assert_eq!(message(&aborted), missing);
    let contradictory = json!({"metrics": {"http_req_failed": {"passes": 0, "fails": 4, "value": 0}}}).to_string();
    assert_eq!(parse_own(contradictory.as_bytes()).expect_err("a fault").to_string(), missing);
}

#[test]
fn a_negative_minimum_is_unknown_and_everything_else_is_kept() {
    let trend = json!({"avg": 0.1, "min": -0.0213, "med": 0.1, "p(90)": 0.2, "p(95)": 0.3, "max": 4});
    let text = with(export(), "/metrics/http_req_sending", trend.clone());
    let summary = parse(text.as_bytes()).expect("a summary");
    assert_eq!(summary.figures().negative_minima, ["http_req_sending"]);
    assert_eq!(summary.metrics["http_req_sending"].values.get("min"), None);
    assert_eq!(summary.metrics["http_req_sending"].values.get("max"), Some(&4.0));
    let average = parse(with(export(), "/metrics/http_req_duration/avg", json!(-1)).as_bytes()).expect("a summary");
    assert_eq!((average.figures().latency.avg_ms, average.figures().latency.max_ms), (None, Some(5.0)));
    let own = parse(with(export(), "/metrics/mine", trend).as_bytes()).expect("a summary");
    assert_eq!((own.metrics["mine"].values["min"], own.negative_minima.len()), (-0.0213, 0), "others may be negative");
}

#[test]
fn a_threshold_without_samples_has_no_result() {
    let metrics = [
        ("checks", json!({"passes": 0, "fails": 0, "value": 0, "thresholds": {"rate>0.9": false}}), None),
        ("http_reqs{status:500}", json!({"count": 0, "rate": 0, "thresholds": {"count<1": false}}), None),
        ("http_req_duration{a:b}", json!({"count": 0, "avg": 0, "max": 0, "thresholds": {"p(95)<5": false}}), None),
        ("http_req_duration{c:d}", json!({"avg": 0, "min": 0, "max": 0, "thresholds": {"p(95)<5": false}}), None),
        ("http_req_waiting{e:f}", json!({"thresholds": {"p(95)<5": false}}), None),
        ("good", json!({"passes": 0, "fails": 3, "value": 0, "thresholds": {"rate<0.1": false}}), Some(true)),
        ("bad", json!({"passes": 0, "fails": 3, "value": 0, "thresholds": {"rate>0.1": true}}), Some(false)),
    ];
    let mut document = export();
    for (name, metric, _) in &metrics {
        document["metrics"][*name] = metric.clone();
    }
    let summary = accepted(&document);
    for (name, _, expected) in &metrics {
        assert_eq!(summary.metrics[*name].thresholds[0].passed, *expected, "{name}");
    }
    let figures = summary.figures();
    assert_eq!((figures.thresholds, figures.thresholds_failed), (Some(2), Some(1)));
}

#[test]
fn implausible_values_are_rejected() {
    for (pointer, value, expected) in [
        ("http_req_duration/values/avg", json!("1"), "http_req_duration.avg: is a string, expected a number"),
        ("http_req_duration/values/avg", json!(0.5), "http_req_duration.avg: 0.5 is less than min, which is 1"),
        ("http_req_duration/values/avg", json!(6), "http_req_duration.max: 5 is less than avg, which is 6"),
        ("http_req_duration/values/p(95)", json!(2.5), "http_req_duration.p(95): 2.5 is less than p(90), which is 3"),
        ("http_req_duration/values/p(99)", json!(7), "http_req_duration.max: 5 is less than p(99), which is 7"),
        ("http_req_duration/values/count", json!(1.5), "http_req_duration.count: 1.5 is not an integer"),
        ("http_req_duration/type", json!("gauge"), "http_req_duration: is a gauge, but in k6 it is a trend"),
        (
            "http_req_duration/type",
            json!("mean"),
            "http_req_duration.type: \"mean\" is not one of counter, gauge, rate, trend",
        ),
        (
            "http_req_duration/contains",
            json!("ms"),
            "http_req_duration.contains: \"ms\" is not one of default, time, data",
        ),
        ("http_req_duration/values", json!([]), "http_req_duration.values: is a list, expected an object"),
        ("http_req_duration/thresholds", json!({"a": {}}), "http_req_duration.thresholds.a.ok: is missing"),
        ("http_reqs/values/count", json!(-1), "http_reqs.count: -1 is negative"),
        ("http_reqs/values/count", json!(10.5), "http_reqs.count: 10.5 is not an integer"),
        ("http_reqs/values/count", json!(1e300), "http_reqs.count: 1e300 is too large to be counted exactly"),
        ("http_reqs/values/count", json!(null), "http_reqs.count: is null, expected a number"),
        (
            "http_reqs/values/count",
            json!(11),
            "http_req_failed: covers 10 requests, but http_reqs counts 11: it must cover all or none",
        ),
        ("http_reqs/values", json!({"count": 10}), "http_reqs.rate: is missing"),
        ("http_req_failed/values/rate", json!(1.1), "http_req_failed.rate: 1.1 is not between 0 and 1"),
        ("http_req_failed/values/passes", json!(0.5), "http_req_failed.passes: 0.5 is not an integer"),
        ("http_req_failed/values/fails", json!(-9), "http_req_failed.fails: -9 is negative"),
    ] {
        let text = with(good(), &format!("/metrics/{pointer}"), value);
        assert_eq!(message(&text), format!("metrics.{expected}"), "{pointer}");
    }
    for (value, expected) in [
        (json!(-3), "state.testRunDurationMs: -3 ms is not a plausible duration"),
        (json!(0), "state.testRunDurationMs: 0 ms is not a plausible duration"),
        (json!(1e20), "state.testRunDurationMs: 100000000000000000000 ms is not a plausible duration"),
        (json!("2s"), "state.testRunDurationMs: is a string, expected a number"),
    ] {
        assert_eq!(message(&with(good(), "/state/testRunDurationMs", value)), expected);
    }
}

#[test]
fn missing_values_are_rejected() {
    for name in ["http_reqs", "http_req_duration"] {
        let expected = format!(
            "metrics.{name}: is missing: a summary without HTTP requests, gRPC calls and WebSocket messages can't be compared"
        );
        assert_eq!(message(&without(good(), "/metrics", name)), expected);
        assert_eq!(message(&without(export(), "/metrics", name)), expected);
    }
    let no_rate = message(&without(export(), "/metrics/http_reqs", "rate"));
    assert_eq!(no_rate, "metrics.http_reqs.rate: is missing");
    let no_time = message(&with(export(), "/metrics/http_reqs/rate", json!(0)));
    assert_eq!(no_time, "metrics.http_reqs.rate: can't be used to derive the duration of the test, which is missing");
    assert_eq!(message(&without(machine(), "", "config")), "config: is missing");
    assert_eq!(message(&without(machine(), "/config", "duration")), "config.duration: is missing");
    assert_eq!(message(&without(machine(), "/results/metrics/1", "name")), "results.metrics[1].name: is missing");
    let without_failures: Value =
        serde_json::from_str(&without(good(), "/metrics", "http_req_failed")).expect("it is JSON");
    assert_eq!(accepted(&without_failures).figures().failed, None);
}

#[test]
fn errors_of_the_machine_readable_shape_are_reported() {
    let first = machine()["results"]["metrics"][0].clone();
    let twice = with(machine(), "/results/metrics/2", first);
    assert_eq!(message(&twice), "metrics.http_reqs: is duplicated");
    let matches = with(machine(), "/results/metrics/1/values/matches", json!(11));
    assert_eq!(message(&matches), "metrics.http_req_failed.matches: 11 exceeds the total of 10");
    let duration = with(machine(), "/config/duration", json!(-1));
    assert_eq!(message(&duration), "config.duration: -1000 ms is not a plausible duration");
    let twice = with(machine(), "/results/metrics/2/values/p(90)", json!(3));
    assert_eq!(message(&twice), "metrics.http_req_duration.p(90): is duplicated under two names");
}

#[test]
fn invalid_names_are_rejected() {
    let rule = "is not a valid k6 name: use up to 128 ASCII letters, digits and _, no digit first";
    let metric = json!({"type": "counter", "contains": "default", "values": {"count": 1, "rate": 1}});
    for (name, expected) in [
        ("", format!("metrics.: {rule}")),
        ("1st", format!("metrics.1st: {rule}")),
        ("page load", format!("metrics.page load: {rule}")),
        ("<script>", format!("metrics.<script>: {rule}")),
        ("grün", format!("metrics.grün: {rule}")),
        ("a{b:c", "metrics.a{b:c: tags in the name do not end with }".to_owned()),
        ("a\u{7}", "metrics.a\\u{7}: contains the control character \\u{7}".to_owned()),
        ("a{b:\u{9b}}", "metrics.a{b:\\u{9b}}: contains the control character \\u{9b}".to_owned()),
    ] {
        assert_eq!(message(&with(good(), &format!("/metrics/{name}"), metric.clone())), expected);
    }
    let long = "a".repeat(130);
    let expected = format!("metrics.{}…: {rule}", &long[..80]);
    assert_eq!(message(&with(good(), &format!("/metrics/{long}"), metric.clone())), expected);
    let tags = format!("a{{{}}}", "t".repeat(1025));
    let expected = format!("metrics.a{{{}…: tags in the name have 1025 bytes, more than 1024", "t".repeat(78));
    assert_eq!(message(&with(good(), &format!("/metrics/{tags}"), metric.clone())), expected);
    let longest = format!("{}{{{}}}", "a".repeat(128), "t".repeat(1024));
    assert_eq!(message(&with(good(), &format!("/metrics/{longest}"), metric)), "accepted");
}

#[test]
fn invalid_texts_are_rejected() {
    let check = |name: &str| json!([{"name": name, "path": "", "passes": 1, "fails": 0}]);
    let expected = "root_group.checks[0].name: contains the control character \\u{0}";
    assert_eq!(message(&with(good(), "/root_group/checks", check("a\0"))), expected);
    let expected = "root_group.checks[0].name: has 4097 bytes, more than 4096";
    assert_eq!(message(&with(good(), "/root_group/checks", check(&"a".repeat(4097)))), expected);
    assert_eq!(message(&with(good(), "/root_group/checks", check("<img onerror=1>"))), "accepted");
    let group = json!({"a\u{1b}[31m": {"name": "a"}});
    let expected = "root_group.groups.a\\u{1b}[31m.name: contains the control character \\u{1b}";
    assert_eq!(message(&with(good(), "/root_group/groups", group)), expected);
    let expected = "metrics.http_reqs.thresholds.count<1\\n: contains the control character \\u{a}";
    let crossed = json!({"count<1\n": {"ok": true}});
    assert_eq!(message(&with(good(), "/metrics/http_reqs/thresholds", crossed)), expected);
    let expected = "metrics.http_reqs.thresholds.count<1: is a number, expected true or false";
    assert_eq!(message(&with(export(), "/metrics/http_reqs/thresholds", json!({"count<1": 1}))), expected);
    let path = json!([{"name": "a", "path": "\u{85}", "passes": 1, "fails": 0}]);
    let expected = "root_group.checks[0].path: contains the control character \\u{85}";
    assert_eq!(message(&with(good(), "/root_group/checks", path)), expected);
    let fails = json!([{"name": "a", "path": "::a", "passes": 1, "fails": -1}]);
    let expected = "root_group.checks[0].fails: -1 is negative";
    assert_eq!(message(&with(good(), "/root_group/checks", fails)), expected);
}

#[test]
fn groups_nest_at_most_32_levels() {
    let nested = |levels: usize| {
        let innermost = json!({"name": "g", "path": "", "groups": [], "checks": []});
        (1..levels).fold(innermost, |inner, _| json!({"name": "g", "path": "", "groups": [inner], "checks": []}))
    };
    assert_eq!(message(&with(good(), "/root_group/groups", json!([nested(32)]))), "accepted");
    let expected = "root_group.groups.….groups[0].groups[0]: groups are nested deeper than 32 levels";
    assert_eq!(message(&with(good(), "/root_group/groups", json!([nested(33)]))), expected);
}

#[test]
fn at_most_five_thousand_metrics_are_read() {
    let crowd = |count: usize| {
        let mut document = good();
        let metrics = document["metrics"].as_object_mut().expect("an object");
        let one = json!({"type": "trend", "contains": "time", "values": {"avg": 1}});
        metrics.extend((metrics.len()..count).map(|number| (format!("m{number}"), one.clone())));
        document.to_string()
    };
    assert_eq!(message(&crowd(5000)), "accepted");
    assert_eq!(message(&crowd(5001)), "metrics: has 5001 metrics, more than the maximum of 5000");
}

#[test]
fn other_parts_of_the_file_are_ignored() {
    let text = with(good(), "/setup_data", json!({"token": [1, {"a\u{7}": null}]}));
    assert_eq!(message(&text), "accepted");
    let text = with(good(), "/metrics/http_req_duration/values/p(12.5)", json!(1.5));
    let summary = parse(text.as_bytes()).expect("an unused percentile");
    assert_eq!(summary.metrics["http_req_duration"].values.get("p(12.5)"), Some(&1.5));
}

#[test]
fn k6s_time_of_the_test_counts_if_the_load_took_nearly_all_of_it() {
    let summary = accepted(&good());
    let own = summary.figures();
    let over = |ms, late_requests| summary.figures_over(Some(LoadTime { ms, late_requests }));
    assert_eq!(over(1_960, 0), own);
    for (ms, late) in [(1_940, 0), (1_960, 1)] {
        let figures = over(ms, late);
        let rps = (own.requests - late) as f64 / ms as f64 * 1e3;
        assert!((figures.measured_ms - ms as f64).abs() < 1e-9 && (figures.rps - rps).abs() < 1e-9, "{figures:?}");
    }
}
