//! Reports of load generators: every shape of k6's JSON, its text report, the output of wrk.

#![no_main]

use brewbench_wire::reports::read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(summary) = read::parse(bytes) {
        let figures = summary.figures();
        assert!(figures.rps.is_finite() && figures.rps >= 0.0, "{figures:?}");
    }
});
