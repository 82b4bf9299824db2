//! Format × fixture × figures: each figure as the tool prints it, or as its file has it.

use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::report::Report;
use brewbench_wire::reports::summary::{Latency, Resolution};
use brewbench_wire::reports::time::Time;

use super::{bytes, one, text};

/// Each figure of each fixture as the tool prints it, or as its file has it; an empty cell is unknown.
const TABLE: &str = include_str!("figures.csv");

fn ms(time: Option<Time>) -> Option<f64> {
    time.map(|time| time.ms)
}

/// Formats the figures of a report as a row of the table.
fn row(fixture: &str, report: &Report) -> String {
    let Report { format, requests, failed, rate_per_s, duration, load, received_bytes, latency, statuses, .. } = report;
    let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let mut cells = vec![fixture.to_owned(), (*format).to_owned(), count(*requests), count(*failed)];
    cells.extend([number(*rate_per_s), number(ms(*duration)), count(load.connections), count(*received_bytes)]);
    cells.extend([latency.min, latency.mean, latency.max, latency.stddev].map(|time| number(ms(time))));
    cells.extend([50.0, 90.0, 99.0, 99.9].map(|percent| number(ms(latency.percentile(percent)))));
    let statuses: Vec<String> = statuses.iter().map(|(status, count)| format!("{status}:{count}")).collect();
    cells.push(statuses.join(" "));
    cells.join(",")
}

#[test]
fn each_figure_equals_that_of_the_tool() {
    let rows: Vec<&str> = TABLE.lines().skip(1).collect();
    assert!(rows.len() >= 35, "{} rows", rows.len());
    for expected in rows {
        let fixture = expected.split(',').next().unwrap_or_default();
        assert_eq!(row(fixture, &one(&bytes(fixture))), expected);
    }
}

#[test]
fn the_units_of_oha_depend_on_the_slowest_request() {
    let plain = text("oha.txt");
    for (unit, factor) in [("ms", 1e3), ("us", 1e6), ("10 sec", 0.1), ("min", 1.0 / 60.0)] {
        let changed: Vec<String> = plain.lines().map(|line| in_unit(line, unit, factor)).collect();
        let report = one(changed.join("\n").as_bytes());
        let found = [report.duration, report.latency.max, report.latency.percentile(99.0)].map(ms);
        for (found, expected) in found.into_iter().zip([2_001.2, 18.1, 1.9]) {
            let found = found.unwrap_or_else(|| panic!("{unit}"));
            assert!((found - expected).abs() < 0.01 * expected, "{unit}: {found} instead of {expected}");
        }
    }
}

/// Writes the seconds at the end of a line in another unit.
fn in_unit(line: &str, unit: &str, factor: f64) -> String {
    let Some((before, seconds)) = line.strip_suffix(" secs").and_then(|line| line.rsplit_once(['\t', ' '])) else {
        return line.to_owned();
    };
    let separator = line.get(before.len()..=before.len()).unwrap_or_default();
    format!("{before}{separator}{:.9} {unit}", seconds.parse::<f64>().expect("seconds") * factor)
}

fn resolution(fixture: &str) -> Resolution {
    parse(&bytes(fixture)).unwrap_or_else(|fault| panic!("{fixture}: {fault}")).figures().resolution
}

#[test]
fn a_printed_value_is_known_to_half_its_last_digit() {
    let whole_ms = Some(0.5);
    for fixture in ["ab.txt", "autocannon.txt", "autocannon.json", "locust_stats.csv"] {
        let Resolution { rps, latency, .. } = resolution(fixture);
        assert_eq!((rps, latency.p50_ms, latency.p99_ms), (None, whole_ms, whole_ms), "{fixture}");
    }
    // A difference of two clocks, each of which is cut.
    for fixture in ["jmeter.csv", "jmeter.xml", "jmeter-statistics.json", "gatling-3.9.log"] {
        let Latency { p50_ms, p99_ms, max_ms, .. } = resolution(fixture).latency;
        assert_eq!((p50_ms, p99_ms, max_ms), (Some(1.0), Some(1.0), Some(1.0)), "{fixture}");
    }
    let near = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9);
    let wrk = resolution("wrk.txt");
    assert_eq!((wrk.rps, wrk.latency.p50_ms), (None, None), "14794.88 and 268.00us are exact enough");
    assert!(near(wrk.latency.p99_ms, 0.005) && near(wrk.received_per_s, 0.005 * 1024.0 * 1024.0), "{wrk:?}");
    assert_eq!(resolution("siege.txt").latency.max_ms, Some(5.0));
    let hey = resolution("hey.csv").latency;
    assert_eq!((hey.p50_ms, hey.avg_ms), (Some(0.05), None));
}

#[test]
fn values_of_full_precision_have_no_resolution() {
    for fixture in ["k6-summary-export.json", "oha.json", "vegeta.json", "bombardier.json", "rewrk.json"] {
        assert_eq!(resolution(fixture), Resolution::default(), "{fixture}");
    }
}

#[test]
fn a_percentile_of_buckets_is_known_to_its_bucket() {
    // 0.540 ms between the fastest, 0.069 ms, and 1 ms.
    let fortio = resolution("fortio.json").latency.p50_ms.expect("wide buckets");
    assert!((fortio - (0.540_200_7 - 0.068_551)).abs() < 1e-6, "{fortio}");
    let latency = one(&bytes("native.json")).latency;
    let native = latency.percentile(50.0).expect("a median");
    assert!(native.error_ms > 0.0 && native.error_ms < 0.003 * native.ms, "{native:?}");
}

#[test]
fn a_rate_of_a_table_is_known_to_half_its_last_digit() {
    let table = "Server,Requests/sec,p99 ms,Duration s\nold,1.53k,2,10\n";
    let figures = parse(table.as_bytes()).expect("a table").figures();
    assert_eq!((figures.rps, figures.latency.p99_ms), (1_530.0, Some(2.0)));
    let Resolution { rps, latency, measured_ms, .. } = figures.resolution;
    assert_eq!((rps, latency.p99_ms, measured_ms), (Some(5.0), Some(0.5), Some(500.0)));
    // Without a rate, the duration decides how exact it is.
    let counted = "Server,Requests,Duration s\nold,20000,10\n";
    let hinted = brewbench_wire::reports::hints::Hints {
        columns: [("Requests".to_owned(), "requests".parse().expect("a column"))].into(),
        ..Default::default()
    };
    let report = hinted.read(counted.as_bytes()).expect("a table").reports.remove(0);
    assert_eq!(report.figures().expect("figures").resolution.rps, Some(100.0));
}

#[test]
fn a_requested_unit_of_k6_rounds_more_than_its_own() {
    let own = text("k6.txt");
    let in_seconds: Vec<String> = own
        .lines()
        .map(|line| match line.split_once(": avg=") {
            Some((name, rest)) => {
                let count = rest.split_whitespace().find(|word| word.starts_with("count=")).unwrap_or_default();
                format!("{name}: avg=0.01s min=0.00s med=0.01s max=0.02s p(90)=0.02s p(95)=0.02s p(99)=0.02s {count}")
            }
            None => line.to_owned(),
        })
        .collect();
    let figures = |text: &str| parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}")).figures();
    let Latency { p50_ms, min_ms, avg_ms, .. } = figures(&in_seconds.join("\n")).resolution.latency;
    assert_eq!((p50_ms, min_ms, avg_ms), (Some(5.0), Some(5.0), Some(5.0)));
    assert_eq!(figures(&own).resolution.latency.p99_ms, None, "896.99µs are exact enough");
}
