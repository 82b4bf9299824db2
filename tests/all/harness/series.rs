//! Series as an agent would send them.

use brewbench_agent::{
    series::histogram::Histogram,
    wire::{
        now_ms,
        series::{Consumption, Host, Packed, Second, Series, Stretch, Usage},
    },
};

/// Ten seconds, one like the other, after two of warm-up, packed.
pub fn steady() -> Packed {
    Packed::pack(&Series { warm_up: Some(stretch(2)), measured: Some(stretch(10)) })
}

/// So many seconds, one like the other: 1,000 requests of about a millisecond, half a core for the target, a third for
/// k6, and nothing else on the machine.
pub fn stretch(seconds: u32) -> Stretch {
    Stretch {
        start_ms: now_ms(),
        seconds: (1..=seconds).map(|number| second(number * 1_000)).collect(),
        usage: (0..=i32::try_from(seconds).expect("small")).map(|number| usage(number * 1_000)).collect(),
        ..Stretch::default()
    }
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
    // The first sample tells levels only.
    let spent = |us: u64| if at_ms == 0 { 0 } else { us };
    let side = |cpu_us, memory| Consumption {
        cpu_us: Some(spent(cpu_us)),
        throttled_us: Some(0),
        memory_bytes: Some(memory),
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
