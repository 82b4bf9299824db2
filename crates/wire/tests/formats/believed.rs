//! What must not be believed.

use brewbench_wire::reports::hints::Hints;
use brewbench_wire::reports::parts::{Choice, parts};
use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::report::{Definition, Latencies, Report};
use brewbench_wire::reports::time::Time;
use brewbench_wire::reports::warning::{Severity, Warning};

use super::{bytes, contents, fault, one, text, warnings};

fn severity(report: &Report) -> Option<Severity> {
    report.warnings.iter().map(Warning::severity).max()
}

#[test]
fn a_year_at_the_start_of_a_line_is_no_json() {
    let log = "2026 run of the night\n2026-11-27T06:20:32Z nothing here";
    assert!(
        fault(log.as_bytes()).starts_with("line 1: \"2026 run of the night\" is neither JSON nor of a known format"),
        "{}",
        fault(log.as_bytes())
    );
    let report = one(format!("2026 run of the night\n{}", text("wrk.txt")).as_bytes());
    assert_eq!((report.format, report.requests), ("wrk", Some(29_619)));
}

#[test]
fn a_rate_alone_is_not_of_wrk() {
    let message = fault(b"My server\nRequests/sec: 1000.0\n");
    assert!(message.starts_with("line 2: \"Requests/sec: 1000.0\" is like wrk's output, but"), "{message}");
}

#[test]
fn a_load_of_which_connections_failed_names_those_that_existed() {
    let errors = "  Socket errors: connect 4785, read 3, write 0, timeout 7\nRequests/sec";
    let wrk = text("wrk.txt").replace("and 8 connections", "and 5000 connections").replace("Requests/sec", errors);
    let report = one(wrk.as_bytes());
    assert_eq!((report.load.connections, report.load.open()), (Some(5_000), Some(215)));
    assert_eq!(warnings(&report), ["4785 of 5000 connections could not be opened: this is a load of 215 connections"]);
    assert_eq!(severity(&report), Some(Severity::Suspect));
    // Failed connects and reads had no response; timeouts are among the responses.
    assert_eq!((report.requests, report.failed), (Some(29_619 + 4_788), Some(4_795)));
}

#[test]
fn a_run_without_success_is_invalid() {
    for name in
        ["wrk-404.txt", "ab-404.txt", "hey-404.txt", "bombardier-down.json", "autocannon-404.json", "vegeta-404.txt"]
    {
        let report = one(&bytes(name));
        assert_eq!(report.requests, report.failed, "{name}");
        assert!(report.warnings.iter().any(|warning| matches!(warning, Warning::AllFailed { .. })), "{name}");
        assert_eq!(severity(&report), Some(Severity::Invalid), "{name}");
    }
}

#[test]
fn a_latency_without_responses_is_unknown_and_not_zero() {
    for name in ["hey-timeout.txt", "wrk2-nan.txt", "wrk-timeout.txt"] {
        let report = one(&bytes(name));
        assert!(report.latency.is_empty(), "{name}: {:?}", report.latency);
        assert!(report.warnings.contains(&Warning::NoLatency), "{name}");
    }
    // wrk prints zeros if all responses were late.
    let late = "  Socket errors: connect 0, read 0, write 0, timeout 29619\nRequests/sec";
    let report = one(text("wrk.txt").replace("Requests/sec", late).as_bytes());
    assert!(report.latency.is_empty() && report.warnings.contains(&Warning::NoLatency));
    assert_eq!(report.figures().expect("figures").latency.avg_ms, None);
}

#[test]
fn a_negative_time_is_read_and_its_statistic_is_unknown() {
    let vegeta = text("vegeta.json").replace("\"min\":194389", "\"min\":-194389");
    let report = one(vegeta.as_bytes());
    assert_eq!(report.latency.min, None);
    assert!(report.latency.max.is_some());
    assert_eq!(warnings(&report), ["the minimum latency is -0.194389 ms, because a clock went back: it is unknown"]);
    let k6 = text("k6-summary-export.json");
    let value: serde_json::Value = serde_json::from_str(&k6).expect("JSON");
    let mut negative = value.clone();
    negative["metrics"]["http_req_duration"]["min"] = (-0.4).into();
    negative["metrics"]["http_req_waiting"]["avg"] = (-0.4).into();
    let report = one(negative.to_string().as_bytes());
    assert_eq!((report.latency.min, report.requests), (None, Some(6)));
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    let ndjson = text("k6.ndjson");
    let line = ndjson.lines().find(|line| line.contains("\"http_req_duration\",\"type\":\"Point\"")).expect("a point");
    let (before, after) = line.split_once("\"value\":").expect("a value");
    let (_, after) = after.split_once(',').expect("a value");
    let report = one(ndjson.replace(line, &format!("{before}\"value\":-0.5,{after}")).as_bytes());
    assert_eq!((report.latency.min, report.requests), (None, Some(6)));
}

