//! Metrics that k6 pushes during a run: a remote-write message compressed with snappy.

#![no_main]

use brewbench_agent::engine::k6::remote_write::Push;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(push) = Push::unpack(bytes) {
        push.series().take(10_000).for_each(drop);
    }
});
