//! Collections, and results that are computed from single requests.

use brewbench_wire::reports::report::Report;
use brewbench_wire::reports::time::Time;
use brewbench_wire::reports::warning::Warning;
use brewbench_wire::series::Second;

use super::{bytes, contents, fault, one};

fn ms(time: Option<Time>) -> Option<f64> {
    time.map(|time| time.ms)
}

fn named<'a>(reports: &'a [Report], name: &str) -> &'a Report {
    let found = reports.iter().find(|report| report.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("{name}: {:?}", reports.iter().map(|report| &report.name).collect::<Vec<_>>()))
}

#[test]
fn techempower_has_a_report_for_each_framework_test_and_level() {
    let reports = contents(&bytes("techempower.json")).reports;
    assert_eq!(reports.len(), 5, "an empty level is none");
    let alpha = named(&reports, "json / alpha / 32 connections");
    assert_eq!((alpha.requests, alpha.failed, alpha.rate_per_s), (Some(1_800_000), Some(12), Some(120_000.0)));
    assert_eq!(
        (ms(alpha.latency.mean), ms(alpha.latency.max), ms(alpha.latency.stddev)),
        (Some(1.48), Some(60.82), Some(1.25))
    );
    assert_eq!((alpha.started_ms, alpha.load.connections), (Some(1_795_760_450_000), Some(32)));
    assert_eq!((alpha.target.as_deref(), alpha.parameters["test"].as_str()), (Some("alpha"), "json"));
    let plaintext = named(&reports, "plaintext / alpha / 256 connections");
    assert_eq!((plaintext.load.connections, plaintext.requests), (Some(256), Some(93_131_488)));
    let query = named(&reports, "query / beta / 1 queries");
    assert_eq!((query.load.connections, query.rate_per_s), (Some(32), Some(30_000.0)));
    assert_eq!(query.parameters["queries"], "1");
    let beta = named(&reports, "json / beta / 32 connections");
    assert_eq!((beta.requests, beta.failed), (Some(900_005), Some(12)));
}

#[test]
fn httparena_is_read_by_test_and_by_framework() {
    let by_test = contents(&bytes("httparena.json")).reports;
    let alpha = named(&by_test, "alpha");
    assert_eq!((alpha.rate_per_s, alpha.requests, alpha.failed), (Some(2_713_517.0), Some(13_567_587), Some(0)));
    assert_eq!((ms(alpha.latency.mean), ms(alpha.latency.percentile(99.0))), (Some(0.188), Some(0.284)));
    assert_eq!((alpha.load.connections, alpha.load.threads, ms(alpha.duration)), (Some(512), Some(64), Some(5_000.0)));
    assert_eq!(alpha.others.get("target_cpu_cores"), Some(&66.564));
    assert_eq!(alpha.others.get("target_memory_bytes"), Some(&(85.0 * 1024.0 * 1024.0)));
    assert_eq!(named(&by_test, "beta").failed, Some(10));
    let by_framework = contents(&bytes("httparena-framework.json")).reports;
    let missed = named(&by_framework, "alpha / latency-500k");
    assert_eq!((missed.load.rate_per_s, ms(missed.latency.percentile(99.9))), (Some(500_000.0), Some(5_122.048)));
}

#[test]
fn web_frameworks_has_microseconds_even_as_duration_ms() {
    let reports = contents(&bytes("web-frameworks.json")).reports;
    let iron = named(&reports, "rust / iron / 64 connections");
    assert_eq!((iron.requests, iron.failed, iron.rate_per_s), (Some(150_002), Some(2), Some(10_000.0)));
    assert_eq!(
        (ms(iron.latency.mean), ms(iron.latency.percentile(99.0)), ms(iron.latency.max)),
        (Some(0.1), Some(0.9), Some(10.0))
    );
    assert!((ms(iron.duration).expect("known") - 15_075.318_666).abs() < 1e-3);
}

#[test]
fn a_wide_table_has_a_report_for_each_cell_whose_meaning_is_unknown() {
    let reports = contents(&bytes("wide.csv")).reports;
    let beego = named(&reports, "beego / 10 ms");
    assert_eq!((beego.others.get("value"), beego.rate_per_s), (Some(&47_001.9), None));
    assert!(beego.figures().is_err() && beego.warnings.len() == 1);
}

