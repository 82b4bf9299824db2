//! The Pods of a target, once they run: their figures add up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use brewbench_wire::series::Consumption;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::pods::Placed;
use super::stats::{CADVISOR, NoReading, PodStats, SUMMARY_PATH, Summary};

/// Timeout of a reading: the next one is due after a second.
const READING: Duration = Duration::from_millis(900);
/// Timeout of an answer that nothing else waits for.
const PAGE: Duration = Duration::from_secs(10);
/// Pause between two requests while waiting for a reading.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a kubelet may take to read its containers again: twice its usual interval.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// Reads the figures of all Pods of a target. A figure that one of them lacks is unknown.
#[derive(Debug)]
pub struct Replicas {
    cluster: Cluster,
    pods: Vec<PodStats>,
    /// Nodes that are this machine; `None` if unknown.
    here: Option<BTreeSet<String>>,
}

impl Replicas {
    /// Reads the figures of these Pods. `here` has the nodes that are this machine.
    pub fn new(cluster: &Cluster, pods: &[Pod], here: Option<BTreeSet<String>>) -> Self {
        let pods = pods.iter().map(|pod| PodStats::new(Placed::from_pod(pod))).collect();
        Self { cluster: cluster.clone(), pods, here }
    }

    /// Returns the names of the Pods.
    pub fn names(&self) -> Vec<String> {
        self.pods.iter().map(|pod| pod.placed().pod.clone()).collect()
    }

    /// Returns the node of a Pod.
    pub fn node_of(&self, name: &str) -> Option<&str> {
        self.pods.iter().map(PodStats::placed).find(|placed| placed.pod == name).map(|placed| placed.node.as_str())
    }

    /// Returns their CPU time and memory so far, as last read by their nodes.
    pub async fn read(&self) -> Consumption {
        let read: Vec<Consumption> = self.record(READING).await.into_iter().map(Result::unwrap_or_default).collect();
        Consumption {
            cpu_us: total(read.iter().map(|one| one.cpu_us)),
            memory_bytes: total(read.iter().map(|one| one.memory_bytes)),
            ..Consumption::default()
        }
    }

    /// Waits until all nodes have read their containers again. The caller does not load the target in that time. Gives
    /// up on a Pod that is gone and on a node that does not answer, or reads too seldom; CPU time is then unknown.
    pub async fn settle(&self) {
        let begun = Instant::now();
        // What is seen now may have been read under load.
        let mut answers = self.record(PAGE).await;
        let before: Vec<usize> = self.pods.iter().map(PodStats::readings).collect();
        let mut waits = vec![true; self.pods.len()];
        loop {
            for (index, pod) in self.pods.iter().enumerate() {
                let is_lost = match answers[index] {
                    Ok(_) => false,
                    Err(NoReading::Pending) => before[index] > 0,
                    Err(NoReading::Fault(_)) => true,
                };
                waits[index] = waits[index] && !is_lost && !pod.settle(before[index]);
            }
            if !waits.contains(&true) || begun.elapsed() > MAX_INTERVAL {
                return;
            }
            sleep(PAUSE).await;
            answers = self.record(PAGE).await;
        }
    }

    /// Asks each node once, and records what it reports of each Pod within a time.
    async fn record(&self, limit: Duration) -> Vec<Result<Consumption, NoReading>> {
        let read = |answer: Result<String, String>| Summary::parse(&answer.map_err(NoReading::Fault)?);
        let answers = self.ask(SUMMARY_PATH, limit).await;
        let answers: BTreeMap<_, _> = answers.into_iter().map(|(node, answer)| (node, read(answer))).collect();
        self.pods.iter().map(|pod| pod.record(&answers[&pod.placed().node])).collect()
    }

    /// Asks all nodes at once; returns their answers by name.
    async fn ask(&self, path: &'static str, limit: Duration) -> BTreeMap<String, Result<String, String>> {
        let nodes: BTreeSet<&str> = self.pods.iter().map(|pod| pod.placed().node.as_str()).collect();
        let ask = |node: &str| {
            let (cluster, node) = (self.cluster.clone(), node.to_owned());
            async move {
                let answer = timeout(limit, cluster.node(&node, path)).await;
                (node, answer.unwrap_or_else(|_| Err("it did not respond in time".to_owned())))
            }
        };
        join_all(nodes.into_iter().map(ask)).await.into_iter().collect()
    }

    /// Returns CPU time so far at the times of samples; unknown unless it settled before the first and after the last.
    pub fn cpu_at(&self, times_ms: &[i64]) -> Vec<Option<u64>> {
        sums(self.pods.iter(), times_ms)
    }

    /// Returns the same of the Pods on this machine.
    pub fn cpu_here_at(&self, times_ms: &[i64]) -> Vec<Option<u64>> {
        match &self.here {
            Some(here) => sums(self.pods.iter().filter(|pod| here.contains(&pod.placed().node)), times_ms),
            None => vec![None; times_ms.len()],
        }
    }

    /// Returns for how long CPU quotas have throttled the containers, and how often the kernel killed a process of them.
    pub async fn throttling(&self) -> (Option<u64>, Option<u64>) {
        let pages = self.ask(CADVISOR, PAGE).await;
        let throttling = |pod: &PodStats| {
            let page = pages[&pod.placed().node].as_deref().unwrap_or_default();
            pod.throttling(page, &self.cluster.namespace)
        };
        let each: Vec<_> = self.pods.iter().map(throttling).collect();
        (total(each.iter().map(|(throttled, _)| *throttled)), total(each.iter().map(|(_, kills)| *kills)))
    }
}

fn sums<'p>(pods: impl Iterator<Item = &'p PodStats>, times_ms: &[i64]) -> Vec<Option<u64>> {
    let each: Vec<_> = pods.map(|pod| pod.cpu_at(times_ms)).collect();
    (0..times_ms.len()).map(|at| total(each.iter().map(|pod| pod.get(at).copied().flatten()))).collect()
}

fn total(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_one_pod_lacks_is_unknown() {
        assert_eq!(total([Some(1), Some(2)].into_iter()), Some(3));
        assert_eq!(total([Some(1), None].into_iter()), None);
    }
}
