//! Waiting until the machine is quiet, before the load.
//!
//! It is waited with the target up and idle, right before the warm-up: its start stirs the machine itself (files are read
//! and written back, pages are made, what it replaced is cleaned up), and the later one looks, the truer it is for what is
//! measured. What the target does on its own then, e.g. compile, is its own business and not counted against the machine.

use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::sandbox::Watch;
use crate::series::kernel;
use crate::wire::outcome::Ground;

/// How far two looks are apart. The kernel counts in hundredths of a second: one more or less is 0.05 cores.
const STEP: Duration = Duration::from_millis(200);

/// A machine that was not quiet at the first look has to be for so long.
const LULL: Duration = Duration::from_secs(1);

/// When a machine is quiet enough, and how long that is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quiet {
    /// CPU time that others may use, cores.
    pub limit_cores: f64,
    /// How long is waited at most; zero for not at all.
    pub longest: Duration,
}

impl Default for Quiet {
    /// An idle server needs a few hundredths of a core for itself; a quarter of one is enough to move latencies that
    /// are told in tenths of a millisecond.
    fn default() -> Self {
        Self { limit_cores: 0.25, longest: Duration::from_secs(10) }
    }
}

impl Quiet {
    /// Waits until others leave the machine alone: for one look if they do, else until they have for a second, or the
    /// longest time is over. What `ours` use does not count. Nothing where nobody wants to wait or the kernel does not
    /// tell.
    pub async fn wait(&self, ours: &[Watch]) -> Option<Ground> {
        if self.longest.is_zero() {
            return None;
        }
        let begun = Instant::now();
        let mut last = LastSecond::new(self.limit_cores, look(ours).await?);
        loop {
            sleep(STEP.min(self.longest.saturating_sub(begun.elapsed()))).await;
            let seen = last.add(look(ours).await?);
            let waited = begun.elapsed();
            if seen.quiet || waited >= self.longest {
                return Some(Ground {
                    waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
                    busy_cores: (seen.busy_cores * 1e3).round() / 1e3,
                    limit_cores: self.limit_cores,
                    quiet: seen.quiet,
                });
            }
        }
    }
}

/// One look at the machine: CPU time since its start, microseconds.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    host_us: u64,
    ours_us: u64,
}

/// Reading files of `/proc`, many of them where there are no control groups, is not for the runtime's threads.
async fn look(ours: &[Watch]) -> Option<Look> {
    let ours = ours.to_vec();
    let read = spawn_blocking(move || {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let host = kernel::host(&stat, "", "");
        let ours_us = ours.iter().map(used_us).sum();
        Some(Look { at: Instant::now(), host_us: host.user_us + host.system_us, ours_us })
    });
    read.await.ok().flatten()
}

/// CPU time of a group: by its control groups, or by its processes where there are none.
fn used_us(watch: &Watch) -> u64 {
    let process = |pid: i32| kernel::process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    let counted = watch.observed().and_then(|observed| observed.cpu_us);
    counted.unwrap_or_else(|| watch.processes().into_iter().filter_map(process).map(|process| process.cpu_us).sum())
}

/// The looks of the last second, and of a little more.
#[derive(Debug)]
struct LastSecond {
    limit_cores: f64,
    looks: VecDeque<Look>,
    is_first: bool,
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// What others used, on average over the last second.
    busy_cores: f64,
    quiet: bool,
}

impl LastSecond {
    fn new(limit_cores: f64, first: Look) -> Self {
        Self { limit_cores, looks: [first].into(), is_first: true }
    }

    fn add(&mut self, look: Look) -> Seen {
        let is_first = std::mem::take(&mut self.is_first);
        // All but the youngest of those that are a second old or older tell nothing new.
        while self.looks.get(1).is_some_and(|second| look.at.duration_since(second.at) >= LULL) {
            self.looks.pop_front();
        }
        let since = self.looks.front().copied().unwrap_or(look);
        self.looks.push_back(look);
        let stretch = look.at.duration_since(since.at);
        let host_us = look.host_us.saturating_sub(since.host_us);
        let others_us = host_us.saturating_sub(look.ours_us.saturating_sub(since.ours_us));
        let busy_cores = others_us as f64 / (stretch.as_micros() as f64).max(1.0);
        Seen { busy_cores, quiet: busy_cores <= self.limit_cores && (is_first || stretch >= LULL) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sandbox::cage::Cage;
    use crate::sandbox::process::{Plan, Process};
    use crate::sandbox::{Group, Sandbox, Side};
    use crate::wire::RunId;

    /// Looks 200 ms apart at a machine on which others and we use so many cores in each step.
    fn seen(steps: &[(f64, f64)]) -> Vec<bool> {
        let begun = Instant::now();
        let mut look = Look { at: begun, host_us: 1_000_000, ours_us: 0 };
        let mut last = LastSecond::new(0.25, look);
        let step = |(others, ours): &(f64, f64)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred thousand")]
            let used = |cores: f64| (cores * 200_000.0) as u64;
            look.at += STEP;
            look.host_us += used(others + ours);
            look.ours_us += used(*ours);
            last.add(look).quiet
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn a_quiet_machine_costs_one_look() {
        assert_eq!(seen(&[(0.1, 0.0)]), [true]);
        assert_eq!(seen(&[(0.1, 1.9)]), [true], "what is ours does not count");
    }

    #[test]
    fn a_noisy_machine_must_be_quiet_for_a_second() {
        let mut steps = vec![(1.5, 0.0); 3];
        steps.extend([(0.1, 0.0); 6]);
        let expected = [[false; 7].as_slice(), &[true; 2]].concat();
        assert_eq!(seen(&steps), expected, "a gap between two bursts is no quiet");
        assert!(!seen(&[(2.0, 0.0), (0.0, 0.0), (2.0, 0.0), (0.0, 0.0), (2.0, 0.0), (0.0, 0.0)]).contains(&true));
    }

    /// A shell that does nothing as fast as it can.
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
    async fn a_noisy_neighbour_is_waited_for_and_told() {
        let group = Sandbox::none("noisy neighbour").open(RunId::now(), Side::Target).expect("a group");
        let mut neighbour = busy(&group);
        let quiet = Quiet { limit_cores: 0.05, longest: Duration::from_millis(450) };
        let ground = quiet.wait(&[]).await.expect("a ground");
        assert!(!ground.quiet && ground.waited_ms >= 450 && ground.busy_cores > 0.05, "{ground:?}");
        neighbour.stop(Duration::ZERO, &group).await.expect("a stop");
    }

    #[tokio::test]
    async fn what_the_run_s_own_processes_use_is_told_apart() {
        let group = Sandbox::none("own noise").open(RunId::now(), Side::Target).expect("a group");
        let (mut own, ours) = (busy(&group), [group.watch()]);
        let before = look(&ours).await.expect("a look");
        let mut after = before;
        while after.ours_us == before.ours_us {
            sleep(Duration::from_millis(20)).await;
            after = look(&ours).await.expect("a look");
        }
        assert!(look(&[]).await.expect("a look").ours_us == 0);
        own.stop(Duration::ZERO, &group).await.expect("a stop");
    }

    #[tokio::test]
    async fn who_does_not_want_to_wait_does_not() {
        let quiet = Quiet { longest: Duration::ZERO, ..Quiet::default() };
        assert_eq!(quiet.wait(&[]).await, None);
    }
}
