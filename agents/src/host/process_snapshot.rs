//! Compares the processes of a target before and after a measurement: a worker that crashed and was replaced by its
//! master leaves no other trace.

use std::collections::BTreeSet;

use crate::host::procfs;

/// Processes, each with its start time, because pids are reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeSet<(i32, u64)>);

impl Snapshot {
    /// Takes a snapshot of processes, without zombies.
    pub fn take(processes: BTreeSet<i32>) -> Self {
        let alive = processes.into_iter().filter_map(|pid| Some((pid, procfs::start_ticks(pid)?)));
        Self(alive.collect())
    }

    /// A snapshot of one process of another machine, of which only the start time is known.
    pub fn of_one(started: u64) -> Self {
        Self([(0, started)].into())
    }

    /// Returns the number of processes.
    pub fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Whether there are no processes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many of these processes are missing in a later snapshot.
    pub fn gone(&self, later: &Self) -> u32 {
        u32::try_from(self.0.difference(&later.0).count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_another_process() {
        let before = Snapshot([(7, 100), (8, 100), (9, 100)].into());
        let after = Snapshot([(7, 100), (8, 250), (10, 300)].into());
        assert_eq!((before.len(), before.gone(&after)), (3, 2));
        assert_eq!(before.gone(&before), 0);
    }
}
