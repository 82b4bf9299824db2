//! Packing is lossless and compact, and unpacking accepts arbitrary bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn any_histogram() -> impl Strategy<Value = Histogram> {
    let buckets = vec((-60..60_i32, any::<u32>().prop_map(u64::from)), 0..10);
    (0..8_i8, 0..9_u64, any::<u64>(), buckets)
        .prop_map(|(schema, zero, sum, buckets)| Histogram::new(schema, zero, sum, buckets).expect("a histogram"))
}

prop_compose! {
    fn any_second()(
        until_ms: u32, vus: Option<u64>, counts: [u64; 4], succeeded in any_histogram(), failed in any_histogram(),
    ) -> Second {
        let [iterations, dropped_iterations, received_bytes, sent_bytes] = counts;
        Second { until_ms, vus, iterations, dropped_iterations, received_bytes, sent_bytes, succeeded, failed }
    }
}

prop_compose! {
    fn any_consumption()(used: [Option<u64>; 8]) -> Consumption {
        let [cpu_us, throttled_us, memory_bytes, held, cached, peak_memory_bytes, threads, open_files] = used;
        let (held_memory_bytes, file_cache_bytes) = (held, cached);
        Consumption {
            cpu_us, throttled_us, memory_bytes, held_memory_bytes, file_cache_bytes, peak_memory_bytes, threads,
            open_files,
        }
    }
}

prop_compose! {
    fn any_usage()(at_ms: i32, target in any_consumption(), generator in any_consumption(), host: [u64; 7]) -> Usage {
        let [user_us, system_us, steal_us, iowait_us, load_milli, received_bytes, sent_bytes] = host;
        let host = Host { user_us, system_us, steal_us, iowait_us, load_milli, received_bytes, sent_bytes };
        Usage { at_ms, target, generator, host }
    }
}

prop_compose! {
    fn any_stretch()(
        start_ms: i64, seconds in vec(any_second(), 0..5), usage in vec(any_usage(), 0..5), damaged: u64,
        unfinished: u64,
    ) -> Window {
        Window { start_ms, seconds, usage, gaps: Gaps { damaged, unfinished, ..Gaps::default() } }
    }
}

proptest! {
    #[test]
    fn packing_is_lossless(warm_up in option::of(any_stretch()), measured in option::of(any_stretch())) {
        let series = Series { warm_up, measured };
        let packed = Packed::pack(&series);
        prop_assert_eq!(packed.unpack(), Ok(series));
        let json = serde_json::to_string(&packed).expect("written");
        prop_assert_eq!(serde_json::from_str::<Packed>(&json).expect("read"), packed);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..300)) {
        let mut encoder = DeflateEncoder::new(vec![VERSION], Compression::fast());
        encoder.write_all(&bytes).expect("written");
        let _ = Packed(encoder.finish().expect("written")).unpack();
        let _ = Packed(bytes).unpack();
    }

    #[test]
    fn a_damaged_series_does_not_panic(window in any_stretch(), at: prop::sample::Index, byte: u8) {
        let mut writer = Writer::default();
        writer.number(0);
        writer.number(1);
        write_stretch(&mut writer, &window);
        let mut bytes = writer.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut encoder = DeflateEncoder::new(vec![VERSION], Compression::fast());
        encoder.write_all(&bytes).expect("written");
        let _ = Packed(encoder.finish().expect("written")).unpack();
    }
}

#[test]
fn a_series_of_protocol_25_has_neither_held_memory_nor_file_cache() {
    let mut writer = Writer::default();
    writer.number(0);
    writer.number(1);
    writer.signed(7);
    for _ in gaps_as_numbers(&Gaps::default()) {
        writer.number(0);
    }
    writer.number(0);
    write_seconds(&mut writer, &[]);
    writer.number(1);
    writer.column([5].into_iter());
    for used in (1..=12).map(Some) {
        writer.optional([used].into_iter());
    }
    for host in 13..=19 {
        writer.column([host].into_iter());
    }
    let mut encoder = DeflateEncoder::new(vec![WORKING_SET_ONLY], Compression::fast());
    encoder.write_all(&writer.into_bytes()).expect("written");
    let read = Packed(encoder.finish().expect("written")).unpack().expect("a series");
    let usage = read.measured.expect("a window").usage[0];
    let (target, generator) = (usage.target, usage.generator);
    assert_eq!((target.memory_bytes, target.open_files, generator.cpu_us), (Some(3), Some(6), Some(7)));
    assert_eq!((target.held_memory_bytes, target.file_cache_bytes, usage.host.sent_bytes), (None, None, 19));
}

#[test]
fn other_versions_are_refused() {
    let mut packed = Packed::pack(&Series::default());
    assert_eq!(packed.unpack(), Ok(Series::default()));
    packed.0[0] = VERSION + 1;
    assert_eq!(packed.unpack(), Err(DecodeError));
    assert_eq!(Packed(Vec::new()).unpack(), Err(DecodeError));
}

/// Returns pseudorandom numbers, which compress badly.
fn noise(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn half_a_minute_takes_less_than_64_kilobytes() {
    let mut seed = 1;
    let mut histogram = || {
        let buckets: Vec<_> = (-90..10).map(|index| (index, 1 + noise(&mut seed, 2000))).collect();
        Histogram::new(3, 0, noise(&mut seed, 1 << 40), buckets).expect("a histogram")
    };
    let mut window = Window::default();
    for number in 1..=30_u32 {
        let (succeeded, failed) = (histogram(), histogram());
        window.seconds.push(Second { until_ms: number * 1000, succeeded, failed, ..Second::default() });
    }
    let mut counts = || noise(&mut seed, 1 << 30);
    for (second, number) in window.seconds.iter_mut().zip(1..) {
        (second.iterations, second.received_bytes, second.sent_bytes) = (counts(), counts(), counts());
        let mut side = || Consumption {
            cpu_us: Some(counts()),
            throttled_us: Some(counts()),
            memory_bytes: Some(counts()),
            held_memory_bytes: Some(counts()),
            file_cache_bytes: Some(counts()),
            peak_memory_bytes: Some(counts()),
            threads: Some(counts()),
            open_files: Some(counts()),
        };
        let (target, generator) = (side(), side());
        let host = Host { user_us: counts(), system_us: counts(), load_milli: counts(), ..Host::default() };
        window.usage.push(Usage { at_ms: number * 1000, target, generator, host });
    }
    let packed = Packed::pack(&Series { warm_up: Some(window.clone()), measured: Some(window) });
    assert!(packed.as_bytes().len() <= 64 << 10, "{packed:?}");
}
