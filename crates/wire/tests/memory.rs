//! Large files are read in bounded memory. A program of its own, because it measures the peak of the process.

use std::io::Read;

use brewbench_wire::reports::read::read;

/// Repeats the rows of a file after its header, without keeping them.
struct Rows<F> {
    row: F,
    next: u64,
    total: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl<F: FnMut(u64) -> String> Read for Rows<F> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.buffer.len() && self.next < self.total {
            self.buffer = (self.row)(self.next).into_bytes();
            (self.next, self.at) = (self.next + 1, 0);
        }
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
fn many_different_values_need_bounded_memory_and_have_a_stated_error() {
    // More than are kept apart.
    const ROWS: u64 = 600_011;
    let row = |row: u64| {
        let start = if row == 0 {
            "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
        } else {
            ""
        };
        // Each of 0.000 to 600.010 ms once, in no order.
        let ms = (row * 7_919 % ROWS) as f64 / 1_000.0;
        format!("{start}{:.6},0,0,0,0,0,200,{}\n", ms / 1e3, row / 1_000)
    };
    let before = peak_bytes();
    let report =
        read(Rows { row, next: 0, total: ROWS, buffer: Vec::new(), at: 0 }).expect("a result").reports.remove(0);
    let grown = peak_bytes() - before;
    assert_eq!(report.requests, Some(ROWS));
    for percent in [50.0, 90.0, 99.0, 99.9] {
        let expected = percent / 100.0 * 600.010;
        let found = report.latency.percentile(percent).expect("known");
        // hey prints four decimals of a second.
        let most = 0.05 + 1e-5 * expected;
        assert!(found.error_ms > 0.0 && found.error_ms < most, "{percent}: {found:?}");
        assert!((found.ms - expected).abs() <= found.error_ms + 1e-9, "{percent}: {found:?} instead of {expected}");
    }
    assert!(grown < 64 << 20, "{} MiB", grown >> 20);
}
