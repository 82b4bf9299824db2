//! Results of every format, in whatever surrounds them.

#![no_main]

use brewbench_wire::reports::{read, tables::Table};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(contents) = read::read(bytes) {
        for report in contents.reports {
            assert!(report.rate_per_s.is_none_or(|rate| rate.is_finite() && rate >= 0.0), "{report:?}");
            if let Ok(figures) = report.figures() {
                assert!(figures.rps.is_finite() && figures.rps >= 0.0, "{figures:?}");
            }
        }
    }
    if let Some(table) = std::str::from_utf8(bytes).ok().and_then(Table::find) {
        drop(table.reports(&table.guess()));
    }
});
