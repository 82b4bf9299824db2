//! CPU time and memory of a Pod, as its node's kubelet reports them.
//!
//! A kubelet reads its containers about every ten seconds unless the runtime reports on demand. So a measurement begins
//! right after a reading and is complete with the first reading after its end, while the target is idle. Between two
//! readings, CPU time is spread evenly.

use std::sync::{Mutex, MutexGuard, PoisonError};

use brewbench_wire::now_ms;
use brewbench_wire::series::Consumption;
use serde::Deserialize;

use super::pods::Placed;
use crate::target::url::exposition::{Labels, series};

/// What a kubelet serves: figures of all its Pods, and a page of metrics.
pub(crate) const SUMMARY_PATH: &str = "stats/summary?only_cpu_and_memory=true";
pub(crate) const CADVISOR: &str = "metrics/cadvisor";

/// The figures of one Pod.
#[derive(Debug)]
pub struct PodStats {
    placed: Placed,
    seen: Mutex<Seen>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Seen {
    readings: Vec<Reading>,
    /// The last fault, so that it is logged once.
    fault: Option<String>,
}

/// Why there is no reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoReading {
    /// The node has not read the container yet.
    Pending,
    /// It does not answer as a kubelet does; says why.
    Fault(String),
}

/// Figures of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// When it was first seen, on this machine's clock; that of the node may differ.
    pub(crate) at_ms: i64,
    /// When the kubelet read it, in its words.
    pub(crate) stamp: String,
    pub(crate) cpu_us: u64,
    pub(crate) memory_bytes: Option<u64>,
    /// Whether it was read while the target was idle: it contains all CPU time until then, and none of later.
    is_settled: bool,
}

impl PodStats {
    /// Nothing is known yet of this Pod.
    pub fn new(placed: Placed) -> Self {
        Self { placed, seen: Mutex::default() }
    }

    /// Returns where its Pod is.
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Takes the answer of its node. Returns CPU time and memory so far, as last read by the node.
    pub(super) fn record(&self, answer: &Result<Summary, NoReading>) -> Result<Consumption, NoReading> {
        let read =
            answer.as_ref().map_err(Clone::clone).and_then(|summary| summary.reading(&self.placed.uid, now_ms()));
        let mut seen = self.seen();
        match &read {
            Ok(reading) if seen.readings.last().is_none_or(|last| last.stamp != reading.stamp) => {
                seen.readings.push(reading.clone());
            }
            Err(NoReading::Fault(fault)) if seen.fault.as_ref() != Some(fault) => {
                tracing::warn!(node = self.placed.node, %fault, "no figures of the target");
                seen.fault = Some(fault.clone());
            }
            _ => {}
        }
        read.map(|reading| reading.consumption())
    }

    /// Returns the number of readings so far.
    pub(super) fn readings(&self) -> usize {
        self.seen().readings.len()
    }

    /// Marks the last reading as taken while the target was idle, if there are more than before. Returns whether it
    /// did.
    pub(super) fn settle(&self, before: usize) -> bool {
        let mut seen = self.seen();
        let has_more = seen.readings.len() > before;
        if let Some(last) = seen.readings.last_mut().filter(|_| has_more) {
            last.is_settled = true;
        }
        has_more
    }

    /// Returns CPU time so far at the times of samples. Unknown unless it was settled before the first and after the
    /// last.
    pub fn cpu_at(&self, times_ms: &[i64]) -> Vec<Option<u64>> {
        let seen = self.seen();
        let (Some(first), Some(last)) = (times_ms.first(), times_ms.last()) else { return Vec::new() };
        let mut settled = seen.readings.iter().filter(|reading| reading.is_settled);
        let begin = settled.clone().rfind(|reading| reading.at_ms <= *first);
        let end = settled.find(|reading| reading.at_ms > *last);
        let (Some(begin), Some(end)) = (begin, end) else { return vec![None; times_ms.len()] };
        let between = seen.readings.iter().filter(|reading| reading.at_ms > *first && reading.at_ms <= *last);
        // All CPU time of the measurement is used between its first and its last sample.
        let known: Vec<(i64, u64)> = [(*first, begin.cpu_us)]
            .into_iter()
            .chain(between.map(|reading| (reading.at_ms, reading.cpu_us)))
            .chain([(*last, end.cpu_us)])
            .collect();
        times_ms.iter().map(|at_ms| Some(interpolated(&known, *at_ms))).collect()
    }

