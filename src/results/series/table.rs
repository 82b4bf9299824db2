//! The series as CSV: one row per second of k6, with the nearest sample of the machine. Pure.

use crate::{
    results::series::model::{LatencyBody, SecondBody, SeriesBody, SideBody, UsageBody, WindowBody},
    runs::csv,
};

const HEADER: [&str; 53] = [
    "phase",
    "at_s",
    "length_s",
    "requests",
    "rps",
    "failed",
    "failed_rps",
    "iterations",
    "dropped_iterations",
    "received_bytes",
    "sent_bytes",
    "vus",
    "succeeded_mean_ms",
    "succeeded_p50_ms",
    "succeeded_p90_ms",
    "succeeded_p95_ms",
    "succeeded_p99_ms",
    "succeeded_p999_ms",
    "succeeded_max_ms",
    "failed_mean_ms",
    "failed_p50_ms",
    "failed_p90_ms",
    "failed_p95_ms",
    "failed_p99_ms",
    "failed_p999_ms",
    "failed_max_ms",
    "sample_at_s",
    "sample_length_s",
    "target_cores",
    "target_throttled",
    "target_memory_bytes",
    "target_held_memory_bytes",
    "target_file_cache_bytes",
    "target_peak_memory_bytes",
    "target_threads",
    "target_open_files",
    "generator_cores",
    "generator_throttled",
    "generator_memory_bytes",
    "generator_held_memory_bytes",
    "generator_file_cache_bytes",
    "generator_peak_memory_bytes",
    "generator_threads",
    "generator_open_files",
    "host_user_cores",
    "host_system_cores",
    "host_steal_cores",
    "host_iowait_cores",
    "host_load",
    "host_received_rate",
    "host_sent_rate",
    "succeeded_buckets",
    "failed_buckets",
];

/// Formats a series as CSV with a header, warm-up first.
///
/// Unknown values are empty. Buckets are `upper bound in ms:count`, separated by spaces.
pub fn csv(series: &SeriesBody) -> String {
    let mut text = csv::line(HEADER);
    for (phase, window) in [("warming_up", &series.warm_up), ("measuring", &series.measured)] {
        for (second, usage) in window.iter().flat_map(rows) {
            let cells = cells(phase, second, usage);
            text.push_str(&csv::line(cells.iter().map(String::as_str)));
        }
    }
    text
}

/// Pairs each second of a part with the sample nearest to its end; no sample is used twice.
pub fn rows(window: &WindowBody) -> impl Iterator<Item = (&SecondBody, Option<&UsageBody>)> {
    let mut used = 0;
    window.seconds.iter().map(move |second| {
        let rest = window.usage.get(used..).unwrap_or_default();
        let near = |sample: &UsageBody| (sample.at_s - second.at_s).abs();
        let nearest = rest.iter().enumerate().min_by(|(_, one), (_, other)| near(one).total_cmp(&near(other)));
        let found = nearest.filter(|(_, sample)| near(sample) <= second.length_s.max(1.0));
        used += found.map_or(0, |(place, _)| place + 1);
        (second, found.map(|(_, sample)| sample))
    })
}

fn word<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn cells(phase: &str, second: &SecondBody, usage: Option<&UsageBody>) -> Vec<String> {
    let mut cells = vec![
        phase.to_owned(),
        second.at_s.to_string(),
        second.length_s.to_string(),
        second.requests.to_string(),
        word(second.rps),
        second.failed.count.to_string(),
        word(second.failed_rps),
        second.iterations.to_string(),
        second.dropped_iterations.to_string(),
        second.received_bytes.to_string(),
        second.sent_bytes.to_string(),
        word(second.vus),
    ];
    cells.extend(latencies(&second.succeeded));
    cells.extend(latencies(&second.failed));
    cells.extend([word(usage.map(|usage| usage.at_s)), word(usage.and_then(|usage| usage.length_s))]);
    cells.extend(side(usage.map(|usage| &usage.target)));
    cells.extend(side(usage.map(|usage| &usage.generator)));
    let host = usage.map(|usage| &usage.host);
    cells.extend([
        word(host.and_then(|host| host.user_cores)),
        word(host.and_then(|host| host.system_cores)),
        word(host.and_then(|host| host.steal_cores)),
        word(host.and_then(|host| host.iowait_cores)),
        word(host.map(|host| host.load)),
        word(host.and_then(|host| host.received_rate)),
        word(host.and_then(|host| host.sent_rate)),
        buckets(&second.succeeded),
        buckets(&second.failed),
    ]);
    cells
}

fn latencies(latency: &LatencyBody) -> [String; 7] {
    let LatencyBody { count: _, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms, buckets: _ } = latency;
    [*mean_ms, *p50_ms, *p90_ms, *p95_ms, *p99_ms, *p999_ms, *max_ms].map(word)
}

fn side(side: Option<&SideBody>) -> [String; 8] {
    let number = |of: fn(&SideBody) -> Option<u64>| word(side.and_then(of));
    [
        word(side.and_then(|side| side.cores)),
        word(side.and_then(|side| side.throttled)),
        number(|side| side.memory_bytes),
        number(|side| side.held_memory_bytes),
        number(|side| side.file_cache_bytes),
        number(|side| side.peak_memory_bytes),
        number(|side| side.threads),
        number(|side| side.open_files),
    ]
}

fn buckets(latency: &LatencyBody) -> String {
    let buckets: Vec<String> = latency.buckets.iter().map(|(edge, count)| format!("{edge}:{count}")).collect();
    buckets.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::series::model::{SideCores, tests::rising};

    #[test]
    fn every_second_has_a_row_with_all_columns() {
        let text = csv(&SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default()));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.len() == 13 && lines.iter().all(|line| line.len() == HEADER.len()), "{text}");
        let cell =
            |line: usize, head: &str| lines[line][HEADER.iter().position(|name| *name == head).expect("a column")];
        assert_eq!((cell(1, "phase"), cell(3, "phase")), ("warming_up", "measuring"));
        assert_eq!((cell(12, "requests"), cell(12, "target_cores"), cell(12, "generator_cores")), ("1000", "0.5", ""));
        assert!(cell(12, "succeeded_buckets").ends_with(":999"), "{text}");
    }

    #[test]
    fn no_sample_is_used_for_two_seconds() {
        let mut window =
            SeriesBody::new(&"run".to_owned().into(), &rising(), SideCores::default()).measured.expect("exists");
        window.usage.truncate(4);
        let beside: Vec<_> = rows(&window).filter_map(|(_, usage)| usage.map(|usage| usage.at_s)).collect();
        assert_eq!(beside, [3.5, 4.5, 5.5]);
    }
}
