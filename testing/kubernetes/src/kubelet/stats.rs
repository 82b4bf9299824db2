//! Resource usage in the two formats of a kubelet: the Summary API, and the metrics of cAdvisor.

use std::{
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::node::{ContainerView, Node};
use crate::cgroup::Usage;

/// A metric of cAdvisor: name, type, help and its value in text.
type Metric = (&'static str, &'static str, &'static str, fn(&Usage) -> String);

const METRICS: [Metric; 8] = [
    ("container_cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.", |usage| {
        usage.periods.to_string()
    }),
    ("container_cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.", |usage| {
        usage.throttled_periods.to_string()
    }),
    (
        "container_cpu_cfs_throttled_seconds_total",
        "counter",
        "Total time duration the container has been throttled.",
        |usage| seconds(usage.throttled_ns),
    ),
    ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", |usage| {
        seconds(usage.cpu_ns)
    }),
    ("container_memory_rss", "gauge", "Size of RSS in bytes.", |usage| usage.rss_bytes.to_string()),
    ("container_memory_usage_bytes", "gauge", "Current memory usage in bytes.", |usage| usage.memory_bytes.to_string()),
    ("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", |usage| {
        usage.working_set_bytes.to_string()
    }),
    ("container_oom_events_total", "counter", "Count of out of memory events observed for the container", |usage| {
        usage.oom_kills.to_string()
    }),
];

/// The latest answer, which is given again until it is too old.
#[derive(Debug, Default)]
pub struct Cached(Mutex<Option<(Instant, String)>>);

impl Cached {
    /// Returns the latest answer, or a new one if that is older than this.
    pub fn get(&self, age: Duration, compute: impl FnOnce() -> String) -> String {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((at, answer)) if at.elapsed() < age => answer.clone(),
            _ => {
                let answer = compute();
                *cached = Some((Instant::now(), answer.clone()));
                answer
            }
        }
    }
}

/// Returns `/stats/summary`: the containers that run.
pub fn summary(node: &Node) -> Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let container = |(name, view): (&String, &ContainerView)| {
        let usage = view.running.as_ref()?.1.usage();
        Some(json!({
            "name": name,
            "cpu": {"time": now, "usageCoreNanoSeconds": usage.cpu_ns},
            "memory": {
                "time": now,
                "usageBytes": usage.memory_bytes,
                "workingSetBytes": usage.working_set_bytes,
                "rssBytes": usage.rss_bytes,
            },
        }))
    };
    let pods = node.pods();
    let pods = pods.iter().map(|(uid, pod)| {
        json!({
            "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
            "containers": pod.containers.iter().filter_map(container).collect::<Vec<_>>(),
        })
    });
    json!({"node": {"nodeName": node.options.name}, "pods": pods.collect::<Vec<_>>()})
}

/// Returns `/metrics/cadvisor` in the text format of Prometheus.
pub fn cadvisor(node: &Node) -> String {
    let now = Timestamp::now().as_millisecond();
    let mut series = Vec::new();
    for (uid, pod) in &*node.pods() {
        for (name, view) in &pod.containers {
            let Some((_, group)) = &view.running else { continue };
            let ContainerView { id, image, .. } = view;
            let labels = format!(
                "container=\"{name}\",id=\"/kubepods/pod{uid}/{id}\",image=\"{image}\",name=\"{id}\",\
                 namespace=\"{}\",pod=\"{}\"",
                pod.namespace, pod.name
            );
            series.push((labels, group.usage()));
        }
    }
    let mut text = String::new();
    for (name, kind, help, value) in METRICS {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, usage) in &series {
            let _ = writeln!(text, "{name}{{{labels}}} {} {now}", value(usage));
        }
    }
    text
}

fn seconds(ns: u64) -> String {
    (ns as f64 / 1e9).to_string()
}
