//! Context switches and page faults of processes, from `/proc`.
//!
//! The kernel counts switches per thread and drops the count of a thread that exits. Whether too much was dropped shows
//! in the CPU time, which the control group counts completely.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::series::kernel::TICK_US;

/// Share of the CPU time that the counted threads or processes must have used.
const MIN_COVERED: f64 = 0.95;
/// CPU time that is not worth a judgment, microseconds: `/proc` counts that of processes in steps of 10 ms.
const NEGLIGIBLE_US: u64 = 50_000;

/// Counts of processes and their threads since their start.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    threads: BTreeMap<i32, Thread>,
    processes: BTreeMap<i32, Process>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Thread {
    voluntary: u64,
    involuntary: u64,
    cpu_us: u64,
}

/// Counts of a process, its exited threads and its exited children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Process {
    faults: u64,
    cpu_us: u64,
}

/// Counts of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    threads: Thread,
    processes: Process,
}

impl Tasks {
    /// Reads the counts so far. Processes that end during the reading are left out.
    pub fn read(processes: &BTreeSet<i32>) -> Self {
        let threads = threads(processes).into_iter().filter_map(|(pid, tid)| Some((tid, Thread::read(pid, tid)?)));
        let counted = processes.iter().filter_map(|&pid| Some((pid, Process::read(pid)?)));
        Self { threads: threads.collect(), processes: counted.collect() }
    }

    /// Returns the counts since an earlier reading.
    pub fn since(&self, before: &Self) -> Done {
        let mut done = Done { threads: Thread::default(), processes: Process::default() };
        for (tid, now) in &self.threads {
            let of = |field: fn(&Thread) -> u64| grown(field(now), before.threads.get(tid).map(field));
            done.threads.voluntary += of(|thread| thread.voluntary);
            done.threads.involuntary += of(|thread| thread.involuntary);
            done.threads.cpu_us += of(|thread| thread.cpu_us);
        }
        for (pid, now) in &self.processes {
            let of = |field: fn(&Process) -> u64| grown(field(now), before.processes.get(pid).map(field));
            done.processes.faults += of(|process| process.faults);
            done.processes.cpu_us += of(|process| process.cpu_us);
        }
        done
    }
}

impl Done {
    /// Returns voluntary and involuntary switches, given the CPU time of the whole target. Fails if much of it was used
    /// by threads whose counts are lost.
    pub fn switches(&self, used_us: Option<u64>) -> Result<[u64; 2], String> {
        let Done { threads, processes } = self;
        // Without a control group, processes still count the CPU time of their exited threads.
        let lost = lost(threads.cpu_us, used_us.unwrap_or(processes.cpu_us));
        lost.map_or(Ok([threads.voluntary, threads.involuntary]), |share| {
            Err(format!(
                "context switches: threads that exited during the measurement used {share:.0} % of the CPU time"
            ))
        })
    }

    /// Returns page faults, given the CPU time of the whole target. Fails if much of it was used by processes whose
    /// counts are lost.
    pub fn page_faults(&self, used_us: Option<u64>) -> Result<u64, String> {
        let Process { faults, cpu_us } = self.processes;
        lost(cpu_us, used_us.unwrap_or(cpu_us)).map_or(Ok(faults), |share| {
            Err(format!("page faults: processes that exited during the measurement used {share:.0} % of the CPU time"))
        })
    }
}

/// Returns how many percent of the CPU time were not counted, if that is too much.
fn lost(counted_us: u64, used_us: u64) -> Option<f64> {
    let is_covered = counted_us + NEGLIGIBLE_US >= used_us || counted_us as f64 >= used_us as f64 * MIN_COVERED;
    (!is_covered).then(|| 100.0 - counted_us as f64 / used_us as f64 * 100.0)
}

/// Returns the growth of a counter; all of it if it is new, or if its number has been reused.
fn grown(now: u64, before: Option<u64>) -> u64 {
    before.and_then(|before| now.checked_sub(before)).unwrap_or(now)
}

