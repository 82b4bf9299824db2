//! The time series of a run in its wire and storage format.

#![no_main]

use brewbench_wire::series::Packed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(series) = Packed::from_bytes(bytes.to_vec()).unpack_within(1 << 20) {
        // A decoded series survives a round trip.
        assert_eq!(Packed::pack(&series).unpack().as_ref(), Ok(&series));
    }
});
