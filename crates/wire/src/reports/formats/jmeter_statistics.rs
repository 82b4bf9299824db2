//! `statistics.json` of JMeter's dashboard. Times are milliseconds; kilobytes have 1,024 bytes.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::Loose;
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};

pub(super) const FORMAT: Format = Format {
    name: "jmeter-statistics",
    title: "JMeter's statistics.json",
    tool: "jmeter",
    limits: "Only \"Total\" is read. Its three percentiles are taken for the 90th, 95th and 99th, which is JMeter's default. \
             It lacks the duration, the threads and the statuses.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| document.has_in("Total", &["sampleCount", "meanResTime", "throughput"]).into(),
        read: |document| read(document.read()?),
    },
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    sample_count: Loose,
    error_count: Loose,
    mean_res_time: Loose,
    #[serde(default)]
    median_res_time: Loose,
    min_res_time: Loose,
    max_res_time: Loose,
    pct1_res_time: Loose,
    pct2_res_time: Loose,
    pct3_res_time: Loose,
    throughput: Loose,
    #[serde(default, rename = "receivedKBytesPerSec")]
    received_kbytes_per_sec: Loose,
}

fn read(mut entries: BTreeMap<String, Entry>) -> Result<Vec<Report>, Fault> {
    let entry = entries.remove("Total").ok_or_else(|| Place::root("Total").fault("is missing"))?;
    let requests = entry.sample_count.count();
    let ms = |value: Loose| value.0.map(Time::exact);
    let ends = Latencies {
        min: ms(entry.min_res_time),
        mean: ms(entry.mean_res_time),
        max: ms(entry.max_res_time),
        of: Population::All,
        definition: Definition::Interpolated,
        ..Latencies::default()
    };
    let latency = ends.with_percentiles([
        (50.0, ms(entry.median_res_time)),
        (90.0, ms(entry.pct1_res_time)),
        (95.0, ms(entry.pct2_res_time)),
        (99.0, ms(entry.pct3_res_time)),
    ]);
    Ok(vec![Report {
        requests,
        failed: entry.error_count.count(),
        rate_per_s: entry.throughput.0,
        received_per_s: entry.received_kbytes_per_sec.0.map(|rate| rate * 1024.0),
        // Of whole milliseconds, whose start and end are cut.
        latency: if requests == Some(0) { Latencies::default() } else { latency.at_least(1.0) },
        ..Report::default()
    }])
}
