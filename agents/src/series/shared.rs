//! What the run's cores and its network did while it was measured, beside the run itself. Pure.

use crate::wire::outcome::{CoreUse, Cores, NetworkUse};
use crate::wire::series::Consumption;

/// What a sample tells since the one before, as far as the kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// CPU time of all programs and of the kernel on the run's processors, microseconds.
    pub busy_us: Option<u64>,
    /// Received by the interface that the load crosses.
    pub received_bytes: Option<u64>,
    /// Sent by it.
    pub sent_bytes: Option<u64>,
    /// TCP segments that were sent.
    pub segments: Option<u64>,
    /// Those of them that were sent again.
    pub retransmitted: Option<u64>,
}

impl Shared {
    /// Adds the sample that was taken next; what one of them does not know is not known.
    pub fn add(&mut self, next: Self) {
        *self = self.with(next, u64::saturating_add);
    }

    /// What happened since the counters of before.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, and: fn(u64, u64) -> u64) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(and(a?, b?));
        Self {
            busy_us: both(self.busy_us, other.busy_us),
            received_bytes: both(self.received_bytes, other.received_bytes),
            sent_bytes: both(self.sent_bytes, other.sent_bytes),
            segments: both(self.segments, other.segments),
            retransmitted: both(self.retransmitted, other.retransmitted),
        }
    }
}

/// What happened between two samples.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// How long that was.
    pub elapsed_us: u64,
    /// By the target's processes.
    pub target: Consumption,
    /// By k6.
    pub generator: Consumption,
    /// By all.
    pub shared: Shared,
}

/// CPU time on the run's processors. Spans in which a side that has processors could not be sampled are left out.
pub fn core_use(spans: &[Span], cores: &Cores) -> Option<CoreUse> {
    let mut own: Vec<usize> = cores.target.iter().chain(&cores.generator).copied().collect();
    own.sort_unstable();
    own.dedup();
    let of = |side: Consumption, cores: &[usize]| if cores.is_empty() { Some(0) } else { side.cpu_us };
    let known = spans.iter().filter_map(|span| {
        let Span { elapsed_us, target, generator, shared } = *span;
        Some([elapsed_us, shared.busy_us?, of(target, &cores.target)?, of(generator, &cores.generator)?])
    });
    let [elapsed_us, busy_us, target_us, generator_us] = known.fold([0_u64; 4], |mut sum, next| {
        sum.iter_mut().zip(next).for_each(|(sum, next)| *sum = sum.saturating_add(next));
        sum
    });
    let cores = u32::try_from(own.len()).ok().filter(|cores| *cores > 0)?;
    (elapsed_us > 0).then_some(CoreUse { cores, elapsed_us, busy_us, target_us, generator_us })
}

/// What crossed the network. The most is that of the busiest third, for a load in stages has its highest one only there.
pub fn network_use(spans: &[Span], interface: Option<&str>, speed_bits: Option<u64>) -> NetworkUse {
    let sum = |of: fn(&Shared) -> Option<u64>, spans: &[Span]| {
        let known: Option<Vec<u64>> = spans.iter().map(|span| of(&span.shared)).collect();
        known.filter(|known| !known.is_empty()).map(|known| known.into_iter().fold(0, u64::saturating_add))
    };
    let peak = |spans: &[Span]| {
        let elapsed_us = spans.iter().fold(0_u64, |all, span| all.saturating_add(span.elapsed_us));
        let bytes = sum(|shared| shared.received_bytes, spans)?.max(sum(|shared| shared.sent_bytes, spans)?);
        bytes.saturating_mul(8).saturating_mul(1_000_000).checked_div(elapsed_us)
    };
    NetworkUse {
        interface: interface.map(str::to_owned),
        speed_bits,
        peak_bits: thirds(spans).filter_map(peak).max(),
        segments: sum(|shared| shared.segments, spans),
        retransmitted: sum(|shared| shared.retransmitted, spans),
    }
}

/// Three parts of as equal length as can be; one where there are too few for three.
fn thirds(spans: &[Span]) -> impl Iterator<Item = &[Span]> {
    let parts = if spans.len() < 3 { 1 } else { 3 };
    (0..parts).map(move |part| &spans[part * spans.len() / parts..(part + 1) * spans.len() / parts])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu_us: u64) -> Consumption {
        Consumption { cpu_us: Some(cpu_us), ..Consumption::default() }
    }

    fn span(received_bytes: u64) -> Span {
        let shared = Shared {
            busy_us: Some(900_000),
            received_bytes: Some(received_bytes),
            sent_bytes: Some(10),
            segments: Some(1_000),
            retransmitted: Some(2),
        };
        Span { elapsed_us: 1_000_000, target: used(300_000), generator: used(400_000), shared }
    }

    #[test]
    fn cpu_time_of_others_is_what_is_left_on_the_cores_of_the_run() {
        let cores = Cores { target: vec![2, 3], generator: vec![0, 3] };
        let [unknown, mut blind] = [span(0), span(0)];
        blind.generator.cpu_us = None;
        let spans = [unknown, span(0), blind];
        let expected =
            CoreUse { cores: 3, elapsed_us: 2_000_000, busy_us: 1_800_000, target_us: 600_000, generator_us: 800_000 };
        assert_eq!(core_use(&spans, &cores), Some(expected));
        let host = Cores { target: vec![1], generator: Vec::new() };
        assert_eq!(core_use(&spans, &host).map(|used| (used.elapsed_us, used.generator_us)), Some((3_000_000, 0)));
        assert_eq!((core_use(&[], &cores), core_use(&spans, &Cores::default())), (None, None));
    }

    #[test]
    fn the_busiest_third_has_the_peak_and_counts_are_of_all() {
        let spans = [1_000, 1_000, 1_000, 125_000_000, 1_000, 1_000].map(span);
        let seen = network_use(&spans, Some("eth0"), Some(1_000_000_000));
        assert_eq!((seen.peak_bits, seen.segments, seen.retransmitted), (Some(500_004_000), Some(6_000), Some(12)));
        let nothing = network_use(&[], None, None);
        assert_eq!((nothing.peak_bits, nothing.segments, nothing.retransmitted), (None, None, None));
        let mut unknown = spans;
        (unknown[0].shared.received_bytes, unknown[5].shared.segments) = (None, None);
        let seen = network_use(&unknown, None, None);
        assert_eq!((seen.peak_bits, seen.segments, seen.retransmitted), (Some(500_004_000), None, Some(12)));
    }

    #[test]
    fn counters_become_differences_and_differences_sums() {
        let at = |busy, sent| Shared { busy_us: busy, sent_bytes: sent, ..Shared::default() };
        assert_eq!(at(Some(9), Some(7)).since(at(Some(4), None)), at(Some(5), None));
        let mut sum = at(Some(1), Some(2));
        sum.add(at(Some(3), Some(4)));
        assert_eq!(sum, at(Some(4), Some(6)));
    }
}
