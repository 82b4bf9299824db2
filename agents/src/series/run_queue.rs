//! Reads how long the threads of processes waited for a CPU: they could run, and another thread ran instead.
//!
//! The kernel counts this per thread, in the second column of `schedstat`, and drops it when the thread exits. What a
//! thread waited between its last reading and its exit is lost: at most a second.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::counters::threads;

/// The run-queue wait of a group of processes, read again and again.
#[derive(Debug, Default)]
pub struct RunQueue {
    /// What each thread had waited at the last reading, nanoseconds.
    threads: BTreeMap<i32, u64>,
    /// What all waited until then, including those that have exited, nanoseconds.
    waited_ns: u64,
}

impl RunQueue {
    /// Returns how long all threads have waited so far, summed over them, microseconds; `None` if the kernel does not
    /// count it.
    pub fn read(&mut self, processes: &BTreeSet<i32>) -> Option<u64> {
        let threads = threads(processes);
        let read = |(pid, tid): &(i32, i32)| {
            let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            Some((*tid, waited_ns(&text)?))
        };
        let now: BTreeMap<i32, u64> = threads.iter().filter_map(read).collect();
        if now.is_empty() && !threads.is_empty() {
            return None;
        }
        self.add(now);
        Some(self.waited_ns / 1_000)
    }

    fn add(&mut self, now: BTreeMap<i32, u64>) {
        // All of it is new in a new thread, also if it has the number of one that has exited.
        let grown = |(tid, waited): (&i32, &u64)| {
            self.threads.get(tid).and_then(|before| waited.checked_sub(*before)).unwrap_or(*waited)
        };
        self.waited_ns += now.iter().map(grown).sum::<u64>();
        self.threads = now;
    }
}

/// Parses `schedstat`: time on a CPU, time of waiting for one, and number of time slices.
fn waited_ns(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exited_threads_count_and_reused_numbers_begin_again() {
        let mut queue = RunQueue::default();
        let mut after = |threads: &[(i32, u64)]| {
            queue.add(threads.iter().copied().collect());
            queue.waited_ns
        };
        assert_eq!(after(&[(1, 100), (2, 50)]), 150);
        assert_eq!(after(&[(1, 130)]), 180, "the second has exited");
        assert_eq!(after(&[(1, 130), (2, 7)]), 187, "its number is used again");
        assert_eq!(after(&[(1, 30), (2, 8)]), 218);
        assert_eq!(after(&[]), 218);
    }

    #[test]
    fn schedstat_is_parsed() {
        assert_eq!((waited_ns("296712 51 3\n"), waited_ns("0 0 0"), waited_ns("")), (Some(51), Some(0), None));
    }

    #[test]
    fn threads_that_share_a_cpu_wait_for_each_other() {
        use std::process::Command;
        let busy = || Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn();
        let mut both = [busy().expect("a shell"), busy().expect("a shell")];
        let processes = both.iter().map(|child| i32::try_from(child.id()).expect("a pid")).collect();
        let mut queue = RunQueue::default();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while queue.read(&processes).is_some_and(|waited_us| waited_us < 50_000) && std::time::Instant::now() < deadline
        {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let waited_us = queue.read(&processes);
        for child in &mut both {
            child.kill().expect("killed");
            child.wait().expect("an exit status");
        }
        assert!(waited_us.is_none_or(|waited_us| waited_us >= 50_000), "{waited_us:?}");
    }
}
