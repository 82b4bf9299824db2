//! The time series of a run, as agents send it and as it is stored.

#![no_main]

use brewbench_agent::wire::series::Packed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(series) = Packed::from_bytes(bytes.to_vec()).unpack_within(1 << 20) {
        // What was read can be stored, and is then the same.
        assert_eq!(Packed::pack(&series).unpack().as_ref(), Ok(&series));
    }
});