#[test]
fn a_table_is_read_by_the_names_of_its_columns() {
    let reports = contents(&bytes("table.csv")).reports;
    let actix = named(&reports, "actix / 4.9");
    assert_eq!(
        (actix.rate_per_s, ms(actix.latency.percentile(99.0)), actix.line),
        (Some(123_456.7), Some(1.25), Some(2))
    );
}

#[test]
fn a_table_may_begin_with_a_time() {
    let row = "2026-11-25T10:00:00Z,a,1000,10,5\n";
    let reports = contents(format!("timestamp,server,requests,rps,p99 ms\n{}", row.repeat(5)).as_bytes()).reports;
    assert_eq!((reports.len(), reports[0].name.as_deref()), (5, Some("a")));
}

#[test]
fn a_table_of_markdown_is_read_if_nothing_else_is_in_the_file() {
    let table = "| server | rps | p99 ms |\n|---|---|---|\n| a | 1000 | 5 |\n| b | 900 | 6 |\n";
    let reports = contents(table.as_bytes()).reports;
    assert_eq!((reports.len(), reports[1].rate_per_s, reports[1].line), (2, Some(900.0), Some(4)));
    for other in [format!("{table}\n{table}"), format!("{table}\nsome text\n"), format!("# Results\n\n{table}")] {
        assert!(fault(other.as_bytes()).contains("it has other text: remove it"), "{other}");
    }
}

#[test]
fn a_table_that_is_longer_than_its_first_part_is_read() {
    let table = format!("server,rps,p99 ms\n{}", "some server,1000,5\n".repeat(5_000));
    assert_eq!(contents(table.as_bytes()).reports.len(), 5_000);
    let expected = "line 5002: has 2 cells, but the header has 3: complete the row";
    assert_eq!(fault(format!("{table}last,1\n").as_bytes()), expected);
    assert_eq!(
        fault(b"server,rps,error rate\na,1,7\n"),
        "line 1: is like a table as CSV, TSV or Markdown, but the columns: \"error rate\" may have several meanings: specify one, \
         or ignore it (specify columns by --column or in the import preview)"
    );
}

#[test]
fn jmeter_counts_samples_and_no_transactions() {
    let csv = one(&bytes("jmeter.csv"));
    assert_eq!((csv.requests, csv.failed, csv.load.connections), (Some(5), Some(2), Some(2)));
    assert_eq!((ms(csv.duration), csv.received_bytes, csv.sent_bytes), (Some(100.0), Some(2_696), Some(460)));
    assert_eq!(
        (ms(csv.latency.mean), ms(csv.latency.percentile(50.0)), ms(csv.latency.max)),
        (Some(19.0), Some(12.0), Some(55.0))
    );
    assert_eq!(ms(csv.ok_latency.mean), Some(29.0));
    let statuses: Vec<_> = csv.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
    assert_eq!(statuses, [("200", 3), ("404", 1)]);
    assert_eq!(csv.failures.values().sum::<u64>(), 1, "the one without a response");
    let requests =
        |report: &Report| report.series.as_ref().map(|window| window.seconds.iter().map(Second::requests).sum::<u64>());
    assert_eq!(requests(&csv), Some(5));
    let xml = one(&bytes("jmeter.xml"));
    assert_eq!((xml.requests, xml.failed, ms(xml.duration)), (Some(3), Some(1), Some(38.0)));
    assert_eq!((ms(xml.latency.min), ms(xml.latency.max), requests(&xml)), (Some(8.0), Some(20.0), Some(3)));
}

