//! CPU time of the generators, as the kubelets of their nodes report it: a point whenever a kubelet has read it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brewbench_wire::series::{Consumption, Usage};
use futures_util::future::join_all;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::series::clock::Clock;
use crate::target::Cluster;
use crate::target::kubernetes::pods::Placed;
use crate::target::kubernetes::stats::{CADVISOR, SUMMARY_PATH, reading, throttled_us};

/// Timeout of a node's answer; the next request is due after a second.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Values so far, at a time of this machine's clock.
#[derive(Clone, Debug)]
struct Point {
    at_ms: i64,
    stamp: String,
    cpu_us: u64,
    throttled_us: Option<u64>,
    memory_bytes: Option<u64>,
}

/// Follows the usage of Pods, until dropped.
#[derive(Debug)]
pub struct Follower {
    points: Arc<Mutex<Vec<Vec<Point>>>>,
    _following: AbortOnDropHandle<()>,
}

impl Follower {
    /// Starts to follow.
    pub fn start(cluster: Cluster, clock: Clock, pods: Vec<Placed>) -> Self {
        let points = Arc::new(Mutex::new(vec![Vec::new(); pods.len()]));
        let own = Arc::clone(&points);
        let following = tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let nodes: BTreeSet<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
                join_all(nodes.into_iter().map(|node| read(&cluster, clock, node, &pods, &own))).await;
            }
        });
        Self { points, _following: AbortOnDropHandle::new(following) }
    }

    /// Returns the usage of each Pod, with times since the start of its own series.
    pub fn finish(self, starts_ms: &[i64]) -> Vec<Vec<Usage>> {
        let points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        points.iter().zip(starts_ms).map(|(points, start_ms)| usage(points, *start_ms)).collect()
    }
}

/// Reads the Pods of one node.
async fn read(cluster: &Cluster, clock: Clock, node: &str, pods: &[Placed], points: &Mutex<Vec<Vec<Point>>>) {
    let get = |path| async move { timeout(TIMEOUT, cluster.node(node, path)).await.ok()?.ok() };
    let Some(summary) = get(SUMMARY_PATH).await else { return };
    let at_ms = clock.now_ms();
    let mut new = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate().filter(|(_, pod)| pod.node == node) {
        let Ok(reading) = reading(&summary, &pod.uid, at_ms) else { continue };
        let points = points.lock().unwrap_or_else(PoisonError::into_inner);
        if points[index].last().is_none_or(|last| last.stamp != reading.stamp) {
            new.insert(index, reading);
        }
    }
    if new.is_empty() {
        return;
    }
    let page = get(CADVISOR).await.unwrap_or_default();
    let mut points = points.lock().unwrap_or_else(PoisonError::into_inner);
    for (index, reading) in new {
        let throttled_us = throttled_us(&page, &cluster.namespace, &pods[index].pod);
        let (stamp, cpu_us, memory_bytes) = (reading.stamp, reading.cpu_us, reading.memory_bytes);
        points[index].push(Point { at_ms, stamp, cpu_us, throttled_us, memory_bytes });
    }
}

/// Turns values so far into differences. Those from before the start are left out but for the last, where it begins.
fn usage(points: &[Point], start_ms: i64) -> Vec<Usage> {
    let begin = points.iter().rposition(|point| point.at_ms <= start_ms).unwrap_or(0);
    let mut before: Option<&Point> = None;
    let mut all = Vec::new();
    for point in &points[begin..] {
        let since = |now: Option<u64>, then: Option<Option<u64>>| match then {
            None => now.map(|_| 0),
            Some(then) => now.zip(then).map(|(now, then)| now.saturating_sub(then)),
        };
        let generator = Consumption {
            cpu_us: since(Some(point.cpu_us), before.map(|before| Some(before.cpu_us))),
            throttled_us: since(point.throttled_us, before.map(|before| before.throttled_us)),
            memory_bytes: point.memory_bytes,
            ..Consumption::default()
        };
        let at_ms = point.at_ms.saturating_sub(start_ms);
        let at_ms = i32::try_from(at_ms).unwrap_or(if at_ms < 0 { i32::MIN } else { i32::MAX });
        all.push(Usage { at_ms, generator, ..Usage::default() });
        before = Some(point);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_begins_with_the_last_point_before_the_start() {
        let point = |at_ms: i64, cpu_us, throttled_us| Point {
            at_ms,
            stamp: at_ms.to_string(),
            cpu_us,
            throttled_us,
            memory_bytes: None,
        };
        let points = [point(0, 5, Some(0)), point(900, 10, Some(1)), point(2_000, 60, Some(4)), point(3_000, 80, None)];
        let used: Vec<_> = usage(&points, 1_000)
            .into_iter()
            .map(|one| (one.at_ms, one.generator.cpu_us, one.generator.throttled_us))
            .collect();
        assert_eq!(used, [(-100, Some(0), Some(0)), (1_000, Some(50), Some(3)), (2_000, Some(20), None)]);
        assert_eq!(usage(&[], 0), []);
    }
}
