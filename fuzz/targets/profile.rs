//! Profiles that an endpoint of a target, a command or an agent sends: pprof, collapsed stacks, the output of perf.

#![no_main]

use brewbench_agent::profile::{collapsed, perf::Reader};
use brewbench_wire::profile::{
    ProfileKind,
    pprof::{Facts, decode, encode},
    trim,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for kind in ProfileKind::ALL {
        let Ok(stacks) = decode(bytes, kind) else { continue };
        // Decoded stacks survive a round trip, and trimming keeps their total.
        let data = encode(&stacks, kind, &Facts::default());
        if stacks.total() < i64::MAX as u64 {
            assert_eq!(decode(data.as_bytes(), kind).as_ref(), Ok(&stacks));
            let trimmed = trim::trim(&stacks, kind, &Facts::default()).expect("smaller");
            assert_eq!(trimmed.stacks.total(), stacks.total());
        }
    }
    let _ = collapsed::parse(&String::from_utf8_lossy(bytes), 1);
    let mut reader = Reader::default();
    if reader.feed(bytes).is_ok() {
        let _ = reader.finish();
    }
});
