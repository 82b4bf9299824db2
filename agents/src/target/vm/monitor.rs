//! What QEMU says about its guest while it runs, and how the agent places its virtual CPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::qemu::BALLOON;
use super::qmp::Qmp;
use crate::sandbox::MemoryUse;

/// Figures of the guest's memory that are older are not used.
const FRESH: Duration = Duration::from_secs(5);

/// How long the driver in the guest may take to report for the first time once the server answers.
const FIRST_REPORT: Duration = Duration::from_secs(3);

/// How often it is asked for that.
const PACE: Duration = Duration::from_millis(100);

/// A running QEMU.
#[derive(Debug)]
pub struct Monitor {
    qmp: Mutex<Qmp>,
    /// QEMU's version.
    pub version: String,
    /// Where its virtual CPUs run, as a fact.
    pub placement: String,
    peak_memory: AtomicU64,
}

impl Monitor {
    /// Takes control of a QEMU that has connected: pins each virtual CPU to one of the cores if there are enough, and
    /// makes the guest report its memory once a second. The error is a sentence.
    pub async fn meet(stream: UnixStream, cores: &[usize]) -> Result<Arc<Self>, String> {
        let mut qmp = Qmp::greet(stream).await?;
        let version = qmp.execute("query-version", json!({})).await?;
        let number = |name: &str| version["qemu"][name].as_u64().unwrap_or_default();
        let version = format!("QEMU {}.{}.{}", number("major"), number("minor"), number("micro"));
        let placement = pin(&qmp.execute("query-cpus-fast", json!({})).await?, cores)?;
        let every_second = json!({"path": BALLOON, "property": "guest-stats-polling-interval", "value": 1});
        qmp.execute("qom-set", every_second).await?;
        Ok(Arc::new(Self { qmp: Mutex::new(qmp), version, placement, peak_memory: AtomicU64::default() }))
    }

    /// Waits until the guest reports its memory; returns whether it does, which takes a driver in the guest.
    pub async fn has_memory(&self) -> bool {
        let first = async {
            while self.memory().await.working_set_bytes.is_none() {
                sleep(PACE).await;
            }
        };
        tokio::time::timeout(FIRST_REPORT, first).await.is_ok()
    }

    /// Returns the memory that the guest uses; unknown if it does not report it.
    pub async fn memory(&self) -> MemoryUse {
        let get = json!({"path": BALLOON, "property": "guest-stats"});
        let report = self.qmp.lock().await.execute("qom-get", get).await;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (Ok(report), Ok(now)) = (report, now) else { return MemoryUse::default() };
        let memory = used(&report, now);
        self.peak_memory.fetch_max(memory.working_set_bytes.unwrap_or(0), Ordering::Relaxed);
        memory
    }

    /// Returns the highest of the figures so far.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        Some(self.peak_memory.load(Ordering::Relaxed)).filter(|peak| *peak > 0)
    }

    /// Returns what the guest did to end, if QEMU has said so. Only after QEMU has exited.
    pub async fn end(&self) -> Option<&'static str> {
        match self.qmp.lock().await.shutdown_reason().await? {
            "guest-shutdown" => Some("the guest powered off"),
            "guest-reset" => Some("the guest rebooted"),
            "guest-panic" => Some("the guest's kernel panicked"),
            _ => None,
        }
    }
}

/// Pins the threads of virtual CPUs; returns where they run.
fn pin(cpus: &Value, cores: &[usize]) -> Result<String, String> {
    let threads: Vec<i32> =
        cpus.as_array().into_iter().flatten().filter_map(|cpu| cpu["thread-id"].as_i64()?.try_into().ok()).collect();
    // Emulated CPUs may share a thread.
    let is_one_each = threads.windows(2).all(|pair| pair[0] != pair[1]);
    if threads.is_empty() || !is_one_each || cores.len() < threads.len() {
        return Ok("not pinned".to_owned());
    }
    for (thread, core) in threads.iter().zip(cores) {
        let mut set = CpuSet::new();
        set.set(*core);
        let pinned = sched_setaffinity(Pid::from_raw(*thread), &set);
        pinned.map_err(|error| format!("can't pin a virtual CPU to CPU {core}: {error}"))?;
    }
    let places: Vec<_> = cores.iter().take(threads.len()).map(ToString::to_string).collect();
    Ok(format!("each on its own: CPU {}", places.join(", ")))
}

/// Returns the memory in a report of the balloon. Figures that a guest does not have are the highest number. What is
/// available but not free is file cache; a guest that does not know what is available counts it as used.
fn used(report: &Value, now: Duration) -> MemoryUse {
    let figure = |name: &str| report["stats"][name].as_u64().filter(|bytes| *bytes < u64::MAX);
    let at = report["last-update"].as_u64().filter(|at| *at > 0);
    if at.is_none_or(|at| now.as_secs().abs_diff(at) > FRESH.as_secs()) {
        return MemoryUse::default();
    }
    let (available, free) = (figure("stat-available-memory"), figure("stat-free-memory"));
    let without = |free: Option<u64>| figure("stat-total-memory")?.checked_sub(free?);
    MemoryUse {
        working_set_bytes: without(available.or(free)),
        held_bytes: without(available),
        file_cache_bytes: available.zip(free).and_then(|(available, free)| available.checked_sub(free)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_memory_is_what_is_not_available() {
        let report = |stats: Value, at: u64| json!({"stats": stats, "last-update": at});
        let stats = json!({"stat-total-memory": 100, "stat-available-memory": 60, "stat-free-memory": 50});
        let now = Duration::from_secs(1_000);
        let expected = MemoryUse { working_set_bytes: Some(40), held_bytes: Some(40), file_cache_bytes: Some(10) };
        assert_eq!(used(&report(stats.clone(), 1_000), now), expected);
        let unknown = MemoryUse::default();
        assert_eq!(used(&report(stats.clone(), 994), now), unknown, "too old");
        assert_eq!(used(&report(stats, 0), now), unknown, "no report yet");
        let old = json!({"stat-total-memory": 100, "stat-available-memory": u64::MAX, "stat-free-memory": 50});
        let with_cache = MemoryUse { working_set_bytes: Some(50), ..unknown };
        assert_eq!(used(&report(old, 1_000), now), with_cache, "an old kernel");
        assert_eq!(used(&report(json!({}), 1_000), now), unknown);
    }

    #[test]
    fn virtual_cpus_are_pinned_only_if_each_has_a_thread_and_a_core() {
        let cpus = |threads: &[i32]| threads.iter().map(|thread| json!({"thread-id": thread})).collect::<Value>();
        for (threads, cores) in [(&[][..], &[0][..]), (&[1, 1], &[0, 1]), (&[1, 2], &[0]), (&[1], &[])] {
            assert_eq!(pin(&cpus(threads), cores), Ok("not pinned".to_owned()), "{threads:?} {cores:?}");
        }
    }
}