#[test]
fn a_time_that_overflowed_is_unknown() {
    for wrong in ["9223372036854775807", "18446744073709551615"] {
        let vegeta = text("vegeta.json").replace("\"max\":6244516", &format!("\"max\":{wrong}"));
        let report = one(vegeta.as_bytes());
        assert_eq!(report.latency.max, None, "{wrong}");
        assert!(matches!(report.warnings.as_slice(), [Warning::Overflow { .. }]), "{:?}", report.warnings);
    }
}

#[test]
fn an_impossible_order_is_refused_with_both_values() {
    let ab = text("ab.txt").replace(" 98%      4", " 98%      7");
    assert_eq!(fault(ab.as_bytes()), "latency: p99 of 5 ms is below p98 of 7 ms: one was damaged or edited");
    let vegeta = text("vegeta.json").replace("\"max\":6244516", "\"max\":5244516");
    assert_eq!(
        fault(vegeta.as_bytes()),
        "latency: the maximum of 5.244516 ms is below p99 of 5.447544 ms: one was damaged or edited"
    );
}

#[test]
fn readers_say_what_percentiles_mean() {
    let meaning = |name: &str| {
        let Latencies { definition, of, since, .. } = one(&bytes(name)).latency;
        assert_ne!(definition, Definition::Unknown, "{name}");
        (definition, of, since)
    };
    let [wrk, hey, vegeta] = ["wrk.txt", "hey.txt", "vegeta.txt"].map(meaning);
    assert!(wrk != hey && hey != vegeta, "{wrk:?} {hey:?} {vegeta:?}");
    assert_eq!(vegeta, meaning("vegeta.json"));
    // wrk2 counts from the time at which a request was due.
    assert_ne!(meaning("wrk2.txt"), wrk);
}

#[test]
fn hey_with_more_responses_than_it_keeps_has_no_mean_and_no_failures() {
    let many = |statuses: &str| {
        let rate = text("hey.txt").replace("21141.2144", "749437.9215");
        rate.replace("Average:\t0.0004", "Average:\t0.0481").replace("[200]\t42315 responses", statuses)
    };
    let report = one(many("[200]\t999990 responses\n  [500]\t10 responses").as_bytes());
    assert_eq!((report.requests, report.failed, report.latency.mean), (None, None, None));
    assert_eq!(report.latency.definition, Definition::Sampled);
    assert_eq!((report.figures().expect("figures").requests, severity(&report)), (1_500_000, Some(Severity::Suspect)));
    let cut = fault(many("[200]\t999999 responses").as_bytes());
    assert!(cut.ends_with("are not all requests of the summary: the output was truncated"), "{cut}");
}

#[test]
fn capped_latencies_are_said_to_be_capped() {
    let hey = text("hey.txt").replace("Slowest:\t0.0320", "Slowest:\t20.0004");
    assert_eq!(
        warnings(&one(hey.as_bytes())),
        ["the slowest requests took 20000 ms, the client's timeout: the highest latencies are capped"]
    );
    assert!(one(&bytes("hey.txt")).warnings.is_empty());
}

#[test]
fn a_rate_that_was_missed_or_is_unknown_is_said() {
    let report = one(&bytes("wrk2.txt"));
    assert_eq!(report.load.rate_per_s, Some(2_000.0));
    assert_eq!(warnings(&report), ["2000 requests/s were requested, 1870 were made: the load is another one"]);
    let (_, without) = text("wrk2.txt")
        .split_once('\n')
        .map(|(command, rest)| (command.to_owned(), rest.to_owned()))
        .expect("a command");
    let report = one(without.as_bytes());
    assert_eq!((report.load.rate_per_s, report.requests), (None, Some(56_093)));
    assert_eq!(warnings(&report), ["the load is unknown: wrk2 does not print the rate that was requested"]);
    let fortio = text("fortio.json").replace("\"RequestedQPS\": \"200\"", "\"RequestedQPS\": \"400\"");
    assert!(matches!(one(fortio.as_bytes()).warnings.as_slice(), [Warning::RateMissed { .. }]));
}