/// Returns the threads of processes, each with its process.
pub fn threads(processes: &BTreeSet<i32>) -> Vec<(i32, i32)> {
    let of = |pid: &i32| {
        let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        threads.map(|tid| (*pid, tid)).collect::<Vec<_>>()
    };
    processes.iter().flat_map(of).collect()
}

impl Thread {
    fn read(pid: i32, tid: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let times = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let [voluntary, involuntary] = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
            .map(|name| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok());
        let nanoseconds: u64 = times.split_whitespace().next()?.parse().ok()?;
        Some(Self { voluntary: voluntary?, involuntary: involuntary?, cpu_us: nanoseconds / 1_000 })
    }
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Columns 10 to 17 of `proc_pid_stat(5)` are minor faults of the process and of its exited children, major faults
    /// likewise, and CPU time: user, system, and both of the exited children.
    fn parse(stat: &str) -> Option<Self> {
        let (_, columns) = stat.rsplit_once(')')?;
        let columns: Vec<u64> =
            columns.split_whitespace().skip(7).take(8).map_while(|word| word.parse().ok()).collect();
        let [minor, minor_of_children, major, major_of_children, times @ ..] = columns.as_slice() else { return None };
        let ticks: u64 = times.iter().sum();
        (times.len() == 4).then(|| Self {
            faults: minor + minor_of_children + major + major_of_children,
            cpu_us: ticks.saturating_mul(TICK_US),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_after_a_hostile_name_are_read() {
        let stat = "7 (a) 1 2) S 1 7 7 0 -1 4194560 100 20 3 4 50 60 7 8 20 0 1 0 99";
        assert_eq!(Process::parse(stat), Some(Process { faults: 127, cpu_us: 1_250_000 }));
        assert_eq!(Process::parse("7 (a) S 1 7 7 0 -1 4194560 100"), None);
    }

    #[test]
    fn a_thread_counts_its_own_waits_and_faults() {
        let own = BTreeSet::from([i32::try_from(std::process::id()).expect("a pid")]);
        let before = Tasks::read(&own);
        let (begin, waiting) = std::sync::mpsc::channel::<()>();
        let (done, end) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            for _ in 0..200 {
                std::thread::sleep(std::time::Duration::from_micros(1));
            }
            let pages = std::hint::black_box(vec![1_u8; 4 << 20]);
            done.send(()).expect("a listener");
            waiting.recv().expect("a word");
            drop(pages);
        });
        end.recv().expect("work is done");
        let since = Tasks::read(&own).since(&before);
        begin.send(()).expect("a listener");
        thread.join().expect("an end");
        let [voluntary, _] = since.switches(None).expect("nothing is lost");
        assert!(voluntary >= 200, "{since:?}");
        assert!(since.page_faults(None).expect("nothing is lost") >= 100, "{since:?}");
    }

    #[test]
    fn counts_lost_with_threads_and_processes_are_unknown() {
        let threads = Thread { voluntary: 5, involuntary: 6, cpu_us: 900_000 };
        let done = Done { threads, processes: Process { faults: 7, cpu_us: 1_000_000 } };
        assert_eq!(done.switches(Some(940_000)), Ok([5, 6]));
        let lost = "context switches: threads that exited during the measurement used 10 % of the CPU time";
        assert_eq!(done.switches(None), Err(lost.to_owned()), "the processes had more");
        assert_eq!((done.page_faults(None), done.page_faults(Some(1_020_000))), (Ok(7), Ok(7)));
        let lost = "page faults: processes that exited during the measurement used 50 % of the CPU time";
        assert_eq!(done.page_faults(Some(2_000_000)), Err(lost.to_owned()));
    }

    #[test]
    fn a_reused_number_counts_from_zero() {
        assert_eq!((grown(9, Some(4)), grown(3, Some(4)), grown(3, None)), (5, 3, 3));
    }
}
