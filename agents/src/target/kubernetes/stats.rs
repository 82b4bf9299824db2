//! CPU time and memory of a Pod, as its node's kubelet reports them.
//!
//! A kubelet reads its containers about every ten seconds unless the runtime reports on demand, and says when. A value
//! that is older than the sample it is for is unknown: CPU time would be that of other seconds.

use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use super::cluster::Cluster;
use crate::wire::series::Consumption;

/// Maximum age of a value.
const FRESH: Duration = Duration::from_secs(2);
/// Timeout of a reading: the next one is due after a second.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Reads the figures of one Pod.
#[derive(Debug)]
pub struct PodStats {
    cluster: Cluster,
    node: String,
    uid: String,
    /// The last fault, so that it is logged once.
    fault: Mutex<Option<String>>,
}

impl PodStats {
    /// Reads the figures of a Pod on this node.
    pub fn new(cluster: Cluster, node: String, uid: String) -> Self {
        Self { cluster, node, uid, fault: Mutex::default() }
    }

    /// Returns its CPU time and memory so far; what is unknown, old or came too late is absent.
    pub async fn read(&self) -> Consumption {
        let read =
            tokio::time::timeout(TIMEOUT, self.cluster.node(&self.node, "stats/summary?only_cpu_and_memory=true"));
        let found = read.await.unwrap_or_else(|_| Err("it did not respond in time".to_owned()));
        let found = found.and_then(|text| consumption(&text, &self.uid, Timestamp::now()));
        found.unwrap_or_else(|fault| {
            let mut last = self.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if last.as_ref() != Some(&fault) {
                tracing::warn!(node = self.node, %fault, "no figures of the target");
                *last = Some(fault);
            }
            Consumption::default()
        })
    }

    /// Returns for how long the CPU quota has throttled its container, and how often the kernel killed a process of it.
    pub async fn throttling(&self, namespace: &str, pod: &str) -> (Option<u64>, Option<u64>) {
        let text = self.cluster.node(&self.node, "metrics/cadvisor").await.unwrap_or_default();
        let sum = |name: &str| total(&text, name, namespace, pod);
        let throttled_us = sum("container_cpu_cfs_throttled_seconds_total").map(|seconds| seconds * 1e6);
        (throttled_us.and_then(whole), sum("container_oom_events_total").and_then(whole))
    }
}

/// The part of the kubelet's summary that is read.
#[derive(Debug, Deserialize)]
struct Summary {
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
    time: Option<Timestamp>,
    usage_core_nano_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Memory {
    time: Option<Timestamp>,
    working_set_bytes: Option<u64>,
}

fn consumption(summary: &str, uid: &str, now: Timestamp) -> Result<Consumption, String> {
    let Summary { pods } = serde_json::from_str(summary).map_err(|error| format!("unknown answer: {error}"))?;
    let pod = pods.into_iter().find(|pod| pod.pod_ref.uid == uid).ok_or("its node does not list its Pod")?;
    let container = pod.containers.into_iter().next().ok_or("its node does not list its container")?;
    let is_fresh = |time: Option<Timestamp>| time.is_some_and(|time| now.duration_since(time).unsigned_abs() <= FRESH);
    let ContainerPart { cpu, memory } = container;
    if !is_fresh(cpu.time) {
        return Err("its node reads CPU time less often than once a second".to_owned());
    }
    Ok(Consumption {
        cpu_us: cpu.usage_core_nano_seconds.map(|nanoseconds| nanoseconds / 1_000),
        memory_bytes: memory.working_set_bytes.filter(|_| is_fresh(memory.time)),
        ..Consumption::default()
    })
}

/// Adds up a metric over the containers of a Pod. The series without a container are of the Pod as a whole.
fn total(page: &str, name: &str, namespace: &str, pod: &str) -> Option<f64> {
    let wanted = [("namespace", namespace), ("pod", pod)];
    let is_wanted = |labels: &super::super::url::Labels| {
        wanted.iter().all(|(label, value)| labels.get(*label).is_some_and(|found| found == value))
            && labels.get("container").is_some_and(|container| !container.is_empty() && container != "POD")
    };
    let values = super::super::url::series(page, name).filter(|one| is_wanted(&one.labels)).map(|one| one.value);
    values.reduce(|sum, value| sum + value)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far below 2^64")]
fn whole(value: f64) -> Option<u64> {
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn summary(time: i64) -> String {
        let time = at(time);
        format!(
            r#"{{"node":{{"nodeName":"n"}},"pods":[{{"podRef":{{"name":"a","namespace":"b","uid":"u"}},"containers":[
            {{"name":"target","cpu":{{"time":"{time}","usageNanoCores":1,"usageCoreNanoSeconds":2500000}},
            "memory":{{"time":"{time}","workingSetBytes":4096,"rssBytes":1}}}}]}}]}}"#
        )
    }

    #[test]
    fn fresh_figures_are_read() {
        let expected = Consumption { cpu_us: Some(2_500), memory_bytes: Some(4_096), ..Consumption::default() };
        assert_eq!(consumption(&summary(100), "u", at(101)), Ok(expected));
    }

    #[test]
    fn old_figures_and_those_of_others_are_unknown() {
        let old = consumption(&summary(100), "u", at(110)).expect_err("old");
        assert!(old.contains("less often"), "{old}");
        assert!(consumption(&summary(100), "v", at(100)).expect_err("another").contains("does not list its Pod"));
        assert!(consumption("<html>", "u", at(100)).expect_err("garbage").contains("unknown answer"));
    }

    #[test]
    fn throttling_of_the_pod_is_not_counted_twice() {
        let name = "container_cpu_cfs_throttled_seconds_total";
        let line = |container: &str, pod: &str, value: f64| {
            format!("{name}{{container=\"{container}\",namespace=\"bench\",pod=\"{pod}\"}} {value} 1763600000000\n")
        };
        let page = [line("target", "a", 1.5), line("", "a", 1.5), line("target", "b", 9.0)].concat();
        assert_eq!(total(&page, name, "bench", "a"), Some(1.5));
        assert_eq!(total(&page, name, "other", "a"), None);
    }
}
