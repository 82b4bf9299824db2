//! Waits until the machine is idle, before the load.
//!
//! Runs with the target started but idle, right before the warm-up: starting the target causes activity itself (file
//! reads, write-back, page allocation, cleanup), and a late check best represents the measurement. CPU time of the
//! target, e.g. for compiling, does not count.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brewbench_wire::outcome::IdleWaitResult;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::sandbox::Watch;
use crate::series::kernel;

/// Interval between samples. The kernel counts in hundredths of a second: one more or less is 0.05 cores.
const STEP: Duration = Duration::from_millis(200);

/// How long a machine has to stay idle if it was busy in the first sample.
const LULL: Duration = Duration::from_secs(1);

/// When a machine counts as idle, and how long to wait for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleWait {
    /// Limit of CPU time used by other programs, cores.
    pub limit_cores: f64,
    /// Maximum wait; zero disables it.
    pub longest: Duration,
}

impl Default for IdleWait {
    /// An idle server uses a few hundredths of a core; a quarter of one is enough to shift latencies by tenths of a
    /// millisecond.
    fn default() -> Self {
        Self { limit_cores: 0.25, longest: Duration::from_secs(10) }
    }
}

impl IdleWait {
    /// Waits until other programs are below the limit: for one sample, or for a second if they were above it before; or
    /// until the maximum wait is over. CPU time of `ours` does not count. Returns `None` if disabled, or if the kernel
    /// does not report CPU time.
    pub async fn wait(&self, ours: &[Watch]) -> Option<IdleWaitResult> {
        if self.longest.is_zero() {
            return None;
        }
        let begun = Instant::now();
        let mut last = LastSecond::new(self.limit_cores, sample(ours).await?);
        loop {
            sleep(STEP.min(self.longest.saturating_sub(begun.elapsed()))).await;
            let result = last.add(sample(ours).await?);
            let waited = begun.elapsed();
            if result.idle || waited >= self.longest {
                return Some(IdleWaitResult {
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    busy_cores: (result.busy_cores * 1e3).round() / 1e3,
                    limit_cores: self.limit_cores,
                    idle: result.idle,
                });
            }
        }
    }
}

/// Remembers in which experiment a wait was in vain, so that its later runs do not wait again.
///
/// A machine that did not become idle for one run will rarely do so for the next one a few seconds later. They still
/// check, and the verdict on each run says what was found.
#[derive(Debug, Default)]
pub struct Patience(Mutex<Option<String>>);

impl Patience {
    /// Waits for a run of this experiment; only checks if an earlier one has waited in vain.
    pub async fn wait(&self, wait: IdleWait, experiment: Option<&str>, ours: &[Watch]) -> Option<IdleWaitResult> {
        let has_given_up = experiment.is_some() && self.given_up().as_deref() == experiment;
        let longest = if has_given_up { wait.longest.min(STEP) } else { wait.longest };
        let result = IdleWait { longest, ..wait }.wait(ours).await?;
        if let Some(experiment) = experiment.filter(|_| !result.idle) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(experiment.to_owned());
        }
        Some(result)
    }

    fn given_up(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A sample of the machine: CPU time since boot, microseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    host_us: u64,
    ours_us: u64,
}

/// Takes a sample, outside the runtime's threads: without control groups it reads many files of `/proc`.
async fn sample(ours: &[Watch]) -> Option<Sample> {
    let ours = ours.to_vec();
    let read = spawn_blocking(move || {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let host = kernel::host(&stat, "", "");
        let ours_us = ours.iter().map(used_us).sum();
        Some(Sample { at: Instant::now(), host_us: host.user_us + host.system_us, ours_us })
    });
    read.await.ok().flatten()
}

/// Returns the CPU time of a group, from its control groups or else from its processes.
fn used_us(watch: &Watch) -> u64 {
    let process = |pid: i32| kernel::process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    let counted = watch.observed().and_then(|observed| observed.cpu_us);
    counted.unwrap_or_else(|| watch.processes().into_iter().filter_map(process).map(|process| process.cpu_us).sum())
}

/// The samples of slightly more than the last second.
#[derive(Debug)]
struct LastSecond {
    limit_cores: f64,
    samples: VecDeque<Sample>,
    is_first: bool,
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Activity {
    /// Used by other programs, average of the last second.
    busy_cores: f64,
    idle: bool,
}

impl LastSecond {
    fn new(limit_cores: f64, first: Sample) -> Self {
        Self { limit_cores, samples: [first].into(), is_first: true }
    }