/// Removes columns of a table.
fn without(table: &str, columns: &[&str]) -> String {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let kept = |record: &csv::StringRecord| -> csv::StringRecord {
        record.iter().zip(&header).filter(|(_, name)| !columns.contains(name)).map(|(field, _)| field).collect()
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in std::iter::once(header.clone()).chain(reader.records().map(|record| record.expect("a record"))) {
        writer.write_record(&kept(&record)).expect("memory");
    }
    String::from_utf8(writer.into_inner().expect("memory")).expect("UTF-8")
}

#[test]
fn transactions_of_jmeter_are_recognised_without_their_message() {
    let text = String::from_utf8(bytes("jmeter.csv")).expect("UTF-8");
    for columns in [&["responseMessage"][..], &["responseMessage", "URL"]] {
        let report = one(without(&text, columns).as_bytes());
        assert_eq!((report.requests, report.failed), (Some(5), Some(2)), "{columns:?}");
    }
    let unknown = one(without(&text, &["responseMessage", "responseCode"]).as_bytes());
    assert_eq!(unknown.requests, Some(6));
    assert!(matches!(unknown.warnings.as_slice(), [Warning::Incomplete(_)]), "{:?}", unknown.warnings);
    let alone = "timeStamp,elapsed,label,responseCode,success\n1795760432000,75,checkout,,true\n";
    assert_eq!(fault(alone.as_bytes()), "the file: has only transactions, and none of their samples");
}

#[test]
fn a_result_of_jmeter_may_have_no_header_or_another_separator() {
    let text = String::from_utf8(bytes("jmeter.csv")).expect("UTF-8");
    let whole = one(text.as_bytes());
    let (_, headless) = text.split_once('\n').expect("lines");
    assert_eq!(one(headless.as_bytes()), whole);
    let lines: Vec<String> =
        text.lines().filter(|line| !line.contains('"')).map(|line| line.replace(',', "\t")).collect();
    let tabs = one(lines.join("\n").as_bytes());
    assert_eq!((tabs.requests, tabs.failed), (Some(4), Some(1)));
    let truncated = text.replace(",true,", ",tr");
    assert!(
        fault(truncated.as_bytes()).starts_with("line 2: success: is neither true nor false"),
        "{}",
        fault(truncated.as_bytes())
    );
}

#[test]
fn an_interrupted_file_is_read_with_a_remark() {
    let xml = String::from_utf8(bytes("jmeter.xml")).expect("UTF-8").replace("</testResults>", "");
    assert_eq!(one(xml.as_bytes()).warnings.len(), 1);
    for name in ["jmeter.csv", "k6.csv", "hey.csv"] {
        let all = String::from_utf8(bytes(name)).expect("UTF-8");
        let before = all.trim_end().rfind('\n').expect("lines");
        let whole = one(&all.as_bytes()[..before]);
        assert_eq!(one(all.trim_end().as_bytes()), one(all.as_bytes()), "{name}");
        for end in [before + 5, before + 30] {
            let cut = one(&all.as_bytes()[..end]);
            let line = all[..end].lines().count();
            let warning = format!("line {line}, the last one, is truncated: the test was interrupted");
            assert_eq!(cut.warnings.last().map(ToString::to_string), Some(warning), "{name}");
            assert_eq!((cut.requests, cut.failed, cut.latency), (whole.requests, whole.failed, whole.latency.clone()));
        }
    }
    let ndjson = bytes("k6.ndjson");
    let cut = one(ndjson.get(..ndjson.len() - 40).expect("long enough"));
    assert_eq!(cut.warnings.len(), 1, "{:?}", cut.warnings);
}

#[test]
fn gatlings_log_is_added_up_in_each_generation() {
    for (name, version) in [("gatling-2.3.log", "2.0"), ("gatling-3.9.log", "3.9.5")] {
        let report = one(&bytes(name));
        assert_eq!((report.requests, report.failed, report.load.connections), (Some(3), Some(1), Some(2)), "{name}");
        assert_eq!(
            (ms(report.latency.min), ms(report.latency.mean), ms(report.latency.max)),
            (Some(10.0), Some(45.0), Some(100.0))
        );
        assert_eq!((ms(report.ok_latency.max), ms(report.duration)), (Some(25.0), Some(130.0)), "{name}");
        assert_eq!(report.version.as_deref(), Some(version));
    }
}

#[test]
fn nighthawks_options_are_of_one_worker() {
    let report = one(&bytes("nighthawk.json"));
    assert_eq!((report.load.rate_per_s, report.load.connections), (Some(2_000.0), Some(20)));
    assert_eq!((report.requests, report.failed, report.received_bytes), (Some(9_994), Some(14), Some(1_188_810)));
    let latency = &report.latency;
    assert_eq!(
        (ms(latency.min), ms(latency.mean), ms(latency.max)),
        (Some(0.056_609), Some(0.105_315), Some(3.737_855))
    );
    assert_eq!((ms(latency.percentile(50.0)), ms(latency.percentile(99.9))), (Some(0.091_131), Some(1.526_655)));
    assert_eq!(latency.percentile(99.0), None, "its own list has 99.0625");
}

#[test]
fn heys_requests_are_added_up() {
    let report = one(&bytes("hey.csv"));
    assert_eq!((report.requests, report.failed, report.statuses.get("200")), (Some(60), None, Some(&60)));
    assert!(matches!(report.warnings.as_slice(), [Warning::Incomplete(_)]), "{:?}", report.warnings);
    let text = String::from_utf8(bytes("hey.csv")).expect("UTF-8");
    let failed = one(text.replacen(",200,", ",500,", 2).as_bytes()).failed;
    assert_eq!(failed, Some(2));
    let mut times: Vec<f64> = text.lines().skip(1).filter_map(|line| line.split(',').next()?.parse().ok()).collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / 60.0 * 1e3;
    assert!((ms(report.latency.mean).expect("known") - mean).abs() < 1e-9);
    let median = f64::midpoint(times[29], times[30]) * 1e3;
    assert!((ms(report.latency.percentile(50.0)).expect("known") - median).abs() < 1e-9);
}

/// k6 wrote its summary, its text and all measurements of one run.
#[test]
fn the_measurements_of_k6_add_up_to_its_summary() {
    let summary = one(&bytes("k6-summary-export.json"));
    let near = |left: Option<Time>, right: Option<Time>| match (left, right) {
        (Some(left), Some(right)) => (left.ms - right.ms).abs() <= 1e-6 * right.ms,
        (left, right) => left == right,
    };
    for name in ["k6.ndjson", "k6.csv"] {
        let report = one(&bytes(name));
        assert_eq!((report.requests, report.failed), (summary.requests, summary.failed), "{name}");
        assert_eq!((report.received_bytes, report.sent_bytes), (summary.received_bytes, summary.sent_bytes), "{name}");
        for (found, expected) in [(&report.latency, &summary.latency), (&report.ok_latency, &summary.ok_latency)] {
            assert!(
                near(found.min, expected.min) && near(found.mean, expected.mean) && near(found.max, expected.max),
                "{name}"
            );
            for one in &expected.percentiles {
                assert!(near(found.percentile(one.percent), Some(one.time)), "{name}: p{}", one.percent);
            }
        }
        let details = [&report, &summary].map(|one| one.summary.as_deref().expect("k6's own").metrics.clone());
        for metric in ["http_req_waiting", "http_req_blocked", "iteration_duration"] {
            for value in ["avg", "min", "max", "med", "p(90)"] {
                let [found, expected] = details.each_ref().map(|metrics| metrics[metric].values[value]);
                assert!((found - expected).abs() <= 1e-6 * expected, "{name}: {metric} {value}: {found} {expected}");
            }
        }
        let statuses: Vec<_> = report.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
        assert_eq!(statuses, [("200", 3), ("404", 3)], "{name}");
        let window = report.series.expect("a series");
        let counts = window.seconds.iter().map(|one| (one.succeeded.total(), one.failed.total()));
        assert_eq!(counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)), (3, 3), "{name}");
    }
    let checks = one(&bytes("k6.ndjson")).summary.expect("k6's own").root.checks;
    assert_eq!(
        checks.iter().map(|check| (check.name.as_str(), check.passes, check.fails)).collect::<Vec<_>>(),
        [("ok", 3, 0)]
    );
}

#[test]
fn whole_seconds_of_k6s_csv_are_said_to_be_inexact() {
    let text = String::from_utf8(bytes("k6.csv")).expect("UTF-8");
    let coarse: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(index, line)| match line.split(',').collect::<Vec<_>>().as_mut_slice() {
            [_, time, ..] if index > 0 => line.replacen(*time, &format!("{}", 1_795_761_980 + index / 40), 1),
            _ => line.to_owned(),
        })
        .collect();
    let report = one(coarse.join("\n").as_bytes());
    assert_eq!(report.requests, Some(6));
    assert!(
        super::warnings(&report).iter().any(|text| text.starts_with("times are rounded to 1000 ms")),
        "{:?}",
        report.warnings
    );
}