#[test]
fn the_same_run_as_text_and_as_json_is_recognised() {
    for [one_file, other] in
        [["k6.txt", "k6-summary-export.json"], ["vegeta.txt", "vegeta.json"], ["oha.txt", "oha.json"]]
    {
        let (left, right) = (one(&bytes(one_file)), one(&bytes(other)));
        assert!(left.is_same_run(&right) && right.is_same_run(&left), "{one_file}");
        assert!(left.is_same_run(&left), "{one_file}");
    }
    let [left, right] = ["autocannon.txt", "autocannon.json"].map(|name| one(&bytes(name)));
    assert!(!left.is_same_run(&right), "two runs");
}

#[test]
fn files_of_one_run_are_one_result_though_their_durations_differ() {
    let k6 = ["k6-dashboard.ndjson", "k6-dashboard.html", "k6-dashboard-summary.json"].map(|name| one(&bytes(name)));
    for (place, left) in k6.iter().enumerate() {
        for right in k6.iter().skip(place) {
            let is_one_summary = left.format == right.format && left.started_ms.is_none();
            assert_eq!(left.is_same_result(right), !is_one_summary, "{} {}", left.format, right.format);
            assert_eq!(left.is_same_result(right), right.is_same_result(left), "{} {}", left.format, right.format);
        }
    }
    let [points, summary] = ["k6.ndjson", "k6-summary-export.json"].map(|name| one(&bytes(name)));
    assert!(points.is_same_result(&summary) && summary.is_same_result(&points));
}

#[test]
fn two_repetitions_are_two_results() {
    let record = one(&bytes("k6-dashboard.ndjson"));
    let later = record.started_ms.map(|start| start + 60_000);
    assert!(!record.is_same_result(&Report { started_ms: later, ..record.clone() }));
    let summary = one(&bytes("k6-dashboard-summary.json"));
    let mut other = Report { started_ms: later, ..summary.clone() };
    assert!(!record.is_same_result(&other), "another start");
    other = summary.clone();
    other.latency.max = other.latency.max.map(|time| Time::exact(time.ms * 1.001));
    assert!(!record.is_same_result(&other), "another maximum");
    other = Report { received_bytes: None, ..summary.clone() };
    assert!(!record.is_same_result(&other), "nothing distinguishes them");
    other = Report { duration: summary.duration.map(|time| Time::exact(time.ms * 1.02)), ..summary };
    assert!(!record.is_same_result(&other), "another duration");
    let fortio = one(&bytes("fortio.json"));
    let next = Report { started_ms: fortio.started_ms.map(|start| start + 1), ..fortio.clone() };
    assert!(fortio.is_same_result(&fortio) && !fortio.is_same_result(&next));
}

#[test]
fn unknown_values_of_a_collection_are_not_numbers() {
    let reports = contents(&bytes("web-frameworks.json")).reports;
    let blaze = reports.iter().find(|report| report.name.as_deref() == Some("javascript / blaze / 64 connections"));
    let latency = &blaze.expect("blaze").latency;
    assert_eq!((latency.percentile(99.0), latency.percentile(50.0).map(|time| time.ms)), (None, Some(0.81)));
    assert_eq!(contents(&bytes("wide.csv")).reports.len(), 8, "one of nine cells is -1");
}

#[test]
fn a_report_with_too_little_for_a_run_says_what_it_lacks() {
    let report = one(&bytes("vegeta-hdrplot.txt"));
    assert_eq!(
        report.figures().expect_err("no rate").to_string(),
        "the report: has fewer than two of requests, rate and duration: specify the duration of the load"
    );
    let figures = parse(&bytes("locust_stats.csv")).expect("a summary").figures();
    assert_eq!((figures.requests, figures.failed, figures.latency.p99_ms), (2_413, Some(612), Some(5.0)));
    assert!((figures.measured_ms - 2_002.0).abs() < 0.1, "{}", figures.measured_ms);
}

#[test]
fn connections_are_compared_with_latencies_only_if_these_are_exact() {
    let figures = |name: &str| one(&bytes(name)).figures().expect("figures");
    assert_eq!(figures("bombardier.json").closed_connections, Some(8));
    // Whole milliseconds.
    assert_eq!((figures("ab.txt").closed_connections, figures("ab.txt").vus_max), (None, Some(8)));
}

