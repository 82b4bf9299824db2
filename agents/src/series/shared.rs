//! Total use of the run's cores and network while it was measured, including other programs. Pure.

use brewbench_wire::outcome::{CoreUse, Cores, NetworkUse};
use brewbench_wire::series::Consumption;

/// Counters of cores and network since the previous sample, as far as the kernel reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// CPU time of all programs and of the kernel on the run's CPUs, microseconds.
    pub busy_us: Option<u64>,
    /// CPU time of the target's Pods on this machine, microseconds: they may use any CPU.
    pub pods_us: Option<u64>,
    /// How long the target's threads waited for a CPU, summed over them, microseconds.
    pub target_waited_us: Option<u64>,
    /// How long k6's threads did.
    pub generator_waited_us: Option<u64>,
    /// Bytes received by the interface of the load.
    pub received_bytes: Option<u64>,
    /// Bytes sent by it.
    pub sent_bytes: Option<u64>,
    /// TCP segments sent, including retransmissions.
    pub segments: Option<u64>,
    /// TCP segments retransmitted.
    pub retransmitted: Option<u64>,
}

impl Shared {
    /// Adds the next sample; a value unknown in either is unknown.
    pub fn add(&mut self, next: Self) {
        *self = self.with(next, u64::saturating_add);
    }

    /// Returns the difference to earlier counters.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, and: fn(u64, u64) -> u64) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(and(a?, b?));
        Self {
            busy_us: both(self.busy_us, other.busy_us),
            pods_us: both(self.pods_us, other.pods_us),
            target_waited_us: both(self.target_waited_us, other.target_waited_us),
            generator_waited_us: both(self.generator_waited_us, other.generator_waited_us),
            received_bytes: both(self.received_bytes, other.received_bytes),
            sent_bytes: both(self.sent_bytes, other.sent_bytes),
            segments: both(self.segments, other.segments),
            retransmitted: both(self.retransmitted, other.retransmitted),
        }
    }
}

/// The usage between two samples.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Time between them.
    pub elapsed_us: u64,
    /// Used by the target's processes.
    pub target: Consumption,
    /// Used by k6.
    pub generator: Consumption,
    /// Used by everything on these cores and this interface.
    pub shared: Shared,
}

/// Returns CPU time on the run's CPUs. Skips spans in which a side that has CPUs could not be sampled.
pub fn core_use(spans: &[Span], cores: &Cores) -> Option<CoreUse> {
    let mut own: Vec<usize> = cores.all().collect();
    own.sort_unstable();
    own.dedup();
    let cpu_us = |side: Consumption, cores: &[usize], none| if cores.is_empty() { none } else { side.cpu_us };
    let known = spans.iter().filter_map(|span| {
        let Span { elapsed_us, target, generator, shared } = *span;
        let target_us = cpu_us(target, &cores.target, shared.pods_us)?;
        let used = [elapsed_us, shared.busy_us?, target_us, cpu_us(generator, &cores.generator, Some(0))?];
        let waited = |cores: &[usize], waited_us| if cores.is_empty() { Some(0) } else { waited_us };
        let target_waited_us = waited(&cores.target, shared.target_waited_us);
        Some((used, [target_waited_us, waited(&cores.generator, shared.generator_waited_us)]))
    });
    let none_yet = ([0_u64; 4], [Some(0_u64); 2]);
    let ([elapsed_us, busy_us, target_us, generator_us], waited) =
        known.fold(none_yet, |(mut sum, mut waits), next| {
            sum.iter_mut().zip(next.0).for_each(|(sum, next)| *sum = sum.saturating_add(next));
            waits.iter_mut().zip(next.1).for_each(|(sum, next)| *sum = sum.zip(next).map(|(a, b)| a.saturating_add(b)));
            (sum, waits)
        });
    let cores = u32::try_from(own.len()).ok().filter(|cores| *cores > 0)?;
    let [target_waited_us, generator_waited_us] = waited;
    (elapsed_us > 0).then_some(CoreUse {
        cores,
        elapsed_us,
        busy_us,
        target_us,
        generator_us,
        target_waited_us,
        generator_waited_us,
    })
}