    /// Returns for how long the CPU quota has throttled its container, and how often the kernel killed a process of it;
    /// by its node's page of metrics.
    pub(super) fn throttling(&self, page: &str, namespace: &str) -> (Option<u64>, Option<u64>) {
        let ooms = total(page, "container_oom_events_total", namespace, &self.placed.pod);
        (throttled_us(page, namespace, &self.placed.pod), ooms.and_then(whole))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn consumption(&self) -> Consumption {
        let Self { cpu_us, memory_bytes, .. } = *self;
        Consumption { cpu_us: Some(cpu_us), memory_bytes, ..Consumption::default() }
    }
}

/// Returns the value at a time between known ones, ascending.
fn interpolated(known: &[(i64, u64)], at_ms: i64) -> u64 {
    let after = known.iter().position(|(time, _)| *time >= at_ms);
    match after {
        None => known.last().map_or(0, |(_, value)| *value),
        Some(0) => known[0].1,
        Some(after) => {
            let ((from_ms, from), (to_ms, to)) = (known[after - 1], known[after]);
            let (passed, length) = (at_ms.abs_diff(from_ms), to_ms.abs_diff(from_ms).max(1));
            from + to.saturating_sub(from) * passed / length
        }
    }
}

/// The part of the kubelet's summary that is read.
#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    #[serde(default)]
    pods: Vec<PodPart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodPart {
    pod_ref: PodRef,
    #[serde(default)]
    containers: Vec<ContainerPart>,
}

#[derive(Debug, Deserialize)]
struct PodRef {
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerPart {
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cpu {
    time: Option<String>,
    usage_core_nano_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Memory {
    working_set_bytes: Option<u64>,
}

impl Summary {
    /// Reads what a kubelet serves.
    pub(super) fn parse(text: &str) -> Result<Self, NoReading> {
        serde_json::from_str(text).map_err(|error| NoReading::Fault(format!("unknown answer: {error}")))
    }

    fn reading(&self, uid: &str, at_ms: i64) -> Result<Reading, NoReading> {
        let pod = self.pods.iter().find(|pod| pod.pod_ref.uid == uid).ok_or(NoReading::Pending)?;
        let ContainerPart { cpu, memory } = pod.containers.first().ok_or(NoReading::Pending)?;
        let (stamp, nanoseconds) = cpu.time.clone().zip(cpu.usage_core_nano_seconds).ok_or(NoReading::Pending)?;
        let (cpu_us, memory_bytes) = (nanoseconds / 1_000, memory.working_set_bytes);
        Ok(Reading { at_ms, stamp, cpu_us, memory_bytes, is_settled: false })
    }
}

/// Returns the figures of a Pod in what its kubelet serves.
pub(crate) fn reading(summary: &str, uid: &str, at_ms: i64) -> Result<Reading, NoReading> {
    Summary::parse(summary)?.reading(uid, at_ms)
}

/// Returns for how long the CPU quota has throttled the container of a Pod, from a page of cAdvisor.
pub(crate) fn throttled_us(page: &str, namespace: &str, pod: &str) -> Option<u64> {
    total(page, "container_cpu_cfs_throttled_seconds_total", namespace, pod).and_then(|seconds| whole(seconds * 1e6))
}

/// Adds up a metric over a Pod's own group and those of its containers. Each has a quota, and counts only what that one
/// throttled; a kill of the kernel counts where the limit was exceeded.
fn total(page: &str, name: &str, namespace: &str, pod: &str) -> Option<f64> {
    let wanted = [("namespace", namespace), ("pod", pod)];
    let is_wanted =
        |labels: &Labels| wanted.iter().all(|(label, value)| labels.get(*label).is_some_and(|found| found == value));
    let values: Vec<_> = series(page, name).filter(|one| is_wanted(&one.labels)).collect();
    // Without a series of a container, the kubelet does not know the names of its containers.
    let is_container = |labels: &Labels| labels.get("container").is_some_and(|name| !name.is_empty());
    values.iter().any(|one| is_container(&one.labels)).then(|| values.iter().map(|one| one.value).sum())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far below 2^64")]
fn whole(value: f64) -> Option<u64> {
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = r#"{"node":{"nodeName":"n"},"pods":[{"podRef":{"name":"a","namespace":"b","uid":"u"},"containers":[
        {"name":"target","cpu":{"time":"2026-01-02T03:04:05Z","usageNanoCores":1,"usageCoreNanoSeconds":2500000},
        "memory":{"time":"2026-01-02T03:04:05Z","workingSetBytes":4096,"rssBytes":1}}]}]}"#;

