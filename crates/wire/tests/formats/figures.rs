//! Format × fixture × figures: each figure as the tool prints it, or as its file has it.

use brewbench_wire::reports::report::Report;
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