/// Returns network usage. The peak is that of the busiest third, as a load in stages peaks only in a part of the run.
pub fn network_use(spans: &[Span], interface: Option<&str>, speed_bits: Option<u64>) -> NetworkUse {
    let sum = |value: fn(&Shared) -> Option<u64>, spans: &[Span]| {
        let known: Option<Vec<u64>> = spans.iter().map(|span| value(&span.shared)).collect();
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

/// Splits spans into three parts of nearly equal length; one if there are fewer than three.
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
            pods_us: Some(0),
            target_waited_us: Some(20_000),
            generator_waited_us: Some(30_000),
            received_bytes: Some(received_bytes),
            sent_bytes: Some(10),
            segments: Some(1_000),
            retransmitted: Some(2),
        };
        Span { elapsed_us: 1_000_000, target: used(300_000), generator: used(400_000), shared }
    }

    #[test]
    fn cpu_time_of_others_is_the_rest_on_the_cores_of_the_run() {
        let cores = Cores { target: vec![2, 3], generator: vec![0, 3] };
        let [unknown, mut blind] = [span(0), span(0)];
        blind.generator.cpu_us = None;
        let spans = [unknown, span(0), blind];
        let expected = CoreUse {
            cores: 3,
            elapsed_us: 2_000_000,
            busy_us: 1_800_000,
            target_us: 600_000,
            generator_us: 800_000,
            target_waited_us: Some(40_000),
            generator_waited_us: Some(60_000),
        };
        assert_eq!(core_use(&spans, &cores), Some(expected));
        let mut uncounted = span(0);
        uncounted.shared.target_waited_us = None;
        let waits =
            core_use(&[span(0), uncounted], &cores).map(|used| (used.target_waited_us, used.generator_waited_us));
        assert_eq!(waits, Some((None, Some(60_000))));
        let host = Cores { target: vec![1], generator: Vec::new() };
        assert_eq!(core_use(&spans, &host).map(|used| (used.elapsed_us, used.generator_us)), Some((3_000_000, 0)));
        let mut beside_pods = span(0);
        beside_pods.shared.pods_us = Some(200_000);
        let load = Cores { target: Vec::new(), generator: vec![0, 1] };
        assert_eq!(core_use(&[beside_pods], &load).map(|used| used.target_us), Some(200_000));
        assert_eq!((core_use(&[], &cores), core_use(&spans, &Cores::default())), (None, None));
    }

    #[test]
    fn the_peak_is_of_the_busiest_third_and_counts_are_totals() {
        let spans = [1_000, 1_000, 1_000, 125_000_000, 1_000, 1_000].map(span);
        let used = network_use(&spans, Some("eth0"), Some(1_000_000_000));
        assert_eq!((used.peak_bits, used.segments, used.retransmitted), (Some(500_004_000), Some(6_000), Some(12)));
        let nothing = network_use(&[], None, None);
        assert_eq!((nothing.peak_bits, nothing.segments, nothing.retransmitted), (None, None, None));
        let mut unknown = spans;
        (unknown[0].shared.received_bytes, unknown[5].shared.segments) = (None, None);
        let used = network_use(&unknown, None, None);
        assert_eq!((used.peak_bits, used.segments, used.retransmitted), (Some(500_004_000), None, Some(12)));
    }

    #[test]
    fn counters_become_differences_and_differences_add_up() {
        let at = |busy, sent| Shared { busy_us: busy, sent_bytes: sent, ..Shared::default() };
        assert_eq!(at(Some(9), Some(7)).since(at(Some(4), None)), at(Some(5), None));
        let mut sum = at(Some(1), Some(2));
        sum.add(at(Some(3), Some(4)));
        assert_eq!(sum, at(Some(4), Some(6)));
    }
}