    #[test]
    fn figures_of_the_pod_are_read() {
        let stamp = "2026-01-02T03:04:05Z".to_owned();
        let expected = Reading { at_ms: 7, stamp, cpu_us: 2_500, memory_bytes: Some(4_096), is_settled: false };
        assert_eq!(reading(SUMMARY, "u", 7), Ok(expected));
        assert_eq!(reading(SUMMARY, "v", 7), Err(NoReading::Pending));
        assert!(matches!(reading("<html>", "u", 7), Err(NoReading::Fault(why)) if why.contains("unknown answer")));
        let early = SUMMARY.replace(r#","usageCoreNanoSeconds":2500000"#, "");
        assert_eq!(reading(&early, "u", 7), Err(NoReading::Pending));
    }

    #[test]
    fn cpu_time_is_complete_however_seldom_the_node_reads_it() {
        let stats = PodStats::new(Placed { pod: "p".to_owned(), uid: "u".to_owned(), node: "n".to_owned() });
        let times = [10_000, 11_000, 12_000, 13_000, 14_000];
        assert_eq!(stats.cpu_at(&times), vec![None; 5], "nothing was read");
        let reading = |at_ms: i64, cpu_us, is_settled| Reading {
            at_ms,
            stamp: at_ms.to_string(),
            cpu_us,
            memory_bytes: None,
            is_settled,
        };
        let before = [reading(2_000, 50, true), reading(9_900, 100, true), reading(12_000, 500, false)];
        stats.seen().readings = before.to_vec();
        assert_eq!(stats.cpu_at(&times), vec![None; 5], "the last reading is missing");
        // Seen after the load, but read under load.
        stats.seen().readings.push(reading(14_100, 900, false));
        assert_eq!(stats.cpu_at(&times), vec![None; 5], "the last reading is still missing");
        stats.seen().readings.push(reading(22_000, 1_100, true));
        assert_eq!(stats.cpu_at(&times), [100, 300, 500, 800, 1_100].map(Some));
        for reading in &mut stats.seen().readings[..2] {
            reading.is_settled = false;
        }
        assert_eq!(stats.cpu_at(&times), vec![None; 5], "the first reading may be from before the warm-up");
    }

    #[test]
    fn throttling_by_the_pod_s_own_quota_counts_too() {
        let name = "container_cpu_cfs_throttled_seconds_total";
        let line = |container: &str, pod: &str, value: f64| {
            format!("{name}{{container=\"{container}\",namespace=\"bench\",pod=\"{pod}\"}} {value} 1763600000000\n")
        };
        let page =
            [line("target", "a", 18.5), line("", "a", 0.5), line("target", "b", 9.0), line("", "c", 1.0)].concat();
        assert_eq!(total(&page, name, "bench", "a"), Some(19.0));
        assert_eq!(total(&page, name, "other", "a"), None);
        assert_eq!(total(&page, name, "bench", "c"), None, "not known of its containers");
    }
}
