//! The Pods of a target, once they run: their figures add up.

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::Cluster;
use super::facts::node_of;
use super::stats::PodStats;
use crate::wire::series::Consumption;

/// Reads the figures of all Pods of a target. A figure that one of them lacks is unknown.
#[derive(Debug)]
pub struct Replicas(Vec<PodStats>);

impl Replicas {
    /// Reads the figures of these Pods.
    pub fn new(cluster: &Cluster, pods: &[Pod]) -> Self {
        let stats = |pod: &Pod| {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            PodStats::new(cluster.clone(), pod.name_any(), node_of(pod), uid)
        };
        Self(pods.iter().map(stats).collect())
    }

    /// Returns the names of the Pods.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|pod| pod.pod().to_owned()).collect()
    }

    /// Returns the node of a Pod.
    pub fn node_of(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|pod| pod.pod() == name).map(PodStats::node)
    }

    /// Returns their CPU time and memory so far, as last read by their nodes.
    pub async fn read(&self) -> Consumption {
        let read = join_all(self.0.iter().map(PodStats::read)).await;
        Consumption {
            cpu_us: total(read.iter().map(|one| one.cpu_us)),
            memory_bytes: total(read.iter().map(|one| one.memory_bytes)),
            ..Consumption::default()
        }
    }

    /// Waits until all nodes have read their containers again.
    pub async fn settle(&self) {
        join_all(self.0.iter().map(PodStats::settle)).await;
    }

    /// Returns CPU time so far at the times of samples; unknown unless it settled before the first and after the last.
    pub fn cpu_at(&self, times_ms: &[i64]) -> Vec<Option<u64>> {
        let each: Vec<_> = self.0.iter().map(|pod| pod.cpu_at(times_ms)).collect();
        (0..times_ms.len()).map(|at| total(each.iter().map(|pod| pod.get(at).copied().flatten()))).collect()
    }

    /// Returns for how long CPU quotas have throttled the containers, and how often the kernel killed a process of them.
    pub async fn throttling(&self) -> (Option<u64>, Option<u64>) {
        let each = join_all(self.0.iter().map(PodStats::throttling)).await;
        (total(each.iter().map(|(throttled, _)| *throttled)), total(each.iter().map(|(_, kills)| *kills)))
    }
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