#[test]
fn a_rate_at_which_the_requests_take_forever_is_refused() {
    let slow = text("jmeter-statistics.json").replace("\"throughput\": 40.0", "\"throughput\": 1e-308");
    let expected = "the requests: 4 at 1e-308 requests/s take no plausible time";
    assert_eq!(one(slow.as_bytes()).figures().expect_err("no time").to_string(), expected);
    assert_eq!(parse(slow.as_bytes()).expect_err("no time").to_string(), expected);
    assert_eq!(parts(slow.as_bytes(), &Hints::default(), Choice::All).expect_err("no time").to_string(), expected);
}

#[test]
fn a_minimum_above_the_maximum_is_refused() {
    let with_min = |ns: &str| text("native.json").replace("\"min_ns\":514954", &format!("\"min_ns\":{ns}"));
    let message = fault(with_min("60000000000").as_bytes());
    assert_eq!(message, "latency: p50 of 8.463399 ms is below the minimum of 60000 ms: one was damaged or edited");
    let report = one(with_min("9223372036854775807").as_bytes());
    assert_eq!((report.ok_latency.min, warnings(&report).len()), (None, 1));
}

#[test]
fn times_until_the_first_byte_are_believed_no_more_than_others() {
    let waiting = "[4.0919,23.909,3.1876,0.24098,8.3145,10.79,12.545]";
    let negative = text("k6-dashboard.ndjson").replace(waiting, "[4.0919,23.909,3.1876,-0.24098,8.3145,10.79,12.545]");
    let report = one(negative.as_bytes());
    assert_eq!((report.first_byte.min, report.first_byte.percentiles.len()), (None, 4));
    let expected = "the minimum latency until the first byte is -0.24098 ms, because a clock went back: it is unknown";
    assert_eq!(warnings(&report), [expected]);
    let blocked = text("k6-dashboard.ndjson").replace("[0.36899,", "[-0.36899,");
    assert_eq!(one(blocked.as_bytes()).blocked_ms, None);
    let damaged = text("k6-dashboard.ndjson").replace(waiting, "[4.0919,23.909,3.1876,0.24098,8.3145,10.79,1.2545]");
    assert!(fault(damaged.as_bytes()).starts_with("latency: p99 of 1.2545 ms is below p95 of 10.79 ms"));
}

#[test]
fn more_failures_than_a_rate_allows_are_refused() {
    let autocannon = |failed: u64| {
        let text = text("autocannon-404.json");
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["requests"].as_object_mut().expect("an object").remove("total");
        document["non2xx"] = failed.into();
        one(document.to_string().as_bytes()).figures()
    };
    let figures = autocannon(13_800).expect("as many as the rounded rate says");
    assert_eq!((figures.requests, figures.failed), (13_800, Some(13_800)));
    assert_eq!(
        autocannon(4_294_980_893).expect_err("too many").to_string(),
        "failed requests: 4294980893 of about 13732 requests can't have failed"
    );
}

#[test]
fn measurements_that_end_within_a_request_are_read_up_to_it() {
    let all = text("k6.ndjson");
    let requests =
        |text: &str| text.lines().filter(|line| line.contains("\"metric\":\"http_reqs\",\"type\":\"Point\"")).count();
    let last = all.rfind("\"metric\":\"http_req_failed\"").expect("a measurement");
    let cut = &all[..=all[..last].rfind('\n').expect("a line")];
    let report = one(cut.as_bytes());
    assert_eq!(report.requests, Some(requests(cut) as u64 - 1));
    assert_eq!(warnings(&report), ["the file ends within a request: the test was interrupted"]);
}

#[test]
fn a_result_of_another_protocol_is_refused_by_name() {
    let grpc = text("fortio.json").replace("\"RunType\": \"HTTP\"", "\"RunType\": \"GRPC Health for ''\"");
    let expected = "RunType: \"GRPC Health for ''\" of fortio is not HTTP: only HTTP is compared";
    assert_eq!(fault(grpc.as_bytes()), expected);
    let silent = text("fortio.json").replace("\"RunType\": \"HTTP\",", "");
    assert_eq!(one(silent.as_bytes()).requests, Some(400));
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let report = one(b"server,requests,rps,duration s,p99 ms\nold,1000,50000,10,5\n");
    assert_eq!(
        report.figures().expect_err("too few requests").to_string(),
        "the requests: 1000 are not 50000 requests/s in 10 s: correct or ignore a column"
    );
    one(b"server,requests,rps,duration s\nold,1000,95,10\n").figures().expect("rounded values");
}
