//! Time series as an agent sends them.

use std::ops::RangeInclusive;

use brewbench_wire::{
    RunId,
    histogram::Histogram,
    now_ms,
    reports::read,
    series::{Consumption, Delta, Host, Packed, Second, Series, Usage, Window, WindowKind},
};

/// Ten identical seconds after two of warm-up, packed.
pub fn constant_series() -> Packed {
    let (warm_up, measured) = (window(2), window(10));
    let start_ms = warm_up.start_ms + 3_000;
    Packed::pack(&Series { warm_up: Some(warm_up), measured: Some(Window { start_ms, ..measured }) })
}

/// A series with the duration and the number of requests of a summary, packed.
pub fn matching_series(summary: &str) -> Packed {
    let Ok(summary) = read::parse(summary.as_bytes()) else { return constant_series() };
    let figures = summary.figures();
    let count =
        (1..100_000_u32).find(|count| f64::from(*count) * 1_000.0 + 500.0 >= figures.measured_ms).expect("a duration");
    let mut window = window(count);
    for (number, second) in (0_u64..).zip(&mut window.seconds) {
        // The first seconds get the remainder.
        let requests = figures.requests / u64::from(count) + u64::from(number < figures.requests % u64::from(count));
        second.succeeded = Histogram::new(3, 0, requests * 1_000_000, [(-80, requests)]).expect("a histogram");
        second.iterations = requests;
    }
    Packed::pack(&Series { warm_up: None, measured: Some(window) })
}

/// Identical seconds: 1,000 requests of about a millisecond, half a core for the target, a third for k6, and nothing
/// else on the machine.
pub fn window(seconds: u32) -> Window {
    Window {
        start_ms: now_ms(),
        seconds: (1..=seconds).map(|number| second(number * 1_000)).collect(),
        usage: (0..=i32::try_from(seconds).expect("small")).map(|number| usage(number * 1_000)).collect(),
        ..Window::default()
    }
}

/// A range of seconds of a run with their usage, after a warm-up of three seconds. The first sample of the measurement
/// is omitted, because timestamps are unique.
pub fn delta(run: RunId, part: WindowKind, seconds: RangeInclusive<u32>) -> Delta {
    let after = seconds.start() - 1;
    let all = window(*seconds.end());
    let from_ms = if part == WindowKind::WarmUp && after == 0 { i32::MIN } else { after.cast_signed() * 1_000 };
    let usage = all.usage.into_iter().filter(|usage| usage.at_ms > from_ms);
    let mut series = Series::default();
    *series.part_mut(part) = Some(Window {
        start_ms: if part == WindowKind::WarmUp { 1_790_000_000_000 } else { 1_790_000_003_000 },
        seconds: all.seconds.into_iter().filter(|second| second.until_ms > after * 1_000).collect(),
        usage: usage.collect(),
        ..Window::default()
    });
    let usage_after_ms = if after == 0 { i32::MIN } else { after.cast_signed() * 1_000 };
    Delta { run, seconds_after_ms: after * 1_000, usage_after_ms, points: Packed::pack(&series) }
}

fn second(until_ms: u32) -> Second {
    // Bucket n of schema 3 ends at 2^(n/8) seconds: from 0.84 to 1.19 ms.
    let latencies = [(-81, 200), (-80, 300), (-79, 300), (-78, 200)];
    Second {
        until_ms,
        vus: Some(10),
        iterations: 1_000,
        received_bytes: 1_000_000,
        sent_bytes: 80_000,
        succeeded: Histogram::new(3, 0, 1_000_000_000, latencies).expect("a histogram"),
        ..Second::default()
    }
}

fn usage(at_ms: i32) -> Usage {
    // The first sample has levels only.
    let spent = |us: u64| if at_ms == 0 { 0 } else { us };
    let side = |cpu_us, memory| Consumption {
        cpu_us: Some(spent(cpu_us)),
        throttled_us: Some(0),
        memory_bytes: Some(memory + (1 << 20)),
        held_memory_bytes: Some(memory),
        file_cache_bytes: Some(2 << 20),
        peak_memory_bytes: Some(memory),
        threads: Some(4),
        open_files: Some(20),
    };
    Usage {
        at_ms,
        target: side(500_000, 20 << 20),
        generator: side(330_000, 200 << 20),
        host: Host { user_us: spent(600_000), system_us: spent(240_000), load_milli: 300, ..Host::default() },
    }
}