    fn add(&mut self, sample: Sample) -> Activity {
        let is_first = std::mem::take(&mut self.is_first);
        // Of the samples that are at least a second old, only the newest is needed.
        while self.samples.get(1).is_some_and(|second| sample.at.duration_since(second.at) >= LULL) {
            self.samples.pop_front();
        }
        let since = self.samples.front().copied().unwrap_or(sample);
        self.samples.push_back(sample);
        let elapsed = sample.at.duration_since(since.at);
        let host_us = sample.host_us.saturating_sub(since.host_us);
        let others_us = host_us.saturating_sub(sample.ours_us.saturating_sub(since.ours_us));
        let busy_cores = others_us as f64 / (elapsed.as_micros() as f64).max(1.0);
        Activity { busy_cores, idle: busy_cores <= self.limit_cores && (is_first || elapsed >= LULL) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_wire::RunId;

    use super::*;
    use crate::sandbox::cage::Cage;
    use crate::sandbox::process::{Plan, Process};
    use crate::sandbox::{Group, ProgramRole, Sandbox};

    /// Adds samples 200 ms apart, in which other programs and the run use these numbers of cores.
    fn idle_after(steps: &[(f64, f64)]) -> Vec<bool> {
        let begun = Instant::now();
        let mut sample = Sample { at: begun, host_us: 1_000_000, ours_us: 0 };
        let mut last = LastSecond::new(0.25, sample);
        let step = |(others, ours): &(f64, f64)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred thousand")]
            let used = |cores: f64| (cores * 200_000.0) as u64;
            sample.at += STEP;
            sample.host_us += used(others + ours);
            sample.ours_us += used(*ours);
            last.add(sample).idle
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn an_idle_machine_needs_one_sample() {
        assert_eq!(idle_after(&[(0.1, 0.0)]), [true]);
        assert_eq!(idle_after(&[(0.1, 1.9)]), [true], "the run's own use does not count");
    }

    #[test]
    fn a_busy_machine_must_be_idle_for_a_second() {
        let mut steps = vec![(1.5, 0.0); 3];
        steps.extend([(0.1, 0.0); 6]);
        let expected = [[false; 7].as_slice(), &[true; 2]].concat();
        assert_eq!(idle_after(&steps), expected, "a gap between two bursts is not idle");
        assert!(!idle_after(&[(2.0, 0.0), (0.0, 0.0), (2.0, 0.0), (0.0, 0.0), (2.0, 0.0), (0.0, 0.0)]).contains(&true));
    }

    /// Starts a shell in a busy loop.
    fn busy(group: &Group) -> Process {
        let plan = Plan {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), "while :; do :; done".to_owned()],
            environment: BTreeMap::new(),
            folder: "/".into(),
            cores: Vec::new(),
            cage: Cage::target("/".as_ref(), "/".as_ref(), "/".as_ref()),
        };
        Process::start(&plan, group).expect("a shell")
    }

    #[tokio::test]
    async fn a_busy_neighbour_is_waited_for_and_reported() {
        let group = Sandbox::none("noisy neighbour").open(RunId::now(), ProgramRole::Target).expect("a group");
        let mut neighbour = busy(&group);
        let idle_wait = IdleWait { limit_cores: 0.05, longest: Duration::from_millis(450) };
        let idle_wait = idle_wait.wait(&[]).await.expect("a result");
        assert!(!idle_wait.idle && idle_wait.waited_ms >= 450 && idle_wait.busy_cores > 0.05, "{idle_wait:?}");
        neighbour.stop(Duration::ZERO, &group).await.expect("a stop");
    }

    #[tokio::test]
    async fn only_the_first_run_of_an_experiment_waits_in_vain() {
        let group = Sandbox::none("lasting neighbour").open(RunId::now(), ProgramRole::Target).expect("a group");
        let mut neighbour = busy(&group);
        let (patience, wait) =
            (Patience::default(), IdleWait { limit_cores: 0.0, longest: Duration::from_millis(600) });
        let mut waited_ms = Vec::new();
        for experiment in [Some("one"), Some("one"), None, Some("two"), Some("two")] {
            let result = patience.wait(wait, experiment, &[]).await.expect("a result");
            assert!(!result.idle && result.busy_cores > 0.0, "{result:?}");
            waited_ms.push(result.waited_ms);
        }
        let is_long: Vec<bool> = waited_ms.iter().map(|ms| *ms >= 600).collect();
        assert_eq!(is_long, [true, false, true, true, false], "{waited_ms:?}");
        neighbour.stop(Duration::ZERO, &group).await.expect("a stop");
    }

    #[tokio::test]
    async fn cpu_time_of_the_run_is_counted_separately() {
        let group = Sandbox::none("own noise").open(RunId::now(), ProgramRole::Target).expect("a group");
        let (mut own, ours) = (busy(&group), [group.watch()]);
        let before = sample(&ours).await.expect("a sample");
        let mut after = before;
        while after.ours_us == before.ours_us {
            sleep(Duration::from_millis(20)).await;
            after = sample(&ours).await.expect("a sample");
        }
        assert!(sample(&[]).await.expect("a sample").ours_us == 0);
        own.stop(Duration::ZERO, &group).await.expect("a stop");
    }

    #[tokio::test]
    async fn a_disabled_wait_returns_at_once() {
        let idle_wait = IdleWait { longest: Duration::ZERO, ..IdleWait::default() };
        assert_eq!(idle_wait.wait(&[]).await, None);
    }
}
