//! Parses the kernel's files in `/proc` about the machine and its processes. Counters start at boot or process start.

use brewbench_wire::series::Host;

use crate::sandbox::MemoryUse;

/// A tick of `/proc/stat` and `/proc/<pid>/stat`, microseconds: always a hundred per second, whatever the kernel uses
/// internally.
pub const TICK_US: u64 = 10_000;

/// Returns the machine's counters, from `/proc/stat`, `/proc/loadavg` and `/proc/net/dev`. Unreadable values are 0.
pub fn host(stat: &str, loadavg: &str, net_dev: &str) -> Host {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = line.unwrap_or_default().split_whitespace().map_while(|tick| tick.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are part of user and nice.
    let sum_us = |columns: &[usize]| {
        let ticks = columns.iter().filter_map(|&column| ticks.get(column));
        ticks.fold(0_u64, |sum, &tick| sum.saturating_add(tick.saturating_mul(TICK_US)))
    };
    let (received_bytes, sent_bytes) = net_dev
        .lines()
        .filter_map(interface)
        .fold((0_u64, 0_u64), |sum, bytes| (sum.0.saturating_add(bytes.0), sum.1.saturating_add(bytes.1)));
    Host {
        user_us: sum_us(&[0, 1]),
        system_us: sum_us(&[2, 5, 6]),
        steal_us: sum_us(&[7]),
        iowait_us: sum_us(&[4]),
        load_milli: load_milli(loadavg).unwrap_or(0),
        received_bytes,
        sent_bytes,
    }
}

/// Returns CPU time of programs and kernel on these CPUs, from `/proc/stat`; `None` if a CPU is missing.
pub fn busy_us(stat: &str, processors: &[usize]) -> Option<u64> {
    let busy = |processor: &usize| {
        let name = format!("cpu{processor} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
        // Without idle, iowait and steal.
        [0, 1, 2, 5, 6].into_iter().map(|column| ticks.get(column).copied()).sum::<Option<u64>>()
    };
    let ticks = processors.iter().map(busy).sum::<Option<u64>>()?;
    Some(ticks.saturating_mul(TICK_US))
}

/// Returns the number of CPUs in `/proc/stat`.
pub fn processors(stat: &str) -> usize {
    let names = stat.lines().filter_map(|line| line.split_whitespace().next()?.strip_prefix("cpu"));
    names.filter(|number| !number.is_empty()).count()
}

/// Returns the bytes an interface received and sent; `None` for loopback, which no other machine uses.
fn interface(line: &str) -> Option<(u64, u64)> {
    let (name, columns) = line.split_once(':')?;
    let mut columns = columns.split_whitespace();
    let (received, sent) = (columns.next()?.parse().ok()?, columns.nth(7)?.parse().ok()?);
    (name.trim() != "lo").then_some((received, sent))
}

/// Parses the first number of `3.95 4.77 5.74 7/107 5433`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casting saturates, and no number is zero")]
fn load_milli(loadavg: &str) -> Option<u64> {
    let load: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    Some((load * 1e3).round() as u64)
}

/// Counters of a process, from `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// CPU time of all its threads and of its terminated children, microseconds.
    pub cpu_us: u64,
    /// Number of threads.
    pub threads: u64,
}

/// Parses `/proc/<pid>/stat`, whose second column is a name that may contain parentheses and spaces.
pub fn process(stat: &str) -> Option<Process> {
    let (_, columns) = stat.rsplit_once(')')?;
    let column = |number: usize| columns.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
    let ticks = [14, 15, 16, 17].into_iter().map(column).sum::<Option<u64>>()?;
    Some(Process { cpu_us: ticks.saturating_mul(TICK_US), threads: column(20)? })
}

/// Adds up the memory of processes, from their `/proc/<pid>/status`. Only the files that they have mapped are known of
/// the file cache, and nothing of the kernel's memory.
pub fn memory(statuses: impl Iterator<Item = String>) -> MemoryUse {
    let mut sum = MemoryUse { working_set_bytes: Some(0), held_bytes: Some(0), file_cache_bytes: None };
    for status in statuses {
        // A kernel thread, or a process that is gone, has none.
        let Some(resident) = status_bytes(&status, "VmRSS:") else { continue };
        let held = status_bytes(&status, "RssAnon:").zip(status_bytes(&status, "RssShmem:"));
        sum.working_set_bytes = sum.working_set_bytes.map(|sum| sum + resident);
        sum.held_bytes = sum.held_bytes.zip(held).map(|(sum, (anonymous, shared))| sum + anonymous + shared);
    }
    sum
}

fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  4073579 67356 367296 1475950 13860 7 13532 27910 5 0\n\
        cpu0 1999638 32817 176610 787156 4333 0 4709 14876 0 0\nintr 1 2 3\n";
    const NET_DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n    \
        lo: 34157488298 15008511    0    0    0     0          0         0 34157488298 15008511    0    0    0     0\n  \
        eth0: 760061231   79927    0    0    0     0          0         0  6480829   70178    0    0    0     0\n  \
        eth1:10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";

    #[test]
    fn machine_counters_are_parsed() {
        assert_eq!(processors(STAT), 1);
        let expected = Host {
            user_us: 41_409_350_000,
            system_us: 3_808_350_000,
            steal_us: 279_100_000,
            iowait_us: 138_600_000,
            load_milli: 3950,
            received_bytes: 760_061_241,
            sent_bytes: 6_480_849,
        };
        assert_eq!(host(STAT, "3.95 4.77 5.74 7/107 5433\n", NET_DEV), expected);
        assert_eq!(host("", "", ""), Host::default());
        assert_eq!(host("cpu  1 x", "x", "eth0: 1").user_us, 10_000);
    }

    #[test]
    fn only_the_requested_cpus_count() {
        let stat = "cpu  9 9 9 9 9 9 9 9\ncpu0 100 10 20 9999 77 1 2 50 0 0\ncpu1 1 1 1 5 5 1 1 5 0 0\ncpu10 7 0 0 0 0 0 0 0\n";
        assert_eq!(busy_us(stat, &[0]), Some(1_330_000));
        assert_eq!(busy_us(stat, &[0, 1]), Some(1_380_000));
        assert_eq!(busy_us(stat, &[10]), Some(70_000));
        assert_eq!((busy_us(stat, &[2]), busy_us(stat, &[0, 2]), busy_us("", &[0])), (None, None, None));
    }

    #[test]
    fn a_process_is_parsed_whatever_its_name() {
        let rest = "R 1 2 3 0 -1 4194304 101 0 0 0 150 50 7 3 20 0 12 0 3023408 3133440 376 18446744073709551615";
        for name in ["k6", "a b", "x) R 1 (", ""] {
            let expected = Process { cpu_us: 2_100_000, threads: 12 };
            assert_eq!(process(&format!("5434 ({name}) {rest}")), Some(expected), "{name}");
        }
        assert_eq!(process("5434 (k6) R 1"), None);
        assert_eq!(process(""), None);
    }

    #[test]
    fn memory_of_processes_is_added_up_and_mapped_files_are_not_held() {
        let k6 = "Name:\tk6\nVmRSS:\t    1504 kB\nRssAnon:\t 900 kB\nRssFile:\t 500 kB\nRssShmem:\t 104 kB\n";
        let of = |statuses: &[&str]| memory(statuses.iter().map(|status| (*status).to_owned()));
        let expected =
            MemoryUse { working_set_bytes: Some(3_080_192), held_bytes: Some(2_056_192), file_cache_bytes: None };
        assert_eq!(of(&[k6, "Name:\tkthreadd\n", k6]), expected);
        let old = of(&[k6, "VmRSS:\t 1 kB\n"]);
        assert_eq!((old.working_set_bytes, old.held_bytes), (Some(1_541_120), None), "before Linux 4.5");
    }
}
