//! Counts what the kernel and the processor do for a target: context switches, page faults, instructions, cache misses.
//!
//! The kernel's counts are read from `/proc` at both ends of the measurement, the processor's by `perf_event_open`.
//! Neither interrupts the target.

mod hardware;
mod tasks;

use std::collections::BTreeSet;

use brewbench_wire::counters::Counters;
use tokio::task::spawn_blocking;

use crate::series::sampler::Source;
use hardware::Hardware;
use tasks::Tasks;
pub use tasks::threads;

/// Counts of a target since the start of its measurement.
#[derive(Debug)]
pub struct Counting(Result<Started, String>);

#[derive(Debug)]
struct Started {
    tasks: Tasks,
    /// CPU time of the target's control group, microseconds.
    cpu_us: Option<u64>,
    hardware: Result<Hardware, String>,
}

impl Counting {
    /// Starts to count, right before the load. `None` without a target.
    pub async fn begin(source: Option<&Source>) -> Option<Self> {
        let group = match source? {
            Source::Group(group) | Source::Guest(group, None) => group.clone(),
            Source::Guest(_, Some(_)) => return Some(Self(Err("not counted inside a virtual machine".to_owned()))),
            Source::Metrics(_) | Source::Pods(_) => {
                return Some(Self(Err("not counted on another machine".to_owned())));
            }
        };
        let started = spawn_blocking(move || {
            let processes = group.processes();
            let threads: Vec<i32> = tasks::threads(&processes).into_iter().map(|(_, tid)| tid).collect();
            let hardware = Hardware::attach(&threads);
            let cpu_us = group.observed().and_then(|observed| observed.cpu_us);
            Started { tasks: Tasks::read(&processes), cpu_us, hardware }
        });
        Some(Self(started.await.map_err(|error| format!("counting failed: {error}"))))
    }

    /// Returns the counts, right after the load.
    pub async fn end(self, source: Option<&Source>) -> Counters {
        let started = match self.0 {
            Ok(started) => started,
            Err(reason) => return unknown(reason),
        };
        let Some(group) = source.and_then(Source::group).cloned() else {
            return unknown("the target has ended".to_owned());
        };
        let counted = spawn_blocking(move || {
            let cpu_us = group.observed().and_then(|observed| observed.cpu_us);
            started.counters(&group.processes(), cpu_us)
        });
        counted.await.unwrap_or_else(|error| unknown(format!("counting failed: {error}")))
    }
}

impl Started {
    fn counters(self, processes: &BTreeSet<i32>, cpu_us: Option<u64>) -> Counters {
        let mut counters = Counters::default();
        let used_us = cpu_us.zip(self.cpu_us).map(|(now, before)| now.saturating_sub(before));
        let done = Tasks::read(processes).since(&self.tasks);
        match done.switches(used_us) {
            Ok([voluntary, involuntary]) => {
                (counters.voluntary_switches, counters.involuntary_switches) = (Some(voluntary), Some(involuntary));
            }
            Err(reason) => counters.missing.push(reason),
        }
        match done.page_faults(used_us) {
            Ok(faults) => counters.page_faults = Some(faults),
            Err(reason) => counters.missing.push(reason),
        }
        match self.hardware {
            Ok(hardware) => hardware.read(&mut counters),
            Err(reason) => counters.missing.push(reason),
        }
        counters
    }
}

fn unknown(reason: String) -> Counters {
    Counters { missing: vec![reason], ..Counters::default() }
}
